/**
 * What is kept of an utterance when it is cut, so that `resume` can go on from the word in which it was cut without
 * asking the upstream again: the audio from that word on, as far as it had come, and the text that is still to be
 * asked for.
 */
import type { Timing } from "../../protocol/vocabulary.ts";
import { weaker } from "../../timing/timed.ts";
import { isUntimedAt, placeAt } from "../heard-share.ts";
import { TICKS_PER_MS } from "../playback/playhead.ts";
import type { SpokenTime, SpokenWord, Utterance } from "../playback/utterance.ts";
import { restOf } from "../remainder.ts";
import { cutOut } from "./audio-cut.ts";
import { keepByEstimate } from "./kept-estimate.ts";
import { replayOf } from "./replay-attempt.ts";
import {
  type KeepCut,
  type KeptCut,
  type KeptSpeech,
  keepBehind,
  LEAD_IN_MS,
  MAX_KEPT_BYTES,
  type OpenedCut,
  openCut,
  soundsBehind,
  timedAt,
  withRest,
} from "./snapshot.ts";

const LEAD_IN_TICKS = LEAD_IN_MS * TICKS_PER_MS;

/** null where it can't go on: the audio is gone, or nothing is left to say. */
export function keepSpeech(keepCut: KeepCut): KeptCut | null {
  const cut = openCut(keepCut);
  const { utterance, cutTicks } = cut;
  const speech = { spoken: utterance.spoken.spoken, places: utterance.places, coming: cut.coming };
  if (isUntimedAt(speech, utterance.characters, cutTicks)) return keepByEstimate(cut, speech);
  const kept = keepByWords(cut);
  return kept === null ? null : { utterance, speech: () => kept };
}

function keepByWords(cut: OpenedCut): KeptSpeech | null {
  const { utterance, cutTicks } = cut;
  const words = [...utterance.words].sort((a, b) => a.startTicks - b.startTicks);
  if (words.length === 0) return beforeFirstWord(cut);
  const first = words.findIndex((word) => word.endTicks > cutTicks);
  if (first >= 0) return fromWord(cut, words, first);
  return isLastWordHeard(cut, words) ? afterLastWord(cut, words) : fromWord(cut, words, words.length - 1);
}

/** By its times it was; where these are an estimate and something sounds yet, that is the last word. */
function isLastWordHeard(cut: OpenedCut, words: readonly SpokenWord[]): boolean {
  const last = words.at(-1);
  const place = placeAt(cut.utterance.places, last?.startTicks ?? 0);
  if (last?.timing !== "estimated" || place === undefined) return true;
  // Of a piece of which more is to come, all from its last word on is asked for anew anyway.
  const endTicks = place.endTicks ?? (cut.isOpenComplete ? cut.haveTicks : 0);
  return cut.cutTicks >= endTicks || !soundsBehind(cut, place);
}

/** `first`: of the words, the one in which it was cut. */
function fromWord(cut: OpenedCut, words: readonly SpokenWord[], first: number): KeptSpeech | null {
  const { utterance, open, isOpenComplete, placed, haveTicks, segments, places } = cut;
  const begin = firstWithAudio(cut, words, first);
  const word = words[begin];
  if (word === undefined) return null;
  const fromTicks = fromTicksOf(cut, words, begin);
  // The rest is asked for from where the client's text can be divided: a replacement as one.
  const last = isOpenComplete
    ? words.at(-1)
    : words.findLast((known) => known.endTicks <= haveTicks && places.before(known.end) === known.end);
  const { timing } = word;
  if (last === undefined || last.start < word.start) {
    const spokenStart = places.before(word.start);
    const rest = withRest(cut, spokenStart);
    return { utterance, attempts: [], spokenStart, fromTicks, rest, timing, boundMs: null };
  }
  if ((placed[0]?.startTicks ?? Number.POSITIVE_INFINITY) > fromTicks) return null;
  const openEnd = open?.end ?? segments[0]?.start ?? utterance.characters.at(-1)?.end ?? last.end;
  const rest = isOpenComplete || open === null ? null : restOf(utterance, open, last.end);
  // Punctuation behind the last word that has come is nothing to ask for: it goes with what is kept, or nobody tells it.
  const spokenEnd = rest?.start ?? openEnd;
  const characters = utterance.characters.filter((time) => time.start >= word.start && time.end <= spokenEnd);
  // With the audio of that: times that reach behind their audio would be taken for those of another pace.
  const heldTicks = Math.max(last.endTicks, characters.at(-1)?.endTicks ?? 0);
  const untilTicks = rest === null ? haveTicks : Math.min(haveTicks, heldTicks);
  const audio = cutOut(placed, { fromTicks, untilTicks });
  if (audio === null || audio.bytes.byteLength > MAX_KEPT_BYTES) return null;
  const text = utterance.spoken.spoken.slice(word.start, spokenEnd);
  const attempt = replayOf({
    segment: timedAt(cut, { text, start: word.start, end: spokenEnd }),
    sourceFormat: utterance.sourceFormat,
    audio: audio.bytes,
    characters: characters.map((time) => ({
      ...time,
      startTicks: Math.min(time.startTicks, untilTicks),
      endTicks: Math.min(time.endTicks, untilTicks),
    })),
    normalized: utterance.normalized.filter((time) => time.start >= word.start && time.start < spokenEnd),
    voices: utterance.voices.filter((voice) => voice.start < spokenEnd && voice.end > word.start),
    inputsBefore: utterance.inputsBefore(word.start),
    fromTicks: audio.startTicks,
    text: utterance.spoken.spoken,
    timing: words
      .filter(({ start, end }) => start >= word.start && end <= spokenEnd)
      .reduce<Timing>((weakest, kept) => weaker(weakest, kept.timing), timing),
  });
  const behind = rest === null ? keepBehind(cut) : [];
  return {
    utterance,
    attempts: [attempt, ...behind],
    spokenStart: word.start,
    fromTicks: audio.startTicks,
    rest: rest === null ? segments.slice(behind.length) : [rest, ...segments],
    timing,
    boundMs: null,
  };
}

/** How its words are known. */
function timingOf({ timing }: Utterance): Timing {
  return timing === "none" ? "estimated" : timing;
}

/** The first word of what stands for the same piece of the client's text; the word itself where audio of that is gone. */
function firstWithAudio(cut: OpenedCut, words: readonly SpokenTime[], first: number): number {
  const start = cut.places.before(words[first]?.start ?? 0);
  const begin = words.findIndex((word) => word.start >= start);
  if (begin < 0 || begin > first) return first;
  const haveFromTicks = cut.placed[0]?.startTicks ?? Number.POSITIVE_INFINITY;
  return fromTicksOf(cut, words, begin) >= haveFromTicks ? begin : first;
}

function fromTicksOf({ utterance }: OpenedCut, words: readonly SpokenTime[], index: number): number {
  const startTicks = utterance.startTicks ?? 0;
  return Math.max(
    words[index - 1]?.endTicks ?? startTicks,
    (words[index]?.startTicks ?? startTicks) - LEAD_IN_TICKS,
  );
}

/** Not even one word has come whole: it is asked for again. */
function beforeFirstWord(cut: OpenedCut): KeptSpeech | null {
  const { utterance, open, cutTicks } = cut;
  const spokenStart = open?.start;
  if (spokenStart === undefined) return null;
  const rest = withRest(cut, spokenStart);
  if (rest.length === 0 && utterance.isExhausted) return null;
  const fromTicks = utterance.startTicks ?? cutTicks;
  return { utterance, attempts: [], spokenStart, fromTicks, rest, timing: "exact", boundMs: null };
}

/** All words that are known were heard: only text that was not asked for or has not come is left. */
function afterLastWord(cut: OpenedCut, words: readonly SpokenTime[]): KeptSpeech | null {
  const { utterance, isOpenComplete } = cut;
  const end = cut.places.before(words.at(-1)?.end ?? 0);
  const attempts = isOpenComplete ? keepBehind(cut) : [];
  const rest = isOpenComplete ? cut.segments.slice(attempts.length) : withRest(cut, end);
  if (attempts.length + rest.length === 0 && utterance.isExhausted) return null;
  const spokenStart = attempts[0]?.segment.start ?? rest[0]?.start ?? end;
  const timing = timingOf(utterance);
  return { utterance, attempts, spokenStart, fromTicks: cut.cutTicks, rest, timing, boundMs: null };
}
