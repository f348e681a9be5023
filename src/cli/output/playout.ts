/**
 * Where a player would be that started with the first frame: the clock by which words light up. Frames come ahead
 * of time; when they run out the position stands still, and the next frame moves the schedule on.
 */
import type { Clock } from "../../kit/clock.ts";

export class PlayoutClock {
  readonly #clock: Clock;
  /** Clock time at which timeline position 0 was or would have been played; undefined until the first frame. */
  #originMs: number | undefined;
  /** Timeline position up to which audio has arrived. */
  #receivedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get receivedMs(): number {
    return this.#receivedMs;
  }

  /** Whether any audio has come. */
  get hasBegun(): boolean {
    return this.#originMs !== undefined;
  }

  /** A frame that covers the timeline up to `endMs` and lasts `durationMs` has arrived. */
  frame(endMs: number, durationMs: number): void {
    const now = this.#clock.nowMs();
    const startMs = endMs - durationMs;
    const ideal = now - startMs;
    // First frame, or an underrun: this frame is played now, so the origin is where it makes the frame due.
    if (this.#originMs === undefined || now - this.#originMs > this.#receivedMs) {
      this.#originMs = this.#originMs === undefined ? ideal : Math.max(this.#originMs, ideal);
    }
    this.#receivedMs = Math.max(this.#receivedMs, endMs);
  }

  /** What is being played, ms on the timeline; never beyond what has arrived. */
  positionMs(): number {
    if (this.#originMs === undefined) return 0;
    return Math.max(0, Math.min(this.#clock.nowMs() - this.#originMs, this.#receivedMs));
  }
}
