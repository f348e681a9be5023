/** Segments that were rendered and of which no frame has left: with the first one that does, their waterfall is whole. */
import type { SegmentStages } from "../synthesis/segment-stages.ts";

export class UnsentSegments {
  /** In the order of the timeline. */
  #segments: { readonly stages: SegmentStages; readonly startTicks: number }[] = [];

  get isEmpty(): boolean {
    return this.#segments.length === 0;
  }

  /** A segment begins there. */
  add(stages: SegmentStages, startTicks: number): void {
    this.#segments.push({ stages, startTicks });
  }

  /** Frames up to `sentTicks` have left: the first of every segment that begins before. */
  noteSent(sentTicks: number, nowMs: number): void {
    for (;;) {
      const [first] = this.#segments;
      if (first === undefined || first.startTicks >= sentTicks) return;
      first.stages.firstFrameMs = nowMs;
      this.#segments.shift();
    }
  }

  /** The audio was cut: what was not sent will not be. */
  clear(): void {
    this.#segments = [];
  }
}
