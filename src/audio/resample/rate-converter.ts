/** Brings samples of changing source rates to one rate: a resampler for the rate that is being pushed. */
import { Resampler } from "./resample.ts";

const NO_SAMPLES = new Int16Array(0);

export class RateConverter {
  readonly #toRate: number;
  #resampler: Resampler | null = null;
  #fromRate = 0;

  constructor(toRate: number) {
    this.#toRate = toRate;
  }

  /** At most two pieces: what the former rate left behind, then what came out for `pcm`. */
  push(pcm: Int16Array, rate: number): readonly Int16Array[] {
    if (rate === this.#fromRate) return [this.#resampler?.push(pcm) ?? pcm];
    const rest = this.flush();
    this.#fromRate = rate;
    this.#resampler = rate === this.#toRate ? null : new Resampler({ fromRate: rate, toRate: this.#toRate });
    const converted = this.#resampler?.push(pcm) ?? pcm;
    return rest.length === 0 ? [converted] : [rest, converted];
  }

  /** The end of what was pushed; the next push starts another stream. */
  flush(): Int16Array {
    return this.#resampler?.flush() ?? NO_SAMPLES;
  }

  reset(): void {
    this.#resampler?.reset();
  }
}
