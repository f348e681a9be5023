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
  readonly spans: readonly SegmentSpan[];
  readonly coming: ComingAudio | null;
}

/** Complete segments have to have so much together before their rate is used. */
const MIN_PACE_TICKS = MIN_RATE_SECONDS * TICKS_PER_SECOND;

/** End in the spoken text of the last character that was over at `ticks`, as an estimate. */
export function spokenEndAt(speech: UntimedSpeech, ticks: number): number {
  const { spoken, spans } = speech;
  const span = spanAt(spans, ticks);
  if (span === undefined) return spans[0]?.start ?? 0;
  const text = spoken.slice(span.start, span.end);
  const lengthTicks = lengthOf(speech, span);
  const heardTicks = ticks - span.startTicks;
  if (heardTicks >= lengthTicks) return span.end;
  const heardWeight = (speechWeight(text) * heardTicks) / lengthTicks;
  let [end, weight] = [span.start, 0];
  for (const character of charactersOf(text)) {
    weight += speechWeight(character);
    if (weight > heardWeight) break;
    end += character.length;
  }
  return end;
}

/** Whether nothing of the segment that is heard at `ticks` has a time. */
export function isUntimedAt(
  spans: UntimedSpeech["spans"],
  characters: readonly { readonly end: number }[],
  ticks: number,
): boolean {
  const span = spanAt(spans, ticks);
  return span !== undefined && !characters.some(({ end }) => end > span.start && end <= span.end);
}

/** The segment that is heard at `ticks`, or was heard last. */
export function spanAt(spans: readonly SegmentSpan[], ticks: number): SegmentSpan | undefined {
  return spans.findLast((span) => span.startTicks <= ticks);
}

function lengthOf(speech: UntimedSpeech, span: SegmentSpan): number {
  return span.endTicks === null ? openLengthTicks(speech, span) : span.endTicks - span.startTicks;
}

/** At least what has come of it. */
function openLengthTicks({ spoken, spans, coming }: UntimedSpeech, span: SegmentSpan): number {
  const text = spoken.slice(span.start, span.end);
  const comeTicks = coming === null ? 0 : coming.endTicks - span.startTicks;
  if (coming?.isWhole === true) return comeTicks;
  return Math.max(comeTicks, speechWeight(text) / weightATick(spoken, spans));
}

function weightATick(spoken: string, spans: readonly SegmentSpan[]): number {
  let [ticks, weight] = [0, 0];
  for (const { start, end, startTicks, endTicks } of spans) {
    if (endTicks === null) continue;
    ticks += endTicks - startTicks;
    weight += speechWeight(spoken.slice(start, end));
  }
  const isPaceKnown = ticks >= MIN_PACE_TICKS && weight > 0;
  return isPaceKnown ? weight / ticks : TYPICAL_WEIGHT_A_SECOND / TICKS_PER_SECOND;
}
