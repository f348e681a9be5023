/** Two real signals at once, as overlapping windows: into their spectra, and out of such. A window begins every quarter of one. */
import { Fourier } from "../../audio/analysis/fourier.ts";

/** The lower half of a real signal's: `windowSamples / 2 + 1` bins. */
export interface Spectrum {
  readonly real: Float32Array;
  readonly imaginary: Float32Array;
}

/** Squared windows that overlap add up to this. */
const WINDOW_SUM = 2;

/** `windowSamples`: a power of two. */
export class Windows {
  readonly fourier: Fourier;
  readonly window: Float64Array;
  readonly windowSamples: number;
  readonly hopSamples: number;
  readonly bins: number;

  constructor(windowSamples: number) {
    this.fourier = new Fourier(windowSamples);
    this.window = Float64Array.from({ length: windowSamples }, (_, at) =>
      Math.sin((Math.PI * at) / windowSamples),
    );
    this.windowSamples = windowSamples;
    this.hopSamples = windowSamples / 4;
    this.bins = windowSamples / 2 + 1;
  }
}

/** Samples in, a pair of spectra for each window. The first window sees silence but for its last quarter. */
export class PairAnalysis {
  readonly #windows: Windows;
  readonly #first: Waiting;
  readonly #second: Waiting;

  constructor(windows: Windows) {
    this.#windows = windows;
    this.#first = new Waiting(windows);
    this.#second = new Waiting(windows);
  }

  /** One signal may be longer than the other: what has no counterpart yet waits. */
  add(first: ArrayLike<number>, second: ArrayLike<number>): void {
    this.#first.add(first);
    this.#second.add(second);
  }

  get hasWindow(): boolean {
    return this.#first.hasWindow && this.#second.hasWindow;
  }

  /** Two real signals are the parts of one complex one. */
  next(): readonly [Spectrum, Spectrum] {
    const { bins, fourier, window, windowSamples } = this.#windows;
    const real = this.#first.next();
    const imaginary = this.#second.next();
    for (let at = 0; at < windowSamples; at += 1) {
      real[at] = (real[at] as number) * (window[at] as number);
      imaginary[at] = (imaginary[at] as number) * (window[at] as number);
    }
    fourier.transform(real, imaginary);
    const first = emptySpectrum(bins);
    const second = emptySpectrum(bins);
    for (let bin = 0; bin < bins; bin += 1) {
      const mirrored = (windowSamples - bin) % windowSamples;
      const [a, b] = [real[bin] as number, imaginary[bin] as number];
      const [c, d] = [real[mirrored] as number, imaginary[mirrored] as number];
      first.real[bin] = (a + c) / 2;
      first.imaginary[bin] = (b - d) / 2;
      second.real[bin] = (b + d) / 2;
      second.imaginary[bin] = (c - a) / 2;
    }
    return [first, second];
  }
}

/** The way back: one spectrum times either gain makes two signals, the first sample of which is the analysis's. */
export class PairSynthesis {
  readonly #windows: Windows;
  /** Sums of windows that are not complete. */
  readonly #sums: readonly [Float64Array, Float64Array];
  /** Before the first sample. */
  #toSkip: number;

  constructor(windows: Windows) {
    const { windowSamples, hopSamples } = windows;
    this.#windows = windows;
    this.#sums = [new Float64Array(windowSamples), new Float64Array(windowSamples)];
    this.#toSkip = windowSamples - hopSamples;
  }

  /** A hop of what the spectrum times its gains is, and of the spectrum as it is; none before the first sample. */
  next(
    { real, imaginary }: Spectrum,
    gains: Float32Array,
  ): readonly [filtered: Float64Array, unfiltered: Float64Array] {
    const { bins, fourier, window, windowSamples, hopSamples } = this.#windows;
    const first = new Float64Array(windowSamples);
    const second = new Float64Array(windowSamples);
    const scale = 1 / (windowSamples * WINDOW_SUM);
    for (let bin = 0; bin < bins; bin += 1) {
      const mirrored = (windowSamples - bin) % windowSamples;
      const gain = gains[bin] as number;
      const [a, b] = [(real[bin] as number) * scale, (imaginary[bin] as number) * scale];
      // At both ends of the spectrum a real signal has no imaginary part.
      const isEnd = mirrored === bin;
      first[bin] = isEnd ? a * gain : a * gain - b;
      second[bin] = isEnd ? a : b * gain + a;
      if (isEnd) continue;
      first[mirrored] = a * gain + b;
      second[mirrored] = a - b * gain;
    }
    fourier.transform(second, first);
    const [filtered, unfiltered] = this.#sums;
    for (let at = 0; at < windowSamples; at += 1) {
      const weight = window[at] as number;
      filtered[at] = (filtered[at] as number) + (first[at] as number) * weight;
      unfiltered[at] = (unfiltered[at] as number) + (second[at] as number) * weight;
    }
    const hops = [filtered.slice(0, hopSamples), unfiltered.slice(0, hopSamples)] as const;
    for (const sum of this.#sums) sum.copyWithin(0, hopSamples).fill(0, windowSamples - hopSamples);
    if (this.#toSkip === 0) return hops;
    this.#toSkip -= hopSamples;
    return [new Float64Array(0), new Float64Array(0)];
  }
}

/** Samples that wait for their window. */
class Waiting {
  readonly #windows: Windows;
  #samples: Float64Array;

  constructor(windows: Windows) {
    this.#windows = windows;
    this.#samples = new Float64Array(windows.windowSamples - windows.hopSamples);
  }

  add(more: ArrayLike<number>): void {
    const joint = new Float64Array(this.#samples.length + more.length);
    joint.set(this.#samples);
    joint.set(more, this.#samples.length);
    this.#samples = joint;
  }

  get hasWindow(): boolean {
    return this.#samples.length >= this.#windows.windowSamples;
  }

  /** A copy. */
  next(): Float64Array {
    const window = this.#samples.slice(0, this.#windows.windowSamples);
    this.#samples = this.#samples.subarray(this.#windows.hopSamples);
    return window;
  }
}

function emptySpectrum(bins: number): Spectrum {
  return { real: new Float32Array(bins), imaginary: new Float32Array(bins) };
}
