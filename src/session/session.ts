/**
 * One live speech stream with one timeline. It owns its connections, what it says and its clock:
 *
 *   upstream --chunk--> Speech --slices, events--> Audience --batches--> sockets
 *                          ^ feed up to            ^ release up to
 *                          +---- playhead + lead --+---- pacer, or the chunk itself when audio is awaited
 *
 * Everything here is synchronous; it is called by a chunk from upstream, a drained socket, a command, or the pacer.
 */
import { GatewayError } from "../errors.ts";
import { Outbox } from "../fanout/outbox.ts";
import type { Sink } from "../fanout/sink.ts";
import type { Timer } from "../kit/clock.ts";
import { errorBody } from "../protocol/native.ts";
import { type ListenerSettings, PROTOCOL_VERSION } from "../protocol/vocabulary.ts";
import { msOfTicks } from "../timing/ticks.ts";
import { Audience } from "./audience.ts";
import { EventWriter } from "./event-writer.ts";
import { type InterruptReceipt, interruptSpeech } from "./interruption.ts";
import { Member } from "./member.ts";
import type { SessionDeps } from "./ports.ts";
import { SessionClock } from "./session-clock.ts";
import type { SettingsDefaults } from "./settings.ts";
import { Speech } from "./speech.ts";
import type { Utterance } from "./utterance.ts";
import { startedEvent, writeMark } from "./utterance-events.ts";

/** Ids of utterances that are over but may not be used again yet. */
const REMEMBERED_IDS = 256;

export interface SessionOptions {
  readonly id: string;
  readonly epoch: string;
  readonly deps: SessionDeps;
  /** Called once, when the session has ended. */
  readonly onClose: (session: Session) => void;
}

export class Session {
  readonly id: string;
  readonly epoch: string;
  readonly #deps: SessionDeps;
  readonly #onClose: (session: Session) => void;
  readonly #audience: Audience;
  readonly #writer: EventWriter;
  readonly #speech: Speech;
  readonly #clock: SessionClock;
  readonly #members = new Set<Member>();
  readonly #usedIds: string[] = [];
  #nextId = 1;
  #graceTimer: Timer | null = null;
  #cutTimers = new Set<Timer>();
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
      tellGap: (outbox, gap) => {
        deps.counters.framesDropped += gap.frames;
        outbox.sendText(JSON.stringify({ type: "gap", ...this.base(), ...gap }));
      },
    });
    this.#writer = new EventWriter((entry) => this.#audience.append(entry));
    this.#speech = new Speech({
      deps,
      audience: this.#audience,
      writer: this.#writer,
      onProgress: () => this.#clock.onProgress(),
    });
    this.#clock = new SessionClock({
      clock: deps.clock,
      pacer: deps.pacer,
      counters: deps.counters,
      audience: this.#audience,
      speech: this.#speech,
      aheadMs: deps.tuning.aheadMs,
    });
    deps.counters.sessionsOpened += 1;
    this.#startGrace();
  }

  get listenerCount(): number {
    return this.#members.size;
  }
  get isIdle(): boolean {
    return this.#speech.isIdle;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }
  get queuedCount(): number {
    return this.#speech.queuedCount;
  }

  /** Number and place for an event to one connection only. */
  base(): { seq: number; at_ms: number } {
    return { seq: this.#writer.seq, at_ms: msOfTicks(this.#clock.playheadTicks) };
  }

  /** Seats a connection and greets it. Throws listener_limit, encoder_failed. */
  join(sink: Sink, joining: { settings: ListenerSettings; ignored: readonly string[] }): Member {
    const { limits } = this.#deps.tuning;
    if (this.#members.size >= limits.listeners) {
      throw new GatewayError(
        "listener_limit",
        `Session is full: ${limits.listeners} connections, which is the limit`,
      );
    }
    const member = new Member({
      session: this,
      sink,
      settings: joining.settings,
      seat: this.#seat(sink, joining.settings),
    });
    this.#members.add(member);
    this.#deps.counters.connectionsOpened += 1;
    this.#graceTimer?.cancel();
    this.#graceTimer = null;
    member.send({
      type: "hello",
      ...this.base(),
      protocol: PROTOCOL_VERSION,
      server: this.#deps.server,
      session: this.id,
      epoch: this.epoch,
      settings: joining.settings,
      audio: this.#audience.describe(member.seat.lane, member.seat.outbox),
      limits,
      ignored: joining.ignored,
    });
    const playheadTicks = this.#clock.playheadTicks;
    for (const utterance of this.#speech.unplayed) {
      if (utterance.startTicks === null || utterance.startTicks >= playheadTicks) continue;
      member.send(startedEvent(this.base(), utterance));
    }
    this.#audience.catchUp(member.seat);
    this.#clock.advance();
    return member;
  }

  /** The connection has gone. Idempotent. */
  leave(member: Member): void {
    if (!this.#members.delete(member)) return;
    this.#deps.counters.connectionsClosed += 1;
    this.#audience.unseat(member.seat);
    // What was accepted is not lost: text that the speaker will not go on with is spoken as it stands.
    for (const id of member.openIds) this.#speech.find(id)?.endText();
    this.#speech.openNext();
    if (this.#members.size === 0) this.#startGrace();
    else this.#clock.advance();
  }

  /** Other settings for a connection; it goes on at the playhead. Throws encoder_failed. */
  reseat(member: Member, settings: ListenerSettings): void {
    const { lane, outbox } = member.seat;
    const seat = this.#seat(member.sink, settings, outbox.behind?.event ?? lane.event);
    this.#audience.unseat(member.seat);
    member.seat = seat;
    member.settings = settings;
  }

  describeAudio(member: Member) {
    return this.#audience.describe(member.seat.lane, member.seat.outbox);
  }

  /** The connection's socket has taken what it was behind with. */
  drained(member: Member): void {
    this.#audience.catchUp(member.seat);
    this.#clock.advance();
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
    if (
      wantedId !== undefined &&
      (this.#usedIds.includes(wantedId) || this.#speech.find(wantedId) !== undefined)
    ) {
      throw new GatewayError("utterance_id_taken", `Utterance id is taken: ${wantedId}, expected a new one`, {
        field: "utterance_id",
      });
    }
    let id = wantedId;
    while (id === undefined || (wantedId === undefined && this.#usedIds.includes(id)))
      id = `u${this.#nextId++}`;
    this.#usedIds.push(id);
    if (this.#usedIds.length > REMEMBERED_IDS) this.#usedIds.shift();
    return id;
  }

  /** Queues an utterance; returns how many stand before it. */
  enqueue(utterance: Utterance): number {
    const ahead = this.#speech.unplayed.length;
    this.#speech.add(utterance);
    return ahead;
  }

  findUtterance(id: string): Utterance | undefined {
    return this.#speech.find(id);
  }

  nowMs(): number {
    return this.#deps.clock.nowMs();
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Takes no new utterance any more; what was accepted is spoken. */
  drain(): void {
    this.#isDraining = true;
  }

  /** How far on the timeline this connection has been sent audio, ms; without audio, how far there is any. */
  sentMs(member: Member): number {
    const { lane, outbox } = member.seat;
    const ticks = lane.rendition?.startTicksOf(outbox.behind?.frame ?? lane.frame) ?? this.#speech.edgeTicks;
    return msOfTicks(ticks);
  }

  get settingsDefaults(): SettingsDefaults {
    const { limits, leadMs } = this.#deps.tuning;
    return { leadMs, maxLeadMs: limits.lead_ms };
  }

  get limits() {
    return this.#deps.tuning.limits;
  }

  /** Text was added, flushed or ended: there may be something to request, or an end to tell. */
  textChanged(): void {
    this.#speech.openNext();
    this.#clock.advance();
  }

  /** Echoed when everything queued so far has been played; at once when nothing is. Throws queue_full. */
  mark(name: string): void {
    const last = this.#speech.unplayed.at(-1);
    if (last === undefined) writeMark(this.#writer, { name, atTicks: this.#clock.playheadTicks });
    else if (last.marks.length >= this.limits.marks) {
      throw new GatewayError("queue_full", `Marks are full: ${this.limits.marks} wait on one utterance`, {
        retryAfterMs: 1000,
      });
    } else last.marks.push(name);
    this.#clock.advance();
  }

  /**
   * Cuts the speech, after `keepMs` more of it, and answers every listener with a receipt. Returns the receipts,
   * or null where the cut comes later.
   * Throws nothing_to_interrupt, unknown_utterance.
   */
  interrupt(utteranceId: string | undefined, keepMs = 0): InterruptReceipt[] | null {
    if (utteranceId !== undefined && this.#speech.find(utteranceId) === undefined) {
      throw new GatewayError("unknown_utterance", `No such utterance to interrupt: ${utteranceId}`, {
        field: "utterance_id",
      });
    }
    if (this.#speech.isIdle)
      throw new GatewayError("nothing_to_interrupt", "Nothing to interrupt: nothing is speaking or queued");
    const nowMs = this.#deps.clock.nowMs();
    const target = utteranceId === undefined ? undefined : this.#speech.find(utteranceId);
    // An utterance that is made but not heard yet is cut when its turn comes: the one before is heard out.
    const targetTicks = target?.startTicks ?? null;
    const startMs = targetTicks === null ? nowMs : Math.max(nowMs, this.#clock.msAt(targetTicks));
    const cutMs = Math.max(nowMs + keepMs, this.#audience.hasRealtime ? startMs : nowMs);
    if (cutMs - nowMs < 1) return this.#cut(utteranceId);
    const timer = this.#deps.clock.at(cutMs, () => {
      this.#cutTimers.delete(timer);
      this.#cut(utteranceId);
    });
    this.#cutTimers.add(timer);
    return null;
  }

  /** Ends the session now: the upstream is aborted, every connection is closed. Idempotent. */
  close(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#graceTimer?.cancel();
    for (const timer of this.#cutTimers) timer.cancel();
    this.#cutTimers.clear();
    this.#clock.close();
    this.#speech.close();
    const members = [...this.#members];
    this.#members.clear();
    this.#deps.counters.connectionsClosed += members.length;
    this.#audience.close();
    for (const member of members) member.end(error);
    this.#deps.counters.sessionsClosed += 1;
    this.#onClose(this);
  }

  #cut(utteranceId: string | undefined): InterruptReceipt[] {
    if (this.#isClosed) return [];
    const nowMs = this.#deps.clock.nowMs();
    this.#speech.tellPlayed(this.#clock.playheadTicks);
    const receipts = interruptSpeech({
      speech: this.#speech,
      audience: this.#audience,
      writer: this.#writer,
      counters: this.#deps.counters,
      utteranceId,
      at: this.#whereHeard(nowMs),
      stopPlayhead: (ticks) => this.#clock.stopAt(ticks),
    });
    this.#clock.advance(nowMs);
    return receipts;
  }

  /** The earliest position that a listener is known or believed to have heard. */
  #whereHeard(nowMs: number): { ticks: number; source: "ack" | "estimate"; boundMs: number } {
    const estimate = this.#clock.playheadTicks;
    const acks = [...this.#members].flatMap((member) => {
      const ticks = member.ackedTicks(nowMs);
      return ticks === null ? [] : [Math.min(ticks, this.#speech.edgeTicks)];
    });
    if (acks.length > 0) return { ticks: Math.min(...acks), source: "ack", boundMs: 40 };
    const leadMs = Number.isFinite(this.#audience.minLeadMs) ? this.#audience.minLeadMs : 0;
    // A listener starts to play at the first frame at the earliest and when its lead has come at the latest.
    return { ticks: estimate, source: "estimate", boundMs: Math.max(40, leadMs) };
  }

  /** `event`: where in the log it goes on; a newcomer starts with what is being said and was not heard yet. */
  #seat(sink: Sink, settings: ListenerSettings, event?: number) {
    const outbox = new Outbox({
      sink,
      policy: settings.policy,
      maxOutboxBytes: this.#deps.tuning.limits.outbox_bytes,
    });
    const lane = this.#audience.seat(outbox, settings, {
      playheadTicks: this.#clock.playheadTicks,
      edgeTicks: this.#speech.edgeTicks,
      event: event ?? this.#firstEventFor(this.#clock.playheadTicks),
    });
    return { lane, outbox };
  }

  #firstEventFor(playheadTicks: number): number {
    const ids = new Set(this.#speech.unplayed.map((utterance) => utterance.id));
    return this.#audience.log.indexWhere(
      (entry) =>
        entry.positionTicks >= playheadTicks && entry.utteranceId !== null && ids.has(entry.utteranceId),
    );
  }

  #onEncoderError(error: GatewayError): void {
    this.#deps.log.error({ session: this.id, code: error.code, detail: error.message }, "Encoder failed");
    for (const member of this.#members) member.send({ type: "error", ...this.base(), ...errorBody(error) });
  }

  #startGrace(): void {
    const { clock, tuning } = this.#deps;
    this.#graceTimer?.cancel();
    this.#graceTimer = clock.at(clock.nowMs() + tuning.graceMs, () => {
      this.close(
        new GatewayError("session_closed", `Session ended: nobody was connected for ${tuning.graceMs} ms`),
      );
    });
  }
}
