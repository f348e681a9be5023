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
  const segments = WORDS.segment(text);
  for (let at = 0; at < text.length; ) {
    const found = segments.containing(probeAt(text, at));
    if (found === undefined) break;
    const end = found.index + found.segment.length;
    if (found.isWordLike) {
      if (found.index > at) words.push({ start: at, end: found.index });
      words.push({ start: found.index, end });
    }
    at = end;
  }
  return words;
}

/**
 * Where to ask for the word at `at`. Each answer costs more than the dictionary's look-up. Of two ideographs the second
 * one's word shows whether the first is a word of its own, and one answer gives both.
 */
function probeAt(text: string, at: number): number {
  const hasTwo = isIdeograph(text.charCodeAt(at)) && isIdeograph(text.charCodeAt(at + 1));
  return hasTwo ? at + 1 : at;
}

/** CJK Unified Ideographs: two in a row are looked up in the dictionary together, so both are in words or neither. */
function isIdeograph(unit: number): boolean {
  return unit >= 0x4e00 && unit <= 0x9fff;
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
