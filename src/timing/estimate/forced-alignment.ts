/**
 * Forced alignment of letters: the cheapest way through the text, letter by letter, where each frame costs how unlike its
 * letter it sounds, and each letter how unlike it lasts to what is expected (Viterbi's way through a chain whose states
 * last). For text without times only: an estimate that listens.
 */

import type { FeatureTrack } from "./feature-track.ts";
import { CLASS_FEATURES, isBlank, type LetterClass } from "./letter-classes.ts";

export interface Letter {
  readonly class: LetterClass;
  /** How long it is expected to last against the others; above 0. */
  readonly weight: number;
}

/** What a frame's sound counts for against how long letters last: neighbouring frames are not independent. */
const SOUND_COST = 0.2;
/** Of how a letter lasts: times the square of the logarithm of how many times what is expected. */
const LENGTH_COST = 1.5;
/** Of a letter that is not heard at all; a blank costs nothing. */
const UNHEARD_COST = 2.3;
/** Of a frame that the space between two words lasts; where punctuation stands silence is expected. */
const BLANK_COST = 0.2;
/** No sound costs more than this, in squared spreads. */
const MAX_UNLIKE = 4;
/** Longest that a letter lasts, in times what is expected; and frames more. A blank may last as long as its reach. */
const MAX_TIMES = 4;
const MAX_MORE = 2;
/** Frames: less is as good as this. */
const MIN_EXPECTED = 0.4;
/** How far, in frames, the end of a letter is looked for from where it is expected: work grows with it, not with the text. */
const REACH = 50;
/** Spread of a level that costs nothing more than others: a class that may be anything has to pay for that. */
const USUAL_SPREAD_DB = 5;

/** Where a letter may end, and the cheapest way that ends there: for each frame from `from` on. */
interface Ends {
  readonly from: number;
  /** Of the text so far. */
  readonly costs: Float64Array;
  /** Frames that the letter lasts then. */
  readonly lengths: Int32Array;
}

/**
 * The frame in which each letter begins, of `track`, and behind them the number of frames; null = there are none.
 */
export function alignLetters(letters: readonly Letter[], track: FeatureTrack): Int32Array | null {
  const frames = track.levels.length;
  const perWeight = frames / letters.reduce((sum, { weight }) => sum + weight, 0);
  if (frames === 0 || !Number.isFinite(perWeight)) return null;
  // A pause makes no letter last longer.
  const heard = track.levels.filter((level) => !(level < CLASS_FEATURES.gap.levelDb)).length;
  const heardPerWeight = (perWeight * heard) / frames;
  const sounds = soundCosts(letters, track);
  const columns: Ends[] = [];
  let ends: Ends = { from: 0, costs: Float64Array.of(0), lengths: Int32Array.of(0) };
  let expectedEnd = 0;
  for (const [index, letter] of letters.entries()) {
    expectedEnd += letter.weight * perWeight;
    const isLast = index === letters.length - 1;
    const from = isLast ? frames : Math.max(ends.from, Math.floor(expectedEnd - REACH));
    const to = isLast ? frames : Math.max(from, Math.min(frames, Math.ceil(expectedEnd + REACH)));
    const lengthCosts = lengthCostsOf(letter, { perWeight, heardPerWeight, frames });
    ends = nextEnds(ends, { from, to, lengthCosts, sound: sounds.get(letter.class) ?? new Float64Array(0) });
    columns.push(ends);
  }
  return startsOf(columns, frames);
}

function nextEnds(
  before: Ends,
  of: {
    readonly from: number;
    readonly to: number;
    readonly lengthCosts: Float64Array;
    readonly sound: Float64Array;
  },
): Ends {
  const { from, to, lengthCosts, sound } = of;
  const costs = new Float64Array(to - from + 1);
  const lengths = new Int32Array(to - from + 1);
  const lastStart = before.from + before.costs.length - 1;
  for (let end = from; end <= to; end += 1) {
    const longest = Math.min(lengthCosts.length - 1, end - before.from);
    let least = Number.POSITIVE_INFINITY;
    for (let length = Math.max(0, end - lastStart); length <= longest; length += 1) {
      const start = end - length;
      const cost =
        (before.costs[start - before.from] ?? 0) + (lengthCosts[length] ?? 0) - (sound[start] ?? 0);
      if (cost < least) {
        least = cost;
        lengths[end - from] = length;
      }
    }
    costs[end - from] = least + (sound[end] ?? 0);
  }
  return { from, costs, lengths };
}

function startsOf(columns: readonly Ends[], frames: number): Int32Array {
  const starts = new Int32Array(columns.length + 1);
  starts[columns.length] = frames;
  let at = frames;
  for (let index = columns.length - 1; index >= 0; index -= 1) {
    const column = columns[index];
    at -= column?.lengths[at - column.from] ?? 0;
    starts[index] = at;
  }
  return starts;
}

/** For each class, what all frames before each cost together. */
function soundCosts(letters: readonly Letter[], track: FeatureTrack): Map<LetterClass, Float64Array> {
  const sums = new Map<LetterClass, Float64Array>();
  for (const { class: of } of letters) {
    if (sums.has(of)) continue;
    const shape = CLASS_FEATURES[of];
    const sum = new Float64Array(track.levels.length + 1);
    const spreadCost = Math.log(shape.levelSpreadDb / USUAL_SPREAD_DB);
    for (const [i, level] of track.levels.entries()) {
      const aboveDb = level - shape.levelDb;
      const unlikeDb = shape.mayBeSilent ? Math.max(0, aboveDb) : aboveDb;
      const unlike =
        squared(unlikeDb / shape.levelSpreadDb) +
        squared(((track.tilts[i] ?? 0) - shape.tilt) / shape.tiltSpread);
      // What is not known fits all alike.
      sum[i + 1] = (sum[i] ?? 0) + (Number.isNaN(unlike) ? 0 : SOUND_COST * (unlike / 2 + spreadCost));
    }
    sums.set(of, sum);
  }
  return sums;
}

function squared(spreads: number): number {
  return Math.min(spreads * spreads, MAX_UNLIKE);
}

/** What each length costs, frames from 0. */
function lengthCostsOf(
  { class: of, weight }: Letter,
  {
    perWeight,
    heardPerWeight,
    frames,
  }: { readonly perWeight: number; readonly heardPerWeight: number; readonly frames: number },
): Float64Array {
  const likely = Math.max(weight * heardPerWeight, MIN_EXPECTED);
  // Of all frames, heard or not: together the letters have to be able to fill them. A pause has no usual length.
  const most = Math.ceil(MAX_TIMES * Math.max(weight * perWeight, MIN_EXPECTED)) + MAX_MORE;
  const longest = Math.min(frames, isBlank(of) ? Math.max(2 * REACH, most) : most);
  return Float64Array.from({ length: longest + 1 }, (_, length) => {
    if (isBlank(of)) return of === "gap" ? length * BLANK_COST : 0;
    return length === 0 ? UNHEARD_COST : LENGTH_COST * Math.log(length / likely) ** 2;
  });
}
