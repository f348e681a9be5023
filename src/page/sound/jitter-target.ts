/**
 * How much audio to gather before playing starts after silence: little while the network is even, more after each
 * time the audio ran dry within an utterance, and slowly less again.
 */
const MIN_MS = 60;
const MAX_MS = 480;
const GROWTH = 1.8;
/** What is given back for each second of unbroken audio. */
const DECAY_PER_S = 0.03;

export class JitterTarget {
  #delayMs = MIN_MS;
  underruns = 0;

  get delayMs(): number {
    return this.#delayMs;
  }

  ranDry(): void {
    this.underruns += 1;
    this.#delayMs = Math.min(MAX_MS, this.#delayMs * GROWTH);
  }

  /** `ms` of audio came in time. */
  ranSmoothly(ms: number): void {
    this.#delayMs = Math.max(MIN_MS, this.#delayMs * (1 - (DECAY_PER_S * ms) / 1000));
  }
}
