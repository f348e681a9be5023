/** Word edges and case, code point by code point. */
import { KIND, kindOf, unitsOf } from "../characters.ts";

/**
 * Whether a word may start with `first` behind `before`: behind no letter, digit or mark. Scripts without spaces show
 * no edges, so next to their letters any place may be one.
 */
export function mayStartWord(before: number, first: number): boolean {
  return !isWord(before) || isUnspaced(before) || isUnspaced(first);
}

/** The same for `last` before `after`; a mark always belongs to what is before it. */
export function mayEndWord(last: number, after: number): boolean {
  if (!isWord(after)) return true;
  return kindOf(after) !== KIND.extend && (isUnspaced(last) || isUnspaced(after));
}

function isUnspaced(codePoint: number): boolean {
  return codePoint >= 128 && (kindOf(codePoint) === KIND.unspaced || isUnspacedMark(codePoint));
}

const UNSPACED_MARK = /(?=\p{M})[\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Mymr}\p{scx=Hira}\p{scx=Kana}]/u;
function isUnspacedMark(codePoint: number): boolean {
  return kindOf(codePoint) === KIND.extend && UNSPACED_MARK.test(String.fromCodePoint(codePoint));
}

const WORD = /[\p{L}\p{N}\p{M}]/u;
/** Letters, digits and marks. */
function isWord(codePoint: number): boolean {
  if (codePoint < 128) {
    return (
      (codePoint >= 0x61 && codePoint <= 0x7a) ||
      (codePoint >= 0x41 && codePoint <= 0x5a) ||
      (codePoint >= 0x30 && codePoint <= 0x39)
    );
  }
  return WORD.test(String.fromCodePoint(codePoint));
}

/** Simple case folding (Unicode CaseFolding.txt, status C and S): one code point to one. */
export function foldCase(codePoint: number): number {
  if (codePoint < 128) return codePoint >= 0x41 && codePoint <= 0x5a ? codePoint + 0x20 : codePoint;
  if (isUncased(codePoint)) return codePoint;
  // Dotless i and dotted I fold to themselves: they are Turkish letters of their own.
  if (codePoint === 0x131 || codePoint === 0x130) return codePoint;
  const character = String.fromCodePoint(codePoint);
  const upper = single(character.toUpperCase()) ?? character;
  return (single(upper.toLowerCase()) ?? upper).codePointAt(0) ?? codePoint;
}

/** Hebrew to Burmese; Chinese, Japanese, Yi; Hangul. */
function isUncased(codePoint: number): boolean {
  if (codePoint < 0x2e80) return codePoint >= 0x590 && codePoint < 0x10a0;
  return codePoint < 0xa640 || (codePoint >= 0xac00 && codePoint < 0xfb00);
}

function single(text: string): string | null {
  const codePoint = text.codePointAt(0) ?? 0;
  return text.length === unitsOf(codePoint) ? text : null;
}

// No colon and no slash: "https:" and "AC/" are halves.
const WHOLE_END = /[\s\p{Pe}\p{Pf}\p{Sentence_Terminal}"',;\u2026\u060c\u061b\u3001\uff0c\uff1b]$/u;
/** Whether what ends `text` may be the end of a word: white space, a mark or a bracket stands there. */
export function readsAsWhole(text: string): boolean {
  return WHOLE_END.test(text.slice(-1));
}
