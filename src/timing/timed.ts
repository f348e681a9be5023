/** What the stages of this folder hand on: characters and words with their times and where they stand in the text. */
import type { Timing } from "../protocol/vocabulary.ts";

/** A contiguous span of text with the time of each of its characters. */
export interface TimedCharacters {
  /** UTF-16 offsets, `end` exclusive: into the segment's text, then the utterance's spoken text, and behind `ClientTimes` the client's. */
  readonly start: number;
  readonly end: number;
  /** Joined they are the text from `start` to `end`: code points, or graphemes where the upstream timed those. */
  readonly characters: readonly string[];
  /** Seconds from the start of the upstream response. Starts and ends rise, and no character begins before the last ended. */
  readonly startSeconds: readonly number[];
  readonly endSeconds: readonly number[];
  /** The weakest of its characters. */
  readonly timing: Timing;
  /** How far off estimates may be; absent: not known. */
  readonly boundSeconds?: number;
}

export interface TimedWord {
  readonly text: string;
  /** UTF-16 offsets, `end` exclusive, into the text of the characters that made it: see `TimedCharacters`. */
  readonly start: number;
  readonly end: number;
  /** On the clock of the characters that made it. */
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly timing: Timing;
  readonly boundSeconds?: number;
}

const WEAKNESS: Readonly<Record<Timing, number>> = { exact: 0, scaled: 1, estimated: 2 };

/** The widest bound of estimates, as a field; none where that of one is not known, or none is an estimate. */
export function widestBound(
  timed: Iterable<{ readonly timing: Timing; readonly boundSeconds?: number | undefined }>,
): { readonly boundSeconds?: number } {
  let widest = 0;
  for (const { timing, boundSeconds = Number.POSITIVE_INFINITY } of timed)
    if (timing === "estimated") widest = Math.max(widest, boundSeconds);
  return widest > 0 && widest < Number.POSITIVE_INFINITY ? { boundSeconds: widest } : {};
}

/** The weaker of two labels. */
export function weaker(a: Timing, b: Timing): Timing {
  return WEAKNESS[a] >= WEAKNESS[b] ? a : b;
}
