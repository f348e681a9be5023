/**
 * One connection to a session, from `hello` to its close: sends commands, hands out events by type and audio frames
 * with their place on the timeline.
 */
import type {
  AudioDescription,
  Command,
  ConfigureCommand,
  ConfiguredEvent,
  DialogueCommand,
  Event,
  HelloEvent,
  InterruptCommand,
  InterruptedEvent,
  PlayedCommand,
  PongEvent,
  SpeakCommand,
  TextCommand,
  UtteranceDoneEvent,
  UtteranceQueuedEvent,
} from "../protocol/vocabulary.ts";
import { clientError, VoicewireError } from "./client-error.ts";
import { parseEvent } from "./events.ts";
import { FrameClock, type FramePosition } from "./frame-clock.ts";
import { contained, type EventOf, type EventType, Listeners, type Unsubscribe } from "./listeners.ts";
import { Replies } from "./replies.ts";
import { SOCKET_OPEN, type SocketEnd, type WebSocketLike } from "./socket.ts";

/** A command's fields, without the `type` that the method fills in. */
type Fields<C extends { readonly type: string }> = Omit<C, "type">;
export type SpeakFields = Fields<SpeakCommand>;
export type TextOptions = Omit<Fields<TextCommand>, "text">;
export type DialogueFields = Fields<DialogueCommand>;
export type AudioHandler = (frame: Uint8Array, info: FramePosition) => void;

export class Connection {
  /** What the gateway said when we joined: session, epoch, settings, limits. */
  readonly hello: HelloEvent;
  /** Resolves once, with the code and reason of the close; never rejects. */
  readonly closed: Promise<SocketEnd>;
  readonly #socket: WebSocketLike;
  readonly #listeners = new Listeners();
  readonly #audioHandlers = new Set<AudioHandler>();
  readonly #replies = new Replies();
  readonly #clock = new FrameClock();
  readonly #idPrefix = randomPrefix();
  #audio: AudioDescription | null;
  /** Utterances that have begun here and are not over. */
  /** What came before the caller could attach its handlers; null once it is handed out. */
  #held: unknown[] | null = [];
  /** How to end each `say` that waits for its end. */
  readonly #unsaid = new Set<(error: VoicewireError) => void>();
  #utteranceCount = 0;
  #pingCount = 0;

  /** `socket` is open and has just delivered `hello`; use `connect()`. */
  constructor(socket: WebSocketLike, hello: HelloEvent) {
    this.#socket = socket;
    this.hello = hello;
    this.#audio = hello.audio;
    this.#clock.restart(hello.audio);
    socket.addEventListener("message", ({ data }) => {
      if (this.#held === null) this.#socketOnMessage(data);
      else this.#held.push(data);
    });
    // A joiner gets frames in the same packet as `hello`: they wait one turn of the loop for its handlers.
    setTimeout(() => this.#release(), 0);
    this.closed = new Promise((resolve) => {
      socket.addEventListener("close", ({ code, reason }) => {
        this.#release();
        const message = `Connection to ${hello.session}: closed with ${code} ${reason}`;
        this.#replies.failAll("connection_lost", message);
        for (const fail of [...this.#unsaid]) fail(clientError("connection_lost", message));
        resolve({ code, reason });
      });
    });
  }

  /** How the frames that come now are to be read; null with format=none. */
  get audio(): AudioDescription | null {
    return this.#audio;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === SOCKET_OPEN;
  }

  /** Calls `handler` with every event of this type; returns how to stop that. */
  on<T extends EventType>(type: T, handler: (event: EventOf<T>) => void): Unsubscribe {
    return this.#listeners.on(type, handler);
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
   * Says a text to its end: resolves at its `utterance.done` (outcome `done` or `interrupted`), rejects when it was
   * refused, failed, or the connection ended first.
   */
  say(what: string | SpeakFields): Promise<UtteranceDoneEvent> {
    const fields = typeof what === "string" ? { text: what } : what;
    const utterance_id = fields.utterance_id ?? this.newUtteranceId();
    const done = new Promise<UtteranceDoneEvent>((resolve, reject) => {
      const settle = (): void => {
        stopListening();
        this.#unsaid.delete(fail);
      };
      const fail = (error: unknown): void => {
        settle();
        reject(error);
      };
      const stopListening = this.on("utterance.done", (event) => {
        if (event.utterance_id !== utterance_id) return;
        if (event.outcome === "failed") fail(new VoicewireError(event.error ?? UNEXPLAINED_FAILURE));
        else {
          settle();
          resolve(event);
        }
      });
      this.#unsaid.add(fail);
      this.speak({ ...fields, utterance_id }).catch(fail);
    });
    done.catch(() => undefined);
    return done;
  }

  /** Adds a token to an utterance whose text comes bit by bit; the first one may carry the voice. */
  text(text: string, options: TextOptions = {}): void {
    this.#send({ type: "text", text, ...options });
  }

  /** Speaks the tokens that are there without waiting for the end of a sentence. */
  flush(utteranceId?: string): void {
    this.#send({ type: "flush", ...idField(utteranceId) });
  }

  /** No more tokens will come for this utterance. */
  end(utteranceId?: string): void {
    this.#send({ type: "end", ...idField(utteranceId) });
  }

  /** Stops one utterance, or the speaking and all queued ones; resolves with the (first) receipt of what was heard. */
  interrupt(options: Fields<InterruptCommand> = {}): Promise<InterruptedEvent> {
    return this.#ask({ type: "interrupt", ...options }, "interrupted", options.utterance_id);
  }

  /** Asks for a `mark` event when what is queued now has been played (needs `marks` among the events). */
  mark(name: string): void {
    this.#send({ type: "mark", name });
  }

  /** Tells that this listener has played the timeline up to `at_ms`. */
  played(progress: Fields<PlayedCommand>): void {
    this.#send({ type: "played", ...progress });
  }

  /** Changes what this connection gets; frames after the answer follow its description. */
  configure(settings: Fields<ConfigureCommand>): Promise<ConfiguredEvent> {
    return this.#ask({ type: "configure", ...settings }, "configured");
  }

  ping(): Promise<PongEvent> {
    this.#pingCount += 1;
    return this.#ask({ type: "ping", id: this.#pingCount }, "pong", this.#pingCount);
  }

  /** Leaves the session; resolves when the socket is closed. May be called again. */
  close(): Promise<SocketEnd> {
    if (this.isOpen) {
      this.#send({ type: "close" });
      this.#socket.close(1000, "client closed");
    }
    return this.closed;
  }

  #ask<T extends EventType>(command: Command, kind: T, id?: string | number): Promise<EventOf<T>> {
    const answer = this.#replies.expect(kind, id);
    if (this.isOpen) this.#send(command);
    else this.#replies.failAll("not_connected", `Command ${command.type}: the connection is closed`);
    return answer;
  }

  #send(command: Command): void {
    if (!this.isOpen) throw clientError("not_connected", `Command ${command.type}: the connection is closed`);
    this.#socket.send(JSON.stringify(command));
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const data of held) this.#socketOnMessage(data);
  }

  #socketOnMessage(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      this.#takeFrame(new Uint8Array(data));
      return;
    }
    const event = parseEvent(data);
    if (event === null) this.#socket.close(4400, "malformed event");
    else this.#take(event);
  }

  #take(event: Event): void {
    // The clock first: handlers may ask for `audio`, and the next frame is already judged by it.
    if (event.type === "gap") this.#clock.skip(event);
    if (event.type === "interrupted" && event.next_ms !== null) this.#clock.moveTo(event.next_ms);
    if (event.type === "configured") {
      this.#audio = event.audio;
      this.#clock.restart(event.audio);
    }
    this.#replies.take(event);
    this.#listeners.dispatch(event);
  }

  #takeFrame(frame: Uint8Array): void {
    const position = this.#clock.next();
    for (const handler of [...this.#audioHandlers]) contained(() => handler(frame, position));
  }
}

const UNEXPLAINED_FAILURE = {
  code: "internal",
  message: "Speech: the gateway gave no reason for its failure",
  retryable: true,
} as const;

function idField(utteranceId: string | undefined): { utterance_id?: string } {
  return utteranceId === undefined ? {} : { utterance_id: utteranceId };
}

/** Six random letters and digits: several speakers of one session must not choose the same ids. */
function randomPrefix(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
}
