/**
 * An upstream's alignment arrays as entries that can be relied on: whole characters, and times that are numbers or
 * NaN. The arrays may differ in length and hold anything that JSON can.
 */
import type { Alignment } from "./alignment.ts";

export interface AlignmentEntry {
  readonly text: string;
  /** Seconds as the upstream sent them; NaN = missing or no number. */
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Upstream characters in this entry: 2 where it cut a surrogate pair. */
  readonly count: number;
}

export class AlignmentReader {
  /** Half a surrogate pair whose other half comes in the next chunk. */
  #half: AlignmentEntry | null = null;

  read(alignment: Alignment): AlignmentEntry[] {
    const entries: AlignmentEntry[] = [];
    for (const [i, character] of alignment.characters.entries()) {
      const entry = {
        text: typeof character === "string" ? character : "",
        startSeconds: toSeconds(alignment.character_start_times_seconds?.[i]),
        endSeconds: toSeconds(alignment.character_end_times_seconds?.[i]),
        count: 1,
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
  };
}

function toSeconds(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : Number.NaN;
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
