/**
 * Cuts a text into pieces that the engine speaks one at a time. Pieces end where a sentence, a long clause or a break
 * ends, and are bounded, so that requests take turns on one engine and an interrupted one stops soon. The pieces'
 * concatenation is the text.
 */
import { NO_SENTENCE_END } from "../../text/english-words.ts";
import { endsPiece, type Markup } from "./markup.ts";

export interface Piece {
  readonly text: string;
  /** Markup inside the piece, indices relative to it. */
  readonly markup: readonly Markup[];
  /** Silence after the piece where another follows, at normal speed, ms. */
  readonly pauseMs: number;
  readonly endsParagraph: boolean;
}

/** The engine's own pauses between clauses and sentences, measured. */
const SENTENCE_PAUSE_MS = 300;
const CLAUSE_PAUSE_MS = 150;
const PARAGRAPH_PAUSE_MS = 500;
/** Weight (about a Latin letter's worth of speech each) at which a clause is long enough to stand alone. */
const MIN_CLAUSE_WEIGHT = 30;
/** A piece never weighs more: about ten seconds of speech. */
const MAX_WEIGHT = 140;

const SPACE = /\s/u;
const EMPTY_LINE = /\n\s*\n/u;
const SENTENCE_END = /[.!?…]/u;
const CLAUSE_END = /[,;:—–]/u;
const WIDE_SENTENCE_END = /[。！？｡।॥؟۔]/u;
const WIDE_CLAUSE_END = /[，、；：،؛]/u;
const CLOSER = /["'”’»)\]」』）】]/u;

/** How much speech a code point stands for, in Latin letters. */
function weightOf(codePoint: number): number {
  if (codePoint < 0x30) return 1;
  if (codePoint <= 0x39) return 3;
  if (codePoint < 0x1100) return 1;
  if (codePoint >= 0x2600 && codePoint <= 0x27bf) return 6;
  if (codePoint >= 0x1f000) return 6;
  if (codePoint >= 0x2e80 && codePoint <= 0xd7a3) return 3;
  return 1;
}

/** Weight of what is said in the markup's place. */
function saidWeight({ said }: Markup): number {
  if (said === undefined) return 0;
  let weight = 0;
  for (const char of "text" in said ? said.text : said.mnemonics)
    weight += weightOf(char.codePointAt(0) ?? 0);
  return weight;
}

/** Lazily, so that the first piece of a long text is spoken at once; time linear in the text. */
export function* cutPieces(text: string, markup: readonly Markup[]): Generator<Piece> {
  let start = 0;
  let markupIndex = 0;
  while (start < text.length) {
    const end = pieceEnd(text, start, markup, markupIndex);
    const inside: Markup[] = [];
    let hasBreak = false;
    for (
      let next = markup[markupIndex];
      next !== undefined && next.start < end.at;
      next = markup[markupIndex]
    ) {
      // The spaces behind a tag that ends the piece pass while it is acted on.
      inside.push({
        ...next,
        start: next.start - start,
        end: (endsPiece(next) ? end.at : next.end) - start,
      });
      hasBreak ||= next.pauseMs > 0;
      markupIndex++;
    }
    yield {
      text: text.slice(start, end.at),
      markup: inside,
      pauseMs: hasBreak ? 0 : end.pauseMs,
      endsParagraph: end.pauseMs === PARAGRAPH_PAUSE_MS,
    };
    start = end.at;
  }
}

interface PieceEnd {
  readonly at: number;
  readonly pauseMs: number;
}

function pieceEnd(text: string, start: number, markup: readonly Markup[], firstMarkup: number): PieceEnd {
  let markupIndex = firstMarkup;
  let weight = 0;
  let lastSpaceEnd = -1;
  for (let at = start; at < text.length; ) {
    const tag = markup[markupIndex];
    if (tag !== undefined && at === tag.start) {
      at = tag.end;
      markupIndex++;
      if (endsPiece(tag)) {
        const end = skipSpaces(text, at);
        return { at: end, pauseMs: EMPTY_LINE.test(text.slice(at, end)) ? PARAGRAPH_PAUSE_MS : 0 };
      }
      weight += saidWeight(tag);
      if (weight >= MAX_WEIGHT) return { at: skipSpaces(text, at), pauseMs: 0 };
      continue;
    }
    const codePoint = text.codePointAt(at) ?? 0;
    const next = at + (codePoint > 0xffff ? 2 : 1);
    weight += weightOf(codePoint);
    const char = text.slice(at, next);
    const limit = tag?.start ?? text.length;
    const pauseMs = boundaryPauseMs(text, { start, at, next, limit }, weight);
    if (pauseMs > 0) {
      const end = skipTail(text, next, limit);
      return { at: end, pauseMs: EMPTY_LINE.test(text.slice(next, end)) ? PARAGRAPH_PAUSE_MS : pauseMs };
    }
    if (SPACE.test(char)) lastSpaceEnd = next;
    if (weight >= MAX_WEIGHT)
      return { at: forcedEnd(text, { start, at: next, lastSpaceEnd, limit }), pauseMs: 0 };
    at = next;
  }
  return { at: text.length, pauseMs: 0 };
}

/** The pause that a boundary after `text[at]` makes; 0 where there is none. */
function boundaryPauseMs(
  text: string,
  place: { readonly start: number; readonly at: number; readonly next: number; readonly limit: number },
  weight: number,
): number {
  const char = text.slice(place.at, place.next);
  if (char === "\n" && text[place.next] === "\n") return PARAGRAPH_PAUSE_MS;
  if (WIDE_SENTENCE_END.test(char)) return SENTENCE_PAUSE_MS;
  if (WIDE_CLAUSE_END.test(char)) return weight >= MIN_CLAUSE_WEIGHT ? CLAUSE_PAUSE_MS : 0;
  let after = place.next;
  while (after < text.length && CLOSER.test(text[after] ?? "")) after++;
  if (after < text.length && !SPACE.test(text[after] ?? "")) return 0;
  if (SENTENCE_END.test(char)) {
    return char === "." && !endsSentence(text, place.start, place.at) ? 0 : SENTENCE_PAUSE_MS;
  }
  if (!CLAUSE_END.test(char) || weight < MIN_CLAUSE_WEIGHT) return 0;
  // "March 5, 2024" is one date.
  const isInDate =
    /\d$/.test(text.slice(place.at - 1, place.at)) && /^\s+\d/.test(text.slice(place.next, place.next + 4));
  return isInDate ? 0 : CLAUSE_PAUSE_MS;
}

/** Whether the point at `at` ends a sentence and not an abbreviation or an initial. */
function endsSentence(text: string, start: number, at: number): boolean {
  const word = /(?<![^\s("'“‘])[^\s("'“‘]*$/u.exec(text.slice(Math.max(start, at - 20), at))?.[0] ?? "";
  if (/^\p{Lu}$/u.test(word) || /^(?:\p{Lu}\.)+\p{Lu}$/u.test(word)) return false;
  if (NO_SENTENCE_END.has(word.toLowerCase())) return false;
  return !/^\s+\p{Ll}/u.test(text.slice(at + 1, at + 8));
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (at < text.length && SPACE.test(text[at] ?? "")) at++;
  return at;
}

/** Repeated marks ("?!", "..."), closing quotes and the spaces after them belong to the piece that ends. */
function skipTail(text: string, from: number, limit: number): number {
  let at = from;
  while (at < limit && (SENTENCE_END.test(text[at] ?? "") || CLOSER.test(text[at] ?? ""))) at++;
  while (at < limit && SPACE.test(text[at] ?? "")) at++;
  return at;
}

/** Where to cut a text without any boundary: after the last space, else between words of the script, else between graphemes. */
function forcedEnd(
  text: string,
  place: {
    readonly start: number;
    readonly at: number;
    readonly lastSpaceEnd: number;
    readonly limit: number;
  },
): number {
  if (place.lastSpaceEnd > place.start) return place.lastSpaceEnd;
  const window = text.slice(place.start, Math.min(place.limit, place.at + 32));
  for (const granularity of ["word", "grapheme"] as const) {
    const inside = new Intl.Segmenter(undefined, { granularity }).segment(window);
    const cut = inside.containing(place.at - place.start - 1)?.index ?? 0;
    if (cut > 0) return place.start + cut;
  }
  return place.at;
}
