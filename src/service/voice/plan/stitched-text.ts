/**
 * A text between the texts said before and after it by other requests. A clause that goes on over the border is spoken
 * whole, so that its melody, pauses and lengths are those of one request; the neighbours' samples are cut off again
 * (stitched-audio.ts).
 */
import { UNSPACED } from "../engine/languages.ts";
import { findMarkup, type Markup } from "./markup.ts";

/** What other requests say before and after a text; empty where nothing is known. */
export interface Neighbours {
  readonly before: string;
  readonly after: string;
}

/** A part of a text, and the markup in it, whose indices are relative to it. */
export interface TextPart {
  readonly text: string;
  readonly markup: readonly Markup[];
}

export interface StitchedText {
  readonly text: string;
  readonly markup: readonly Markup[];
  /** Where the text itself begins and ends in `text`, UTF-16 indices. */
  readonly start: number;
  readonly end: number;
}

/** As much of a neighbour as its longest clause, and of the one before as the sentences that its melody falls over. */
const MAX_BEFORE = 500;
const MAX_AFTER = 200;
/** The engine gives no time for a word inside Thai, but for one behind it. */
const NO_SPACE = "\u200b";
/** ... and one time for some two words ("of the"), but two across it, and the same sound. */
const NO_BREAK_SPACE = "\u00a0";

/** `markup` is the text's own; that of its neighbours is found here. */
export function stitchText(
  { text, markup: ownMarkup }: TextPart,
  options: { readonly neighbours: Neighbours; readonly audioTags: boolean },
): StitchedText {
  const before = ending(options.neighbours.before);
  const after = beginning(options.neighbours.after);
  const lead = before + joiner(before, text);
  const own = lead + text + joiner(text, after);
  return {
    text: own + after,
    // Each by itself: a tag does not reach from one request into another.
    markup: [
      ...findMarkup(before, options),
      ...moved(ownMarkup, lead.length),
      ...moved(findMarkup(after, options), own.length),
    ],
    start: lead.length,
    end: lead.length + text.length,
  };
}

function moved(markup: readonly Markup[], by: number): Markup[] {
  return markup.map((tag) => ({ ...tag, start: tag.start + by, end: tag.end + by }));
}

function joiner(before: string, after: string): string {
  if (/(?:^|\s)$/u.test(before) || /^(?:\s|$)/u.test(after)) return "";
  return UNSPACED.test(before.slice(-1)) && UNSPACED.test(after.slice(0, 1)) ? NO_SPACE : " ";
}

/** What the engine's texts of two neighbours need between them, so that it gives a time for the first word of the second. */
export function engineJoiner(before: string, after: string): string {
  // Beside a mark there is a time, and this space would hide a comma or a symbol from the engine.
  return /[\p{L}\p{M}\p{N}]\s*$/u.test(before) && /^\s*[\p{L}\p{N}]/u.test(after) ? NO_BREAK_SPACE : "";
}

/** From the start of a word, where one is near. */
function ending(text: string): string {
  if (text.length <= MAX_BEFORE) return text;
  const cut = text.slice(-MAX_BEFORE);
  const space = cut.search(/\s/u);
  return space < 0 || space > MAX_BEFORE / 2 ? cut.replace(/^[\udc00-\udfff]/, "") : cut.slice(space + 1);
}

function beginning(text: string): string {
  if (text.length <= MAX_AFTER) return text;
  const cut = text.slice(0, MAX_AFTER);
  const space = cut.search(/\s\S*$/u);
  return space < MAX_AFTER / 2 ? cut.replace(/[\ud800-\udbff]$/, "") : cut.slice(0, space);
}

/** `piece` begins at `from` of the stitched text: which part of it is whose. */
export function splitPiece(
  piece: TextPart,
  from: number,
  whole: StitchedText,
): { readonly before: TextPart; readonly own: TextPart; readonly after: TextPart } {
  const start = clamp(whole.start - from, piece.text.length);
  const end = clamp(whole.end - from, piece.text.length);
  return {
    before: partOf(piece, 0, start),
    own: partOf(piece, start, end),
    after: partOf(piece, end, piece.text.length),
  };
}

function partOf(piece: TextPart, start: number, end: number): TextPart {
  const markup = piece.markup
    .filter((tag) => tag.start >= start && tag.start < end)
    .map((tag) => ({ ...tag, start: tag.start - start, end: Math.min(tag.end, end) - start }));
  return { text: piece.text.slice(start, end), markup };
}

function clamp(index: number, length: number): number {
  return Math.min(Math.max(index, 0), length);
}
