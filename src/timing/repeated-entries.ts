/**
 * Finds what an upstream sent twice: a chunk that begins with the last characters of the one before it, at their times.
 * Where the text repeats itself only the times show it: nothing is said twice at one time.
 */
import type { AlignmentEntry } from "./alignment-reader.ts";

/** So many entries of the chunks before may come again. */
const MAX_REPEATED = 128;
/** Times on the wire are rounded to this. Seconds. */
const SAME_SECONDS = 0.00011;
/** Where a response, and a clock that starts again with its chunk, begin. Seconds. */
const AT_ONCE_SECONDS = 0.001;

/** Whether the text goes on with these. */
type ReadsOn = (entries: readonly AlignmentEntry[]) => boolean;

export class RepeatedEntries {
  /** The last ones that were new. */
  #last: AlignmentEntry[] = [];

  /** The entries of a chunk; those that came before stand for no text any more. */
  blank(entries: readonly AlignmentEntry[], readsOn: ReadsOn): AlignmentEntry[] {
    const count = this.#countRepeated(entries, readsOn);
    this.#last = [...this.#last, ...entries.slice(count)].slice(-MAX_REPEATED);
    const repeats = entries.slice(0, count).reduce((sum, entry) => sum + entry.count, 0);
    const blank = { text: "", startSeconds: Number.NaN, endSeconds: Number.NaN, repeats };
    return entries.map((entry, i) => (i < count ? { ...entry, ...blank } : entry));
  }

  /** The most entries at the beginning that are the last ones. */
  #countRepeated(entries: readonly AlignmentEntry[], readsOn: ReadsOn): number {
    const [first, last] = [entries[0], this.#last.at(-1)];
    if (first === undefined || last === undefined) return 0;
    // Times that begin behind the last ones are those of no character that came before.
    if (first.startSeconds > last.startSeconds + SAME_SECONDS) return 0;
    for (let count = Math.min(entries.length, this.#last.length); count > 0; count -= 1) {
      const before = this.#last.slice(-count);
      if (!before.every((entry, i) => isSame(entry, entries[i]))) continue;
      // A clock that starts again with its chunk may say the same characters at the same times: the text shows it.
      const isAtOnce = first.startSeconds < AT_ONCE_SECONDS;
      return isAtOnce && (readsOn(entries) || !readsOn(entries.slice(count))) ? 0 : count;
    }
    return 0;
  }
}

/** At the same time, as far as both are known, or at none: a clock that starts again has no time for what was before it. */
function isSame(entry: AlignmentEntry, other: AlignmentEntry | undefined): boolean {
  if (other?.text !== entry.text) return false;
  if (other.endSeconds <= AT_ONCE_SECONDS) return true;
  const starts = Math.abs(entry.startSeconds - other.startSeconds);
  const ends = Math.abs(entry.endSeconds - other.endSeconds);
  const isUnknown = Number.isNaN(starts) && Number.isNaN(ends);
  return !(starts > SAME_SECONDS || ends > SAME_SECONDS || isUnknown);
}
