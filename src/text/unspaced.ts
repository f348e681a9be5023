/**
 * Words and graphemes where white space does not show them: dictionary segmentation of Chinese, Japanese, Thai, Lao,
 * Khmer and Burmese by Intl.Segmenter (ICU). Results depend on the text given only, never on the machine's locale.
 */
import { KIND, kindOf } from "./characters.ts";

const WORDS = new Intl.Segmenter("en", { granularity: "word" });
const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });

/** UTF-16 offsets, `end` exclusive. */
export interface WordSpan {
  readonly start: number;
  readonly end: number;
}

/** The words in a run of such a script; punctuation is left out. Offsets into `text`. */
export function unspacedWords(text: string): WordSpan[] {
  const words: WordSpan[] = [];
  for (const { segment, index, isWordLike } of WORDS.segment(text)) {
    if (isWordLike) words.push({ start: index, end: index + segment.length });
  }
  return words;
}

/**
 * Where the last word starts that begins at or before `max` with a letter of such a script before and behind it; -1 =
 * nowhere. The dictionaries look some words ahead: text behind `max` makes the result the same as in the whole text.
 */
export function lastUnspacedWordStart(text: string, max: number): number {
  const segments = WORDS.segment(text);
  let at = Math.min(Math.floor(max), text.length - 1);
  while (at > 0) {
    const start = segments.containing(at)?.index ?? 0;
    if (start > 0 && isBetweenUnspaced(text, start)) return start;
    at = start - 1;
  }
  return -1;
}

/** Where the last grapheme starts; 0 where the text is one grapheme. */
export function lastGraphemeStart(text: string): number {
  return GRAPHEMES.segment(text).containing(text.length - 1)?.index ?? 0;
}

function isBetweenUnspaced(text: string, index: number): boolean {
  const next = text.codePointAt(index);
  const before = text.codePointAt(index - 1);
  if (next === undefined || before === undefined) return false;
  return isUnspaced(next) && (isUnspaced(before) || kindOf(before) === KIND.extend);
}

function isUnspaced(codePoint: number): boolean {
  return kindOf(codePoint) === KIND.unspaced;
}
