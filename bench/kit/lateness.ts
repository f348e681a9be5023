/**
 * How late frames are for a listener, against the ideal grid that starts with its first frame.
 *
 * A server that sends `lead` ahead in batches of `batch` has frame k out by its playout time minus (lead - batch);
 * every millisecond after that is lateness, before it is none. The first lead's worth of frames comes at once, so
 * none of them is due before the first.
 */
import type { LatenessSummary } from "./commands.ts";

const FRAME_MS = 20;
const STEP_MS = 0.1;
const STEPS = 100_000;

/** What a group of listeners saw, in steps of 0.1 ms up to 10 s. */
export class LatenessHistogram {
  readonly #counts = new Uint32Array(STEPS + 1);
  #frames = 0;
  #maxMs = 0;

  add(ms: number): void {
    this.#frames += 1;
    this.#maxMs = Math.max(this.#maxMs, ms);
    const step = Math.min(STEPS, Math.ceil(ms / STEP_MS));
    this.#counts[step] = (this.#counts[step] ?? 0) + 1;
  }

  summary(): LatenessSummary {
    return { frames: this.#frames, p50Ms: this.#at(0.5), p99Ms: this.#at(0.99), maxMs: this.#maxMs };
  }

  #at(fraction: number): number {
    let left = Math.ceil(fraction * this.#frames);
    for (let step = 0; step <= STEPS; step += 1) {
      left -= this.#counts[step] ?? 0;
      if (left <= 0) return step * STEP_MS;
    }
    return Number.NaN;
  }
}

/** One listener. */
export class FrameLateness {
  readonly #histogram: LatenessHistogram;
  readonly #slackMs: number;
  #firstMs: number | null = null;
  #frames = 0;

  constructor(histogram: LatenessHistogram, grid: { readonly leadMs: number; readonly batchMs: number }) {
    this.#histogram = histogram;
    this.#slackMs = grid.leadMs - grid.batchMs;
  }

  note(atMs: number): void {
    this.#firstMs ??= atMs;
    const dueMs = this.#firstMs + Math.max(0, this.#frames * FRAME_MS - this.#slackMs);
    this.#frames += 1;
    this.#histogram.add(Math.max(0, atMs - dueMs));
  }
}
