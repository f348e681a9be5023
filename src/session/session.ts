/**
 * One live speech stream with one timeline. It owns who is there (Attendance), what is said (Speech) and what makes it
 * move (SessionClock):
 *
 *   upstream --chunk--> Speech --slices, events--> Audience --batches--> sockets
 *                          ^ feed up to            ^ release up to
 *                          +---- playhead + lead --+---- pacer, or the chunk itself when audio is awaited
 *
 * Everything here is synchronous; it is called by a chunk from upstream, a drained socket, a command, or the pacer.
 */
import { GatewayError } from "../errors.ts";
import type { Sink } from "../fanout/sink.ts";
import { errorBody } from "../protocol/native.ts";
import type { ListenerSettings, Replace } from "../protocol/vocabulary.ts";
import type { CueStyle } from "../timing/cue-profiles.ts";
import { msOfTicks } from "../timing/ticks.ts";
import { Attendance, type Joining } from "./attendance.ts";
import { Audience } from "./audience.ts";
import { type CueRecord, CueRecords } from "./cue-records.ts";
import { EventWriter } from "./event-writer.ts";
import { type InterruptReceipt, interruptSpeech } from "./interruption.ts";
import { KeptUtterance } from "./kept-utterance.ts";
import { whereHeard } from "./listeners-heard.ts";
import { Marks } from "./marks.ts";
import type { AckMoment, Member } from "./member.ts";
import type { CaptionTuning, SessionDeps } from "./ports.ts";
import { SessionClock } from "./session-clock.ts";
import type { SettingsDefaults } from "./settings.ts";
import { Speech } from "./speech.ts";
import type { Utterance } from "./utterance.ts";
import { writeFinished } from "./utterance-events.ts";
import { UtteranceIds } from "./utterance-ids.ts";
import { WaitingCuts } from "./waiting-cuts.ts";

export interface SessionOptions {
  readonly id: string;
  readonly epoch: string;
  readonly deps: SessionDeps;
  /** Called once, when the session has ended. */
  readonly onClose: (session: Session) => void;
}

/** What the phone calls of a session have to be told; `calls/` brings it with the first call. */
export interface CallDesk {
  joined(member: Member): void;
  drained(member: Member): void;
  left(member: Member): void;
  /** Throws unknown_call. */
  hangUp(callId: string | undefined): void;
}

/** What is remembered of captions where nothing is set. */
const CAPTIONS: CaptionTuning = { isAlways: false, maxCues: 2000, keepMs: 3_600_000 };

export class Session {
  /** null while no call is here. */
  calls: CallDesk | null = null;
  readonly id: string;
  readonly epoch: string;
  readonly #deps: SessionDeps;
  readonly #onClose: (session: Session) => void;
  readonly #audience: Audience;
  readonly #writer: EventWriter;
  readonly #speech: Speech;
  readonly #clock: SessionClock;
  readonly #attendance: Attendance;
  readonly #marks: Marks;
  readonly #cueRecords: CueRecords;
  readonly #kept: KeptUtterance;
  readonly #ids = new UtteranceIds();
  /** With what each is to cut. */
  readonly #waitingCuts: WaitingCuts;
  #isDraining = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    const { deps } = options;
    this.id = options.id;
    this.epoch = options.epoch;
    this.#deps = deps;
    this.#onClose = options.onClose;
    this.#audience = new Audience({
      opusPool: deps.opusPool,
      counters: deps.counters,
      aheadMs: deps.tuning.aheadMs,
      keepMs: deps.tuning.keepMs,
      onLateFrame: () => this.#clock.releaseSoon(),
      onError: (error) => this.#onEncoderError(error),
      tellGap: (outbox, gap, event) => {
        deps.counters.framesDropped += gap.frames;
        const seq = this.#audience.log.seqBefore(event);
        outbox.sendText(JSON.stringify({ type: "gap", ...this.base(), seq, ...gap }));
      },
    });
    const captions = deps.tuning.captions ?? CAPTIONS;
    this.#cueRecords = new CueRecords(captions, () => this.#clock.playheadTicks);
    this.#writer = new EventWriter((entry) => {
      this.#audience.append(entry);
      this.#cueRecords.note(entry);
    });
    if (captions.isAlways) this.captionsOf({ profile: "web", mode: "pop-on" });
    this.#marks = new Marks(this.#writer, deps.tuning.limits.marks);
    this.#waitingCuts = new WaitingCuts(deps.clock);
    this.#kept = new KeptUtterance(deps.clock, deps.tuning.resumeMs);
    const isListened = (): boolean => deps.tuning.speaksToNobody || this.#attendance.isListened;
    this.#speech = new Speech({
      deps,
      audience: this.#audience,
      writer: this.#writer,
      marks: this.#marks,
      isListened,
      playheadTicks: () => this.#clock.playheadTicks,
      onTaken: (utterance) => this.#attendance.tellRoom(utterance),
      onOver: (utterance) => this.#attendance.forget(utterance),
      onProgress: () => this.#clock.onProgress(),
    });
    this.#clock = new SessionClock({
      clock: deps.clock,
      pacer: deps.pacer,
      counters: deps.counters,
      audience: this.#audience,
      speech: this.#speech,
      aheadMs: deps.tuning.aheadMs,
      isListened,
    });
    this.#attendance = new Attendance({
      session: this,
      deps,
      audience: this.#audience,
      speech: this.#speech,
      writer: this.#writer,
      clock: this.#clock,
    });
    deps.counters.sessionsOpened += 1;
  }

  /** Connections, speakers and listeners. */
  get connectionCount(): number {
    return this.#attendance.members.size;
  }
  /** Who is there, in the order of coming. */
  get members(): Iterable<Member> {
    return this.#attendance.members;
  }
  get isIdle(): boolean {
    return this.#speech.isIdle;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }
  get isDraining(): boolean {
    return this.#isDraining;
  }
  get limits() {
    return this.#deps.tuning.limits;
  }
  get settingsDefaults(): SettingsDefaults {
    const { limits, leadMs } = this.#deps.tuning;
    return { leadMs, maxLeadMs: limits.lead_ms };
  }
  get textDefaults() {
    return this.#deps.tuning.textDefaults;
  }

  /** Number and place for an event to one connection only. */
  base(): { seq: number; at_ms: number } {
    return { seq: this.#writer.seq, at_ms: msOfTicks(this.#clock.playheadTicks) };
  }

  nowMs(): number {
    return this.#deps.clock.nowMs();
  }

  /** To which a word about playout belongs that comes now. */
  ackMoment(): AckMoment {
    return { nowMs: this.nowMs(), playheadTicks: this.#clock.playheadTicks };
  }

  // ---- connections ---------------------------------------------------------------------------------------------

  /** Seats a connection and greets it. Throws listener_limit, encoder_failed. */
  join(sink: Sink, joining: Joining): Member {
    const member = this.#attendance.join(sink, joining);
    this.calls?.joined(member);
    return member;
  }

  /**
   * The connection has gone. Text that it left open waits for it as long as the session would (`grace-ms`), unless it
   * `isFinal`: its client has closed it and not lost it. Idempotent.
   */
  leave(member: Member, how: { readonly isFinal?: boolean } = {}): void {
    this.#attendance.leave(member, how);
    this.calls?.left(member);
  }

  /** Other settings for a connection; it goes on at the playhead. Throws encoder_failed. */
  reseat(member: Member, settings: ListenerSettings): void {
    this.#attendance.reseat(member, settings);
  }

  /** The number of the last event that this connection was told. */
  toldSeq(member: Member): number {
    return this.#audience.toldSeq(member.seat);
  }

  describeAudio(member: Member) {
    return this.#audience.describe(member.seat.lane, member.seat.outbox);
  }

  /** The connection's socket has taken what it was behind with. */
  drained(member: Member): void {
    this.#audience.catchUp(member.seat);
    this.calls?.drained(member);
    this.#clock.advance();
  }

  /** How far on the timeline this connection has been sent audio, ms; without audio, how far there is any. */
  sentMs(member: Member): number {
    const { lane, outbox } = member.seat;
    const ticks = lane.rendition?.startTicksOf(outbox.behind?.frame ?? lane.frame) ?? this.#speech.edgeTicks;
    return msOfTicks(ticks);
  }

  /** Whether this connection was sent all that has begun to its end: what comes next is silence, or another utterance. */
  isSentOut(member: Member): boolean {
    const last = this.#speech.unplayed.findLast((utterance) => utterance.startTicks !== null);
    if (last === undefined) return true;
    return last.endTicks !== null && this.sentMs(member) >= msOfTicks(last.endTicks);
  }

  /** The captions that are remembered in a style: from now on, where nobody has asked for them before. */
  captionsOf(style: CueStyle): CueRecord {
    this.#audience.keepCues(style);
    return this.#cueRecords.of(style);
  }

  // ---- speaking ------------------------------------------------------------------------------------------------

  /** A fresh id, or the client's own if no other utterance has it. Throws utterance_id_taken, queue_full, draining. */
  admit(wantedId: string | undefined): string {
    const { limits } = this.#deps.tuning;
    if (this.#isClosed) throw new GatewayError("session_closed", `Session is closed: ${this.id}`);
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: no new utterances");
    if (this.#speech.queuedCount >= limits.queued_utterances) {
      throw new GatewayError(
        "queue_full",
        `Queue is full: ${limits.queued_utterances} utterances wait, which is the limit`,
        { retryAfterMs: 1000 },
      );
    }
    return this.#ids.take(wantedId, (id) => this.#speech.find(id) !== undefined);
  }

  /** Throws utterance_id_taken. */
  mustBeFree(id: string): void {
    this.#ids.mustBeFree(id, (taken) => this.#speech.find(taken) !== undefined);
  }

  /** Queues an utterance by its priority; returns how many stand before it. */
  enqueue(utterance: Utterance): number {
    return this.#speech.add(utterance);
  }

  /** An utterance that is queued or speaking. */
  findQueued(id: string): Utterance | undefined {
    return this.#speech.find(id);
  }

  /** An utterance that is not over, or one that was interrupted and may go on. */
  findUtterance(id: string): Utterance | undefined {
    return this.#speech.find(id) ?? this.#kept.find(id);
  }

  /** Whether an utterance with this id was there and is over, as far as is remembered. */
  isOver(id: string): boolean {
    return this.#ids.has(id) && this.findUtterance(id) === undefined;
  }

  /** Takes no new utterance any more; what was accepted is spoken. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Text was added, flushed or ended: there may be something to request, or an end to tell. */
  textChanged(): void {
    this.#speech.openNext();
    this.#clock.advance();
  }

  /** This connection goes on with a text: if it was left open by one that broke, it is this one's from now on. */
  noteSpeaker(member: Member, utterance: Utterance): void {
    this.#attendance.noteSpeaker(member, utterance);
  }

  /** Text came from this connection: it is asked to pause where too much waits. */
  noteText(member: Member, utterance: Utterance): void {
    this.#attendance.noteText(member, utterance);
  }

  /** Echoed when everything queued so far has been played; at once when nothing is. Throws queue_full. */
  mark(name: string): void {
    this.#marks.add(name, { last: this.#speech.unplayed.at(-1), atTicks: this.#clock.playheadTicks });
    this.#clock.advance();
  }

  /** Where a mark stood that was echoed, ms. */
  markMs(name: string): number | undefined {
    const ticks = this.#marks.ticksOf(name);
    return ticks === undefined ? undefined : msOfTicks(ticks);
  }

  /**
   * Takes utterances out of the queue that have not begun: one, or all.
   * Throws nothing_to_cancel, unknown_utterance.
   */
  cancel(utteranceId: string | undefined): void {
    if (utteranceId !== undefined && this.#speech.find(utteranceId) === undefined)
      throw unknown(utteranceId, "cancel");
    const targets = this.#speech.unbegun.filter(
      (utterance) => utteranceId === undefined || utterance.id === utteranceId,
    );
    if (targets.length === 0) {
      throw new GatewayError(
        "nothing_to_cancel",
        utteranceId === undefined
          ? "Nothing to cancel: no utterance waits"
          : `Utterance ${utteranceId} is being spoken: interrupt it instead`,
      );
    }
    const atTicks = this.#clock.playheadTicks;
    for (const utterance of targets) {
      this.#speech.remove(utterance);
      this.#deps.counters.utterancesCancelled += 1;
      this.#attendance.forget(utterance);
      writeFinished(this.#writer, this.#deps, {
        utterance,
        outcome: "cancelled",
        atTicks,
        error: null,
        heardEnd: utterance.spoken.clientEnd(utterance.characters.at(-1)?.end ?? 0),
      });
    }
    this.#speech.openNext();
    this.#clock.advance();
  }

  /** Makes room for an utterance that takes the place of others. */
  replace(what: Replace): void {
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: no new utterances");
    this.#speech.tellPlayed(this.#clock.playheadTicks);
    if (what === "all" && !this.#speech.isIdle) this.interrupt(undefined);
    else if (what === "queued" && this.#speech.unbegun.length > 0) this.cancel(undefined);
  }

  /**
   * Goes on with the utterance that was interrupted last, from the word in which it was cut.
   * Throws nothing_to_resume, resume_expired, draining.
   */
  resume(utteranceId: string | undefined): void {
    if (utteranceId !== undefined && this.#speech.find(utteranceId) !== undefined) {
      throw new GatewayError(
        "nothing_to_resume",
        `Utterance ${utteranceId} was not interrupted: it is queued or speaking`,
        { field: "utterance_id" },
      );
    }
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: nothing goes on");
    const kept = this.#kept.take(utteranceId);
    this.#deps.counters.utterancesResumed += 1;
    this.#speech.resume(kept, this.nowMs());
    this.#clock.advance();
  }

  /**
   * Cuts the speech, after `keepMs` more of it, and answers every listener with a receipt. Returns the receipts,
   * or null where the cut comes later.
   * Throws nothing_to_interrupt, unknown_utterance, queue_full.
   */
  interrupt(utteranceId: string | undefined, keepMs = 0): InterruptReceipt[] | null {
    this.#speech.tellPlayed(this.#clock.playheadTicks);
    const target = utteranceId === undefined ? undefined : this.#speech.find(utteranceId);
    if (utteranceId !== undefined && target === undefined) throw unknown(utteranceId, "interrupt");
    if (this.#speech.isIdle) {
      this.#clock.advance();
      throw new GatewayError("nothing_to_interrupt", "Nothing to interrupt: nothing is speaking or queued");
    }
    const nowMs = this.nowMs();
    // An utterance that is made but not heard yet is cut when its turn comes: the one before is heard out.
    const targetTicks = target?.startTicks ?? null;
    const startMs = targetTicks === null ? nowMs : Math.max(nowMs, this.#clock.msAt(targetTicks));
    const cutMs = Math.max(nowMs + keepMs, this.#audience.shape.hasRealtime ? startMs : nowMs);
    // What is queued from now on is not meant.
    const targets = target === undefined ? this.#speech.unplayed : [target];
    if (cutMs - nowMs < 1) return this.#cut(targets);
    this.#waitingCuts.add(cutMs, targets, (left) => this.#cut(left));
    return null;
  }

  /** Ends the session now: the upstream is aborted, every connection is closed. Idempotent. */
  close(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waitingCuts.close();
    this.#kept.close();
    this.#clock.close();
    this.#speech.close();
    this.#attendance.close(error);
    this.#cueRecords.close();
    this.#deps.counters.sessionsClosed += 1;
    this.#onClose(this);
  }

  #cut(targets: readonly Utterance[]): InterruptReceipt[] {
    if (this.#isClosed) return [];
    this.#waitingCuts.forget(targets);
    const nowMs = this.nowMs();
    this.#speech.tellPlayed(this.#clock.playheadTicks);
    const unplayed = new Set(this.#speech.unplayed);
    const receipts = interruptSpeech({
      speech: this.#speech,
      audience: this.#audience,
      writer: this.#writer,
      deps: this.#deps,
      targets: targets.filter((target) => unplayed.has(target)),
      heard: whereHeard({
        members: this.#attendance.members,
        nowMs,
        playheadTicks: this.#clock.playheadTicks,
        edgeTicks: this.#speech.edgeTicks,
        minLeadMs: this.#audience.shape.minLeadMs,
      }),
      kept: this.#kept,
      stopPlayhead: (ticks) => this.#clock.stopAt(ticks),
    });
    for (const target of targets) this.#attendance.forget(target);
    this.#clock.advance(nowMs);
    return receipts;
  }

  #onEncoderError(error: GatewayError): void {
    this.#deps.log.error({ session: this.id, code: error.code, detail: error.message }, "Encoder failed");
    for (const member of this.#attendance.members) {
      member.send({ type: "error", ...this.base(), ...errorBody(error) });
    }
  }
}

function unknown(utteranceId: string, what: string): GatewayError {
  return new GatewayError("unknown_utterance", `No such utterance to ${what}: ${utteranceId}`, {
    field: "utterance_id",
  });
}
