/** Counts of durations, to read percentiles from: milliseconds in steps of 0.1 up to 10 s. */
const STEP_MS = 0.1;
const STEPS = 100_000;

export class Histogram {
  readonly #counts = new Uint32Array(STEPS + 1);
  count = 0;
  maxMs = 0;

  add(ms: number): void {
    this.count += 1;
    this.maxMs = Math.max(this.maxMs, ms);
    const step = Math.min(STEPS, Math.ceil(ms / STEP_MS));
    this.#counts[step] = (this.#counts[step] ?? 0) + 1;
  }

  merge(other: Histogram): void {
    this.count += other.count;
    this.maxMs = Math.max(this.maxMs, other.maxMs);
    for (let step = 0; step <= STEPS; step += 1) {
      const more = other.#counts[step] ?? 0;
      if (more > 0) this.#counts[step] = (this.#counts[step] ?? 0) + more;
    }
  }

  /** The value below which this fraction lies, rounded up to a step; NaN where it is empty. */
  at(fraction: number): number {
    let left = Math.ceil(fraction * this.count);
    if (left === 0) return Number.NaN;
    for (let step = 0; step <= STEPS; step += 1) {
      left -= this.#counts[step] ?? 0;
      if (left <= 0) return step * STEP_MS;
    }
    return Number.NaN;
  }
}
