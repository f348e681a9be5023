/**
 * What of a run without spaces is its word or words: quotes, brackets and closing punctuation go, and what belongs to
 * the word stays: "$1,234.56", "don't", "U.S.", "3%", "C++", "word(s)", addresses.
 */
import { keepsStop } from "./abbreviations.ts";
import { isSpoken, isWordKind, KIND, type Kind, kindOf, unitsOf } from "./characters.ts";
import { codePointBefore } from "./code-points.ts";
import type { WordSpan } from "./unspaced.ts";

/** Dashes and ellipses between words. A single hyphen or stop joins. */
const SEPARATOR = /[\u2014\u2015\u2e3a\u2e3b\u2026]+|-{2,}|\.{2,}/gu;
/** Without one of these there is no separator, without one of those no address: most runs have neither. */
const SEPARATOR_SIGN = /[\u2014\u2015\u2e3a\u2e3b\u2026]|--|\.\./;
const ADDRESS_SIGN = /[@/]|^www\./i;
/** What looks like an address keeps all that is inside it. */
const ADDRESS = /:\/\/|^www\.|^\S[^\s@]*@\S[^\s.]*\.\S/iu;
/** An address is known by how it begins; a bound keeps a megabyte without spaces linear. */
const ADDRESS_PROBE = 256;
/** Longest word that is compared with the abbreviations. */
const MAX_ABBREVIATION = 24;
const OPENERS = "([{";
const CLOSERS = ")]}";

/** The words of `run`, which has no white space in it; offsets into it. */
export function trimToWords(run: string): WordSpan[] {
  const words: WordSpan[] = [];
  let start = 0;
  // "said,": signs that make a difference stand before the last character.
  const hasSigns = endOfLetters(run) < run.length - 1;
  const isAddress = hasSigns && ADDRESS_SIGN.test(run) && ADDRESS.test(run.slice(0, ADDRESS_PROBE));
  if (hasSigns && !isAddress && SEPARATOR_SIGN.test(run)) {
    for (const match of run.matchAll(SEPARATOR)) {
      // A mark on the separator makes one grapheme with it.
      const end = match.index + match[0].length;
      if (isExtendAt(run, end)) continue;
      addWord(run, { start, end: match.index, isAddress }, words);
      start = end;
    }
  }
  addWord(run, { start, end: run.length, isAddress }, words);
  return words;
}

function endOfLetters(run: string): number {
  let end = 0;
  while (end < run.length && isWordKind(kindOf(run.charCodeAt(end)))) end += 1;
  return end;
}

/** A mark on a punctuation mark makes no word of it; a keycap does. */
const HAS_WORD = /[\p{L}\p{N}\p{S}]|\u20e3/u;
/** Whether there is something to say in `text` but signs of punctuation. */
export function hasWord(text: string): boolean {
  const first = kindOf(text.charCodeAt(0));
  return first === KIND.lower || first === KIND.upper || first === KIND.digit || HAS_WORD.test(text);
}

/** A sign behind a number, plus signs and # behind a letter, a picture sign behind either, the Hebrew geresh. */
const BELONGS_AT_END =
  /\p{N}\p{M}*[%\u2030\u2032\u2033\p{Sc}]$|[\p{L}\p{N}]\p{M}*(?:\+{1,2}|#|\p{So})$|[\u05d0-\u05ea]\u05f3$/u;

interface Piece extends WordSpan {
  readonly isAddress: boolean;
}

function addWord(run: string, piece: Piece, words: WordSpan[]): void {
  const start = trimStart(run, piece);
  const end = trimEnd(run, start, piece);
  if (start < end && hasWord(run.slice(start, end))) {
    words.push(balanceBrackets(run, { start, end }, piece));
  } else if (isSpokenSymbol(run.slice(piece.start, piece.end))) {
    words.push({ start: piece.start, end: piece.end });
  }
}

/** Symbols that a voice says where they stand alone: "Tom & Jerry", "2 + 2", a heart. */
function isSpokenSymbol(run: string): boolean {
  return /^(?:[&%@+=<>]|[\p{Sc}\p{So}\u00d7\u00f7\u2190-\u22ff])(?:[\p{M}\p{So}]|\u200d)*$/u.test(run);
}

function trimStart(run: string, piece: WordSpan): number {
  let at = piece.start;
  while (at < piece.end) {
    const codePoint = run.codePointAt(at) ?? 0;
    const next = at + unitsOf(codePoint);
    const kind = kindOf(codePoint);
    if (isSpoken(kind) || keepsAtStart(run, at, next) || isExtendAt(run, next)) return at;
    at = next;
  }
  return at;
}

/** "$5", "-5", "+49", "-$5", ".5", "#tag", "@name". */
function keepsAtStart(run: string, at: number, next: number): boolean {
  if (isBracketOrQuote(kindOf(run.charCodeAt(at)))) return false;
  const rest = run.slice(next, next + 3);
  const character = run.slice(at, next);
  if (/^[-+\u2212\u00b1]$/u.test(character)) return /^[.\p{Sc}]?\p{N}/u.test(rest);
  if (/^\p{Sc}$/u.test(character)) return /^[-+\u2212]?\.?\p{N}/u.test(rest);
  if (character === ".") return /^\p{N}/u.test(rest);
  return (character === "#" || character === "@") && /^[\p{L}\p{N}]/u.test(rest);
}

function trimEnd(run: string, start: number, { end: pieceEnd, isAddress }: Piece): number {
  let end = pieceEnd;
  while (end > start) {
    const codePoint = codePointBefore(run, end);
    const kind = kindOf(codePoint);
    if (isSpoken(kind) || kind === KIND.extend || keepsAtEnd(run, start, end, isAddress)) return end;
    end -= unitsOf(codePoint);
  }
  return end;
}

/** "3%", "5€", "20°", "6′", "C++", "C#", "18+", "TV™", "Dr.", "https://x.com/". */
function keepsAtEnd(run: string, start: number, end: number, isAddress: boolean): boolean {
  const last = run[end - 1];
  if (last === "/") return isAddress;
  if (last === ".") return end - start <= MAX_ABBREVIATION && keepsStop(run.slice(start, end - 1));
  const kind = kindOf(run.charCodeAt(end - 1));
  if (isBracketOrQuote(kind) || (kind >= KIND.stop && kind <= KIND.ellipsis)) return false;
  return BELONGS_AT_END.test(run.slice(Math.max(start, end - 6), end));
}

function isBracketOrQuote(kind: Kind): boolean {
  return kind >= KIND.open && kind <= KIND.quote;
}

/** Takes a bracket back whose other half is inside the word: "word(s)", "(s)he", "Foo_(bar)". */
function balanceBrackets(run: string, word: WordSpan, piece: WordSpan): WordSpan {
  const closer = word.end < piece.end ? run.charAt(word.end) : "";
  const opener = otherHalf(closer, CLOSERS, OPENERS);
  if (opener !== "" && hasMore(run, word, opener, closer)) {
    if (!isExtendAt(run, word.end + 1)) return { start: word.start, end: word.end + 1 };
  }
  const first = word.start > piece.start ? run.charAt(word.start - 1) : "";
  const its = otherHalf(first, OPENERS, CLOSERS);
  if (its !== "" && hasMore(run, word, its, first)) return { start: word.start - 1, end: word.end };
  return word;
}

/** The bracket of `others` that stands where `bracket` stands in `these`; "" = none. */
function otherHalf(bracket: string, these: string, others: string): string {
  return bracket === "" ? "" : others.charAt(these.indexOf(bracket));
}

/** Whether `one` stands more often in the word than `other`. */
function hasMore(run: string, word: WordSpan, one: string, other: string): boolean {
  let more = 0;
  for (let at = word.start; at < word.end; at += 1) {
    if (run[at] === one) more += 1;
    else if (run[at] === other) more -= 1;
  }
  return more > 0;
}

function isExtendAt(text: string, at: number): boolean {
  const codePoint = text.codePointAt(at);
  return codePoint !== undefined && kindOf(codePoint) === KIND.extend;
}
