/**
 * Where `resume` goes on, decided when speech is cut: with the word in which it was cut, where the time of that word is known.
 * The audio from that word on is kept, as far as it had come, up to the last word whose time is known; the text behind it is
 * asked for again. Where the time of the word is an estimate or has not come, nothing says where in the audio the text is:
 * all text that the receipt calls unheard is asked for again.
 */

import type { Timing } from "../../protocol/vocabulary.ts";
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import { weaker } from "../../timing/timed.ts";
import { isUntimedAt } from "../heard-share.ts";
import type { SpokenTime, SpokenWord } from "../playback/transcript.ts";
import type { Snapshot, Utterance } from "../playback/utterance.ts";
import { heardFactsOf, heardToWord } from "../receipts.ts";
import { cutOut } from "./audio-cut.ts";
import {
  type CutPoint,
  MAX_KEPT_BYTES,
  type OpenedCut,
  openCut,
  replaysBehind,
  stagedNow,
  textFrom,
} from "./cut-material.ts";
import { replayOf } from "./replay-attempt.ts";

/** Before the first word, where nothing else is spoken: its first consonant. */
const LEAD_IN_TICKS = 40 * TICKS_PER_MS;

/** null where it can't go on: the audio is gone, or nothing is left to say. */
export function takeSnapshot(point: CutPoint): Snapshot | null {
  const cut = openCut(point);
  const { utterance, cutTicks } = cut;
  const { transcript } = utterance;
  const words = [...transcript.words].sort((a, b) => a.startTicks - b.startTicks);
  const index = words.findIndex((word) => word.endTicks > cutTicks);
  const word = words[index] ?? words.at(-1);
  const isUntimed = isUntimedAt(transcript.segments, transcript.characters, cutTicks);
  if (isUntimed || word === undefined || !isKnown(word)) {
    return fromReceipt(cut, isUntimed ? "estimated" : timingOf(utterance));
  }
  return index < 0 ? afterLastWord(cut, word) : fromWord(cut, words, index);
}

function isKnown({ timing }: SpokenWord): boolean {
  return timing !== "estimated";
}

/** No time is known there: the text that the receipt calls unheard is asked for again. */
function fromReceipt(cut: OpenedCut, timing: Timing): Snapshot | null {
  const { utterance, cutTicks, coming } = cut;
  const heardEnd = heardToWord(heardFactsOf(utterance, coming), cutTicks);
  const rest = textFrom(cut, heardEnd);
  if (rest.length === 0 && utterance.isExhausted) return null;
  const spokenStart = rest[0]?.start ?? heardEnd;
  return { replays: [], spokenStart, fromTicks: cutTicks, rest, timing };
}

/** `first`: of the words, the one in which it was cut. */
function fromWord(cut: OpenedCut, words: readonly SpokenWord[], first: number): Snapshot | null {
  const { utterance, open, isOpenComplete, placed, haveTicks, segments, places } = cut;
  const { transcript } = utterance;
  const begin = firstWithAudio(cut, words, first);
  const word = words[begin];
  if (word === undefined) return null;
  const fromTicks = fromTicksOf(cut, words, begin);
  const { timing } = word;
  // The rest is asked for from where the client's text can be divided: a replacement as one.
  const last = isOpenComplete
    ? words.at(-1)
    : words.findLast(
        (known) => isKnown(known) && known.endTicks <= haveTicks && places.placeUpTo(known.end) === known.end,
      );
  if (last === undefined || last.start < word.start) {
    const spokenStart = places.placeUpTo(word.start);
    return { replays: [], spokenStart, fromTicks, rest: textFrom(cut, spokenStart), timing };
  }
  if ((placed[0]?.startTicks ?? Number.POSITIVE_INFINITY) > fromTicks) return null;
  const openEnd = open?.end ?? segments[0]?.start ?? transcript.characters.at(-1)?.end ?? last.end;
  const behind = isOpenComplete ? replaysBehind(cut) : [];
  const rest = isOpenComplete ? segments.slice(behind.length) : textFrom(cut, last.end);
  // Punctuation behind the last word that has come is nothing to ask for: its times go with what is kept, or nobody gets them.
  const spokenEnd = isOpenComplete ? openEnd : Math.min(openEnd, rest[0]?.start ?? openEnd);
  const characters = transcript.characters.filter(
    (time) => time.start >= word.start && time.end <= spokenEnd,
  );
  // With the audio of that: times behind their audio would be taken for those of a drifting clock.
  const heldTicks = Math.max(last.endTicks, characters.at(-1)?.endTicks ?? 0);
  const isAll = spokenEnd === openEnd;
  const untilTicks = isAll ? haveTicks : Math.min(haveTicks, heldTicks);
  const audio = cutOut(placed, { fromTicks, untilTicks });
  if (audio === null || audio.bytes.byteLength > MAX_KEPT_BYTES) return null;
  const text = utterance.spoken.spoken.slice(word.start, spokenEnd);
  const replay = replayOf({
    segment: stagedNow(cut, { text, start: word.start, end: spokenEnd }),
    sourceFormat: utterance.sourceFormat,
    audio: audio.bytes,
    characters: characters.map((time) => ({
      ...time,
      startTicks: Math.min(time.startTicks, untilTicks),
      endTicks: Math.min(time.endTicks, untilTicks),
    })),
    normalized: transcript.normalized.filter((time) => time.start >= word.start && time.start < spokenEnd),
    voices: transcript.voices.filter((voice) => voice.start < spokenEnd && voice.end > word.start),
    inputsBefore: utterance.inputsBefore(word.start),
    fromTicks: audio.startTicks,
    text: utterance.spoken.spoken,
    timing: words
      .filter(({ start, end }) => start >= word.start && end <= spokenEnd)
      .reduce<Timing>((weakest, kept) => weaker(weakest, kept.timing), timing),
  });
  return {
    replays: [replay, ...behind],
    spokenStart: word.start,
    fromTicks: audio.startTicks,
    rest,
    timing,
  };
}

/** How its words are known. */
function timingOf({ transcript: { timing } }: Utterance): Timing {
  return timing === "none" ? "estimated" : timing;
}

/** The first word that stands for the same part of the client's text; the word itself where its audio is gone. */
function firstWithAudio(cut: OpenedCut, words: readonly SpokenTime[], first: number): number {
  const start = cut.places.placeUpTo(words[first]?.start ?? 0);
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

/** All words that are known were heard: only text that was not asked for or has not come is left. */
function afterLastWord(cut: OpenedCut, last: SpokenTime): Snapshot | null {
  const { utterance, isOpenComplete } = cut;
  const end = cut.places.placeUpTo(last.end);
  const replays = isOpenComplete ? replaysBehind(cut) : [];
  const rest = isOpenComplete ? cut.segments.slice(replays.length) : textFrom(cut, end);
  if (replays.length + rest.length === 0 && utterance.isExhausted) return null;
  const spokenStart = replays[0]?.segment.start ?? rest[0]?.start ?? end;
  return { replays, spokenStart, fromTicks: cut.cutTicks, rest, timing: timingOf(utterance) };
}
