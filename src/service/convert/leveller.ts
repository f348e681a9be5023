/** Gives transformed speech the loudness of its source at every moment: denser grains are louder, wider ones quieter. */
import type { SampleWindow } from "./sample-window.ts";

/** Samples from one gain to the next: 5 ms. */
const STEP = 120;
/** Steps of loudness that a gain looks at to either side: 25 ms. */
const REACH = 5;
const MAX_GAIN = 8;
/** Power below which nothing is lifted: -80 dB of full scale. */
const FLOOR_POWER = 1e-8;
/** Where peaks begin to be rounded off, of full scale. */
const KNEE = 0.9;

export class Leveller {
  readonly #source: SampleWindow;
  readonly #made: SampleWindow;
  #done = 0;

  constructor(source: SampleWindow, made: SampleWindow) {
    this.#source = source;
    this.#made = made;
  }

  /** Samples of either window before this number are not looked at any more. */
  get needed(): number {
    return Math.max(0, this.#done - (REACH + 1) * STEP);
  }

  /** What can be said when both windows stand still before `settled`; at the `end` all up to it. */
  take(settled: number, isEnd = false): Float32Array {
    const to = isEnd ? settled : Math.floor(settled / STEP) * STEP - (REACH + 1) * STEP;
    if (to <= this.#done) return new Float32Array(0);
    const samples = this.#made.slice(this.#done, to);
    let gain = this.#gainAt(this.#done);
    for (let from = 0; from < samples.length; from += STEP) {
      const next = this.#gainAt(this.#done + from + STEP);
      for (let at = from; at < Math.min(from + STEP, samples.length); at += 1) {
        const here = gain + ((next - gain) * (at - from)) / STEP;
        samples[at] = rounded((samples[at] ?? 0) * here);
      }
      gain = next;
    }
    this.#done = to;
    return samples;
  }

  #gainAt(centre: number): number {
    const source = power(this.#source, centre) + FLOOR_POWER;
    const made = power(this.#made, centre) + FLOOR_POWER;
    return Math.min(MAX_GAIN, Math.sqrt(source / made));
  }
}

function power(window: SampleWindow, centre: number): number {
  let sum = 0;
  for (const sample of window.slice(centre - REACH * STEP, centre + REACH * STEP)) sum += sample * sample;
  return sum / (2 * REACH * STEP);
}

function rounded(sample: number): number {
  const size = Math.abs(sample);
  if (size <= KNEE) return sample;
  return Math.sign(sample) * (KNEE + (1 - KNEE) * Math.tanh((size - KNEE) / (1 - KNEE)));
}
