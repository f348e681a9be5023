/**
 * What makes a session move: renders audio up to playhead + lead, sends what is due, and says when to wake. Everything it
 * does is synchronous; src/README.md says what calls it ("Who drives what").
 *
 *   advance() = render (audio, events, due batches, the next wake) + send
 *   a wake of the pacer renders for all sessions first and then sends for all
 */
import { HELD_MS, type PacedEntry, type Pacer } from "../../delivery/pacer.ts";
import { type Clock, soon, type Timer } from "../../kit/clock.ts";
import type { Counters } from "../../metrics/counters.ts";
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { OutputRouter } from "../output/output-router.ts";
import type { RequestScheduler } from "../synthesis/request-scheduler.ts";
import type { PlaybackQueue } from "./playback-queue.ts";
import { Playhead } from "./playhead.ts";
import type { Renderer } from "./renderer.ts";

/** A wake of the pacer later than this is counted, ms. */
const LATE_WAKE_MS = 5;
/** Wakes of all sessions fall on multiples of this, ms. */
const WAKE_GRID_MS = 20;

/** With so much to play, listeners don't notice when encoded frames are gathered for `GATHER_MS`. */
const CALM_BUFFERED_MS = 100;
const GATHER_MS = 8;

/** Made ahead at least, where anybody is there: events alone have no frames and may have no lead. */
const MIN_RENDERED_MS = 20;
/**
 * Where audio has to be rendered, so much more of the same speech is rendered at once: a thousand sessions find nothing of
 * theirs in the processor's caches, and what a wake costs is finding it again, not the bytes.
 */
const SURPLUS_MS = 300;

/**
 * Sounds under speech are made so far ahead where nothing is spoken, and so often: what is said then begins behind what was
 * made.
 */
const UNDER_ONLY_AHEAD_MS = 100;
const UNDER_ONLY_BATCH_MS = 40;

/** Nobody paces a burst listener: with less than this to play it is sent words in parts. */
const MIN_BURST_AHEAD_MS = 100;

/** So often what nobody needs any more is freed. */
const TRIM_EVERY_MS = 250;

export interface PlaybackClockOptions {
  readonly clock: Clock;
  readonly pacer: Pick<Pacer, "register" | "isHeld">;
  readonly counters: Counters;
  readonly output: OutputRouter;
  readonly queue: PlaybackQueue;
  readonly renderer: Renderer;
  readonly requests: RequestScheduler;
  readonly aheadMs: number;
  /** Somebody listens, or `nobody-listens` is `speak`; where not, speech waits. */
  readonly maySpeak: () => boolean;
  /** Listeners are about to be sent what was collected; null: nobody asks. */
  readonly onSending: (() => void) | null;
  /** Audio has run dry in the middle of an utterance. */
  readonly onDry: (atTicks: number) => void;
}

export class PlaybackClock {
  readonly #options: PlaybackClockOptions;
  readonly #playhead = new Playhead();
  readonly #burstHead = new Playhead();
  readonly #wake: PacedEntry;
  #nextBatchMs = 0;
  /** When it last rendered, less had come than listeners should be sent. */
  #isUnderrun = true;
  /** Until then wakes only send, if nothing comes: enough is rendered, and nothing ends. 0: the next wake renders. */
  #calmUntilMs = 0;
  /** When what has been rendered whole will have been played: an end is written then. */
  #endMs = Number.POSITIVE_INFINITY;
  #nextTrimMs = 0;
  /** When it last rendered or sent. */
  #wokenMs = 0;
  #isAdvancing = false;
  #isEncodedSendDue = false;
  #encodedTimer: Timer | null = null;
  #isClosed = false;

  constructor(options: PlaybackClockOptions) {
    this.#options = options;
    this.#wake = options.pacer.register({ tick: (nowMs) => this.#tick(nowMs), send: () => this.#send() });
  }

  /** Where a listener without delay is now. */
  get playheadTicks(): number {
    return this.#playhead.at(this.#options.clock.nowMs(), this.#options.queue.writeTicks);
  }

  /** Whether the playhead moves. */
  get isMoving(): boolean {
    return this.#playhead.isRunning;
  }

  /** When the playhead will pass (or passed) a position, clock ms. */
  msAt(ticks: number): number {
    return this.#playhead.msAt(ticks);
  }

  /** The audio was cut: the timeline goes on at `ticks` when there is audio again. */
  stopAt(ticks: number): void {
    this.#calmUntilMs = 0;
    this.#playhead.stop(ticks);
  }

  /** Sends what stands before `ticks` and was held back by a batch or a stall: the cut there does not concern it. */
  sendBefore(ticks: number): void {
    this.#options.output.collectBefore(ticks);
    this.#send();
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#encodedTimer?.cancel();
    this.#wake.cancel();
  }

  /** There may be more to render: act now if a listener waits for it, else the pacer will. */
  onProgress(): void {
    this.#calmUntilMs = 0;
    const isAwaited = this.#isAudioAwaited;
    if (isAwaited) this.advance();
    this.#options.requests.holdReading(isAwaited && this.#isAudioAwaited);
  }

  /** Whether listeners should have been sent more than is rendered. */
  get #isAudioAwaited(): boolean {
    return this.#isUnderrun || !this.#playhead.isRunning || !this.#options.output.demand.hasRealtime;
  }

  #tick(nowMs: number): void {
    if (this.#isClosed) return;
    if (nowMs - this.#nextBatchMs > LATE_WAKE_MS && this.#nextBatchMs > 0)
      this.#options.counters.lateWakes += 1;
    // A wake finds nothing of its session in the processor's caches: this one looks at numbers of its own only.
    if (nowMs < this.#calmUntilMs) {
      this.#collectDue(nowMs);
      this.#schedule(nowMs);
    } else this.#render(nowMs);
  }

  /** Sets until when wakes only have to send what was rendered. */
  #plan(): void {
    const { queue, output, renderer, requests } = this.#options;
    const endTicks = queue.nextEndTicks ?? Number.POSITIVE_INFINITY;
    this.#endMs = this.#playhead.msAt(endTicks);
    if (this.#isAudioAwaited || requests.isReading || renderer.hasUnread || output.isEmpty) return;
    const leadTicks = (this.#neededMs + this.#encodedMs) * TICKS_PER_MS;
    this.#calmUntilMs = this.#playhead.msAt(Math.min(queue.writeTicks - leadTicks, endTicks));
  }

  /** How far ahead of the playhead audio has to be rendered. A frame that starts inside the lead has to be whole. */
  get #neededMs(): number {
    const { isEmpty, demand } = this.#options.output;
    return isEmpty ? 0 : Math.max(MIN_RENDERED_MS, demand.maxLeadMs + demand.maxFrameMs);
  }

  /**
   * Made earlier still where an encoder's thread has to make frames of it: those of the next batch, or a part of each batch
   * would leave with this wake, and the rest when it comes back: twice the system calls. Not for the first frames.
   */
  get #encodedMs(): number {
    return this.#playhead.isRunning && this.#options.output.demand.isEncodedElsewhere ? this.#batchMs() : 0;
  }

  /** Makes and sends everything that is due. */
  advance(nowMs: number = this.#options.clock.nowMs()): void {
    this.#render(nowMs);
    this.#send();
  }

  /** Renders, emits and collects everything that is due, and asks for the next wake; `#send` has to follow at once. */
  #render(nowMs: number): void {
    if (this.#isAdvancing || this.#isClosed) return;
    if (this.#options.pacer.isHeld(nowMs)) {
      this.#wake.wakeAt(nowMs + HELD_MS);
      return;
    }
    this.#isAdvancing = true;
    this.#calmUntilMs = 0;
    const { queue, output, requests } = this.#options;
    if (output.demand.hasRealtime || output.isEmpty) this.#advanceRealtime(nowMs);
    else this.#advanceBurst();
    queue.endPassed(this.#playhead.at(nowMs, queue.writeTicks));
    this.#collectAndTrim(nowMs);
    queue.requestNext();
    requests.readOn();
    this.#isAdvancing = false;
    this.#plan();
    this.#schedule(nowMs);
  }

  #advanceRealtime(nowMs: number): void {
    const { queue, renderer, output } = this.#options;
    const startTicks = queue.writeTicks;
    const playheadTicks = this.#playhead.at(nowMs, startTicks);
    const maySpeak = this.#options.maySpeak();
    const neededTicks = playheadTicks + this.#neededMs * TICKS_PER_MS;
    const limitTicks = output.losslessLimitTicks();
    const neededUntilTicks = Math.min(neededTicks, limitTicks);
    const untilTicks = Math.min(neededTicks + this.#encodedMs * TICKS_PER_MS, limitTicks);
    const surplusTicks = SURPLUS_MS * TICKS_PER_MS;
    const underOnlyMs = Math.min(this.#neededMs, UNDER_ONLY_AHEAD_MS + output.demand.maxFrameMs);
    const underOnlyTicks = Math.min(playheadTicks + underOnlyMs * TICKS_PER_MS, limitTicks);
    const wasRendered =
      maySpeak && renderer.render({ untilTicks, neededUntilTicks, surplusTicks, underOnlyTicks });
    this.#isUnderrun = queue.writeTicks < neededUntilTicks;
    if (!this.#playhead.isRunning) {
      if (wasRendered) this.#playhead.start(startTicks, nowMs);
      else this.#playhead.stop(queue.writeTicks);
    } else if (playheadTicks >= startTicks) {
      if (wasRendered) this.#playhead.start(startTicks, nowMs);
      else {
        // What has not begun is late, and no stutter: it may have come just behind speech that was over.
        const isBegun = (queue.first?.startTicks ?? null) !== null;
        if (maySpeak && isBegun && queue.nextEndTicks === null) this.#options.onDry(startTicks);
        this.#playhead.stop(startTicks);
      }
    }
  }

  /** Nobody listens in real time: make and send as fast as the listeners take it. */
  #advanceBurst(): void {
    const { queue, renderer, output, clock, aheadMs, maySpeak } = this.#options;
    const stepTicks = (aheadMs * TICKS_PER_MS) / 4;
    while (maySpeak()) {
      const { writeTicks } = queue;
      const untilTicks = Math.min(writeTicks + stepTicks, output.losslessLimitTicks());
      const neededUntilTicks = this.#burstHeadTicks(writeTicks) + MIN_BURST_AHEAD_MS * TICKS_PER_MS;
      const wasRendered = renderer.render({
        untilTicks,
        neededUntilTicks,
        surplusTicks: 0,
        underOnlyTicks: Number.NEGATIVE_INFINITY,
      });
      this.#playhead.stop(queue.writeTicks);
      this.#collectAndTrim(clock.nowMs());
      this.#send();
      if (!wasRendered) return;
    }
  }

  /** Where a listener is that plays what it gets in one go from the first frame on; where it ran out, it begins again. */
  #burstHeadTicks(writeTicks: number): number {
    const head = this.#burstHead;
    const nowMs = this.#options.clock.nowMs();
    if (!head.isRunning || head.at(nowMs, writeTicks) >= writeTicks) head.start(writeTicks, nowMs);
    return head.at(nowMs, writeTicks);
  }

  #collectAndTrim(nowMs: number): void {
    this.#collectDue(nowMs);
    const { output, queue } = this.#options;
    // What is rendered as fast as it is taken has to make room as fast.
    if (nowMs < this.#nextTrimMs && output.demand.hasRealtime) return;
    this.#nextTrimMs = nowMs + TRIM_EVERY_MS;
    output.trim(this.#playhead.at(nowMs, queue.writeTicks));
  }

  #collectDue(nowMs: number): void {
    const { writeTicks } = this.#options.queue;
    this.#options.output.collect(this.#playhead.at(nowMs, writeTicks), writeTicks);
  }

  #send(): void {
    if (this.#isClosed) return;
    const { output, renderer, clock, onSending } = this.#options;
    const { unsent } = renderer.writeHead;
    onSending?.();
    if (output.send() === 0) return;
    if (!unsent.isEmpty) unsent.noteSent(output.sentTicks, clock.nowMs());
  }

  /** A multiple of the grid on which sessions wake, or none would keep its place in the batch. */
  #batchMs(): number {
    const steps = Math.floor(this.#options.output.demand.minLeadMs / 3 / WAKE_GRID_MS);
    const mostMs = this.#options.renderer.writeHead.isUnderOnly ? UNDER_ONLY_BATCH_MS : 100;
    return Math.min(mostMs, Math.max(1, steps) * WAKE_GRID_MS);
  }

  #schedule(nowMs: number): void {
    this.#wokenMs = nowMs;
    if (!this.#playhead.isRunning) {
      this.#nextBatchMs = 0;
      return;
    }
    const batchMs = this.#batchMs();
    // On the grid of the last wake, so that lateness does not add up; missed wakes are skipped, not made up for. Behind a
    // stall, too: sessions that all began again with it would wake together from then on, and each wait for all others.
    if (this.#nextBatchMs <= nowMs) {
      const isFresh = this.#nextBatchMs === 0;
      const missed = Math.floor((nowMs - this.#nextBatchMs) / batchMs);
      const nextMs = isFresh ? nowMs + batchMs : this.#nextBatchMs + (missed + 1) * batchMs;
      // Sessions wake together, early rather than late: one after the other they find the caches warm and the readers
      // awake, which costs half of what waking for each alone does.
      this.#nextBatchMs = Math.max(Math.floor(nextMs / WAKE_GRID_MS) * WAKE_GRID_MS, Math.ceil(nowMs) + 1);
    }
    this.#wake.wakeAt(Math.min(this.#nextBatchMs, Math.max(this.#endMs, nowMs)));
  }

  /**
   * Frames came back from an encoder: send them with the others that come in this turn, or, where all that wait for such
   * frames have enough to play meanwhile, in this wake: a batch in several pieces costs each listener several system calls.
   */
  sendEncodedSoon(): void {
    if (this.#isEncodedSendDue) return;
    this.#isEncodedSendDue = true;
    const { clock, output } = this.#options;
    const bufferedTicks = output.encodedSentTicks - this.playheadTicks;
    if (bufferedTicks < CALM_BUFFERED_MS * TICKS_PER_MS) soon(clock, () => this.#sendEncoded(clock.nowMs()));
    else {
      // What has fallen due since the last wake leaves with the next one: alone it would cost as much.
      const wokenMs = this.#wokenMs;
      this.#encodedTimer = clock.at(clock.nowMs() + GATHER_MS, () => this.#sendEncoded(wokenMs));
    }
  }

  /** Sends what was due at `dueMs`. */
  #sendEncoded(dueMs: number): void {
    this.#isEncodedSendDue = false;
    this.#encodedTimer = null;
    if (this.#isClosed) return;
    this.#collectAndTrim(dueMs);
    this.#send();
  }
}
