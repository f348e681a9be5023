/** A stretch of text on its way to its times, and how times are spread over text that has none. */
import type { Timing } from "../protocol/vocabulary.ts";
import { weaker } from "./timed.ts";

/** Owned by one SegmentTiming; changed in place until it is emitted. */
export interface Draft {
  /** UTF-16 offset in the segment's text, exclusive; it starts where the one before it ends. */
  readonly end: number;
  /** Seconds; NaN = unknown. */
  startSeconds: number;
  endSeconds: number;
  timing: Timing;
  /** The upstream did not say where it ends. */
  isEndGuessed?: boolean;
}

const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });

export function isTimed(draft: Draft): boolean {
  return !Number.isNaN(draft.startSeconds) && !Number.isNaN(draft.endSeconds);
}

/** Their times are a guess. */
export function weaken(drafts: readonly Draft[]): void {
  for (const draft of drafts) draft.timing = "estimated";
}

/** Times at this pace become those of their audio. */
export function divideTimes(drafts: readonly Draft[], pace: number): void {
  if (pace === 1) return;
  for (const draft of drafts) {
    draft.startSeconds /= pace;
    draft.endSeconds /= pace;
    draft.timing = weaker(draft.timing, "scaled");
  }
}

/** The last one that takes time: a mark on a letter takes none. */
export function lastSounding(drafts: readonly Draft[]): Draft | undefined {
  return drafts.findLast((draft) => draft.endSeconds > draft.startSeconds) ?? drafts.at(-1);
}

/** The characters of a stretch: graphemes, so that none is cut. */
export function charactersOf(text: string): string[] {
  return text.length === 1 ? [text] : Array.from(GRAPHEMES.segment(text), ({ segment }) => segment);
}

/** How well the characters of a text are known that was timed as one: of several words, where each ends is a guess. */
export function dividedTiming(text: string): Timing {
  return /\S\s+\S/.test(text) ? "estimated" : "scaled";
}

/** Speech of this length says how fast the voice speaks; before, it is taken to speak as most do. */
export const MIN_PACE_SECONDS = 0.5;
/** How much text most voices say: a letter weighs 1, so as many characters of an alphabet, and about six of Chinese. */
export const TYPICAL_WEIGHT_A_SECOND = 15;

/** How long a text takes to say, against other texts: for want of anything better. */
export function speechWeight(text: string): number {
  let weight = 0;
  for (const character of text) weight += characterWeight(character);
  return weight;
}

/** Roughly the share of phonemes: a Chinese character is a syllable, a digit a word, a stop a pause. */
export function characterWeight(character: string): number {
  if (/\p{Ll}|\p{Lu}/u.test(character)) return 1;
  if (/\p{N}|\p{So}/u.test(character)) return 3;
  if (/[\p{scx=Han}\p{sc=Hangul}\p{scx=Hira}\p{scx=Kana}]/u.test(character) && /\p{L}/u.test(character))
    return 2.5;
  if (/\p{L}/u.test(character)) return 1;
  if (/\p{Sentence_Terminal}/u.test(character)) return 4;
  if (/[\p{Terminal_Punctuation}\p{Pd}…]/u.test(character)) return 2;
  return 0.5;
}
