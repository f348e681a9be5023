/**
 * The upstream's timing (seconds from the start of a response) as the timing of audio messages (whole milliseconds from
 * the start of a message). Characters wait until the message that holds their beginning.
 */
import type { Alignment } from "../../timing/alignment.ts";

/** The times in one message; three arrays of equal length. */
export interface MessageTiming {
  readonly chars: readonly string[];
  readonly startsMs: readonly number[];
  readonly durationsMs: readonly number[];
}

interface Entry {
  readonly char: string;
  /** From the start of the generation, whole ms; ends where the next one begins if it did so before rounding. */
  readonly startMs: number;
  readonly endMs: number;
}

export class FrameTiming {
  #waiting: Entry[] = [];
  #chars = 0;

  /** UTF-16 code units of all characters that came. */
  get chars(): number {
    return this.#chars;
  }

  push(alignment: Alignment | null): void {
    if (alignment === null) return;
    const ends = alignment.character_end_times_seconds;
    for (const [index, char] of alignment.characters.entries()) {
      const startMs = Math.round((alignment.character_start_times_seconds[index] ?? 0) * 1000);
      const endMs = Math.max(startMs, Math.round((ends[index] ?? 0) * 1000));
      this.#waiting.push({ char, startMs, endMs });
      this.#chars += char.length;
    }
  }

  /**
   * The characters that begin before `endMs` and were not taken, in times from `originMs`; null where there are none.
   * Those of before the origin begin at 0. `origin` and `end` in ms from the start of the generation.
   */
  take(originMs: number, endMs: number): MessageTiming | null {
    const later = this.#waiting.findIndex(({ startMs }) => startMs >= endMs);
    const count = later < 0 ? this.#waiting.length : later;
    if (count === 0) return null;
    const taken = this.#waiting.splice(0, count);
    const origin = Math.round(originMs);
    const starts = taken.map(({ startMs }) => Math.max(0, startMs - origin));
    return {
      chars: taken.map(({ char }) => char),
      startsMs: starts,
      durationsMs: taken.map(({ endMs: end }, index) => Math.max(0, end - origin - (starts[index] ?? 0))),
    };
  }
}
