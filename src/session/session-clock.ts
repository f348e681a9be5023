/**
 * What makes a session move: feeds audio up to playhead + lead, sends what is due, and says when to wake. It is called by
 * a chunk from upstream, a drained socket, a command, or the pacer; everything it does is synchronous.
 *
 *   advance() = make (feed, tell, collect, ask for the next wake) + send
 *   a wake of the pacer makes for all sessions first and then sends for all
 */
import type { PacedEntry, Pacer } from "../fanout/pacer.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Counters } from "../metrics/counters.ts";
import type { Audience } from "./audience.ts";
import { Playhead, TICKS_PER_MS } from "./playhead.ts";
import type { Speech } from "./speech.ts";

/** A wake of the pacer later than this is counted, ms. */
const LATE_WAKE_MS = 5;
/** Wakes of all sessions fall on multiples of this, ms. */
const WAKE_GRID_MS = 20;

/** With so much to play, listeners don't notice when encoded frames are gathered for `GATHER_MS`. */
const CALM_HELD_MS = 100;
const GATHER_MS = 8;

/** Made ahead at least, where anybody is there: events alone have no frames and may have no lead. */
const MIN_MADE_MS = 20;

export interface SessionClockOptions {
  readonly clock: Clock;
  readonly pacer: Pacer;
  readonly counters: Counters;
  readonly audience: Audience;
  readonly speech: Speech;
  readonly aheadMs: number;
  /** Whether speech would be heard; where not, it waits. */
  readonly isListened: () => boolean;
}

export class SessionClock {
  readonly #options: SessionClockOptions;
  readonly #playhead = new Playhead();
  readonly #paced: PacedEntry;
  #nextBatchMs = 0;
  #isAdvancing = false;
  #isReleaseDue = false;
  #releaseTimer: Timer | null = null;
  #isClosed = false;

  constructor(options: SessionClockOptions) {
    this.#options = options;
    this.#paced = options.pacer.register({ tick: (nowMs) => this.#tick(nowMs), send: () => this.#send() });
  }

  /** Where a listener without delay is now. */
  get playheadTicks(): number {
    return this.#playhead.at(this.#options.clock.nowMs(), this.#options.speech.edgeTicks);
  }

  /** When the playhead will pass (or passed) a position, clock ms. */
  msAt(ticks: number): number {
    return this.#playhead.msAt(ticks);
  }

  /** The audio was cut: the timeline goes on at `ticks` when there is audio again. */
  stopAt(ticks: number): void {
    this.#playhead.stop(ticks);
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#releaseTimer?.cancel();
    this.#paced.cancel();
  }

  /** Audio or an end has come from upstream: act now if a listener waits for it, else the pacer will. */
  onProgress(): void {
    const nowMs = this.#options.clock.nowMs();
    const isAwaited = this.#isAudioAwaited(nowMs);
    if (isAwaited) this.advance(nowMs);
    this.#options.speech.holdReading(isAwaited && this.#isAudioAwaited(nowMs));
  }

  /** Whether listeners should have been sent more than has been made. */
  #isAudioAwaited(nowMs: number): boolean {
    if (!this.#playhead.isRunning || !this.#options.audience.hasRealtime) return true;
    const leadMs = this.#options.audience.maxLeadMs + this.#options.audience.maxFrameMs;
    const { edgeTicks } = this.#options.speech;
    return edgeTicks < this.#playhead.at(nowMs, edgeTicks) + leadMs * TICKS_PER_MS;
  }

  #tick(nowMs: number): void {
    if (this.#isClosed) return;
    if (nowMs - this.#nextBatchMs > LATE_WAKE_MS && this.#nextBatchMs > 0)
      this.#options.counters.lateWakes += 1;
    this.#make(nowMs);
  }

  /** Makes and sends everything that is due. */
  advance(nowMs: number = this.#options.clock.nowMs()): void {
    this.#make(nowMs);
    this.#send();
  }

  /** Feeds, tells and collects everything that is due, and asks for the next wake; `#send` has to follow at once. */
  #make(nowMs: number): void {
    if (this.#isAdvancing || this.#isClosed) return;
    this.#isAdvancing = true;
    const speech = this.#options.speech;
    if (this.#options.audience.hasRealtime || this.#options.audience.isEmpty) this.#advancePaced(nowMs);
    else this.#advanceBurst();
    speech.tellPlayed(this.#playhead.at(nowMs, speech.edgeTicks));
    this.#collect(nowMs);
    speech.openNext();
    speech.readOn();
    this.#isAdvancing = false;
    this.#schedule(nowMs);
  }

  #advancePaced(nowMs: number): void {
    const speech = this.#options.speech;
    const startTicks = speech.edgeTicks;
    const playheadTicks = this.#playhead.at(nowMs, startTicks);
    // A frame that starts inside the lead has to be whole, so its length is made on top.
    const { audience } = this.#options;
    const leadMs = audience.isEmpty ? 0 : Math.max(MIN_MADE_MS, audience.maxLeadMs + audience.maxFrameMs);
    const leadTicks = leadMs * TICKS_PER_MS;
    const isListened = this.#options.isListened();
    const wasFed =
      isListened && speech.feed(Math.min(playheadTicks + leadTicks, audience.losslessLimitTicks()));
    if (!this.#playhead.isRunning) {
      if (wasFed) this.#playhead.start(startTicks, nowMs);
      else this.#playhead.stop(speech.edgeTicks);
    } else if (playheadTicks >= startTicks) {
      if (wasFed) this.#playhead.start(startTicks, nowMs);
      else {
        const isDry = isListened && !speech.isIdle && speech.nextEndTicks === null;
        if (isDry) this.#options.counters.underruns += 1;
        this.#playhead.stop(startTicks);
      }
    }
  }

  /** Nobody listens in real time: make and send as fast as the listeners take it. */
  #advanceBurst(): void {
    const stepTicks = this.#options.aheadMs * TICKS_PER_MS;
    for (;;) {
      if (!this.#options.isListened()) return;
      const edgeTicks = this.#options.speech.edgeTicks;
      const untilTicks = Math.min(edgeTicks + stepTicks / 4, this.#options.audience.losslessLimitTicks());
      const wasFed = this.#options.speech.feed(untilTicks);
      this.#playhead.stop(this.#options.speech.edgeTicks);
      this.#collect(this.#options.clock.nowMs());
      this.#send();
      if (!wasFed) return;
    }
  }

  #collect(nowMs: number): void {
    const edgeTicks = this.#options.speech.edgeTicks;
    const playheadTicks = this.#playhead.at(nowMs, edgeTicks);
    this.#options.audience.collect(playheadTicks, edgeTicks);
    this.#options.audience.trim(playheadTicks);
  }

  #send(): void {
    if (this.#isClosed) return;
    const { audience, speech, clock } = this.#options;
    if (audience.send() > 0) speech.noteSent(audience.sentTicks, clock.nowMs());
  }

  #batchMs(): number {
    return Math.min(100, Math.max(20, Math.floor(this.#options.audience.minLeadMs / 3)));
  }

  #schedule(nowMs: number): void {
    if (!this.#playhead.isRunning) {
      this.#nextBatchMs = 0;
      return;
    }
    const batchMs = this.#batchMs();
    // On the grid of the last wake, so that lateness does not add up; a missed wake is skipped, not made up for.
    if (this.#nextBatchMs <= nowMs) {
      const isFresh = this.#nextBatchMs === 0 || nowMs - this.#nextBatchMs > batchMs;
      const nextMs = isFresh ? nowMs + batchMs : this.#nextBatchMs + batchMs;
      // Sessions wake together, early rather than late: one after the other they find the caches warm and the readers
      // awake, which costs half of what waking for each alone does.
      this.#nextBatchMs = Math.max(Math.floor(nextMs / WAKE_GRID_MS) * WAKE_GRID_MS, Math.ceil(nowMs) + 1);
    }
    const endTicks = this.#options.speech.nextEndTicks;
    const endMs = endTicks === null ? Number.POSITIVE_INFINITY : this.#playhead.msAt(endTicks);
    this.#paced.wakeAt(Math.min(this.#nextBatchMs, Math.max(endMs, nowMs)));
  }

  /**
   * Frames came back from an encoder: send them with the others that come in this turn, or, where the listeners have
   * enough to play meanwhile, in this wake: a batch in several pieces costs each listener several system calls.
   */
  releaseSoon(): void {
    if (this.#isReleaseDue) return;
    this.#isReleaseDue = true;
    const { clock, audience } = this.#options;
    const heldTicks = audience.sentTicks - this.playheadTicks;
    if (heldTicks < CALM_HELD_MS * TICKS_PER_MS) queueMicrotask(() => this.#release());
    else this.#releaseTimer = clock.at(clock.nowMs() + GATHER_MS, () => this.#release());
  }

  #release(): void {
    this.#isReleaseDue = false;
    this.#releaseTimer = null;
    if (this.#isClosed) return;
    this.#collect(this.#options.clock.nowMs());
    this.#send();
  }
}
