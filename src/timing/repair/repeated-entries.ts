/**
 * Finds what an upstream sent twice: a chunk that begins with the last characters of the one before it. Where the text
 * repeats itself it can't tell; the times do, for nothing is said twice at one time.
 */
import type { AlignmentEntry } from "../alignment-reader.ts";

/** So many entries are remembered, and may come again: as many as the last chunk has, within these. */
const MIN_REPEATED = 32;
const MAX_REPEATED = 128;
/** Times on the wire are rounded to this. Seconds. */
const SAME_SECONDS = 0.00011;
/** Times of a clock that begins anew begin before this. Seconds. */
const ANEW_SECONDS = 0.001;
/** Smaller steps back are none. Seconds. */
const TOLERANCE_SECONDS = 0.02;

/** Whether the text goes on with a chunk's entries from this one on. */
type FitsText = (from: number) => boolean;

export class RepeatedEntries {
  /** The last ones, without those that had come before. */
  #last: AlignmentEntry[] = [];

  /** How many entries at the beginning of a chunk are those that came last. */
  meet(entries: readonly AlignmentEntry[], fitsText: FitsText): number {
    const count = this.#goesOn(entries) ? 0 : this.#countRepeated(entries, fitsText);
    for (let i = count; i < entries.length; i += 1) {
      const entry = entries[i];
      if (entry !== undefined) this.#last.push(entry);
    }
    const remembered = Math.min(Math.max(MIN_REPEATED, entries.length), MAX_REPEATED);
    if (this.#last.length > 2 * remembered) this.#last = this.#last.slice(-remembered);
    return count;
  }

  /** Times that begin behind the last ones are those of no character that came before. */
  #goesOn(entries: readonly AlignmentEntry[]): boolean {
    const [first, last] = [entries[0], this.#last.at(-1)];
    if (first === undefined || last === undefined) return true;
    return first.startSeconds > last.startSeconds + SAME_SECONDS && first.startSeconds > ANEW_SECONDS;
  }

  #countRepeated(entries: readonly AlignmentEntry[], fitsText: FitsText): number {
    const timed = this.#countSame(entries, isSameTime);
    if (timed > 0 && isRepeat(entries, timed, fitsText)) return timed;
    // A clock that begins anew has no time for what was before it: all of that stands at its very beginning.
    const timeless = this.#countSame(entries, takesNoTime);
    if (timeless > 0 && timeless < entries.length && fitsText(timeless)) return timeless;
    // One of the two times may be missing, or be that of a neighbour: the text has to agree then.
    const alike = this.#countSame(entries, isAlike);
    return alike > timed && alike < entries.length && fitsText(alike) && !fitsText(0) ? alike : 0;
  }

  /** The most entries at the beginning that are the last ones, each of them `isIt`. */
  #countSame(
    entries: readonly AlignmentEntry[],
    isIt: (entry: AlignmentEntry, before: AlignmentEntry) => boolean,
  ): number {
    const end = this.#last.at(-1);
    for (let count = Math.min(entries.length, this.#last.length, MAX_REPEATED); count > 0; count -= 1) {
      if (entries[count - 1]?.text !== end?.text) continue;
      const from = this.#last.length - count;
      const isSame = this.#last.slice(from).every((before, i) => {
        const entry = entries[i];
        return entry !== undefined && entry.text === before.text && isIt(entry, before);
      });
      if (isSame) return count;
    }
    return 0;
  }
}

/** Entries of the same times may be others all the same, where the clock begins anew with each chunk. */
function isRepeat(entries: readonly AlignmentEntry[], count: number, fitsText: FitsText): boolean {
  const [first, last, next] = [entries[0], entries[count - 1], entries[count]];
  const isAnew = first !== undefined && first.startSeconds < ANEW_SECONDS;
  if (next === undefined) return !isAnew;
  if (last !== undefined && next.startSeconds < last.endSeconds - TOLERANCE_SECONDS) return true;
  const [fitsWhole, fitsRest] = [fitsText(0), fitsText(count)];
  return isAnew ? fitsRest && !fitsWhole : fitsRest || !fitsWhole;
}

function isSameTime(entry: AlignmentEntry, before: AlignmentEntry): boolean {
  const startSeconds = Math.abs(entry.startSeconds - before.startSeconds);
  const endSeconds = Math.abs(entry.endSeconds - before.endSeconds);
  // One that is missing says nothing; both say nothing at all.
  const isOther = startSeconds > SAME_SECONDS || endSeconds > SAME_SECONDS;
  return !isOther && !(Number.isNaN(startSeconds) && Number.isNaN(endSeconds));
}

function isAlike(entry: AlignmentEntry, before: AlignmentEntry): boolean {
  const isSame = (one: number, other: number) => Math.abs(one - other) <= SAME_SECONDS;
  return isSame(entry.startSeconds, before.startSeconds) || isSame(entry.endSeconds, before.endSeconds);
}

function takesNoTime({ startSeconds, endSeconds }: AlignmentEntry): boolean {
  return startSeconds <= ANEW_SECONDS && endSeconds <= ANEW_SECONDS;
}
