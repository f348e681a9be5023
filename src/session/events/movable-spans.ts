/** Times that move with the silence that is trimmed, until their audio is rendered. */
import type { Span } from "../playback/transcript.ts";

/** Those of what is rendered are let go of when there are so many. */
const MAX_SPANS = 128;

export class MovableSpans {
  #spans: Span[] = [];

  /** It is moved where it is: whoever has noted it sees it. */
  add(span: Span): void {
    this.#spans.push(span);
  }

  /** Silence was taken off the beginning of a segment, which stands at `baseTicks`. */
  dropLead(baseTicks: number, ticks: number): void {
    for (const span of this.#spans) {
      span.startTicks = Math.max(baseTicks, span.startTicks - ticks);
      span.endTicks = Math.max(baseTicks, span.endTicks - ticks);
    }
  }

  /** The segment's audio ends at this place of the timeline. */
  endAt(endTicks: number): void {
    for (const span of this.#spans) {
      span.startTicks = Math.min(endTicks, span.startTicks);
      span.endTicks = Math.min(endTicks, span.endTicks);
    }
  }

  /** What ends before is rendered and stays as it is. */
  forgetBefore(writeTicks: number): void {
    if (this.#spans.length <= MAX_SPANS) return;
    this.#spans = this.#spans.filter((span) => span.endTicks > writeTicks);
  }
}
