/**
 * The times of text that is spoken in audio whose end is not there yet: neither the voice's pace nor how far it has come in
 * the text is known. Both are found together, as that with which its pauses fit the marks of the text best; up to such a
 * pause the text is then held to its sound as where both ends are known (heard-text.ts).
 *
 *   text    |Alpha bravo, charlie delta. Echo foxtrot golf hotel
 *   sound   |##### ####    ####### ####      #### ###...           has come so far
 *   told    |Alpha bravo, charlie delta.    |                      up to a pause whose mark is known
 */
import type { Silence } from "../../audio/pause-finder.ts";
import { TYPICAL_WEIGHT_A_SECOND } from "../draft.ts";
import { HeardText } from "./aligned-text.ts";
import { partOf, type SoundTrack } from "./feature-track.ts";
import { type Matched, matchMarks, type Pair } from "./pause-matching.ts";
import { soundClock } from "./pauses.ts";
import { letterWeights, type Mark, marksOf } from "./punctuation.ts";

/** What is taken for a voice's pace. */
export interface VoicePace {
  /** Of letters (draft.ts), for a second of sound. */
  readonly weightASecond: number;
  /** How far off it may be: of its logarithm. */
  readonly spread: number;
}

/** Before anything was heard. Languages differ by more than voices do. */
export const USUAL_PACE: VoicePace = { weightASecond: TYPICAL_WEIGHT_A_SECOND, spread: 0.25 };

/** A stretch of a response that has sound and no times. */
export interface OpenSpeech {
  readonly fromSeconds: number;
  /** End of the audio that has come. */
  readonly untilSeconds: number;
  /** Pauses in it, rising. */
  readonly pauses: readonly Silence[];
  readonly sound: SoundTrack;
  readonly pace: VoicePace;
}

export interface Needed {
  readonly neededSeconds: number;
  /** No more audio comes that could tell more. Default: it does. */
  readonly isLast?: boolean;
}

export interface OpenEstimate {
  /** So much of the text is told: offset, UTF-16. */
  readonly end: number;
  readonly heard: HeardText;
  /** With which that ends; null: with a word, about there. */
  readonly pause: MarkedPause | null;
}

/** A pause and the mark that it most likely stands for. Offsets into the text, UTF-16; seconds of the response. */
export interface MarkedPause {
  /** Where the mark begins, and behind it and the space that follows. */
  readonly start: number;
  readonly end: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** How much less likely it is that it stands for another one, or for none: of the logarithm. It is work. */
  readonly sureness: () => number;
}

/** Paces looked at, either way, and how far they reach, in spreads. */
const PACES = 12;
const MAX_SPREADS = 2.5;
/** Less audio than this says too little of how far its text has come. */
const MIN_SECONDS = 2;
/** Where no pause tells, the last text is the least sure: it waits for more audio. */
const UNSURE_SECONDS = 1.5;
/** More marks and pauses than that are not looked at, as there are `PACES` ways to match them. */
const MAX_PLACES = 48;

/** A place in the text, and when it is spoken. Offset, UTF-16; seconds of the response. */
interface SpokenPlace {
  readonly offset: number;
  readonly seconds: number;
}

/**
 * What can be told of a text up to `neededSeconds` and the next pause behind it whose mark is known, or where there is none,
 * about so far; null: nothing. The last word of the text waits for the end of the audio.
 */
export function estimateOpen(
  text: string,
  speech: OpenSpeech,
  { neededSeconds, isLast = false }: Needed,
): OpenEstimate | null {
  const { fromSeconds, untilSeconds } = speech;
  if (untilSeconds - fromSeconds < MIN_SECONDS || fromSeconds >= neededSeconds) return null;
  const { pauses, end } = spokenIn(text, speech);
  const latestSeconds = untilSeconds - (isLast ? 0 : UNSURE_SECONDS);
  const toSeconds = Math.min(neededSeconds, latestSeconds);
  // The next one is enough: of what is behind it more will be known.
  const pause = pauses.find(({ endSeconds }) => endSeconds >= toSeconds);
  if (pause !== undefined) return estimateTo(pause, text, speech);
  const heard = hear(text, speech, end);
  let to = Math.min(end.offset, lastWordStart(text));
  while (to > 0 && heard.secondsAt(to) > toSeconds) to -= 1;
  // Up to the beginning of a word, where words have spaces between them.
  const start = text.slice(0, to + 1).search(/(?<!\S)\S*$/);
  const told = start > 0 ? start : isSpaced(text) ? 0 : to;
  return told > 0 ? { end: told, heard, pause: null } : null;
}

/** The pauses whose marks are known, rising. */
export function markedPauses(text: string, speech: OpenSpeech): readonly MarkedPause[] {
  return spokenIn(text, speech).pauses;
}

/** The same pause in a text that has so much more before it. */
export function movedBy(offset: number, pause: MarkedPause): MarkedPause {
  return { ...pause, start: pause.start + offset, end: pause.end + offset };
}

/** What can be told of a text up to a pause of its own. */
export function estimateTo(pause: MarkedPause, text: string, speech: OpenSpeech): OpenEstimate {
  const { end, endSeconds } = pause;
  return { end, heard: hear(text, speech, { offset: end, seconds: endSeconds }), pause };
}

function hear(text: string, speech: OpenSpeech, { offset, seconds }: SpokenPlace): HeardText {
  const { fromSeconds: from, pauses, sound } = speech;
  return new HeardText(text.slice(0, offset), {
    from,
    until: seconds,
    pauses: pauses.filter(({ startSeconds }) => startSeconds < seconds),
    sound: partOf(sound, from, seconds),
  });
}

/** The pauses whose marks are known, rising; and about where the audio's end is in the text. */
function spokenIn(
  text: string,
  speech: OpenSpeech,
): { readonly pauses: readonly MarkedPause[]; readonly end: SpokenPlace } {
  const { fromSeconds, untilSeconds, pace } = speech;
  const marks = marksOf(text);
  const weights = letterWeights(text, marks);
  const isLead = ({ startSeconds }: Silence): boolean => startSeconds <= fromSeconds;
  // Silence that goes on may be any pause.
  const heard = speech.pauses
    .filter((pause) => !isLead(pause) && pause.endSeconds < untilSeconds)
    .slice(0, MAX_PLACES);
  const places = marks.filter(({ end }) => end < text.length).slice(0, MAX_PLACES);
  const soundBefore = soundClock(fromSeconds, speech.pauses);
  const soundSeconds = soundBefore(untilSeconds);
  const given = {
    marks: places.map(({ start, isStop }) => ({ weight: weights[start] ?? 0, isStop })),
    pauses: heard.map(({ startSeconds }) => soundBefore(startSeconds)),
    soundSeconds,
    endWeight: null,
  };
  const { cost, pairs, weightASecond } = likeliest(given, pace);
  const pauses = pairs.flatMap((pair) => {
    const sureness = (): number => likeliest(given, pace, pair).cost - cost;
    return markedPause(places[pair[0]], heard[pair[1]], sureness) ?? [];
  });
  const last = pauses.at(-1);
  const lastSeconds = last?.endSeconds ?? fromSeconds;
  const weight = (weights[last?.end ?? 0] ?? 0) + (soundSeconds - soundBefore(lastSeconds)) * weightASecond;
  return { pauses, end: { offset: offsetAt(weights, weight), seconds: untilSeconds } };
}

/** Marks and pauses that belong together at the likeliest pace. `without`: as `matchMarks` has it. */
function likeliest(
  speech: Parameters<typeof matchMarks>[0],
  pace: VoicePace,
  without?: Pair,
): Matched & { readonly weightASecond: number } {
  const pairs: Matched["pairs"] = [];
  let best = { cost: Number.POSITIVE_INFINITY, weightASecond: pace.weightASecond, pairs };
  for (let step = -PACES; step <= PACES; step += 1) {
    const spreads = (step * MAX_SPREADS) / PACES;
    const weightASecond = pace.weightASecond * Math.exp(spreads * pace.spread);
    const matched = matchMarks(speech, weightASecond, without);
    const cost = matched.cost + (spreads * spreads) / 2;
    if (cost < best.cost) best = { cost, weightASecond, pairs: matched.pairs };
  }
  return best;
}

function markedPause(
  mark: Mark | undefined,
  pause: Silence | undefined,
  sureness: MarkedPause["sureness"],
): MarkedPause | null {
  return mark === undefined || pause === undefined
    ? null
    : { start: mark.start, end: mark.end, ...pause, sureness };
}

/** The last offset whose weight is no more than this. */
function offsetAt(weights: Float64Array, weight: number): number {
  let [low, high] = [0, weights.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((weights[middle] ?? 0) <= weight) low = middle;
    else high = middle - 1;
  }
  return low;
}

function isSpaced(text: string): boolean {
  return /\S\s+\S/.test(text);
}

/** Of a script without spaces the last character. */
function lastWordStart(text: string): number {
  const trimmed = text.trimEnd();
  return isSpaced(text) ? trimmed.search(/(?<!\S)\S+$/) : trimmed.length - 1;
}
