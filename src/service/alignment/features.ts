/**
 * Frames as they are compared: coefficients without what the voice and its microphone add to all of them, the level below what
 * is loud, and how both change; each in units of how much it varies in speech.
 */
import { CEPSTRUM_SIZE, COEFFICIENTS } from "./cepstra.ts";

/** Numbers of a frame: coefficients and level, and the changes of both. */
export const FEATURES = 2 * CEPSTRUM_SIZE;
/** A frame's changes are known when so many frames behind it are. */
export const CHANGE_FRAMES = 2;

/** What a voice adds to all of its frames, and how loud it is. */
export interface VoiceLevels {
  readonly coefficients: Float64Array;
  /** dB. */
  readonly loud: number;
}

/** How much each of them varies in speech of the embedded voice: coefficients and level, and their changes. */
const DEVIATIONS = [
  6.1, 3.48, 3.5, 2.74, 1.89, 1.96, 1.55, 1.21, 1.11, 0.986, 0.938, 0.848, 7.96, 3.94, 2.38, 2.14, 1.77, 1.3,
  1.28, 1.05, 0.866, 0.766, 0.697, 0.686, 0.576, 7.68,
];
/** Each coefficient counts so much of the one before it: higher ones say more of the voice than of the sound. */
const NEXT_COEFFICIENT = 0.82;
const LEVEL_CHANGE = 0.76;

/** What each is multiplied by, so that the sum of squared differences is comparable. */
const SCALES = Float64Array.from(DEVIATIONS, (deviation, i) => {
  const place = i % CEPSTRUM_SIZE;
  const ofLevel = i < CEPSTRUM_SIZE ? 1 : LEVEL_CHANGE;
  const weight = place === COEFFICIENTS ? ofLevel : NEXT_COEFFICIENT ** (place + 1);
  return Math.sqrt(weight / FEATURES) / deviation;
});

/** Frames this far below what is loud are none of speech, dB. */
const SPEECH_DB = -30;
/** Levels further below it are the same: silence. */
const SILENT_DB = -50;
const LOUD_SHARE = 0.95;
/** What is loud is no quieter than this, dB below full scale; and in the first audio than most speech. */
const LEAST_LOUD_DB = -45;
const USUAL_LOUD_DB = -18;
const EARLY_FRAMES = 100;
/** Weight of what was known of the voice before, frames. */
const PRIOR_FRAMES = 15;

/** The levels of the first `count` frames; `prior`: what is assumed before they say otherwise. */
export function levelsOf(frames: Float32Array, count: number, prior: Float64Array | null): VoiceLevels {
  const levels = new Float32Array(count);
  for (let frame = 0; frame < count; frame += 1)
    levels[frame] = frames[frame * CEPSTRUM_SIZE + COEFFICIENTS] ?? 0;
  const sorted = levels.slice().sort();
  const least = count < EARLY_FRAMES ? USUAL_LOUD_DB : LEAST_LOUD_DB;
  const loud = Math.max(sorted[Math.floor((count - 1) * LOUD_SHARE)] ?? least, least);
  const sums = prior === null ? new Float64Array(COEFFICIENTS) : prior.map((value) => value * PRIOR_FRAMES);
  let spoken = prior === null ? 0 : PRIOR_FRAMES;
  for (let frame = 0; frame < count; frame += 1) {
    if ((levels[frame] ?? 0) < loud + SPEECH_DB) continue;
    spoken += 1;
    for (let i = 0; i < COEFFICIENTS; i += 1)
      sums[i] = (sums[i] ?? 0) + (frames[frame * CEPSTRUM_SIZE + i] ?? 0);
  }
  return { coefficients: sums.map((sum) => sum / Math.max(1, spoken)), loud };
}

/** Features of frames [from, to) of `count`, into `into`, where those of frame 0 would begin at its beginning. */
export function fillFeatures(
  into: Float32Array,
  frames: Float32Array,
  levels: VoiceLevels,
  { from, to, count }: { readonly from: number; readonly to: number; readonly count: number },
): void {
  const valueAt = (frame: number, i: number): number => {
    const at = Math.min(Math.max(frame, 0), count - 1) * CEPSTRUM_SIZE + i;
    const value = frames[at] ?? 0;
    return i === COEFFICIENTS
      ? Math.max(value - levels.loud, SILENT_DB)
      : value - (levels.coefficients[i] ?? 0);
  };
  for (let frame = from; frame < to; frame += 1) {
    const at = frame * FEATURES;
    for (let i = 0; i < CEPSTRUM_SIZE; i += 1) {
      const change =
        (valueAt(frame + 1, i) -
          valueAt(frame - 1, i) +
          2 * (valueAt(frame + 2, i) - valueAt(frame - 2, i))) /
        4;
      into[at + i] = valueAt(frame, i) * (SCALES[i] ?? 0);
      into[at + CEPSTRUM_SIZE + i] = change * (SCALES[CEPSTRUM_SIZE + i] ?? 0);
    }
  }
}
