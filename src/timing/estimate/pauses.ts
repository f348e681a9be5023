/** The silences of a response that are long enough to be heard as pauses. */
import type { Silence } from "../../audio/analysis/pause-finder.ts";
import type { AudioSpan } from "../spans.ts";

/** Shorter silences are in words with a "t" or a "k". */
const MIN_PAUSE_SECONDS = 0.12;
/** At either end of what is looked at: what goes on there is not seen. */
const MIN_EDGE_SECONDS = 0.09;
/** Silences that are no further apart are one: audio that came in two pieces, or a click. */
const JOINT_SECONDS = 0.002;
/** The silences of one response, rising. */
export class Pauses {
  #pauses: Silence[] = [];

  add(pauses: readonly Silence[]): void {
    for (const pause of pauses) {
      const last = this.#pauses.at(-1);
      if (last !== undefined && pause.startSeconds - last.endSeconds <= JOINT_SECONDS) {
        this.#pauses[this.#pauses.length - 1] = {
          startSeconds: last.startSeconds,
          endSeconds: pause.endSeconds,
        };
      } else this.#pauses.push(pause);
    }
  }

  /** Those long enough to be heard as pauses, as far as they lie in a span. */
  within(span: AudioSpan): Silence[] {
    return this.#pauses
      .map(({ startSeconds, endSeconds }) => ({
        startSeconds: Math.max(startSeconds, span.startSeconds),
        endSeconds: Math.min(endSeconds, span.endSeconds),
      }))
      .filter(({ startSeconds, endSeconds }) => {
        const isAtEdge = startSeconds === span.startSeconds || endSeconds === span.endSeconds;
        return endSeconds - startSeconds >= (isAtEdge ? MIN_EDGE_SECONDS : MIN_PAUSE_SECONDS);
      });
  }

  /** Nobody asks for anything before that any more. */
  forgetBefore(seconds: number): void {
    if ((this.#pauses[0]?.endSeconds ?? seconds) < seconds)
      this.#pauses = this.#pauses.filter(({ endSeconds }) => endSeconds >= seconds);
  }
}

/** Seconds of sound from `fromSeconds` on before a moment. */
export function soundClock(fromSeconds: number, pauses: readonly Silence[]): (seconds: number) => number {
  return (seconds) => {
    let silent = 0;
    for (const { startSeconds, endSeconds } of pauses) {
      const until = Math.min(endSeconds, seconds);
      silent += Math.max(0, until - Math.max(startSeconds, fromSeconds));
    }
    return seconds - fromSeconds - silent;
  };
}
