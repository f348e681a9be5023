/**
 * Watches a text that is still coming while nothing of it is ready to be spoken: when its tokens stay away, or come so
 * slowly that the audio in hand runs out, it is cut at the best boundary there is. The longer the wait, the less is
 * asked of the boundary: a sentence end, a clause, a word.
 */
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Counters } from "../../metrics/counters.ts";
import type { Utterance } from "../playback/utterance.ts";

/** With more audio than this in hand there is time to wait for a better boundary, ms. */
const SHORT_MS = 600;
const MIN_CHECK_MS = 10;
/**
 * How many times `stallMs` words that are held back for cleaning and rules wait for the next token when they are all
 * there is: what follows would be said wrong, so that a short silence is better.
 */
const HELD_STALLS = 4;

export interface TextStallOptions {
  readonly clock: Clock;
  readonly counters: Counters;
  /** Longest wait for a word boundary after the last token, ms. */
  readonly stallMs: number;
  /** A text that nothing has come of for this long is taken to be complete, ms. */
  readonly idleMs: number;
  /** The utterance whose text is waited for, or null. */
  readonly waiting: () => Utterance | null;
  /** Whether its speaker was asked to pause. */
  readonly isPaused: (utterance: Utterance) => boolean;
  /** Unheard speech in hand, ms. */
  readonly handMs: () => number;
  /** Something can be spoken now. */
  readonly onSegment: () => void;
  /** A text was taken to be complete. */
  readonly onIdled: (utterance: Utterance) => void;
  /** Text that was held back is settled, and may have been taken out. */
  readonly onSettled: (utterance: Utterance) => void;
}

export class TextStall {
  readonly #options: TextStallOptions;
  #timer: Timer | null = null;
  /** The timer waits for text that may never come: text that does come is looked at at once. */
  #isAsleep = false;
  #shortFromMs: number | null = null;

  constructor(options: TextStallOptions) {
    this.#options = options;
  }

  /** Text came, or a segment was taken: starts watching if there is something to watch. */
  look(): void {
    if (this.#timer !== null && !this.#isAsleep) return;
    if (this.#options.waiting() === null) return;
    this.#timer?.cancel();
    this.#wakeIn(MIN_CHECK_MS);
  }

  /** Idempotent. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Nothing can be done before more text comes. */
  #sleepFor(ms: number): void {
    this.#wakeIn(ms);
    this.#isAsleep = true;
  }

  #wakeIn(ms: number): void {
    const { clock } = this.#options;
    this.#isAsleep = false;
    this.#timer = clock.at(clock.nowMs() + Math.max(MIN_CHECK_MS, ms), () => {
      this.#timer = null;
      this.#check();
    });
  }

  #check(): void {
    const { clock, waiting, handMs, stallMs } = this.#options;
    const utterance = waiting();
    if (utterance === null) {
      this.#shortFromMs = null;
      return;
    }
    const nowMs = clock.nowMs();
    const idleLeftMs = utterance.input.idleFromMs + this.#options.idleMs - nowMs;
    if (idleLeftMs <= 0) {
      utterance.input.end(nowMs);
      this.#options.onIdled(utterance);
      this.#options.onSegment();
      return;
    }
    if (!utterance.input.hasUncutText) {
      this.#sleepFor(idleLeftMs);
      return;
    }
    const leftMs = handMs() - SHORT_MS;
    if (leftMs > 0) {
      this.#shortFromMs = null;
      this.#wakeIn(leftMs);
      return;
    }
    this.#shortFromMs ??= nowMs;
    const gapMs = utterance.input.pace.stallMs(stallMs / 2);
    const quietMs = nowMs - utterance.input.pace.lastMs;
    const shortMs = nowMs - this.#shortFromMs;
    const isStalled = quietMs >= 2 * gapMs;
    const rank =
      isStalled || shortMs >= 3 * stallMs
        ? "word"
        : quietMs >= gapMs || shortMs >= 2 * stallMs
          ? "clause"
          : quietMs >= gapMs / 2 || shortMs >= stallMs
            ? "sentence"
            : null;
    const heldLeftMs = utterance.input.hasHeldText
      ? HELD_STALLS * stallMs - quietMs
      : Number.POSITIVE_INFINITY;
    const isCut = rank !== null && utterance.input.cutNow(rank, nowMs);
    if (isCut || (heldLeftMs <= 0 && utterance.input.flushHeld(nowMs, this.#options.isPaused(utterance)))) {
      this.#shortFromMs = null;
      this.#options.counters.stallCuts += 1;
      this.#options.onSegment();
      return;
    }
    if (rank === "word") this.#options.onSettled(utterance);
    // The input stalls: half a word is all there is, or what is held back.
    if (isStalled) this.#sleepFor(heldLeftMs > 0 ? Math.min(heldLeftMs, idleLeftMs) : idleLeftMs);
    else this.#wakeIn(gapMs / 4);
  }
}
