/**
 * How far in the text a moment of the audio is, where nothing was timed: by the share of the audio of its segment. The length
 * of a segment whose audio has not all come is estimated: by the pace of complete segments, else by that of most voices.
 */
import { MIN_RATE_SECONDS, speechWeight, TYPICAL_WEIGHT_A_SECOND } from "../timing/estimate/speech-weight.ts";
import { charactersOf } from "../timing/spans.ts";
import { TICKS_PER_SECOND } from "../timing/ticks.ts";

/** Where a segment stands on the timeline. */
export interface SegmentSpan {
  /** Offsets in the spoken text. */
  readonly start: number;
  end: number;
  readonly startTicks: number;
  /** null until its last audio was rendered. */
  endTicks: number | null;
}

/** Audio that has come of the segment that is being rendered. */
export interface ComingAudio {
  /** Where on the timeline it will end. */
  readonly endTicks: number;
  /** Nothing more of the segment comes. */
  readonly isWhole: boolean;
}

export interface UntimedSpeech {
  readonly spoken: string;
  /** Rising. */
  readonly places: readonly SegmentSpan[];
  readonly coming: ComingAudio | null;
}

/** Complete segments have to have so much together before their rate is used. */
const MIN_PACE_TICKS = MIN_RATE_SECONDS * TICKS_PER_SECOND;

/** End in the spoken text of the last character that was over at `ticks`, as an estimate. */
export function spokenEndAt(speech: UntimedSpeech, ticks: number): number {
  const { spoken, places } = speech;
  const place = placeAt(places, ticks);
  if (place === undefined) return places[0]?.start ?? 0;
  const text = spoken.slice(place.start, place.end);
  const lengthTicks = lengthOf(speech, place);
  const heardTicks = ticks - place.startTicks;
  if (heardTicks >= lengthTicks) return place.end;
  const heardWeight = (speechWeight(text) * heardTicks) / lengthTicks;
  let [end, weight] = [place.start, 0];
  for (const character of charactersOf(text)) {
    weight += speechWeight(character);
    if (weight > heardWeight) break;
    end += character.length;
  }
  return end;
}

/** Whether nothing of the segment that is heard at `ticks` has a time. */
export function isUntimedAt(
  places: UntimedSpeech["places"],
  characters: readonly { readonly end: number }[],
  ticks: number,
): boolean {
  const place = placeAt(places, ticks);
  return place !== undefined && !characters.some(({ end }) => end > place.start && end <= place.end);
}

/** The segment that is heard at `ticks`, or was heard last. */
export function placeAt(places: readonly SegmentSpan[], ticks: number): SegmentSpan | undefined {
  return places.findLast((place) => place.startTicks <= ticks);
}

function lengthOf(speech: UntimedSpeech, place: SegmentSpan): number {
  return place.endTicks === null ? openLengthTicks(speech, place) : place.endTicks - place.startTicks;
}

/** At least what has come of it. */
function openLengthTicks({ spoken, places, coming }: UntimedSpeech, place: SegmentSpan): number {
  const text = spoken.slice(place.start, place.end);
  const comeTicks = coming === null ? 0 : coming.endTicks - place.startTicks;
  if (coming?.isWhole === true) return comeTicks;
  return Math.max(comeTicks, speechWeight(text) / weightATick(spoken, places));
}

function weightATick(spoken: string, places: readonly SegmentSpan[]): number {
  let [ticks, weight] = [0, 0];
  for (const { start, end, startTicks, endTicks } of places) {
    if (endTicks === null) continue;
    ticks += endTicks - startTicks;
    weight += speechWeight(spoken.slice(start, end));
  }
  const isPaceKnown = ticks >= MIN_PACE_TICKS && weight > 0;
  return isPaceKnown ? weight / ticks : TYPICAL_WEIGHT_A_SECOND / TICKS_PER_SECOND;
}
