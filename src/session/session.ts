/**
 * One live speech stream with one timeline. It owns who is there (ConnectionRegistry), what is said (PlaybackQueue) and what makes it
 * move (PlaybackClock):
 *
 *   upstream --chunk--> RequestScheduler --> Renderer --slices, events--> OutputRouter --batches--> sockets
 *                                               ^ render up to              ^ send up to
 *                                               +------ playhead + lead ----+---- pacer, or the chunk itself when audio is awaited
 *
 * Everything here is synchronous; src/README.md says what calls it ("Who drives what").
 */

import type { Listener } from "../delivery/listener.ts";
import { freshWords, type Rendition } from "../delivery/rendition.ts";
import type { GatewayError } from "../errors.ts";
import { logWith } from "../kit/log.ts";
import { errorBody } from "../protocol/events.ts";
import type { ListenerSettings } from "../protocol/vocabulary.ts";
import type { CueStyle } from "../timing/cues/cue-profiles.ts";
import { msOfTicks } from "../timing/ticks.ts";
import { type CueRecord, CueRecords } from "./captions/cue-records.ts";
import { Marks } from "./client-marks.ts";
import { ConnectionRegistry, type Joining } from "./connections/connection-registry.ts";
import type { Participant } from "./connections/participant.ts";
import { Playout } from "./connections/playout.ts";
import { EventWriter } from "./events/event-writer.ts";
import { SessionHistory } from "./live-view/session-history.ts";
import { SessionView } from "./live-view/session-view.ts";
import { OutputRouter } from "./output/output-router.ts";
import { Interruptions } from "./playback/interrupt.ts";
import { PlaybackClock } from "./playback/playback-clock.ts";
import { PlaybackQueue } from "./playback/playback-queue.ts";
import type { Utterance } from "./playback/utterance.ts";
import { UtteranceCommands } from "./playback/utterance-commands.ts";
import { PreparedStore } from "./prepared/prepared-store.ts";
import type { Need } from "./route.ts";
import type { SavedConnection, SavedSession, SpeechReader } from "./saved-session.ts";
import type { SessionDeps, SessionSettings } from "./session-deps.ts";
import { RestoredSpeech } from "./takeover/restored-speech.ts";
import { SessionReader, saveConnection, sentTicksOf } from "./takeover/save-session.ts";
import { entering, type Tape } from "./tape/tape.ts";
import { TapedListener } from "./tape/taped-listener.ts";
import { tapedOpusAccount } from "./tape/taped-payer.ts";
import { Speakers } from "./text-input/speakers.ts";
import { UnderSounds } from "./under/under-sounds.ts";

export interface SessionOptions {
  readonly id: string;
  readonly epoch: string;
  readonly deps: SessionDeps;
  readonly keeper?: SessionKeeper | null;
  /** Called once, when the session has ended. */
  readonly onClose: (session: Session) => void;
}

/** Keeps elsewhere what a session has accepted, in case its node dies. */
export interface SessionKeeper {
  /** Its texts. */
  changed(session: Session): void;
  /** A connection has come, or has begun or ended a text. */
  connected(session: Session, connection: SavedConnection): void;
  disconnected(session: Session, token: string): void;
  /** The playhead has passed an utterance. */
  passed(session: Session, utteranceId: string): void;
  /** Listeners are about to be sent audio up to its `sentMs`. */
  sending(session: Session): void;
}

/** What the phone calls of a session need to know; `telephony/` brings it with the first call. */
export interface SessionCalls {
  readonly isEmpty: boolean;
  joined(participant: Participant): void;
  drained(participant: Participant): void;
  left(participant: Participant): void;
  /** Throws unknown_call. */
  hangUp(callId: string | undefined): void;
}

export class Session {
  /** null while no call is here. */
  calls: SessionCalls | null = null;
  readonly id: string;
  readonly epoch: string;
  /** What is to be said. */
  readonly utteranceCommands: UtteranceCommands;
  readonly interruptions: Interruptions;
  /** To be played later. */
  readonly prepared: PreparedStore;
  /** Sounds that are played under speech. */
  readonly under: UnderSounds;
  /** Whose texts are still coming. */
  readonly speakers: Speakers;
  /** What operators see of it. */
  readonly view: SessionView;
  readonly #deps: SessionDeps;
  readonly #onClose: (session: Session) => void;
  readonly #output: OutputRouter;
  readonly #writer: EventWriter;
  readonly queue: PlaybackQueue;
  readonly #clock: PlaybackClock;
  readonly #participants = new Set<Participant>();
  readonly #connections: ConnectionRegistry;
  readonly #playout: Playout;
  readonly #marks: Marks;
  readonly #cueRecords: CueRecords;
  readonly #keeper: SessionKeeper | null;
  /** null: it was opened here. */
  #restored: RestoredSpeech | null = null;
  /** Connections that were taken in, where there is a tape. */
  #joined = 0;
  #isClosed = false;

  constructor(options: SessionOptions) {
    const { keeper = null } = options;
    this.#keeper = keeper;
    const deps = { ...options.deps, log: logWith(options.deps.log, { session: options.id }) };
    this.id = options.id;
    this.epoch = options.epoch;
    this.#deps = deps;
    this.#onClose = options.onClose;
    this.prepared = new PreparedStore(deps);
    const { tape } = deps;
    this.#output = new OutputRouter({
      clock: deps.clock,
      ...(tape === undefined ? {} : { randomWords: () => tape.tell("random", [], freshWords) }),
      opusPool: deps.opusPool,
      counters: deps.counters,
      aheadMs: deps.settings.aheadMs,
      keepMs: deps.settings.keepMs,
      onEncodedFrame: () => this.#clock.sendEncodedSoon(),
      onError: (error, rendition) => this.#onEncoderError(error, rendition),
      emitGap: (cursor, gap, event) => {
        deps.counters.framesDropped += gap.frames;
        cursor.framesDropped += gap.frames;
        const seq = this.#output.log.seqBefore(event);
        cursor.notify({ type: "gap", seq, at_ms: msOfTicks(this.#clock.playheadTicks), ...gap });
      },
    });
    this.#cueRecords = new CueRecords(deps.settings, () => this.#clock.playheadTicks);
    const history = new SessionHistory();
    this.#writer = new EventWriter({
      log: this.#output.log,
      counters: deps.counters,
      cueRecords: this.#cueRecords,
      history,
    });
    this.under = new UnderSounds(this.#writer);
    this.#marks = new Marks(this.#writer, deps.settings.maxMarks);
    const maySpeak = (): boolean => deps.settings.nobodyListens === "speak" || this.#connections.isListened;
    this.queue = new PlaybackQueue({
      deps,
      output: this.#output,
      writer: this.#writer,
      under: this.under,
      marks: this.#marks,
      maySpeak,
      playheadTicks: () => this.#clock.playheadTicks,
      heardTicks: () => this.#playout.heardTicks,
      behindTicks: () => this.#playout.behindTicks,
      isPaused: (utterance) => this.speakers.isPaused(utterance),
      onTaken: (utterance) => this.speakers.reportRoom(utterance),
      onIdled: (utterance) => this.speakers.idled(utterance),
      onTextOver: (utterance) => this.speakers.forget(utterance),
      onProgress: () => this.#clock.onProgress(),
      onPassed: (utterance) => keeper?.passed(this, utterance.id),
    });
    this.#clock = new PlaybackClock({
      clock: deps.clock,
      pacer: deps.pacer,
      counters: deps.counters,
      output: this.#output,
      queue: this.queue,
      renderer: this.queue.renderer,
      requests: this.queue.requests,
      aheadMs: deps.settings.aheadMs,
      maySpeak,
      onSending: keeper === null ? null : () => keeper.sending(this),
      onDry: (atTicks) => {
        deps.counters.underruns += 1;
        history.ranDry(atTicks);
      },
    });
    const parts = {
      deps,
      output: this.#output,
      queue: this.queue,
      writer: this.#writer,
      clock: this.#clock,
    };
    const participants = this.#participants;
    this.speakers = new Speakers({ ...parts, participants });
    this.#connections = new ConnectionRegistry({
      ...parts,
      session: { id: options.id, epoch: options.epoch },
      participants,
      speakers: this.speakers,
      onDeserted: (error) => this.close(error),
    });
    this.#playout = new Playout({ ...parts, participants });
    const { queue } = this;
    this.view = new SessionView({ name: this.id, deps, participants, queue, history, playhead: this.#clock });
    const onGone = (utterance: Utterance): void => {
      this.speakers.forget(utterance);
      this.changed();
    };
    this.interruptions = new Interruptions({ ...parts, under: this.under, playout: this.#playout, onGone });
    this.utteranceCommands = new UtteranceCommands({
      ...parts,
      sessionId: options.id,
      interruptions: this.interruptions,
      under: this.under,
      onGone,
    });
    if (deps.settings.captions === "always") this.captionsOf({ profile: "web", mode: "pop-on" });
    deps.counters.sessionsOpened += 1;
  }

  /** Connections, speakers and listeners. */
  get connectionCount(): number {
    return this.#participants.size;
  }
  /** Who is there, in the order of coming. */
  get participants(): Iterable<Participant> {
    return this.#participants;
  }
  get isIdle(): boolean {
    return this.queue.isIdle;
  }
  /** A phone call is here. */
  get hasCalls(): boolean {
    return this.calls?.isEmpty === false;
  }
  /** The first utterance that is not over; null: none. */
  get currentId(): string | null {
    return this.queue.notOver[0]?.id ?? null;
  }
  /** Memory of the audio that is kept for `resume` while it is spoken. */
  get recentAudioBytes(): number {
    return this.queue.recentAudioBytes;
  }
  /** Utterances that are not over. */
  get utteranceCount(): number {
    return this.queue.notOver.length;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }
  get deps(): SessionDeps {
    return this.#deps;
  }
  /** What its listeners need now. */
  renditionsInUse(): Need[] {
    return this.#output.renditionsInUse();
  }
  get settings(): SessionSettings {
    return this.#deps.settings;
  }

  nowMs(): number {
    return this.#deps.clock.nowMs();
  }

  // ---- connections ---------------------------------------------------------------------------------------------

  /** Takes a connection in and greets it. Throws listener_limit, encoder_failed. */
  join(listener: Listener, joining: Joining): Participant {
    const { tape } = this.#deps;
    const participant =
      tape === undefined ? this.#join(listener, joining) : this.#joinTaped(listener, joining, tape);
    this.calls?.joined(participant);
    this.connectionChanged(participant);
    return participant;
  }

  #join(listener: Listener, joining: Joining): Participant {
    return this.#connections.join(listener, { ...joining, fromTicks: this.#beginRestored(joining) });
  }

  #joinTaped(listener: Listener, joining: Joining, tape: Tape): Participant {
    this.#joined += 1;
    const number = this.#joined;
    const { mayInterrupt, opusAccount, ...asked } = joining;
    const taped: Joining = {
      ...asked,
      ...(mayInterrupt && { mayInterrupt: () => tape.read("mayInterrupt", false, mayInterrupt) }),
      ...(opusAccount && { opusAccount: tapedOpusAccount(opusAccount, tape) }),
    };
    return tape.enter("join", [number, { ...asked, account: opusAccount?.id ?? null }], () =>
      this.#join(new TapedListener(listener, { tape, number }), taped),
    );
  }

  /**
   * The connection has gone. Text that it left open waits for it as long as the session would (`grace-ms`), unless it
   * `isFinal`: its client has closed it and not lost it. Idempotent.
   */
  leave(participant: Participant, how: { readonly isFinal?: boolean } = {}): void {
    entering(this.#deps.tape, { name: "leave", says: () => [participant.id, how] }, () =>
      this.#connections.leave(participant, how),
    );
    this.calls?.left(participant);
    this.#keeper?.disconnected(this, participant.returnToken);
  }

  /** Other settings for a connection; it goes on at the playhead. Throws encoder_failed. */
  resubscribe(participant: Participant, settings: ListenerSettings): void {
    this.#connections.resubscribe(participant, settings);
  }

  /** The connection's socket has taken what it was behind with. */
  drained(participant: Participant): void {
    this.calls?.drained(participant);
    entering(this.#deps.tape, { name: "drained", says: () => [participant.id] }, () => {
      this.#output.catchUp(participant.subscription);
      this.#clock.advance();
    });
  }

  /** How far on the timeline this connection has been sent audio, ms; without audio, how far there is any. */
  sentMsOf(participant: Participant): number {
    return msOfTicks(participant.sentTicks(this.queue.writeTicks));
  }

  /**
   * Whether this connection was sent all that has begun to its end: what comes next is silence, or another utterance. Never
   * where sounds go on alone.
   */
  isSentOut(participant: Participant): boolean {
    if (this.queue.renderer.writeHead.isUnderOnly) return false;
    const last = this.queue.notOver.findLast((utterance) => utterance.startTicks !== null);
    if (last === undefined) return true;
    return last.endTicks !== null && this.sentMsOf(participant) >= msOfTicks(last.endTicks);
  }

  /** The captions that are remembered in a style: from now on, where nobody has asked for them before. */
  captionsOf(style: CueStyle): CueRecord {
    return entering(this.#deps.tape, { name: "captions", says: () => [style] }, () => {
      this.#output.keepCues(style);
      const record = this.#cueRecords.of(style);
      this.queue.layOutCues();
      return record;
    });
  }

  // ---- speaking ------------------------------------------------------------------------------------------------

  /** Text was added, flushed or ended: there may be something to request, or an end to emit. */
  textChanged(): void {
    entering(this.#deps.tape, { name: "textChanged", says: () => [] }, () => {
      this.queue.requestNext();
      this.#clock.advance();
    });
    this.changed();
  }

  /** Echoed when everything queued so far has been played; at once when nothing is. Throws queue_full. */
  mark(name: string): void {
    this.#marks.add(name, { last: this.queue.notOver.at(-1), atTicks: this.#clock.playheadTicks });
    this.#clock.advance();
  }

  /** Where a mark stood that was echoed, ms. */
  markMs(name: string): number | undefined {
    const ticks = this.#marks.ticksOf(name);
    return ticks === undefined ? undefined : msOfTicks(ticks);
  }

  // ---- going on at another node --------------------------------------------------------------------------------

  /** What another node needs to go on with it, as it is now. */
  save(): SavedSession {
    const connections = Array.from(this.#participants, saveConnection);
    return { ...this.speechReader().readAll(), connections };
  }

  /** Reads what `save` gives but for the connections, as it is at each reading. */
  speechReader(): SpeechReader {
    const playheadTicks = (): number => this.#clock.playheadTicks;
    return new SessionReader({ queue: this.queue, output: this.#output, marks: this.#marks, playheadTicks });
  }

  /** End of the audio that is rendered, ms on the timeline. */
  get renderedMs(): number {
    return msOfTicks(this.queue.writeTicks);
  }

  /** End of the audio that listeners were sent, or are about to be, ms on the timeline. */
  get sentMs(): number {
    return msOfTicks(sentTicksOf({ output: this.#output, playheadTicks: this.#clock.playheadTicks }));
  }

  /** Goes on with what another node had of it: it has just been opened here. */
  restore(saved: SavedSession, formerEpoch: string): void {
    entering(this.#deps.tape, { name: "restore", says: () => [saved, formerEpoch] }, () =>
      this.#restore(saved, formerEpoch),
    );
  }

  #restore(saved: SavedSession, formerEpoch: string): void {
    const { queue, utteranceCommands: commands } = this;
    const deps = this.#deps;
    this.#restored = new RestoredSpeech(saved, {
      session: this,
      deps,
      queue,
      commands,
      marks: this.#marks,
    });
    this.#connections.restore(saved.connections, formerEpoch);
    this.changed();
    if (deps.settings.nobodyListens !== "speak") return;
    this.#restored.begin(null);
    this.textChanged();
  }

  /** Something of its texts has changed. */
  changed(): void {
    this.#keeper?.changed(this);
  }

  /** It has come, or has begun or ended a text. */
  connectionChanged(participant: Participant): void {
    this.#keeper?.connected(this, saveConnection(participant));
  }

  /** The first listener says how much it has. Where one goes on that was at the other node; null: it was not. */
  #beginRestored({ settings, resume, holder = "" }: Joining): number | null {
    const restored = this.#restored;
    if (restored === null || (settings.role === "speaker" && settings.format === "none")) return null;
    const token = resume?.kind === "token" ? resume : null;
    const isKnown = token !== null && restored.find(token.token, holder) !== undefined;
    restored.begin(isKnown ? token.atMs : null);
    return isKnown ? restored.ticksFor(token.atMs) : null;
  }

  /** Ends the session now: the upstream is aborted, every connection is closed. Idempotent. */
  close(error: GatewayError): void {
    if (this.#isClosed) return;
    entering(this.#deps.tape, { name: "close", says: () => [error] }, () => this.#close(error));
  }

  #close(error: GatewayError): void {
    this.#isClosed = true;
    this.interruptions.close();
    this.utteranceCommands.close();
    this.#clock.close();
    this.queue.close();
    this.speakers.close();
    this.under.close();
    this.prepared.close();
    this.#connections.close(error);
    this.#cueRecords.close();
    this.#deps.counters.sessionsClosed += 1;
    this.#onClose(this);
  }

  #onEncoderError(error: GatewayError, rendition: Rendition): void {
    this.#deps.log.error({ code: error.code, detail: error.message }, "Encoder failed");
    for (const participant of this.#participants) {
      if (participant.subscription.group.rendition !== rendition) continue;
      this.#deps.counters.refusals.sentToOneMore(error);
      participant.send((base) => ({ type: "error", ...base, ...errorBody(error) }));
    }
  }
}
