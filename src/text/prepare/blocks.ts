/** Finds what stands at the start of a line: headings, list markers, quotes, rules, tables, fences. */
import { atEnd, NO_MATCH, runLength, skip, type View, WAIT } from "./match.ts";

/** A line of markers only is looked at so far. */
const MAX_RULE = 256;
const MAX_ROW = 1024;
const MAX_INFO = 256;
const MAX_INDENT = 64;

const INDENT = /[ \t]{0,64}/y;
const BLANKS = /[ \t\r]*/y;

export type Block =
  /** Drop up to `end`; the line goes on as a line's start (`quote`) or as text. */
  | { readonly kind: "quote" | "heading" | "item" | "rule" | "row"; readonly end: number }
  /** A number that stays up to `end`, and an item behind it. */
  | { readonly kind: "ordered"; readonly end: number }
  | { readonly kind: "fence"; readonly end: number; readonly fence: Fence }
  | { readonly kind: "none" | "blank" | "wait" };

export interface Fence {
  readonly character: string;
  readonly length: number;
}

const NONE: Block = { kind: "none" };
const WAITING: Block = { kind: "wait" };

/** What starts at `at`, the start of a line. */
export function blockAt(view: View, at: number, wantsMarkdown: boolean): Block {
  const start = skip(INDENT, view.text, at);
  const character = view.text[start];
  if (character === undefined) return view.isFinal || start - at >= MAX_INDENT ? NONE : WAITING;
  if (character === "`" || character === "~") return fenceAt(view, start);
  return wantsMarkdown ? markdownBlockAt(view, start, character) : NONE;
}

function markdownBlockAt(view: View, at: number, character: string): Block {
  switch (character) {
    case "\n":
    case "\r":
      return { kind: "blank" };
    case ">":
      return quoteAt(view, at);
    case "#":
      return headingAt(view, at);
    case "|":
      return first(ruleAt(view, at), () => rowAt(view, at));
    case ":":
    case "=":
    case "_":
      return ruleAt(view, at);
    case "-":
    case "*":
    case "+":
      return first(character === "+" ? NONE : ruleAt(view, at), () => itemAt(view, at));
    default:
      return character >= "0" && character <= "9" ? orderedAt(view, at) : NONE;
  }
}

function first(block: Block, next: () => Block): Block {
  return block.kind === "none" ? next() : block;
}

const QUOTE = />[ \t]?/y;
function quoteAt(view: View, at: number): Block {
  if (at + 1 >= view.text.length && !view.isFinal) return WAITING;
  return { kind: "quote", end: skip(QUOTE, view.text, at) };
}

function headingAt(view: View, at: number): Block {
  const end = at + runLength(view.text, at, "#", 7);
  if (end - at > 6) return NONE;
  if (end >= view.text.length) return view.isFinal ? NONE : WAITING;
  const behind = skip(INDENT, view.text, end);
  if (mayGoOn(view, behind, end + MAX_INDENT)) return WAITING;
  const isHeading = behind > end || view.text[end] === "\n" || view.text[end] === "\r";
  return isHeading ? { kind: "heading", end: behind } : NONE;
}

/** Whether more of the blanks may come that end at `behind` and are read to `max` at most. */
function mayGoOn(view: View, behind: number, max: number): boolean {
  return view.text[behind] === undefined && !view.isFinal && behind < max;
}

const MARKERS = /[-|: \t\r]*/y;
/** Horizontal rules, underlines of headings, the row under a table's heads: up to the line's end. */
function ruleAt(view: View, at: number): Block {
  const { text } = view;
  const sample = text.slice(at, at + MAX_RULE);
  const character = sample[0] ?? "";
  const isTableLike = character === "|" || character === ":" || character === "-";
  const pattern = isTableLike ? MARKERS : character === "*" ? STARS : character === "_" ? BARS : EQUALS;
  const end = skip(pattern, sample, 0);
  if (end >= sample.length && sample.length < MAX_RULE && !view.isFinal) return WAITING;
  if (end < sample.length && sample[end] !== "\n") return NONE;
  const line = sample.slice(0, end);
  if (line.includes("|") || line.includes(":")) return isSeparator(line) ? rowEnd(text, at + end) : NONE;
  return count(line, character) >= 3 ? { kind: "rule", end: at + end } : NONE;
}
const STARS = /[* \t\r]*/y;
const BARS = /[_ \t\r]*/y;
const EQUALS = /[= \t\r]*/y;

function isSeparator(line: string): boolean {
  return line.includes("-") && line.includes("|");
}

/** The row under the heads goes with its line's end, so that the rows stay together. */
function rowEnd(text: string, at: number): Block {
  return { kind: "rule", end: text[at] === "\n" ? at + 1 : at };
}

function count(line: string, character: string): number {
  return line.split(character).length - 1;
}

const PIPE = /\|[ \t|]*/y;
/** A row starts and ends with a pipe: "|x| is absolute" is none. */
function rowAt(view: View, at: number): Block {
  const window = view.text.slice(at, at + MAX_ROW);
  const newline = window.indexOf("\n");
  if (newline < 0 && window.length < MAX_ROW && !view.isFinal) return WAITING;
  if (newline < 0 && window.length >= MAX_ROW) return NONE;
  const line = window.slice(0, newline < 0 ? window.length : newline).trimEnd();
  if (line.length < 2 || !line.endsWith("|")) return NONE;
  return { kind: "row", end: skip(PIPE, view.text, at) };
}

const TASK = /\[[ xX]\][ \t]{1,64}/y;
const MAX_TASK = 3 + MAX_INDENT;
function itemAt(view: View, at: number): Block {
  const { text } = view;
  const end = skip(INDENT, text, at + 1);
  const next = text[end];
  if (next === undefined) return view.isFinal || end > at + MAX_INDENT ? NONE : WAITING;
  if (end === at + 1 && next !== "\n" && next !== "\r") return NONE;
  if (next === "[" && text.length < end + 4 && !view.isFinal) return WAITING;
  const behind = skip(TASK, text, end);
  const isOpen = behind > end && mayGoOn(view, behind, end + MAX_TASK);
  return isOpen ? WAITING : { kind: "item", end: behind };
}

const NUMBER = /[0-9]{1,9}/y;
function orderedAt(view: View, at: number): Block {
  const { text } = view;
  const end = skip(NUMBER, text, at);
  const [mark, space] = [text[end], text[end + 1]];
  if (mark !== undefined && mark !== "." && mark !== ")") return NONE;
  if (mark === undefined || space === undefined) return view.isFinal ? NONE : WAITING;
  return space === " " || space === "\t" ? { kind: "ordered", end: end + 1 } : NONE;
}

function fenceAt(view: View, at: number): Block {
  const { text } = view;
  const character = text[at] ?? "`";
  const length = runLength(text, at, character, MAX_RULE);
  const isOpen = text[at + length] === undefined && !view.isFinal && length < MAX_RULE;
  if (length < 3) return isOpen ? WAITING : NONE;
  const info = text.slice(at + length, at + length + MAX_INFO);
  const newline = info.indexOf("\n");
  // "```x```" is code within a line.
  if (character === "`" && (newline < 0 ? info : info.slice(0, newline)).includes("`")) return NONE;
  if (newline < 0 && info.length >= MAX_INFO) return NONE;
  if (newline < 0 && !view.isFinal) return WAITING;
  const end = newline < 0 ? at + length + info.length : at + length + newline + 1;
  return { kind: "fence", end, fence: { character, length } };
}

const FENCE_INDENT = /[ \t>]{0,64}/y;
/** End of the line at `at` if it closes the fence, its line's end included. */
export function closingFenceEnd(view: View, at: number, fence: Fence): number {
  const { text } = view;
  const start = skip(FENCE_INDENT, text, at);
  const length = runLength(text, start, fence.character, MAX_RULE);
  if (text[start + length] === undefined && !view.isFinal) {
    return start - at < MAX_INDENT && length < MAX_RULE ? atEnd(view) : NO_MATCH;
  }
  if (length < fence.length) return NO_MATCH;
  const window = text.slice(start + length, start + length + MAX_INDENT);
  const end = skip(BLANKS, window, 0);
  if (end >= window.length && window.length < MAX_INDENT) {
    return view.isFinal ? start + length + end : WAIT;
  }
  return window[end] === "\n" ? start + length + end + 1 : NO_MATCH;
}
