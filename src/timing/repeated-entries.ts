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
  /** The last ones that were new, oldest first: in columns, since a thousand responses keep theirs at a time. */
  readonly #texts: string[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  /** The entries of a chunk; those that came before stand for no text any more. */
  blank(entries: readonly AlignmentEntry[], readsOn: ReadsOn): readonly AlignmentEntry[] {
    const count = this.#countRepeated(entries, readsOn);
    this.#keep(entries, count);
    if (count === 0) return entries;
    const repeats = entries.slice(0, count).reduce((sum, entry) => sum + entry.count, 0);
    const blank = { text: "", startSeconds: Number.NaN, endSeconds: Number.NaN, repeats };
    return entries.map((entry, i) => (i < count ? { ...entry, ...blank } : entry));
  }

  #keep(entries: readonly AlignmentEntry[], from: number): void {
    for (let i = from; i < entries.length; i += 1) {
      const entry = entries[i];
      if (entry === undefined) continue;
      this.#texts.push(entry.text);
      this.#starts.push(entry.startSeconds);
      this.#ends.push(entry.endSeconds);
    }
    // Moving the rest to the front costs as much as what is kept: wait until half as many have gathered.
    const excess = this.#texts.length - MAX_REPEATED;
    if (excess < MAX_REPEATED / 2) return;
    for (const column of [this.#texts, this.#starts, this.#ends]) column.splice(0, excess);
  }

  /** The most entries at the beginning that are the last ones. */
  #countRepeated(entries: readonly AlignmentEntry[], readsOn: ReadsOn): number {
    const [first, lastStart] = [entries[0], this.#starts.at(-1)];
    if (first === undefined || lastStart === undefined) return 0;
    // Times that begin behind the last ones are those of no character that came before.
    if (first.startSeconds > lastStart + SAME_SECONDS) return 0;
    for (let count = Math.min(entries.length, this.#texts.length, MAX_REPEATED); count > 0; count -= 1) {
      if (!this.#isLast(entries, count)) continue;
      // A clock that starts again with its chunk may say the same characters at the same times: the text shows it.
      const isAtOnce = first.startSeconds < AT_ONCE_SECONDS;
      return isAtOnce && (readsOn(entries) || !readsOn(entries.slice(count))) ? 0 : count;
    }
    return 0;
  }

  /** Whether the first `count` of these are the last ones. */
  #isLast(entries: readonly AlignmentEntry[], count: number): boolean {
    const from = this.#texts.length - count;
    for (let i = 0; i < count; i += 1) if (!this.#isSame(from + i, entries[i])) return false;
    return true;
  }

  /** At the same time, as far as both are known, or at none: a clock that starts again has no time for what was before it. */
  #isSame(at: number, other: AlignmentEntry | undefined): boolean {
    if (other === undefined || other.text !== this.#texts[at]) return false;
    if (other.endSeconds <= AT_ONCE_SECONDS) return true;
    const starts = Math.abs((this.#starts[at] ?? Number.NaN) - other.startSeconds);
    const ends = Math.abs((this.#ends[at] ?? Number.NaN) - other.endSeconds);
    const isUnknown = Number.isNaN(starts) && Number.isNaN(ends);
    return !(starts > SAME_SECONDS || ends > SAME_SECONDS || isUnknown);
  }
}
