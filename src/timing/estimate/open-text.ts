/**
 * The times of text that is spoken in audio whose end is not there yet: neither the speaking rate nor how far it has come in
 * the text is known. Both are found together, as that with which its pauses fit the punctuation of the text best; up to such a
 * pause the text is then laid over its audio as where both ends are known (aligned-text.ts).
 *
 *   text    |Alpha bravo, charlie delta. Echo foxtrot golf hotel
 *   sound   |##### ####    ####### ####      #### ###...           has come so far
 *   emitted |Alpha bravo, charlie delta.    |                      up to a pause whose punctuation is known
 */
import type { Silence } from "../../audio/analysis/pause-finder.ts";
import type { AudioSpan } from "../spans.ts";
import type { Needed, OpenEstimate, SpeakingRate } from "../timing-estimator.ts";
import { AlignedText } from "./aligned-text.ts";
import { type Matched, matchPauses } from "./pause-matching.ts";
import { soundClock } from "./pauses.ts";
import { letterWeights, punctuationOf } from "./punctuation.ts";
import { TYPICAL_WEIGHT_A_SECOND } from "./speech-weight.ts";

/** Before anything was heard. Languages differ by more than voices do. */
export const USUAL_RATE: SpeakingRate = { weightASecond: TYPICAL_WEIGHT_A_SECOND, spread: 0.25 };

/** Audio of a response that has no times, as far as it has come. */
export interface OpenSpeech extends AudioSpan {
  /** Pauses in it, rising. */
  readonly pauses: readonly Silence[];
  readonly rate: SpeakingRate;
}

/** Rates looked at, either way, and how far they reach, in spreads. */
const RATES = 12;
const MAX_SPREADS = 2.5;
/** Less audio than this says too little of how far its text has come. */
const MIN_SECONDS = 2;
/** Where no pause shows it, the last text is the least sure: it waits for more audio. */
const UNSURE_SECONDS = 1.5;
/** More punctuation and pauses than that are not looked at, as there are `RATES` ways to match them. */
const MAX_PLACES = 48;

/** A pause, and the text up to the punctuation that it most likely stands for, with the space behind that: offset, UTF-16. */
interface PunctuatedPause {
  readonly end: number;
  readonly endSeconds: number;
}

/** A position in the text, and when it is spoken. Offset, UTF-16; seconds of the response. */
interface SpokenPosition {
  readonly offset: number;
  readonly seconds: number;
}

/**
 * What can be estimated of a text up to `neededSeconds` and the next pause behind it whose punctuation is known, or where there is none,
 * about so far; null: nothing. The last word of the text waits for the end of the audio.
 */
export function estimateOpen(
  text: string,
  speech: OpenSpeech,
  { neededSeconds, isLast = false }: Needed,
): OpenEstimate | null {
  const { startSeconds: fromSeconds, endSeconds: untilSeconds } = speech;
  if (untilSeconds - fromSeconds < MIN_SECONDS || fromSeconds >= neededSeconds) return null;
  const { pauses, end } = spokenIn(text, speech);
  const latestSeconds = untilSeconds - (isLast ? 0 : UNSURE_SECONDS);
  const toSeconds = Math.min(neededSeconds, latestSeconds);
  // The next one is enough: more will be known of those behind it.
  const pause = pauses.find(({ endSeconds }) => endSeconds >= toSeconds);
  if (pause !== undefined)
    return { end: pause.end, clock: align(text, speech, { offset: pause.end, seconds: pause.endSeconds }) };
  const clock = align(text, speech, end);
  let to = Math.min(end.offset, lastWordStart(text));
  while (to > 0 && clock.secondsAt(to) > toSeconds) to -= 1;
  // Up to the beginning of a word, where words have spaces between them.
  const start = text.slice(0, to + 1).search(/(?<!\S)\S*$/);
  const emitted = start > 0 ? start : isSpaced(text) ? 0 : to;
  return emitted > 0 ? { end: emitted, clock } : null;
}

function align(text: string, speech: OpenSpeech, { offset, seconds }: SpokenPosition): AlignedText {
  const span = { startSeconds: speech.startSeconds, endSeconds: seconds };
  return new AlignedText(text.slice(0, offset), {
    ...span,
    pauses: speech.pauses.filter(({ startSeconds }) => startSeconds < seconds),
  });
}

/** The pauses whose punctuation is known, rising; and about where the audio's end is in the text. */
function spokenIn(
  text: string,
  speech: OpenSpeech,
): { readonly pauses: readonly PunctuatedPause[]; readonly end: SpokenPosition } {
  const { startSeconds: fromSeconds, endSeconds: untilSeconds, rate } = speech;
  const punctuation = punctuationOf(text);
  const weights = letterWeights(text, punctuation);
  const isLead = ({ startSeconds }: Silence): boolean => startSeconds <= fromSeconds;
  // Silence that goes on may be any pause.
  const heard = speech.pauses
    .filter((pause) => !isLead(pause) && pause.endSeconds < untilSeconds)
    .slice(0, MAX_PLACES);
  const places = punctuation.filter(({ end }) => end < text.length).slice(0, MAX_PLACES);
  const soundBefore = soundClock(fromSeconds, speech.pauses);
  const soundSeconds = soundBefore(untilSeconds);
  const given = {
    places: places.map(({ start, isStop }) => ({ weight: weights[start] ?? 0, isStop })),
    pauses: heard.map(({ startSeconds }) => soundBefore(startSeconds)),
    soundSeconds,
    endWeight: null,
  };
  const { pairs, weightASecond } = likeliest(given, rate);
  const pauses = pairs.flatMap(([place, pause]) => {
    const [end, endSeconds] = [places[place]?.end, heard[pause]?.endSeconds];
    return end === undefined || endSeconds === undefined ? [] : [{ end, endSeconds }];
  });
  const last = pauses.at(-1);
  const lastSeconds = last?.endSeconds ?? fromSeconds;
  const weight = (weights[last?.end ?? 0] ?? 0) + (soundSeconds - soundBefore(lastSeconds)) * weightASecond;
  return { pauses, end: { offset: offsetAt(weights, weight), seconds: untilSeconds } };
}

/** Punctuation and pauses that belong together at the likeliest rate. */
function likeliest(
  speech: Parameters<typeof matchPauses>[0],
  rate: SpeakingRate,
): Matched & { readonly weightASecond: number } {
  const pairs: Matched["pairs"] = [];
  let best = { cost: Number.POSITIVE_INFINITY, weightASecond: rate.weightASecond, pairs };
  for (let step = -RATES; step <= RATES; step += 1) {
    const spreads = (step * MAX_SPREADS) / RATES;
    const weightASecond = rate.weightASecond * Math.exp(spreads * rate.spread);
    const matched = matchPauses(speech, weightASecond);
    const cost = matched.cost + (spreads * spreads) / 2;
    if (cost < best.cost) best = { cost, weightASecond, pairs: matched.pairs };
  }
  return best;
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

/** In a script without spaces the last character. */
function lastWordStart(text: string): number {
  const trimmed = text.trimEnd();
  return isSpaced(text) ? trimmed.search(/(?<!\S)\S+$/) : trimmed.length - 1;
}
