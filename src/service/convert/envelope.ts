/**
 * The mean spectral envelope of somebody's voiced speech on a logarithmic frequency axis, where a longer or shorter vocal
 * tract is a shift; and the shift between two of them. Over seconds of speech the sounds average out, the speaker stays.
 */
import { Fourier } from "../../audio/analysis/fourier.ts";
import { FRAME_SAMPLES, WORK_RATE } from "./pitch-tracker.ts";

/** Values of an envelope, decibels around their own mean. */
export const ENVELOPE_BANDS = 60;
const LOW_HZ = 250;
const HIGH_HZ = 6000;
const OCTAVES = Math.log2(HIGH_HZ / LOW_HZ);
const BANDS_PER_OCTAVE = (ENVELOPE_BANDS - 1) / OCTAVES;
const FFT_SIZE = 1024;
const FOURIER = new Fourier(FFT_SIZE);
/** Formants move no further than this, either way: what is farther apart is different in other ways, too. */
const MAX_FORMANT_RATIO = 1.3;
/** Bands hold at least this many Hz, so that the harmonics of a high voice do not show as formants. */
const MIN_BAND_HZ = 300;
/** Frames more than this below the loudest are not looked at. */
const QUIET = 0.001;
/** How much of the shift that two pitches alone would suggest is believed beside the measured one. */
const PRIOR_WEIGHT = 0.35;
/** Tract length goes with pitch like this from child to man, over many speakers. */
const PRIOR_EXPONENT = 0.28;

/** Adds up the envelope of voiced frames. */
export class EnvelopeMeter {
  readonly #sums = new Float64Array(ENVELOPE_BANDS);
  readonly #bands = bandLimits();
  #loudest = 0;
  #frames = 0;

  /** `samples`: FRAME_SIZE of them around the frame's centre. */
  add(samples: Float32Array): void {
    const powers = powerSpectrum(samples);
    const total = powers.reduce((sum, power) => sum + power, 0);
    this.#loudest = Math.max(this.#loudest, total);
    if (total <= this.#loudest * QUIET || total === 0) return;
    for (const [band, { from, to }] of this.#bands.entries()) {
      let sum = 0;
      for (let bin = from; bin <= to; bin += 1) sum += powers[bin] ?? 0;
      this.#sums[band] = (this.#sums[band] ?? 0) + Math.log(sum / ((to - from + 1) * total) + 1e-9);
    }
    this.#frames += 1;
  }

  /** ENVELOPE_BANDS decibels around their mean, without their tilt; null where nothing was voiced. */
  get envelope(): number[] | null {
    if (this.#frames === 0) return null;
    const decibels = Array.from(this.#sums, (sum) => ((10 / Math.LN10) * sum) / this.#frames);
    return untilted(decibels);
  }
}

/** Samples at WORK_RATE that `EnvelopeMeter.add` takes. */
export const ENVELOPE_SAMPLES = FFT_SIZE;

/** Samples from one measured frame to the next. */
export const ENVELOPE_HOP = 2 * FRAME_SAMPLES;

/**
 * By how much the source's formants have to be moved to be the target's. The measured shift, tempered by what the two
 * pitches suggest: a few seconds of different words do not show it exactly.
 */
export function formantRatio(
  source: { readonly envelope: readonly number[]; readonly pitchHz: number },
  target: { readonly envelope: readonly number[]; readonly pitchHz: number },
): number {
  const prior = PRIOR_EXPONENT * Math.log2(target.pitchHz / source.pitchHz);
  const measured = shiftOf(source.envelope, target.envelope) / BANDS_PER_OCTAVE;
  const ratio = 2 ** ((1 - PRIOR_WEIGHT) * measured + PRIOR_WEIGHT * prior);
  return Math.min(MAX_FORMANT_RATIO, Math.max(1 / MAX_FORMANT_RATIO, ratio));
}

/** The shift in bands at which the source's envelope is most like the target's. */
function shiftOf(source: readonly number[], target: readonly number[]): number {
  const reach = Math.log2(MAX_FORMANT_RATIO) * BANDS_PER_OCTAVE;
  let best = 0;
  let bestScore = Number.NEGATIVE_INFINITY;
  for (let shift = -reach; shift <= reach; shift += 0.25) {
    const score = likeness(source, target, shift);
    if (score <= bestScore) continue;
    bestScore = score;
    best = shift;
  }
  return best;
}

function likeness(source: readonly number[], target: readonly number[], shift: number): number {
  const pairs: [number, number][] = [];
  for (let band = 0; band < ENVELOPE_BANDS; band += 1) {
    const place = band - shift;
    const whole = Math.floor(place);
    const a = source[whole];
    const b = source[whole + 1];
    const there = target[band];
    if (a === undefined || b === undefined || there === undefined) continue;
    pairs.push([a + (b - a) * (place - whole), there]);
  }
  const meanA = pairs.reduce((sum, [a]) => sum + a, 0) / pairs.length;
  const meanB = pairs.reduce((sum, [, b]) => sum + b, 0) / pairs.length;
  let product = 0;
  let first = 1e-9;
  let second = 1e-9;
  for (const [a, b] of pairs) {
    product += (a - meanA) * (b - meanB);
    first += (a - meanA) ** 2;
    second += (b - meanB) ** 2;
  }
  return product / Math.sqrt(first * second);
}

function untilted(values: readonly number[]): number[] {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let slope = 0;
  let weight = 0;
  for (const [index, value] of values.entries()) {
    slope += (index - middle) * (value - mean);
    weight += (index - middle) ** 2;
  }
  return values.map((value, index) => value - mean - (slope / weight) * (index - middle));
}

function bandLimits(): { readonly from: number; readonly to: number }[] {
  const binHz = WORK_RATE / FFT_SIZE;
  return Array.from({ length: ENVELOPE_BANDS }, (_, band) => {
    const centre = LOW_HZ * 2 ** (band / BANDS_PER_OCTAVE);
    const half = Math.max(MIN_BAND_HZ, centre * 0.12) / 2;
    return {
      from: Math.max(1, Math.round((centre - half) / binHz)),
      to: Math.round((centre + half) / binHz),
    };
  });
}

/** FFT_SIZE / 2 powers of the samples under a Hann window. */
export function powerSpectrum(samples: Float32Array): Float64Array {
  const real = new Float64Array(FFT_SIZE);
  const imaginary = new Float64Array(FFT_SIZE);
  for (let at = 0; at < FFT_SIZE; at += 1) {
    real[at] = (samples[at] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * at) / FFT_SIZE));
  }
  FOURIER.transform(real, imaginary);
  return Float64Array.from(
    { length: FFT_SIZE / 2 },
    (_, bin) => (real[bin] ?? 0) ** 2 + (imaginary[bin] ?? 0) ** 2,
  );
}
