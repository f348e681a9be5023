/**
 * How much of each bin of a spectrogram is speech, from its powers and from a first guess of the speech's.
 *
 * The guess says where speech is, not how strong: it takes a part of the speech, too. So the noise's power is estimated by
 * expectation and maximization (each bin is speech and noise, whose powers are known so far; what that makes of the bin's
 * noise is averaged over time), and the gain is Wiener's, of a speech power put together from the frame before, the guess
 * and the bin itself ("decision-directed"). It looks forward as well as back.
 */

import type { Spectrum } from "./overlap.ts";

/** Powers, frame after frame, of `bins` each. */
export type Powers = Float32Array;

/** How far noise is averaged either way, in frames, and how often: first for a rough estimate, then for the last one. */
export interface WienerOptions {
  readonly bins: number;
  readonly nearFrames: number;
  readonly farFrames: number;
}

/** Rounds that estimate the noise over near frames, and over far ones for each estimate of the speech. */
const NEAR_ROUNDS = 2;
const FAR_ROUNDS = 3;
/** How often the speech's power is estimated again. */
const SPEECH_ROUNDS = 2;
/** Parts of the speech's power that come from the frame before and from the guess; the rest from the bin itself. */
const BEFORE_PART = 0.5;
const GUESS_PART = 0.46;
/** Some noise is left in the speech. What was taken out, averaged over so many frames either way, counts so much as noise. */
const TAKEN_FRAMES = 40;
const TAKEN_PART = 0.6;
/** Least ratio of speech to noise, as powers: pure noise ends 30 dB down. */
const LEAST_RATIO = 0.0326;
/** A power below any that is heard: digital silence has a ratio, too. */
const SILENCE = 1e-3;

export interface Filter {
  /** 0..1 for each bin of each frame. */
  readonly gains: Float32Array;
  /** The noise's power: half of what the gains are made of, half of what they took out a moment before and after. */
  readonly noise: Powers;
}

// Plain loops throughout: with a callback for each bin this took twice as long, and most of the time of isolation.

/** Power of each bin of the spectra, frame after frame. */
export function powersOf(spectra: readonly Spectrum[]): Powers {
  const bins = spectra[0]?.real.length ?? 0;
  const powers = new Float32Array(spectra.length * bins);
  for (const [index, { real, imaginary }] of spectra.entries()) {
    const from = index * bins;
    for (let bin = 0; bin < bins; bin += 1) {
      powers[from + bin] = (real[bin] as number) ** 2 + (imaginary[bin] as number) ** 2;
    }
  }
  return powers;
}

/** Gains 0..1 where the speech's power is a pilot's: of speech that is filtered once already. */
export function gainsOfPilot(pilot: Powers, noise: Powers): Float32Array {
  const gains = new Float32Array(pilot.length);
  for (let at = 0; at < pilot.length; at += 1) {
    const level = (noise[at] as number) + SILENCE;
    const ratio = Math.max(LEAST_RATIO, (pilot[at] as number) / level);
    gains[at] = ratio / (1 + ratio);
  }
  return gains;
}

export function wienerGains(power: Powers, guess: Powers, options: WienerOptions): Filter {
  const { bins, nearFrames, farFrames } = options;
  const guessed = blurred(guess, bins);
  let noise = outsideGuess(power, guess, { bins, reach: nearFrames });
  for (let round = 0; round < NEAR_ROUNDS; round += 1) {
    noise = refined(noise, { power, speech: guessed, bins, reach: nearFrames });
  }
  let gains = gainsOver(noise, { power, guessed, bins });
  for (let estimate = 0; estimate < SPEECH_ROUNDS; estimate += 1) {
    const speech = blurred(heardPower(power, gains), bins);
    for (let round = 0; round < FAR_ROUNDS; round += 1) {
      noise = refined(noise, { power, speech, bins, reach: farFrames });
    }
    gains = gainsOver(noise, { power, guessed, bins });
  }
  return { gains, noise: followed(noise, { power, gains, bins }) };
}

/** A first estimate of the noise: the mean power of the bins in which little was guessed to be speech. */
function outsideGuess(
  power: Powers,
  guess: Powers,
  { bins, reach }: { readonly bins: number; readonly reach: number },
): Powers {
  const weights = new Float32Array(power.length);
  const weighted = new Float32Array(power.length);
  for (let at = 0; at < power.length; at += 1) {
    const value = power[at] as number;
    const heard = Math.min(1, Math.sqrt((guess[at] as number) / (value + SILENCE)));
    // Squared twice: the fourth power is a call for each bin, a square is a multiplication.
    weights[at] = ((1 - heard) ** 2) ** 2 + 1e-4;
    weighted[at] = value * (weights[at] as number);
  }
  const noise = meanOverTime(weighted, { bins, reach });
  const weight = meanOverTime(weights, { bins, reach });
  for (let at = 0; at < noise.length; at += 1) noise[at] = (noise[at] as number) / (weight[at] as number);
  return noise;
}

/** Noise that changes within seconds, such as a car that passes, is followed better by what was just taken out. */
function followed(
  noise: Powers,
  { power, gains, bins }: { readonly power: Powers; readonly gains: Float32Array; readonly bins: number },
): Powers {
  const taken = new Float32Array(power.length);
  for (let at = 0; at < power.length; at += 1) {
    taken[at] = (power[at] as number) * (1 - (gains[at] as number)) ** 2;
  }
  const around = meanOverTime(taken, { bins, reach: TAKEN_FRAMES });
  for (let at = 0; at < around.length; at += 1) {
    around[at] = 0.5 * (noise[at] as number) + TAKEN_PART * (around[at] as number);
  }
  return around;
}

function heardPower(power: Powers, gains: Float32Array): Powers {
  const heard = new Float32Array(power.length);
  for (let at = 0; at < power.length; at += 1) {
    heard[at] = (power[at] as number) * (gains[at] as number) ** 2;
  }
  return heard;
}

/** What noise is to be expected in each bin, given both powers, averaged over time. */
function refined(
  noise: Powers,
  {
    power,
    speech,
    bins,
    reach,
  }: { readonly power: Powers; readonly speech: Powers; readonly bins: number; readonly reach: number },
): Powers {
  const expected = new Float32Array(power.length);
  for (let at = 0; at < power.length; at += 1) {
    const before = noise[at] as number;
    const ratio = (speech[at] as number) / (before + SILENCE);
    expected[at] = (power[at] as number) / (1 + ratio) ** 2 + (before * ratio) / (1 + ratio);
  }
  return meanOverTime(expected, { bins, reach });
}

function gainsOver(
  noise: Powers,
  { power, guessed, bins }: { readonly power: Powers; readonly guessed: Powers; readonly bins: number },
): Float32Array {
  const before = new Float32Array(bins);
  const gains = new Float32Array(power.length);
  for (let from = 0; from < power.length; from += bins) {
    for (let bin = 0; bin < bins; bin += 1) {
      const at = from + bin;
      const value = power[at] as number;
      const level = (noise[at] as number) + SILENCE;
      const known = BEFORE_PART * (before[bin] as number) + GUESS_PART * (guessed[at] as number);
      const own = (1 - BEFORE_PART - GUESS_PART) * Math.max(0, value - level);
      const ratio = Math.max(LEAST_RATIO, (known + own) / level);
      const gain = ratio / (1 + ratio);
      before[bin] = gain * gain * value;
      gains[at] = gain;
    }
  }
  return gains;
}

/** Each value with a part of its neighbours in frequency and time. */
function blurred(powers: Powers, bins: number): Powers {
  const along = new Float32Array(powers.length);
  for (let from = 0; from < powers.length; from += bins) {
    for (let bin = 0; bin < bins; bin += 1) {
      const at = from + bin;
      const value = powers[at] as number;
      const below = bin === 0 ? value : (powers[at - 1] as number);
      const above = bin === bins - 1 ? value : (powers[at + 1] as number);
      along[at] = (2 * value) / 3 + (below + above) / 6;
    }
  }
  const across = new Float32Array(powers.length);
  for (let at = 0; at < powers.length; at += 1) {
    const value = along[at] as number;
    const before = at < bins ? value : (along[at - bins] as number);
    const after = at + bins < along.length ? (along[at + bins] as number) : value;
    across[at] = 0.46 * value + 0.27 * (before + after);
  }
  return across;
}

/** The mean of each bin over `reach` frames either way; fewer at the ends. */
function meanOverTime(
  powers: Powers,
  { bins, reach }: { readonly bins: number; readonly reach: number },
): Powers {
  const frames = powers.length / bins;
  const means = new Float32Array(powers.length);
  const sums = new Float64Array(bins);
  for (let frame = -reach; frame < frames; frame += 1) {
    const entering = frame + reach;
    const leaving = frame - reach - 1;
    if (entering < frames) addTo(sums, powers, entering * bins);
    if (leaving >= 0) takeFrom(sums, powers, leaving * bins);
    if (frame < 0) continue;
    const count = Math.min(frames, entering + 1) - Math.max(0, frame - reach);
    for (let bin = 0; bin < bins; bin += 1) {
      means[frame * bins + bin] = Math.max(0, sums[bin] as number) / count;
    }
  }
  return means;
}

/** Adds the frame that begins at `from`. */
function addTo(sums: Float64Array, powers: Powers, from: number): void {
  for (let bin = 0; bin < sums.length; bin += 1) {
    sums[bin] = (sums[bin] as number) + (powers[from + bin] as number);
  }
}

function takeFrom(sums: Float64Array, powers: Powers, from: number): void {
  for (let bin = 0; bin < sums.length; bin += 1) {
    sums[bin] = (sums[bin] as number) - (powers[from + bin] as number);
  }
}
