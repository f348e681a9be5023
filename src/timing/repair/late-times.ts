/**
 * Which audio a chunk's times belong to: mostly its own. An upstream that sends its times behind their audio (Inworld's
 * asynchronous timestamps) sends all of them so many chunks late, and the first ones end with audio that came before.
 */
import type { AudioSpan } from "../spans.ts";

/** Times may be late by so much audio, and by so many chunks. */
const MAX_LATE_SECONDS = 10;
const MAX_LATE = 1024;

export class LateTimes {
  /** Audio whose times have not come, oldest first. */
  #waiting: AudioSpan[] = [];
  /** null: nothing was timed yet. */
  #isLate: boolean | null = null;

  /** The audio that a chunk's times are of. `firstEndSeconds`: where they end, if they are those of the text's beginning. */
  spanOf(own: AudioSpan | null, isTimed: boolean, firstEndSeconds: number | null): AudioSpan | null {
    if (this.#isLate === false) return own;
    if (own !== null && own.endSeconds > own.startSeconds) this.#waiting.push(own);
    if (this.#isLate === null) {
      const lateSeconds = this.#waiting.at(-1)?.endSeconds ?? 0;
      if (!isTimed && this.#waiting.length <= MAX_LATE && lateSeconds <= MAX_LATE_SECONDS) return own;
      const first = firstEndSeconds === null ? -1 : nearestTo(firstEndSeconds, this.#waiting);
      this.#isLate = first >= 0 && first < this.#waiting.length - 1;
      this.#waiting = this.#isLate ? this.#waiting.slice(first) : [];
      if (!this.#isLate) return own;
    }
    return this.#waiting.shift() ?? own;
  }
}

function nearestTo(seconds: number, spans: readonly AudioSpan[]): number {
  const apart = spans.map(({ endSeconds }) => Math.abs(endSeconds - seconds));
  return apart.indexOf(Math.min(...apart));
}
