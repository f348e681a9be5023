/**
 * Keeps peaks under a ceiling without clipping them: what is to come is looked at, so that the gain is down before a peak is
 * there, and comes back slowly behind it.
 */
import { MOST_BETWEEN, TRUE_PEAK_REACH, truePeakAt } from "./true-peak.ts";

/** -1.5 dBTP: codecs and resamplers behind it may add half a decibel to what is let through. */
const CEILING = 10 ** (-1.5 / 20);
const ATTACK_SECONDS = 0.005;
const RELEASE_SECONDS = 0.06;
const NOTHING = new Float32Array(0);

export class Limiter {
  readonly #attackSamples: number;
  readonly #release: number;
  /** Samples before those that come next. */
  #behind = NOTHING;
  /** The last gains, as many as the attack has samples, in a ring, and their sum. */
  readonly #gains: Float64Array;
  #gainsAt = 0;
  #sum: number;
  #gain = 1;
  #hasBegun = false;

  constructor(sampleRate: number) {
    this.#attackSamples = Math.round(sampleRate * ATTACK_SECONDS);
    this.#release = 1 - Math.exp(-1 / (sampleRate * RELEASE_SECONDS));
    this.#gains = new Float64Array(this.#attackSamples + 1).fill(1);
    this.#sum = this.#gains.length;
  }

  /** So many samples that follow are looked at. */
  static aheadSamples(sampleRate: number): number {
    return Math.round(sampleRate * ATTACK_SECONDS) + TRUE_PEAK_REACH;
  }

  /** Changes `samples` (full scale is 1); `ahead` are those behind them, as far as they are there. */
  limit(samples: Float32Array, ahead: Float32Array): void {
    const all = new Float32Array(this.#behind.length + samples.length + ahead.length);
    all.set(this.#behind);
    all.set(samples, this.#behind.length);
    all.set(ahead, this.#behind.length + samples.length);
    const from = this.#behind.length;
    this.#behind = all.slice(Math.max(0, from + samples.length - TRUE_PEAK_REACH), from + samples.length);
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    if (this.#isAtRest && highest(all) * MOST_BETWEEN < CEILING) return;
    const needed = this.#neededGains(all, from, samples.length);
    if (isFirst) this.#beginAt(needed[0] ?? 1);
    for (let index = 0; index < samples.length; index += 1) {
      const value = (samples[index] ?? 0) * this.#next(needed[index] ?? 1);
      // Where less was there to look at than a peak needs.
      samples[index] = Math.max(-CEILING, Math.min(CEILING, value));
    }
  }

  get #isAtRest(): boolean {
    return this.#gain > 0.9999 && this.#sum > this.#gains.length * 0.9999;
  }

  /** For each sample the lowest gain that anything needs from there to the end of the attack. */
  #neededGains(all: Float32Array, from: number, count: number): Float64Array {
    const reach = this.#attackSamples;
    const needed = new Float64Array(count).fill(1);
    const end = Math.min(all.length, from + count + reach);
    // A peak between two samples belongs to both.
    for (let at = Math.max(0, from - 1); at < end; at += 1) {
      const peak = truePeakAt(all, at);
      if (peak <= CEILING) continue;
      const gain = CEILING / peak;
      const last = Math.min(count - 1, at + 1 - from);
      for (let index = Math.max(0, at - from - reach); index <= last; index += 1) {
        if (gain < (needed[index] ?? 1)) needed[index] = gain;
      }
    }
    return needed;
  }

  /** Sound that begins with a peak leaves no time to bring the gain down: it is down from the first sample on. */
  #beginAt(gain: number): void {
    this.#gain = gain;
    this.#gains.fill(gain);
    this.#sum = gain * this.#gains.length;
  }

  /** Down at once, up slowly; of that the mean over the attack, which has no steps. */
  #next(needed: number): number {
    this.#gain = Math.min(needed, this.#gain + (1 - this.#gain) * this.#release);
    this.#sum += this.#gain - (this.#gains[this.#gainsAt] ?? 1);
    this.#gains[this.#gainsAt] = this.#gain;
    this.#gainsAt = (this.#gainsAt + 1) % this.#gains.length;
    return this.#sum / this.#gains.length;
  }
}

function highest(samples: Float32Array): number {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return peak;
}
