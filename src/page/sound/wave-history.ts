/** Loudness of the decoded audio along the timeline, in bars of 20 ms, for the last minute or so. */

export const BAR_MS = 20;
const BARS = 4096;

export class WaveHistory {
  readonly #peaks = new Float32Array(BARS);
  /** Which bar of the timeline a slot holds now; -1 = none. */
  readonly #bars = new Int32Array(BARS).fill(-1);
  #squares = 0;
  #samples = 0;
  /** Rises with every change, so that a picture is drawn only when there is a new one. */
  version = 0;

  add(samples: Float32Array, atMs: number): void {
    if (samples.length === 0) return;
    let peak = 0;
    for (const sample of samples) {
      this.#squares += sample * sample;
      if (sample > peak) peak = sample;
      else if (-sample > peak) peak = -sample;
    }
    this.#samples += samples.length;
    this.version += 1;
    const durationMs = (samples.length / 48_000) * 1000;
    const last = Math.ceil((atMs + durationMs) / BAR_MS) - 1;
    for (let bar = Math.floor(atMs / BAR_MS); bar <= last; bar += 1) {
      const slot = bar % BARS;
      this.#peaks[slot] = this.#bars[slot] === bar ? Math.max(this.#peaks[slot] ?? 0, peak) : peak;
      this.#bars[slot] = bar;
    }
  }

  /** Peak of one bar, 0-1; null where nothing was decoded. */
  peak(bar: number): number | null {
    if (bar < 0) return null;
    const slot = bar % BARS;
    return this.#bars[slot] === bar ? (this.#peaks[slot] ?? 0) : null;
  }

  /** Root mean square of everything decoded so far. */
  get rms(): number {
    return this.#samples === 0 ? 0 : Math.sqrt(this.#squares / this.#samples);
  }

  /** Another timeline begins. */
  clear(): void {
    this.#bars.fill(-1);
    this.version += 1;
  }
}
