/**
 * One connection to a session, from `hello` to its close: sends commands, hands out events by type and audio frames
 * with their place on the timeline.
 */
import type {
  CancelCommand,
  Command,
  ConfigureCommand,
  DialogueCommand,
  InterruptCommand,
  PlayCommand,
  PlayedCommand,
  PrepareCommand,
  ResumeCommand,
  SpeakCommand,
  StopCommand,
  TextCommand,
} from "../protocol/commands.ts";
import type {
  AudioDescription,
  ConfiguredEvent,
  Event,
  HelloEvent,
  InterruptedEvent,
  PongEvent,
  PreparedEvent,
  RefreshedEvent,
  UtteranceDoneEvent,
  UtteranceQueuedEvent,
  UtteranceResumedEvent,
} from "../protocol/events.ts";
import { clientError } from "./client-error.ts";
import type { FramePosition } from "./frame-clock.ts";
import { KeptTexts } from "./kept-texts.ts";
import { Line, type Way } from "./line.ts";
import {
  contained,
  type EventOf,
  type EventType,
  Listeners,
  type NoticeOf,
  type NoticeType,
  type ReconnectedEvent,
  type Unsubscribe,
} from "./listeners.ts";
import { PendingUtterances } from "./pending-utterances.ts";
import { Replies } from "./replies.ts";
import type { SocketEnd, WebSocketLike } from "./socket.ts";
import { TextCredit } from "./text-credit.ts";
import type { TokenSource } from "./token-source.ts";

/** A command's fields, without the `type` that the method fills in. */
type Fields<C extends { readonly type: string }> = Omit<C, "type">;
export type SpeakFields = Fields<SpeakCommand>;
export type TextOptions = Omit<Fields<TextCommand>, "text">;
export type DialogueFields = Fields<DialogueCommand>;
type WithBytes<F> = Omit<F, "audio"> & { readonly audio?: string | Uint8Array };
export type PlayFields = WithBytes<Fields<PlayCommand>>;
export type PrepareFields = WithBytes<Fields<PrepareCommand>>;
export type AudioHandler = (frame: Uint8Array, info: FramePosition) => void;
type Preparation = Pick<ConfigureCommand, "clean" | "replacements">;

export class Connection {
  /** Resolves once, with the code and reason of the last close; never rejects. */
  readonly closed: Promise<SocketEnd>;
  readonly #line: Line;
  readonly #tokens: TokenSource | null;
  readonly #listeners = new Listeners();
  readonly #eventHandlers = new Set<(event: Event) => void>();
  readonly #audioHandlers = new Set<AudioHandler>();
  readonly #replies = new Replies();
  readonly #pending = new PendingUtterances();
  readonly #credit = new TextCredit();
  /** null: the connection ends with its socket, and nothing is sent again. */
  readonly #kept: KeptTexts | null;
  readonly #idPrefix = randomPrefix();
  /** What `configure` said of how our texts are made ready: it is sent again on a new socket. */
  #preparation: Preparation = {};
  #utteranceCount = 0;
  #pingCount = 0;

  /** `socket` is open and has just delivered `hello`; use `connect()`. */
  constructor(socket: WebSocketLike, hello: HelloEvent, way: Way) {
    this.#tokens = way.opening.tokens;
    let end: (end: SocketEnd) => void = () => undefined;
    this.closed = new Promise((resolve) => {
      end = resolve;
    });
    this.#line = new Line(socket, {
      hello,
      way,
      handlers: {
        event: (event) => this.#take(event),
        frame: (frame, position) => this.#takeFrame(frame, position),
        broken: (how) => this.#lineOnBroken(how),
        waiting: (how) => this.#listeners.dispatch({ type: "reconnecting", ...how }),
        rejoined: (how) => this.#lineOnRejoined(how),
        ended: (how) => {
          const error = clientError("connection_lost", this.#describe(how));
          this.#pending.failAll(error);
          this.#credit.failAll(error);
          end(how);
        },
      },
    });
    this.#kept =
      way.policy === null
        ? null
        : new KeptTexts({
            send: (command) => this.#line.send(command),
            isAway: () => this.#line.isAway,
            newId: () => this.newUtteranceId(),
          });
    if (this.#kept !== null) this.#kept.unit = hello.settings.offsets ?? "utf16";
  }

  /** What the gateway said when we joined (last): session, epoch, settings, limits. */
  get hello(): HelloEvent {
    return this.#line.hello;
  }

  /** How the frames that come now are to be read; null with format=none. */
  get audio(): AudioDescription | null {
    return this.#line.audio;
  }

  /** Whether commands can be sent now. */
  get isOpen(): boolean {
    return this.#line.isOpen;
  }

  /** Calls `handler` with every event of this type; returns how to stop that. */
  on<T extends NoticeType>(type: T, handler: (event: NoticeOf<T>) => void): Unsubscribe {
    return this.#listeners.on(type, handler);
  }

  /** Calls `handler` with every event of the gateway, of whatever type; the `hello` that it joined by is `hello`. */
  onEvent(handler: (event: Event) => void): Unsubscribe {
    this.#eventHandlers.add(handler);
    return () => {
      this.#eventHandlers.delete(handler);
    };
  }

  /** Calls `handler` with every audio frame; the bytes are its to keep. */
  onAudio(handler: AudioHandler): Unsubscribe {
    this.#audioHandlers.add(handler);
    return () => {
      this.#audioHandlers.delete(handler);
    };
  }

  /** An id that no other utterance of the session has. */
  newUtteranceId(): string {
    this.#utteranceCount += 1;
    return `${this.#idPrefix}-${this.#utteranceCount}`;
  }

  /** Queues a text; resolves when it is accepted, rejects with the gateway's reason when it is not. */
  speak(what: string | SpeakFields): Promise<UtteranceQueuedEvent> {
    const fields = typeof what === "string" ? { text: what } : what;
    const utterance_id = fields.utterance_id ?? this.newUtteranceId();
    return this.#ask({ type: "speak", ...fields, utterance_id }, "utterance.queued", utterance_id);
  }

  /** Queues a conversation of several voices as one utterance. */
  dialogue(what: DialogueFields | DialogueFields["inputs"]): Promise<UtteranceQueuedEvent> {
    const fields: DialogueFields = "inputs" in what ? what : { inputs: what };
    const utterance_id = fields.utterance_id ?? this.newUtteranceId();
    return this.#ask({ type: "dialogue", ...fields, utterance_id }, "utterance.queued", utterance_id);
  }

  /**
   * Queues a sound (base64, or the bytes of a file or of samples), or what was prepared. With `under` it is mixed into speech
   * instead, and ends by itself or by `stop`: see the events `sound.started` and `sound.ended`.
   */
  play(what: PlayFields): Promise<UtteranceQueuedEvent> {
    const utterance_id = what.utterance_id ?? this.newUtteranceId();
    const command: Command = { type: "play", ...withBase64(what), utterance_id };
    return this.#ask(command, "utterance.queued", utterance_id);
  }

  /** Synthesizes a text, or keeps a sound, for `play({ prepared_id })`; resolves when it can be played at once. */
  prepare(what: string | PrepareFields): Promise<PreparedEvent> {
    const fields = typeof what === "string" ? { text: what } : what;
    const prepared_id = fields.prepared_id ?? this.newUtteranceId();
    return this.#ask({ type: "prepare", ...withBase64(fields), prepared_id }, "prepared", prepared_id);
  }

  /**
   * Says a text to its end: resolves at its `utterance.done` (any outcome but `failed`), rejects when it was refused,
   * failed, or the connection ended first.
   */
  say(what: string | SpeakFields): Promise<UtteranceDoneEvent> {
    const fields = typeof what === "string" ? { text: what } : what;
    const utterance_id = fields.utterance_id ?? this.newUtteranceId();
    return this.#pending.until(utterance_id, this.speak({ ...fields, utterance_id }));
  }

  /**
   * Adds a token to an utterance whose text comes bit by bit; the first one may carry the voice. Returns whether more
   * may follow at once: where not, wait for `ready()`, or the text waits in the gateway until its limits refuse it. With
   * `reconnect` what did not reach the gateway is sent again on the next socket.
   */
  text(text: string, options: TextOptions = {}): boolean {
    if (this.#kept === null) this.#line.send({ type: "text", text, ...options });
    else this.#kept.text(text, options);
    return !this.#credit.isPaused(options.utterance_id);
  }

  /** Whether the text of this utterance (of any) runs so far ahead of the speech that no more should be sent. */
  isPaused(utteranceId?: string): boolean {
    return this.#credit.isPaused(utteranceId);
  }

  /** Resolves when it is not paused, at once where it is not now; rejects with connection_lost. */
  ready(utteranceId?: string): Promise<void> {
    return this.#credit.ready(utteranceId);
  }

  /** Speaks the tokens that are there without waiting for the end of a sentence. */
  flush(utteranceId?: string): void {
    this.#closeText("flush", utteranceId);
  }

  /** No more tokens will come for this utterance. */
  end(utteranceId?: string): void {
    this.#closeText("end", utteranceId);
  }

  /** Stops one utterance, or the speaking and all queued ones; resolves with the (first) receipt of what was heard. */
  interrupt(options: Fields<InterruptCommand> = {}): Promise<InterruptedEvent> {
    return this.#ask({ type: "interrupt", ...options }, "interrupted", options.utterance_id);
  }

  /**
   * Takes what has not begun to speak out of the queue, one utterance or all; each ends with `utterance.done`, outcome
   * `cancelled`. A refusal comes as an `error` event.
   */
  cancel(options: Fields<CancelCommand> = {}): void {
    this.#line.send({ type: "cancel", ...options });
  }

  /** Ends a sound under speech, or all of them; each ends with `sound.ended`. A refusal comes as an `error` event. */
  stop(options: Fields<StopCommand> = {}): void {
    this.#line.send({ type: "stop", ...options });
  }

  /**
   * Goes on with an interrupted utterance, the latest where none is named, from the word it was cut in. Rejects with
   * `nothing_to_resume`, or `resume_expired` where its audio is gone: speak the rest of its text again.
   */
  resume(options: Fields<ResumeCommand> = {}): Promise<UtteranceResumedEvent> {
    return this.#ask({ type: "resume", ...options }, "utterance.resumed", options.utterance_id);
  }

  /** Asks for a `mark` event when what is queued now has been played (needs `marks` among the events). */
  mark(name: string): void {
    this.#line.send({ type: "mark", name });
  }

  /** Tells that this listener has played the timeline up to `at_ms`, or up to a `mark`: one of the two. */
  played(progress: Fields<PlayedCommand>): void {
    this.#line.send({ type: "played", ...progress });
  }

  /**
   * Changes what this connection gets (frames after the answer follow its description), and with `clean` and
   * `replacements` how the texts that it sends from now on are made ready.
   */
  configure(settings: Fields<ConfigureCommand>): Promise<ConfiguredEvent> {
    const { clean = this.#preparation.clean, replacements = this.#preparation.replacements } = settings;
    if (this.#kept !== null && settings.offsets !== undefined) this.#kept.unit = settings.offsets;
    this.#preparation = { ...(clean && { clean }), ...(replacements && { replacements }) };
    return this.#ask({ type: "configure", ...settings }, "configured");
  }

  /**
   * Goes on with a new token, of the same subject and with no wider grants; resolves when the gateway has taken it. Where `token`
   * is a function, this is done in time by itself.
   */
  async refresh(token: string): Promise<RefreshedEvent> {
    const refreshed = await this.#ask({ type: "refresh", token }, "refreshed");
    this.#tokens?.replace(token);
    return refreshed;
  }

  ping(): Promise<PongEvent> {
    this.#pingCount += 1;
    return this.#ask({ type: "ping", id: this.#pingCount }, "pong", this.#pingCount);
  }

  /** While it is reconnecting: does not wait any longer for the next try. */
  tryNow(): void {
    this.#line.tryNow();
  }

  /** Leaves the session; resolves when the socket is closed. May be called again. */
  close(): Promise<SocketEnd> {
    this.#line.close();
    return this.closed;
  }

  #closeText(type: "flush" | "end", utteranceId: string | undefined): void {
    if (this.#kept === null) this.#line.send({ type, ...idField(utteranceId) });
    else this.#kept.close(type, utteranceId);
  }

  #ask<T extends EventType>(command: Command, kind: T, id?: string | number): Promise<EventOf<T>> {
    const answer = this.#replies.expect(kind, id);
    if (this.isOpen) this.#line.send(command);
    else this.#replies.failAll("not_connected", `Command ${command.type}: the connection is closed`);
    return answer;
  }

  #take(event: Event): void {
    this.#replies.take(event);
    this.#credit.take(event);
    this.#kept?.take(event);
    this.#pending.take(event);
    if (event.type === "gap" && event.events !== undefined && event.events > 0) {
      this.#pending.failAll(
        clientError("connection_lost", "Connection: events were missed while it was away"),
      );
    }
    for (const handler of [...this.#eventHandlers]) contained(() => handler(event));
    this.#listeners.dispatch(event);
  }

  #takeFrame(frame: Uint8Array, position: FramePosition): void {
    for (const handler of [...this.#audioHandlers]) contained(() => handler(frame, position));
  }

  #lineOnBroken(end: SocketEnd): void {
    this.#replies.failAll("connection_lost", this.#describe(end));
    this.#credit.away();
  }

  #lineOnRejoined(how: Omit<ReconnectedEvent, "type">): void {
    // Their ends may have passed unseen.
    if (!how.resumed) {
      const goOn = how.takenOver ? (how.hello.utterances ?? []) : [];
      const error = clientError("connection_lost", "Connection: it came back without what it missed");
      this.#pending.failOthers(new Set(goOn), error);
    }
    if (Object.keys(this.#preparation).length > 0) {
      this.configure(this.#preparation).catch(() => undefined);
    }
    // Behind what says how texts are made ready.
    this.#kept?.rejoined(how.hello, how.resumed || how.takenOver);
    this.#credit.back();
    this.#listeners.dispatch({ type: "reconnected", ...how });
  }

  #describe({ code, reason }: SocketEnd): string {
    return `Connection to ${this.hello.session}: closed with ${code} ${reason}`;
  }
}

function idField(utteranceId: string | undefined): { utterance_id?: string } {
  return utteranceId === undefined ? {} : { utterance_id: utteranceId };
}

function withBase64<F extends { readonly audio?: string | Uint8Array }>(
  fields: F,
): Omit<F, "audio"> & { readonly audio?: string } {
  const { audio, ...rest } = fields;
  if (audio === undefined) return rest;
  return { ...rest, audio: typeof audio === "string" ? audio : base64Of(audio) };
}

/** In pieces: a call takes so many arguments only. */
function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/** Six random letters and digits: several speakers of one session must not choose the same ids. */
function randomPrefix(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
}
