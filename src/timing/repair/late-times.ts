/**
 * Whose audio a chunk's times are of. Mostly its own; but an upstream may send all times some chunks behind their audio,
 * and then their pace, and a clock that begins anew with each chunk, have to be held against the audio that they are of.
 */
import type { ChunkSpan } from "./clock-drift.ts";
import { NEAR_SECONDS } from "./drift-evidence.ts";

/** Of the first times of a response. Seconds, as the upstream sent them. */
export interface FirstTimes {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** They are those of the text's beginning. */
  readonly isTextStart: boolean;
}

/** Times that begin later than this are not those of the response's first audio. Seconds. */
const BEGIN_SECONDS = 0.05;
/** A pace further from 1 than this, either way, is none: then the audio is another's. */
const MAX_PACE = 2;
/** Chunks by which times may be late. */
const MAX_LATE = 64;

export class LateTimes {
  /** Audio whose times have not come yet, oldest first; while nothing was timed all audio so far. */
  #spans: ChunkSpan[] = [];
  /** null: nothing was timed yet. */
  #isLate: boolean | null = null;

  /**
   * The audio that a chunk's times are of. `own`: the chunk's own audio, null where it has none or that is not known;
   * `first`: its times, needed until the first ones have come; null where it has none.
   */
  spanOf(own: ChunkSpan | null, first: FirstTimes | null): ChunkSpan | null {
    if (this.#isLate === false) return own;
    if (own !== null) this.#spans.push(own);
    if (this.#isLate === null) {
      if (first === null && this.#spans.length <= MAX_LATE) return own;
      const from = first === null ? -1 : this.#findFirst(first);
      this.#isLate = from >= 0 && from < this.#spans.length - 1;
      this.#spans = this.#isLate ? this.#spans.slice(from) : [];
      if (!this.#isLate) return own;
    }
    return this.#spans.shift() ?? own;
  }

  /** Which audio these times are of: that which ends with them, or the first one that may be theirs; -1: none is. */
  #findFirst({ startSeconds, endSeconds, isTextStart }: FirstTimes): number {
    if (!isTextStart || !(startSeconds <= BEGIN_SECONDS) || !(endSeconds > 0)) return -1;
    const same = this.#spans.findIndex((span) => Math.abs(span.endSeconds - endSeconds) <= NEAR_SECONDS);
    if (same >= 0) return same;
    return this.#spans.findIndex((span) => {
      const pace = endSeconds / span.endSeconds;
      return pace <= MAX_PACE && pace >= 1 / MAX_PACE;
    });
  }
}
