/**
 * Takes steady tones out of spectra: the hum of the mains with its harmonics, a whistle of electronics. What is known of
 * such a tone in the pauses of speech is known of it behind the speech, too. So it is subtracted, and nothing else is changed.
 *
 * Whether a bin holds a tone is told by how much of its power, quiet frames first, is one frequency over seconds. The
 * harmonics of speech move far too much for that.
 */
import type { Fourier } from "../../audio/analysis/fourier.ts";
import type { Spectrum } from "./overlap.ts";

export interface TonesOptions {
  /** Transforms as many values as the window has; at most half as many frames are looked at. */
  readonly fourier: Fourier;
  readonly window: Float64Array;
  readonly hopSamples: number;
}

/** Bins have 23 Hz: tones up to 4 kHz are looked for. */
const HIGHEST_BIN = 170;
/** Least part of a bin's weighted power that is the tone's; noise alone has a twentieth, speech as much. */
const LEAST_PART = 0.15;
/** Fewer frames (3 s) do not tell a tone from a vowel that is held. */
const LEAST_FRAMES = 281;
const MAX_TONES = 40;
/** Bins from one tone to the next, at least. */
const APART = 0.5;
/** A tone swells, fades and drifts no faster than in so many frames either way: 1.5 s. */
const REACH_FRAMES = 140;
/** Frames either way over which a weight is taken. */
const WEIGHT_FRAMES = 3;
/** How far the quietest frames are trusted more than others: parts of the median power. */
const SEARCH_FLOOR = 0.1;
const ESTIMATE_FLOOR = 0.03;
/** Tones reach into one another's bins: each is estimated again without the others. */
const ROUNDS = 3;
/** Bins either way in which a tone is subtracted: beyond, its window leaves 70 dB less. */
const REACH_BINS = 24;

/** One tone: where it is, what one of amplitude 1 is in each bin, and what it is in each frame. */
interface Tone {
  /** Bin of the spectrum, not a whole number. */
  readonly place: number;
  readonly bin: number;
  readonly shape: Complex;
  readonly values: Complex;
}

interface Complex {
  readonly real: Float64Array;
  readonly imaginary: Float64Array;
}

/** The same spectra where no tone is found. */
export function withoutTones(frames: readonly Spectrum[], options: TonesOptions): readonly Spectrum[] {
  if (frames.length < LEAST_FRAMES) return frames;
  const tones = findTones(frames, options);
  if (tones.length === 0) return frames;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const tone of tones) estimate(tone, { tones, frames, options });
  }
  const cleaned = frames.map(({ real, imaginary }) => ({ real: real.slice(), imaginary: imaginary.slice() }));
  for (const tone of tones) subtract(tone, cleaned);
  return cleaned;
}

/** The surest first. */
function findTones(frames: readonly Spectrum[], options: TonesOptions): Tone[] {
  const found: { readonly place: number; readonly bin: number; readonly part: number }[] = [];
  for (let bin = 1; bin <= HIGHEST_BIN; bin += 1) {
    const { place, part } = strongestIn(bin, frames, options);
    if (part > LEAST_PART && Math.abs(place - bin) < 0.8) found.push({ place, bin, part });
  }
  const tones: Tone[] = [];
  for (const { place, bin } of found.toSorted((a, b) => b.part - a.part)) {
    if (tones.length === MAX_TONES) break;
    if (tones.some((other) => Math.abs(other.place - place) <= APART)) continue;
    tones.push({ place, bin, shape: shapeAt(place, options), values: zeros(frames.length) });
  }
  return tones;
}

/** The frequency that has the largest part of the bin's weighted power, and that part. */
function strongestIn(
  bin: number,
  frames: readonly Spectrum[],
  { fourier, window, hopSamples }: TonesOptions,
): { readonly place: number; readonly part: number } {
  const powers = Float64Array.from(frames, (frame) => powerOf(frame, bin));
  const weights = weightsOf(powers, SEARCH_FLOOR);
  const turning = zeros(window.length);
  let weight = 0;
  let weighted = 0;
  for (const [at, frame] of frames.entries()) {
    const trust = weights[at] as number;
    turning.real[at] = trust * (frame.real[bin] as number);
    turning.imaginary[at] = trust * (frame.imaginary[bin] as number);
    weight += trust;
    weighted += trust * (powers[at] as number);
  }
  fourier.transform(turning.real, turning.imaginary);
  let most = 0;
  let step = 0;
  for (let at = 0; at < window.length; at += 1) {
    const power = (turning.real[at] as number) ** 2 + (turning.imaginary[at] as number) ** 2;
    if (power <= most) continue;
    most = power;
    step = at;
  }
  // A tone turns by `place * hop / window` from frame to frame, of which whole turns can't be seen.
  const turn = window.length / hopSamples;
  const place = (step / window.length) * turn;
  return {
    place: place + Math.round((bin - place) / turn) * turn,
    part: most / (weight * weighted + Number.EPSILON),
  };
}

/** What the tone is in each frame, without what the others are in its bin; quiet frames tell the most. */
function estimate(
  tone: Tone,
  given: {
    readonly tones: readonly Tone[];
    readonly frames: readonly Spectrum[];
    readonly options: TonesOptions;
  },
): void {
  const { tones, frames, options } = given;
  const { bin, values, shape } = tone;
  const count = frames.length;
  const rest = zeros(count);
  const powers = new Float64Array(count);
  for (const [at, frame] of frames.entries()) {
    rest.real[at] = frame.real[bin] as number;
    rest.imaginary[at] = frame.imaginary[bin] as number;
  }
  for (const other of tones) takeOut(rest, other, bin);
  const [shapeReal, shapeImaginary] = [shape.real[bin] as number, shape.imaginary[bin] as number];
  for (let at = 0; at < count; at += 1) {
    const [real, imaginary] = [rest.real[at] as number, rest.imaginary[at] as number];
    powers[at] = real ** 2 + imaginary ** 2;
    // Its own part of that is put back.
    const [own, ownImaginary] = [values.real[at] as number, values.imaginary[at] as number];
    rest.real[at] = real + (shapeReal * own - shapeImaginary * ownImaginary);
    rest.imaginary[at] = imaginary + (shapeReal * ownImaginary + shapeImaginary * own);
  }
  const weights = weightsOf(powers, ESTIMATE_FLOOR);
  const turnOf = (at: number): number =>
    (2 * Math.PI * tone.place * options.hopSamples * at) / options.window.length;
  const shapePower = shapeReal ** 2 + shapeImaginary ** 2;
  const still = zeros(count);
  for (let at = 0; at < count; at += 1) {
    const trust = (weights[at] as number) / shapePower;
    const [real, imaginary] = product(
      (rest.real[at] as number) * trust,
      (rest.imaginary[at] as number) * trust,
      shapeReal,
      -shapeImaginary,
    );
    const turn = turnOf(at);
    [still.real[at], still.imaginary[at]] = product(real, imaginary, Math.cos(turn), -Math.sin(turn));
  }
  const [real, imaginary, weight] = [still.real, still.imaginary, weights].map((one) =>
    sumsOver(one, REACH_FRAMES),
  );
  for (let at = 0; at < count; at += 1) {
    const turn = turnOf(at);
    const scale = 1 / (weight?.[at] ?? 1);
    [values.real[at], values.imaginary[at]] = product(
      (real?.[at] ?? 0) * scale,
      (imaginary?.[at] ?? 0) * scale,
      Math.cos(turn),
      Math.sin(turn),
    );
  }
}

function subtract({ bin: middle, shape, values }: Tone, frames: readonly Spectrum[]): void {
  const size = shape.real.length;
  const from = Math.max(0, middle - REACH_BINS);
  for (const [at, { real, imaginary }] of frames.entries()) {
    const value = values.real[at] as number;
    const valueImaginary = values.imaginary[at] as number;
    for (let bin = from; bin <= middle + REACH_BINS; bin += 1) {
      const mirrored = (size - bin) % size;
      const a = shape.real[bin] as number;
      const b = shape.imaginary[bin] as number;
      const c = shape.real[mirrored] as number;
      const d = shape.imaginary[mirrored] as number;
      real[bin] = (real[bin] as number) - (a * value - b * valueImaginary + (c * value - d * valueImaginary));
      imaginary[bin] =
        (imaginary[bin] as number) - (a * valueImaginary + b * value - (c * valueImaginary + d * value));
    }
  }
}

/** Takes what a tone is in a bin out of the bin's values; a real one has its mirror image below zero, which reaches up. */
function takeOut(rest: Complex, { shape, values }: Tone, bin: number): void {
  const mirrored = (shape.real.length - bin) % shape.real.length;
  const a = shape.real[bin] as number;
  const b = shape.imaginary[bin] as number;
  const c = shape.real[mirrored] as number;
  const d = shape.imaginary[mirrored] as number;
  for (let at = 0; at < rest.real.length; at += 1) {
    const value = values.real[at] as number;
    const valueImaginary = values.imaginary[at] as number;
    rest.real[at] =
      (rest.real[at] as number) - (a * value - b * valueImaginary + (c * value - d * valueImaginary));
    rest.imaginary[at] =
      (rest.imaginary[at] as number) - (a * valueImaginary + b * value - (c * valueImaginary + d * value));
  }
}

/** The spectrum of a complex tone of amplitude 1 in the window. */
function shapeAt(place: number, { fourier, window }: TonesOptions): Complex {
  const turnOf = (at: number): number => (2 * Math.PI * place * at) / window.length;
  const real = window.map((value, at) => value * Math.cos(turnOf(at)));
  const imaginary = window.map((value, at) => value * Math.sin(turnOf(at)));
  fourier.transform(real, imaginary);
  return { real, imaginary };
}

/** One over the power around each frame. */
function weightsOf(powers: Float64Array, floor: number): Float64Array {
  const median = powers.toSorted()[powers.length >> 1] ?? 0;
  const around = sumsOver(powers, WEIGHT_FRAMES);
  return around.map((sum) => 1 / (sum / (2 * WEIGHT_FRAMES + 1) + floor * median + 1));
}

/** Sums each value with so many before and after it; fewer at the ends. */
function sumsOver(values: Float64Array, reach: number): Float64Array {
  const sums = new Float64Array(values.length);
  let sum = 0;
  for (let at = -reach; at < values.length; at += 1) {
    sum += values[at + reach] ?? 0;
    sum -= values[at - reach - 1] ?? 0;
    if (at >= 0) sums[at] = sum;
  }
  return sums;
}

function powerOf({ real, imaginary }: Spectrum, bin: number): number {
  return (real[bin] as number) ** 2 + (imaginary[bin] as number) ** 2;
}

function product(a: number, b: number, c: number, d: number): [number, number] {
  return [a * c - b * d, a * d + b * c];
}

function zeros(count: number): Complex {
  return { real: new Float64Array(count), imaginary: new Float64Array(count) };
}
