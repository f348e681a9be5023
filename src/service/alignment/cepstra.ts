/**
 * The shape of the spectrum of each frame (mel-frequency cepstral coefficients without the first one) and its level. It comes
 * frame by frame, however the audio is split.
 */
import { BANDS, type Bandwidth, HOP_SECONDS, MelSpectrum } from "./mel-spectrum.ts";

export const COEFFICIENTS = 12;
/** Numbers of a frame: its coefficients, and its level in dB. */
export const CEPSTRUM_SIZE = COEFFICIENTS + 1;

const COSINES = Array.from({ length: COEFFICIENTS }, (_, i) =>
  Float64Array.from({ length: BANDS }, (_, band) => {
    return Math.cos((Math.PI * (i + 1) * (band + 0.5)) / BANDS) * Math.sqrt(2 / BANDS);
  }),
);

export class Cepstra {
  readonly #spectrum: MelSpectrum;
  readonly #sampleRate: number;
  readonly #bands = new Float64Array(BANDS);
  /** The last samples, and the number of the first of them. */
  #samples = new Int16Array(0);
  #firstSample = 0;
  #frames: Float32Array;
  #count = 0;

  constructor(sampleRate: number, bandwidth: Bandwidth) {
    this.#spectrum = new MelSpectrum(sampleRate, bandwidth);
    this.#sampleRate = sampleRate;
    this.#frames = new Float32Array(64 * CEPSTRUM_SIZE);
  }

  /** Frames that are there. */
  get count(): number {
    return this.#count;
  }

  /** The values of all frames, one after the other; there may be room behind them. */
  get values(): Float32Array {
    return this.#frames;
  }

  /** Samples behind all before. */
  push(samples: Int16Array): void {
    const all = new Int16Array(this.#samples.length + samples.length);
    all.set(this.#samples);
    all.set(samples, this.#samples.length);
    const endSample = this.#firstSample + all.length;
    const { windowSamples } = this.#spectrum;
    for (;;) {
      const start = this.#startOf(this.#count);
      if (start + windowSamples > endSample) break;
      this.#add(all, start - this.#firstSample);
    }
    // One sample more: each is compared with the one before.
    const kept = Math.max(0, Math.min(this.#startOf(this.#count) - 1 - this.#firstSample, all.length));
    this.#samples = all.slice(kept);
    this.#firstSample += kept;
  }

  /** The middle of a frame's window is the middle of its time. */
  #startOf(frame: number): number {
    const middle = Math.round((frame + 0.5) * HOP_SECONDS * this.#sampleRate);
    return middle - (this.#spectrum.windowSamples >> 1);
  }

  #add(samples: Int16Array, start: number): void {
    const at = this.#count * CEPSTRUM_SIZE;
    if (at + CEPSTRUM_SIZE > this.#frames.length) {
      const larger = new Float32Array(this.#frames.length * 2);
      larger.set(this.#frames);
      this.#frames = larger;
    }
    const bands = this.#bands;
    this.#frames[at + COEFFICIENTS] = this.#spectrum.measure(samples, start, bands);
    for (const [i, cosines] of COSINES.entries()) {
      let sum = 0;
      for (let band = 0; band < BANDS; band += 1) sum += (cosines[band] ?? 0) * (bands[band] ?? 0);
      this.#frames[at + i] = sum;
    }
    this.#count += 1;
  }
}
