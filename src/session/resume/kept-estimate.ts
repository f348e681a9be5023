/**
 * What is kept where nothing was timed. The audio goes on in a pause before the cut, so that nothing of it is lost and no
 * word begins in its middle; which word comes there is told by the share of the audio of its segment. Where that has not
 * all come, nobody knows what its end says, so that all of the text from the cut on is asked for anew.
 *
 *   text    |alpha bravo, charlie delta|      by the share of the audio the cut is in "charlie"
 *   sound   |##### #####    ####### #|#       the last pause before the cut
 *   kept    |              |charlie delta|
 */
import { PauseFinder } from "../../audio/pause-finder.ts";
import { sampledFormatOf } from "../../audio/silence.ts";
import type { WordSpan } from "../../text/unspaced.ts";
import { Pauses } from "../../timing/estimate/pauses.ts";
import { msOfTicks, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import {
  placeAt,
  type SegmentSpan,
  shareBoundTicks,
  spokenEndAt,
  ticksOfOffsets,
  type UntimedSpeech,
} from "../heard-share.ts";
import { TICKS_PER_MS } from "../playback/playhead.ts";
import { isSaid } from "../remainder.ts";
import { cutOut } from "./audio-cut.ts";
import { type HeardWord, timesOfWords } from "./heard-words.ts";
import { type ReplayAttempt, replayOf } from "./replay-attempt.ts";
import type { PlacedSlice } from "./resume-buffer.ts";
import {
  type KeptCut,
  type KeptSpeech,
  keepBehind,
  LEAD_IN_MS,
  MAX_KEPT_BYTES,
  type OpenedCut,
  soundsBehind,
  timedAt,
  withRest,
} from "./snapshot.ts";

/** So far before the cut a pause is looked for: less than what is kept of what was heard. */
const REACH_TICKS = 1500 * TICKS_PER_MS;
/** A pause that the cut is in is looked at so far. */
const AHEAD_TICKS = 500 * TICKS_PER_MS;
/** Where there is no pause, a silence so near to where the word is expected is most likely before it. */
const NEAR_TICKS = 60 * TICKS_PER_MS;
const LEAD_IN_TICKS = LEAD_IN_MS * TICKS_PER_MS;
/** Behind a mark a pause is expected: a word that follows one may be so much further from it. */
const MARK_TICKS = 150 * TICKS_PER_MS;
const MARK = /[\p{Terminal_Punctuation}…–—\n]/u;

/** Ticks of the timeline. */
interface Silence {
  readonly startTicks: number;
  readonly endTicks: number;
}

/** Where speech goes on. */
interface Restart {
  /** Offset in the spoken text. */
  readonly spokenStart: number;
  readonly fromTicks: number;
}

/** null where it can't go on: the audio is gone, or nothing is left to say. */
export function keepByEstimate(opened: OpenedCut, speech: UntimedSpeech): KeptCut | null {
  const { utterance, isOpenComplete, cutTicks } = opened;
  const place = placeAt(speech.places, cutTicks);
  if (place === undefined) return null;
  const cut = { ...opened, placed: ownCopies(opened) };
  const behind = isOpenComplete ? keepBehind(cut) : [];
  const at = { speech, place, behind };
  const isOpen = !isOpenComplete && place === speech.places.at(-1);
  const asGuessed = isOpen ? askedAnew(cut, at) : fromAudio(cut, at, wordsByShare(cut, at));
  const isLeft = ({ attempts, rest }: Kept): boolean =>
    attempts.length + rest.length > 0 || !utterance.isExhausted;
  if (asGuessed === null || !isLeft(asGuessed)) return null;
  const keep = (): KeptSpeech => {
    const asHeard = isOpen ? null : fromAudio(cut, at, heardWords(cut, at));
    const kept = asHeard !== null && isLeft(asHeard) ? asHeard : asGuessed;
    const boundMs = msOfTicks(shareBoundTicks(speech, place, Math.min(cutTicks, kept.fromTicks)));
    return { ...kept, boundMs };
  };
  return { utterance, speech: keep };
}

/** Of what was pushed these are copies already; the memory of the rest is used again. */
function ownCopies({ placed, writeTicks }: OpenedCut): readonly PlacedSlice[] {
  return placed.map((one) => {
    if (one.startTicks < writeTicks) return one;
    const { format, ticks, raw } = one.slice;
    const copies = raw().map((bytes) => new Uint8Array(bytes));
    return { startTicks: one.startTicks, slice: { format, ticks, raw: () => copies } };
  });
}

/** Where it was cut: the segment that was heard, and the answers behind it. */
interface UntimedCut {
  readonly speech: UntimedSpeech;
  readonly place: SegmentSpan;
  readonly behind: readonly ReplayAttempt[];
}

type Kept = Omit<KeptSpeech, "boundMs">;

/** Not all audio of the segment has come. */
function askedAnew(cut: OpenedCut, { speech, place }: UntimedCut): Kept {
  const { utterance, cutTicks, places } = cut;
  // Something of it was still to come: the last word at least.
  const lastWord = place.start + (places.wordsOf(place).words.at(-1)?.start ?? 0);
  const spokenStart = places.before(Math.min(spokenEndAt(speech, cutTicks), lastWord));
  const [ticks = cutTicks] = ticksOfOffsets(speech, place, [spokenStart]);
  const rest = withRest(cut, spokenStart);
  return {
    utterance,
    attempts: [],
    spokenStart,
    fromTicks: Math.min(cutTicks, ticks),
    rest,
    timing: "estimated",
  };
}

/** All audio of the segment is here. */
function fromAudio(cut: OpenedCut, at: UntimedCut, times: readonly HeardWord[]): Kept | null {
  const { speech, place, behind } = at;
  const { utterance, open, isOpenComplete, cutTicks, placed, segments } = cut;
  const haveFromTicks = placed[0]?.startTicks ?? Number.POSITIVE_INFINITY;
  const last = speech.places.at(-1) ?? place;
  const untilTicks = isOpenComplete ? cut.haveTicks : last.startTicks;
  const spokenEnd = isOpenComplete ? (open?.end ?? last.end) : last.start;
  const restart = findRestart(cut, place, placedWords(cut, at, times));
  const { spokenStart } = restart;
  const fromTicks = Math.max(restart.fromTicks, Math.min(haveFromTicks, cutTicks));
  const text = utterance.spoken.spoken.slice(spokenStart, spokenEnd);
  const audio = isSaid(text) ? cutOut(placed, { fromTicks, untilTicks }) : null;
  const isGone = isSaid(text) && (audio === null || haveFromTicks > fromTicks);
  if (isGone || (audio?.bytes.byteLength ?? 0) > MAX_KEPT_BYTES) return null;
  const attempt =
    audio === null
      ? null
      : replayOf({
          segment: timedAt(cut, { text, start: spokenStart, end: spokenEnd }),
          sourceFormat: utterance.sourceFormat,
          audio: audio.bytes,
          characters: [],
          normalized: [],
          voices: [],
          inputsBefore: utterance.inputsBefore(spokenStart),
          fromTicks: audio.startTicks,
          text: utterance.spoken.spoken,
          timing: "estimated",
        });
  return {
    utterance,
    attempts: attempt === null ? behind : [attempt, ...behind],
    spokenStart,
    fromTicks: audio?.startTicks ?? cutTicks,
    rest: isOpenComplete ? segments.slice(behind.length) : withRest(cut, last.start),
    timing: "estimated",
  };
}

/** The last pause up to the cut, and the word that most likely follows it; else the word of the cut, where that is heard. */
function findRestart(cut: OpenedCut, place: SegmentSpan, words: readonly PlacedWord[]): Restart {
  const { cutTicks } = cut;
  const behind = words.findIndex((word) => word.endTicks > cutTicks);
  // By what is known it was all said; where something sounds yet, that is the last word.
  const index = behind < 0 && soundsBehind(cut, place) ? words.length - 1 : behind;
  const next = words[index];
  if (next === undefined) return { spokenStart: place.end, fromTicks: place.endTicks ?? cutTicks };
  const { pauses, silences } = silencesBefore(cut, place);
  const pause = pauses.at(-1);
  if (pause === undefined) {
    const fromTicks = Math.min(cutTicks, next.startTicks);
    const distance = ({ endTicks }: Silence): number => Math.abs(endTicks - fromTicks);
    const [nearest] = silences
      .filter((silence) => distance(silence) <= NEAR_TICKS)
      .sort((a, b) => distance(a) - distance(b));
    const before = words[index - 1]?.endTicks ?? place.startTicks;
    const gap = nearest ?? { startTicks: Math.min(before, fromTicks), endTicks: fromTicks };
    return { spokenStart: next.start, fromTicks: leadIn(gap) };
  }
  let best = { spokenStart: next.start, cost: Number.POSITIVE_INFINITY };
  for (const word of words.slice(0, index + 1)) {
    const cost = Math.abs(word.startTicks - pause.endTicks) - (word.isMarked ? MARK_TICKS : 0);
    if (cost < best.cost) best = { spokenStart: word.start, cost };
  }
  return { spokenStart: best.spokenStart, fromTicks: leadIn(pause) };
}

/** A word, or several that are said as one: what stands for a piece of the client's text, an element that stays whole. */
interface PlacedWord extends HeardWord {
  /** Offset in the spoken text; of an element where it begins one. */
  readonly start: number;
  /** A mark stands before it, or nothing. */
  readonly isMarked: boolean;
}

/** The words of the cut's segment, `times` of each of them. */
function placedWords(
  cut: OpenedCut,
  { speech, place }: UntimedCut,
  times: readonly HeardWord[],
): readonly PlacedWord[] {
  const words = wordsOf(cut, place);
  const placed: PlacedWord[] = [];
  for (const [index, word] of words.entries()) {
    const { startTicks, endTicks } = times[index] ?? { startTicks: 0, endTicks: 0 };
    const start = cut.places.before(word.start);
    const isMarked = index === 0 || MARK.test(speech.spoken.slice(words[index - 1]?.end ?? 0, start));
    const last = placed.at(-1);
    if (last?.start === start) placed[placed.length - 1] = { ...last, endTicks };
    else placed.push({ start, startTicks, endTicks, isMarked });
  }
  return placed;
}

/** Of a segment, in the spoken text. */
function wordsOf(cut: OpenedCut, place: SegmentSpan): readonly WordSpan[] {
  const { words } = cut.places.wordsOf(place);
  return words.map(({ start, end }) => ({ start: place.start + start, end: place.start + end }));
}

/** When they are heard, by the share of the audio. */
function wordsByShare(cut: OpenedCut, { speech, place }: UntimedCut): readonly HeardWord[] {
  const words = wordsOf(cut, place);
  const shares = ticksOfOffsets(
    speech,
    place,
    words.flatMap(({ start, end }) => [start, end]),
  );
  return words.map((_, index) => ({
    startTicks: shares[2 * index] ?? 0,
    endTicks: shares[2 * index + 1] ?? 0,
  }));
}

/**
 * By what sounds, as far as the audio is kept. Where that begins in the text is told by the share, unless it is the
 * segment's beginning.
 */
function heardWords(cut: OpenedCut, at: UntimedCut): readonly HeardWord[] {
  const { utterance, placed, cutTicks, haveTicks } = cut;
  const { speech, place } = at;
  const byShare = wordsByShare(cut, at);
  const format = utterance.sourceFormat;
  const endTicks = place.endTicks ?? haveTicks;
  if (sampledFormatOf(format) === null) return byShare;
  const audio = cutOut(placed, { fromTicks: place.startTicks, untilTicks: endTicks });
  if (audio === null || audio.startTicks > cutTicks) return byShare;
  const first = byShare.findIndex(({ startTicks }) => startTicks >= audio.startTicks);
  if (first < 0) return byShare;
  const words = wordsOf(cut, place);
  const textStart = first === 0 ? place.start : (words[first]?.start ?? place.end);
  const behind = words
    .slice(first)
    .map(({ start, end }) => ({ start: start - textStart, end: end - textStart }));
  const text = speech.spoken.slice(textStart, place.end);
  return [...byShare.slice(0, first), ...timesOfWords({ text, words: behind, audio, endTicks, format })];
}

/** Silences that begin before the cut, rising; pauses are those that are too long to be part of a word. */
function silencesBefore(
  { utterance, cutTicks, placed }: OpenedCut,
  place: SegmentSpan,
): { readonly pauses: readonly Silence[]; readonly silences: readonly Silence[] } {
  const format = utterance.sourceFormat;
  const fromTicks = Math.max(place.startTicks, cutTicks - REACH_TICKS);
  const untilTicks = Math.min(place.endTicks ?? Number.POSITIVE_INFINITY, cutTicks + AHEAD_TICKS);
  const audio = sampledFormatOf(format) === null ? null : cutOut(placed, { fromTicks, untilTicks });
  if (audio === null) return { pauses: [], silences: [] };
  const found = new PauseFinder(format).push(audio.bytes);
  const pauses = new Pauses();
  pauses.add(found);
  const ticksAt = (seconds: number): number => audio.startTicks + Math.round(seconds * TICKS_PER_SECOND);
  const onTimeline = (silences: ReturnType<PauseFinder["push"]>): readonly Silence[] =>
    silences
      .map(({ startSeconds, endSeconds }) => ({
        startTicks: ticksAt(startSeconds),
        endTicks: ticksAt(endSeconds),
      }))
      .filter(({ startTicks }) => startTicks <= cutTicks);
  const seconds = (untilTicks - audio.startTicks) / TICKS_PER_SECOND;
  return { pauses: onTimeline(pauses.within(0, seconds)), silences: onTimeline(found) };
}

function leadIn({ startTicks, endTicks }: Silence): number {
  return Math.max(startTicks, endTicks - LEAD_IN_TICKS);
}
