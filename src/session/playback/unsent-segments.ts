/** Segments that were rendered and of which no frame has left: with the first one that does, their waterfall is whole. */
import type { SegmentTimes } from "../synthesis/segment-times.ts";

export class UnsentSegments {
  /** In the order of the timeline. */
  #times: SegmentTimes[] = [];

  get isEmpty(): boolean {
    return this.#times.length === 0;
  }

  /** A segment begins at the write head: `startTicks` is set. */
  add(times: SegmentTimes): void {
    this.#times.push(times);
  }

  /** Frames up to `sentTicks` have left: the first of every segment that begins before. */
  noteSent(sentTicks: number, nowMs: number): void {
    for (;;) {
      const [times] = this.#times;
      if (times === undefined || (times.startTicks ?? 0) >= sentTicks) return;
      times.firstFrameMs = nowMs;
      this.#times.shift();
    }
  }

  /** The audio was cut: what was not sent will not be. */
  clear(): void {
    this.#times = [];
  }
}
