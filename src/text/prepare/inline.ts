/** Finds what stands within a line: tags, comments, links, code. None looks further than 2048 units ahead. */
import { MAX_TAG, tagLength } from "../markup.ts";
import { atEnd, NO_MATCH, runLength, type View, WAIT } from "./match.ts";

export const MAX_COMMENT = 2048;
/** An image that is a link has two brackets within one another. */
const LINK_TEXT: Pair = { open: "[", close: "]", maxLength: 512, maxDepth: 3 };
const LINK_TARGET: Pair = { open: "(", close: ")", maxLength: 1024, maxDepth: 8 };
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

interface Link {
  /** Where the text's closing bracket stands. */
  readonly textEnd: number;
  readonly end: number;
}

/** The link whose `[` stands at `at`: `[text](target)`, all on one line. */
export function linkAt(view: View, at: number): Link | typeof NO_MATCH | typeof WAIT {
  const textEnd = closingOf(view, at, LINK_TEXT);
  if (textEnd < 0) return textEnd === WAIT ? WAIT : NO_MATCH;
  const next = view.text[textEnd + 1];
  if (next === undefined) return atEnd(view);
  if (next !== "(") return NO_MATCH;
  const end = closingOf(view, textEnd + 1, LINK_TARGET);
  return end < 0 ? (end === WAIT ? WAIT : NO_MATCH) : { textEnd, end: end + 1 };
}

interface Pair {
  readonly open: string;
  readonly close: string;
  /** UTF-16 units that are looked at. */
  readonly maxLength: number;
  /** Pairs within one another. */
  readonly maxDepth: number;
}

/** Where what opens at `at` is closed, on the same line. */
function closingOf(view: View, at: number, { open, close, maxLength, maxDepth }: Pair): number {
  const { text } = view;
  let depth = 0;
  for (let i = at; i < at + maxLength; i++) {
    const character = text[i];
    if (character === undefined) return atEnd(view);
    if (character === "\n") return NO_MATCH;
    if (character === "\\") i++;
    else if (character === open && ++depth > maxDepth) return NO_MATCH;
    else if (character === close && --depth === 0) return i;
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

interface CodeSpan {
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
