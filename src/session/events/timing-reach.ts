/**
 * How far ahead of the audio rendered a response is taken from its attempt and its timing read; and when times that have not
 * come are waited for no longer.
 */
import { TICKS_PER_MS, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { FeedTiming } from "./feed-timing.ts";

/** Of a response that is not complete this much stays in hand: the end of a word is known only when it has come. */
export const TIMED_AHEAD_TICKS = 250 * TICKS_PER_MS;

/**
 * How far ahead of the audio rendered the response is taken, and its timing read: a slice with its surplus, and the rest of
 * a long word, which is known to be whole only when its last character has come, and has to leave before its first frame.
 * What is behind waits in the attempt, where it takes no more room than it needs.
 */
const READ_AHEAD_TICKS = 1500 * TICKS_PER_MS;

/** Times of so much audio are waited for: an upstream may send them behind it. And of so much once it was in vain. */
const AWAITED_TICKS = 4000 * TICKS_PER_MS;
const AWAITED_AGAIN_TICKS = 3000 * TICKS_PER_MS;
/** No more than this share of the audio that may be in hand, or it would never come to that. */
const AWAITED_SHARE = 0.8;
/** So far ahead of the audio rendered times are estimated then. */
const ESTIMATED_AHEAD_TICKS = 1000 * TICKS_PER_MS;

export interface TimingReachOptions {
  readonly utterance: Utterance;
  /** null where nobody wants to know. */
  readonly timing: FeedTiming | null;
  /** Most audio in hand. */
  readonly aheadTicks: number;
  /** Most silence taken off each end. */
  readonly trimTicks: number;
}

/** `renderedTicks`: of the response's audio, with what was dropped before it. */
export class TimingReach {
  readonly #options: TimingReachOptions;
  #wasInVain = false;

  constructor(options: TimingReachOptions) {
    this.#options = options;
  }

  get lookaheadTicks(): number {
    const { utterance, aheadTicks, trimTicks } = this.#options;
    // Cues are made of all words that are there.
    if (utterance.transcript.cues !== null) return aheadTicks;
    return Math.min(aheadTicks, Math.max(READ_AHEAD_TICKS, trimTicks));
  }

  /** Reads what has come, as far as it is to be known now: cues are made of all words that are there. */
  read(renderedTicks: number): void {
    const { utterance, timing } = this.#options;
    const toTicks =
      utterance.transcript.cues === null ? renderedTicks + READ_AHEAD_TICKS : Number.POSITIVE_INFINITY;
    timing?.readUpTo(toTicks / TICKS_PER_SECOND);
  }

  /** No times have come for what is rendered next: they may be behind, or there are none. */
  isUntimed(renderedTicks: number): boolean {
    const { timing } = this.#options;
    if (timing === null) return false;
    return timing.timedToSeconds * TICKS_PER_SECOND < renderedTicks + TIMED_AHEAD_TICKS;
  }

  /** Has times estimated that have not come with all audio up to `takenTicks`, if that is enough. */
  estimate(renderedTicks: number, takenTicks: number): void {
    const { timing, aheadTicks } = this.#options;
    if (timing === null || !this.isUntimed(renderedTicks)) return;
    const untimedTicks = takenTicks - timing.timedToSeconds * TICKS_PER_SECOND;
    const awaitedTicks = this.#wasInVain ? AWAITED_AGAIN_TICKS : AWAITED_TICKS;
    if (untimedTicks < Math.min(awaitedTicks, aheadTicks * AWAITED_SHARE)) return;
    this.#wasInVain = true;
    timing.estimateUpTo({ neededSeconds: (renderedTicks + ESTIMATED_AHEAD_TICKS) / TICKS_PER_SECOND });
  }

  /** It is cut there: times of what was heard have to be emitted now, be they estimated. */
  estimateCut(ticks: number): void {
    if (!this.isUntimed(ticks)) return;
    this.#options.timing?.estimateUpTo({
      neededSeconds: (ticks + TIMED_AHEAD_TICKS) / TICKS_PER_SECOND,
      isLast: true,
    });
  }
}
