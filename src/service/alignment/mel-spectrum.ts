/** The power of short frames of sound in bands that are as wide as the ear's, by a Fourier transform. */

import { Fourier } from "../../audio/analysis/fourier.ts";

/** Frames begin this far apart. */
export const HOP_SECONDS = 0.01;
const WINDOW_SECONDS = 0.02;
export const BANDS = 20;
const MIN_HZ = 100;
const PRE_EMPHASIS = 0.97;
/** Less power than this is nothing; a full-scale square wave has 1. */
const FLOOR = 1e-6;
const FULL_SCALE = 32768;

/** The part of the spectrum that is looked at: telephone audio has no more than the narrow one. */
export type Bandwidth = "narrow" | "wide";

const MAX_HZ: Readonly<Record<Bandwidth, number>> = { narrow: 3800, wide: 7000 };

export function bandwidthOf(sampleRate: number): Bandwidth {
  return sampleRate / 2 > MAX_HZ.wide ? "wide" : "narrow";
}

interface Band {
  readonly firstBin: number;
  readonly weights: Float64Array;
}

/** One frame at a time. */
export class MelSpectrum {
  readonly windowSamples: number;
  readonly #fourier: Fourier;
  readonly #window: Float64Array;
  readonly #windowPower: number;
  readonly #bands: readonly Band[];
  readonly #real: Float64Array;
  readonly #imaginary: Float64Array;
  readonly #powers: Float64Array;
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;

  constructor(sampleRate: number, bandwidth: Bandwidth) {
    const windowSamples = Math.round(sampleRate * WINDOW_SECONDS);
    let size = 64;
    while (size < windowSamples) size *= 2;
    this.windowSamples = windowSamples;
    this.#fourier = new Fourier(size / 2);
    this.#window = Float64Array.from(
      { length: windowSamples },
      (_, i) => (0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / windowSamples)) / FULL_SCALE,
    );
    this.#windowPower = this.#window.reduce((sum, value) => sum + (value * FULL_SCALE) ** 2, 0);
    this.#bands = bandsOf(sampleRate, size, bandwidth);
    this.#real = new Float64Array(size / 2);
    this.#imaginary = new Float64Array(size / 2);
    this.#powers = new Float64Array(size / 2 + 1);
    this.#cosines = Float64Array.from({ length: size / 2 }, (_, i) => Math.cos((2 * Math.PI * i) / size));
    this.#sines = Float64Array.from({ length: size / 2 }, (_, i) => -Math.sin((2 * Math.PI * i) / size));
  }

  /**
   * Takes `windowSamples` of `samples` from `start` on; what is outside is silence. Fills `bands` with the logarithms of
   * their power; returns the level of the frame, dB below full scale.
   */
  measure(samples: Int16Array, start: number, bands: Float64Array): number {
    const [real, imaginary, window] = [this.#real, this.#imaginary, this.#window];
    real.fill(0);
    imaginary.fill(0);
    let energy = 0;
    let before = samples[start - 1] ?? 0;
    for (let i = 0; i < this.windowSamples; i += 1) {
      const sample = samples[start + i] ?? 0;
      const weight = window[i] ?? 0;
      energy += (sample * weight) ** 2;
      // Even samples are the real parts of half as many complex numbers, odd ones their imaginary parts.
      const part = (i & 1) === 0 ? real : imaginary;
      part[i >> 1] = (sample - PRE_EMPHASIS * before) * weight;
      before = sample;
    }
    this.#fourier.transform(real, imaginary);
    this.#unpack();
    const powers = this.#powers;
    for (const [index, { firstBin, weights }] of this.#bands.entries()) {
      let power = 0;
      for (let i = 0; i < weights.length; i += 1) power += (weights[i] ?? 0) * (powers[firstBin + i] ?? 0);
      bands[index] = Math.log(power / this.#windowPower + FLOOR);
    }
    return 10 * Math.log10(energy / this.#windowPower + 1e-12);
  }

  /** The powers of the whole transform. */
  #unpack(): void {
    const [real, imaginary] = [this.#real, this.#imaginary];
    const count = real.length;
    for (let k = 0; k <= count; k += 1) {
      const [a, b] = [k % count, (count - k) % count];
      const evenReal = ((real[a] ?? 0) + (real[b] ?? 0)) / 2;
      const evenImaginary = ((imaginary[a] ?? 0) - (imaginary[b] ?? 0)) / 2;
      const oddReal = ((imaginary[a] ?? 0) + (imaginary[b] ?? 0)) / 2;
      const oddImaginary = ((real[b] ?? 0) - (real[a] ?? 0)) / 2;
      const cosine = k === count ? -1 : (this.#cosines[k] ?? 0);
      const sine = k === count ? 0 : (this.#sines[k] ?? 0);
      const wholeReal = evenReal + oddReal * cosine - oddImaginary * sine;
      const wholeImaginary = evenImaginary + oddReal * sine + oddImaginary * cosine;
      this.#powers[k] = wholeReal * wholeReal + wholeImaginary * wholeImaginary;
    }
  }
}

function melOf(hertz: number): number {
  return 2595 * Math.log10(1 + hertz / 700);
}

/** Triangles that overlap by half, equally wide for the ear; each of a weight of 1. */
function bandsOf(sampleRate: number, size: number, bandwidth: Bandwidth): Band[] {
  const [low, high] = [melOf(MIN_HZ), melOf(MAX_HZ[bandwidth])];
  const binAt = (edge: number): number => {
    const hertz = 700 * (10 ** ((low + ((high - low) * edge) / (BANDS + 1)) / 2595) - 1);
    return (hertz * size) / sampleRate;
  };
  return Array.from({ length: BANDS }, (_, index): Band => {
    const [from, middle, to] = [binAt(index), binAt(index + 1), binAt(index + 2)];
    const firstBin = Math.floor(from);
    const weights = Float64Array.from({ length: Math.ceil(to) - firstBin + 1 }, (_, i) => {
      const bin = firstBin + i;
      return Math.max(0, bin < middle ? (bin - from) / (middle - from) : (to - bin) / (to - middle));
    });
    const sum = weights.reduce((total, weight) => total + weight, 0);
    // A band that is narrower than a bin is the bin that it is in.
    if (sum === 0) return { firstBin: Math.round(middle), weights: Float64Array.of(1) };
    return { firstBin, weights: weights.map((weight) => weight / sum) };
  });
}
