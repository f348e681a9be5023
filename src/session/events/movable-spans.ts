/** Places on the timeline that move with the silence that is trimmed, until the audio that they tell of is pushed. */
import type { Span } from "../playback/utterance.ts";

/** Those of what is pushed are let go of when there are so many. */
const MAX_STRETCHES = 128;

export class MovableSpans {
  #stretches: Span[] = [];

  /** It is moved where it is: whoever has noted it sees it. */
  add(stretch: Span): void {
    this.#stretches.push(stretch);
  }

  /** Silence was taken off the beginning of a segment, which stands at `baseTicks`. */
  dropLead(baseTicks: number, ticks: number): void {
    for (const stretch of this.#stretches) {
      stretch.startTicks = Math.max(baseTicks, stretch.startTicks - ticks);
      stretch.endTicks = Math.max(baseTicks, stretch.endTicks - ticks);
    }
  }

  /** The segment's audio ends at this place of the timeline. */
  endAt(endTicks: number): void {
    for (const stretch of this.#stretches) {
      stretch.startTicks = Math.min(endTicks, stretch.startTicks);
      stretch.endTicks = Math.min(endTicks, stretch.endTicks);
    }
  }

  /** What ends before is pushed and stays as it is. */
  forgetBefore(writeTicks: number): void {
    if (this.#stretches.length <= MAX_STRETCHES) return;
    this.#stretches = this.#stretches.filter((stretch) => stretch.endTicks > writeTicks);
  }
}
