/**
 * Sample-rate conversion between any two rates, for uploads: the resampler of the gateway knows the rates of its formats
 * only. A windowed sinc whose values are read off a table between two entries; aliases and errors are below -70 dB.
 */
import { bessel0 } from "../../audio/resample/resample.ts";

/** Zero crossings on either side, of the lower of the two rates. */
const HALF_PERIODS = 24;
/** Middle of the filter's slope, as a part of the lower rate's Nyquist frequency. */
const CUTOFF = 0.9;
/** Entries a period. */
const STEPS = 512;
/** Kaiser window: about 75 dB of stop-band. */
const BETA = 7.3;

export class OddRateConverter {
  readonly #step: number;
  readonly #toRate: number;
  readonly #fromRate: number;
  /** 1, or less where the rate goes down: the filter is as much wider. */
  readonly #narrowing: number;
  readonly #reach: number;
  readonly #table: Float64Array;
  /** Input that outputs still need, from `#start` on. */
  #held: Int16Array = new Int16Array(0);
  #start = 0;
  #samplesIn = 0;
  #samplesOut = 0;

  /** Hz, both above zero. */
  constructor(options: { readonly fromRate: number; readonly toRate: number }) {
    this.#fromRate = options.fromRate;
    this.#toRate = options.toRate;
    this.#step = options.fromRate / options.toRate;
    this.#narrowing = Math.min(1, options.toRate / options.fromRate);
    this.#reach = HALF_PERIODS / this.#narrowing;
    this.#table = kernelTable();
  }

  /** What can be said for certain so far: sample k of the output is the input at time k / toRate. */
  push(pcm: Int16Array): Int16Array {
    this.#samplesIn += pcm.length;
    const joined = new Int16Array(this.#held.length + pcm.length);
    joined.set(this.#held);
    joined.set(pcm, this.#held.length);
    this.#held = joined;
    const ready = Math.floor((this.#samplesIn - 1 - this.#reach) / this.#step) + 1;
    return this.#make(Math.max(this.#samplesOut, ready));
  }

  /** The rest, as if silence followed. */
  flush(): Int16Array {
    return this.#make(Math.round((this.#samplesIn * this.#toRate) / this.#fromRate));
  }

  #make(end: number): Int16Array {
    const output = new Int16Array(Math.max(0, end - this.#samplesOut));
    for (let at = 0; at < output.length; at += 1) {
      const value = this.#valueAt((this.#samplesOut + at) * this.#step - this.#start);
      output[at] = Math.max(-32_768, Math.min(32_767, Math.round(value)));
    }
    this.#samplesOut += output.length;
    const first = Math.max(this.#start, Math.floor(this.#samplesOut * this.#step - this.#reach) - 1);
    this.#held = this.#held.slice(Math.max(0, first - this.#start));
    this.#start = first;
    return output;
  }

  /** `place` counts from the first sample that is held. */
  #valueAt(place: number): number {
    const table = this.#table;
    const held = this.#held;
    const last = Math.min(held.length - 1, Math.floor(place + this.#reach));
    let sum = 0;
    for (let at = Math.max(0, Math.ceil(place - this.#reach)); at <= last; at += 1) {
      const entry = Math.abs(at - place) * this.#narrowing * STEPS;
      const whole = Math.floor(entry);
      const low = table[whole] ?? 0;
      sum += (held[at] ?? 0) * (low + ((table[whole + 1] ?? 0) - low) * (entry - whole));
    }
    return sum * this.#narrowing;
  }
}

/** One side of the filter, from its middle. */
function kernelTable(): Float64Array {
  const table = new Float64Array(HALF_PERIODS * STEPS + 2);
  for (let entry = 0; entry < table.length; entry += 1) {
    const x = entry / STEPS;
    const angle = Math.PI * CUTOFF * x;
    const sinc = entry === 0 ? CUTOFF : (CUTOFF * Math.sin(angle)) / angle;
    const inside = 1 - (x / HALF_PERIODS) ** 2;
    table[entry] = inside <= 0 ? 0 : (sinc * bessel0(BETA * Math.sqrt(inside))) / bessel0(BETA);
  }
  return table;
}
