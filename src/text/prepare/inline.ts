/** Finds what stands within a line: tags, comments, links, code. None looks further than 2048 units ahead. */
import { MAX_TAG, tagLength } from "../markup.ts";
import { atEnd, NO_MATCH, runLength, type View, WAIT } from "./match.ts";

export const MAX_COMMENT = 2048;
const MAX_LINK_TEXT = 512;
const MAX_LINK_TARGET = 1024;
/** Brackets within a link's text: an image that is a link has two. */
const MAX_LINK_DEPTH = 3;
/** Parentheses within a link's target. */
const MAX_TARGET_DEPTH = 8;
const MAX_CODE = 512;
/** What is emphasized within a word: some words at most. */
const MAX_INSIDE = 64;
const MAX_RUN = 64;

/** End of the tag at `at`, where a `<` or `[` stands: `<break time="1s"/>`, `[laughs]`. */
export function tagEnd(view: View, at: number): number {
  const length = tagLength(view.text.slice(at, at + MAX_TAG + 1));
  if (length > 0) return at + length;
  return length === 0 ? NO_MATCH : atEnd(view);
}

/** End of `<!-- ... -->`. `searchedTo`: no comment ends before. */
export function commentEnd(view: View, at: number, searchedTo: number): number {
  const head = view.text.slice(at, at + 4);
  if (head !== "<!--") return "<!--".startsWith(head) ? atEnd(view) : NO_MATCH;
  const window = view.text.slice(at, at + MAX_COMMENT);
  const close = window.indexOf("-->", Math.max(searchedTo - at - 2, 4));
  if (close >= 0) return at + close + 3;
  return window.length < MAX_COMMENT ? atEnd(view) : NO_MATCH;
}

export interface Link {
  /** Where the text's closing bracket stands. */
  readonly textEnd: number;
  readonly end: number;
}

/** The link whose `[` stands at `at`: `[text](target)`, all on one line. */
export function linkAt(view: View, at: number): Link | typeof NO_MATCH | typeof WAIT {
  const textEnd = closingBracket(view, at);
  if (textEnd < 0) return textEnd === WAIT ? WAIT : NO_MATCH;
  const next = view.text[textEnd + 1];
  if (next === undefined) return atEnd(view);
  if (next !== "(") return NO_MATCH;
  const end = closingParenthesis(view, textEnd + 1);
  return end < 0 ? (end === WAIT ? WAIT : NO_MATCH) : { textEnd, end: end + 1 };
}

function closingBracket(view: View, at: number): number {
  const { text } = view;
  let depth = 0;
  for (let i = at; i < at + MAX_LINK_TEXT; i++) {
    const character = text[i];
    if (character === undefined) return atEnd(view);
    if (character === "\n") return NO_MATCH;
    if (character === "\\") i++;
    else if (character === "[" && ++depth > MAX_LINK_DEPTH) return NO_MATCH;
    else if (character === "]" && --depth === 0) return i;
  }
  return NO_MATCH;
}

function closingParenthesis(view: View, at: number): number {
  const { text } = view;
  let depth = 0;
  for (let i = at; i < at + MAX_LINK_TARGET; i++) {
    const character = text[i];
    if (character === undefined) return atEnd(view);
    if (character === "\n") return NO_MATCH;
    if (character === "\\") i++;
    else if (character === "(" && ++depth > MAX_TARGET_DEPTH) return NO_MATCH;
    else if (character === ")" && --depth === 0) return i;
  }
  return NO_MATCH;
}

/**
 * Where the run starts that closes the one before `at`: as long, behind no white space, on the same line. Code is passed
 * over, since its marks are text; ticks that close nothing are text themselves.
 */
export function closingRun(
  view: View,
  at: number,
  run: { readonly character: string; readonly length: number },
): number {
  const { text } = view;
  for (let i = at; i < at + MAX_INSIDE; i++) {
    const character = text[i];
    if (character === undefined) return atEnd(view);
    if (character === "\n") return NO_MATCH;
    if (character === "\\") i++;
    if (character === "`") {
      const behind = behindTicks(view, i);
      if (behind === WAIT) return WAIT;
      i = behind - 1;
    }
    if (character !== run.character) continue;
    const length = runLength(text, i, character, MAX_RUN);
    if (text[i + length] === undefined && !view.isFinal) return WAIT;
    if (length === run.length && !/\s/u.test(text[i - 1] ?? "")) return i;
    i += length - 1;
  }
  return NO_MATCH;
}

/** End of the code that begins at `at`, or of the ticks there where they begin none. */
function behindTicks(view: View, at: number): number {
  const span = codeSpanAt(view, at);
  if (span === WAIT) return WAIT;
  return typeof span === "number" ? at + runLength(view.text, at, "`", MAX_RUN) : span.close + span.ticks;
}

export interface CodeSpan {
  /** Length of the run of ticks on either side. */
  readonly ticks: number;
  /** Where the closing run starts. */
  readonly close: number;
}

/** The code between runs of as many ticks, on one line. */
export function codeSpanAt(view: View, at: number): CodeSpan | typeof NO_MATCH | typeof WAIT {
  const { text } = view;
  const ticks = runLength(text, at, "`", MAX_RUN);
  for (let i = at + ticks; i < at + MAX_CODE; i++) {
    const character = text[i];
    if (character === undefined) return atEnd(view);
    if (character === "\n") return NO_MATCH;
    if (character !== "`") continue;
    const length = runLength(text, i, "`", MAX_RUN);
    if (text[i + length] === undefined && !view.isFinal) return WAIT;
    if (length === ticks) return { ticks, close: i };
    i += length - 1;
  }
  return NO_MATCH;
}
