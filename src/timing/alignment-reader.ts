/**
 * An upstream's alignment arrays as entries that can be relied on: whole characters, and times that are numbers or
 * NaN. The arrays may differ in length and hold anything that JSON can.
 */
import type { Alignment } from "./alignment.ts";

export interface AlignmentEntry {
  readonly text: string;
  /** Seconds as the upstream sent them; NaN = missing, negative or no number. */
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Upstream characters in this entry: 2 where it cut a surrogate pair. */
  readonly count: number;
  /** The chunk's arrays are of one length: where they are not, whose times are missing is not known. */
  readonly isSure: boolean;
  /** It is the upstream character so many before it, sent again. */
  readonly repeats?: number;
}

export class AlignmentReader {
  /** Half a surrogate pair whose other half comes in the next chunk. */
  #half: AlignmentEntry | null = null;

  read(alignment: Alignment): AlignmentEntry[] {
    const entries: AlignmentEntry[] = [];
    const { length } = alignment.characters;
    const starts = alignment.character_start_times_seconds;
    const ends = alignment.character_end_times_seconds;
    const isSure = starts?.length === length && ends?.length === length;
    // By index, here and wherever each character passes: an iterator of entries makes two objects for each.
    for (let i = 0; i < length; i += 1) {
      const character: unknown = alignment.characters[i];
      const entry = {
        text: typeof character === "string" ? character : "",
        startSeconds: toSeconds(starts?.[i]),
        endSeconds: toSeconds(ends?.[i]),
        count: 1,
        isSure,
      };
      const whole = this.#half === null ? entry : join(this.#half, entry);
      this.#half = null;
      if (endsInHighHalf(whole.text)) this.#half = whole;
      else entries.push(whole);
    }
    return entries;
  }
}

function join(half: AlignmentEntry, entry: AlignmentEntry): AlignmentEntry {
  return {
    text: half.text + entry.text,
    startSeconds: half.startSeconds,
    endSeconds: entry.endSeconds,
    count: half.count + entry.count,
    isSure: half.isSure && entry.isSure,
  };
}

function toSeconds(value: unknown): number {
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? value : Number.NaN;
}

function endsInHighHalf(text: string): boolean {
  const unit = text.charCodeAt(text.length - 1);
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Where the times of a chunk begin and end; null: it has none. */
export function timesOf(
  entries: readonly AlignmentEntry[],
): { startSeconds: number; endSeconds: number } | null {
  const first = entries.find((entry) => !Number.isNaN(entry.startSeconds));
  const last = entries.findLast((entry) => !Number.isNaN(entry.startSeconds));
  if (first === undefined || last === undefined) return null;
  const endSeconds = Number.isNaN(last.endSeconds) ? last.startSeconds : last.endSeconds;
  return { startSeconds: first.startSeconds, endSeconds };
}
