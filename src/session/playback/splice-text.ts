/** What the ends of a segment's text say about its splices: a `<break time="1s"/>` there is no silence to be trimmed. */
import { TICKS_PER_MS } from "../../timing/ticks.ts";

const FIRST = /^[^\p{L}\p{N}<]*<break\b[^<>]*>/iu;
const LAST = /<break\b([^<>]*)>[^\p{L}\p{N}<]*$/iu;
const BREAK = /^<break\b[^<>]*>$/iu;
const TIME = /\btime\s*=\s*["']\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*["']/iu;
/** A tag is no longer than that; only the ends of a text are looked at. */
const MAX_TAG_CHARS = 256;

export function beginsWithBreak(text: string): boolean {
  return FIRST.test(text.slice(0, MAX_TAG_CHARS));
}

/**
 * Of a segment of which `spokenChars` are spoken: these and the punctuation behind, which asks for the pause that follows; a
 * break at the end comes besides.
 */
export function spliceTextOf(text: string, spokenChars: number): string {
  const end = spokenChars + text.slice(spokenChars).search(/[\p{L}\p{N}]|$/u);
  return withoutLastBreaks(text.slice(0, end));
}

function withoutLastBreaks(text: string): string {
  for (let end = text.length; ; ) {
    const tagEnd = text.slice(0, end).trimEnd().length;
    const tagStart = text.lastIndexOf("<", tagEnd - 1);
    if (tagStart < 0 || !BREAK.test(text.slice(tagStart, tagEnd))) return text.slice(0, end);
    end = tagStart;
  }
}

/** The length of the break that a text ends with, ticks: 0 where it gives none; null where it ends with no break. */
export function lastBreakTicks(text: string): number | null {
  const [, attributes] = LAST.exec(text.slice(-MAX_TAG_CHARS)) ?? [];
  if (attributes === undefined) return null;
  const [, count = "0", unit] = TIME.exec(attributes) ?? [];
  return Number(count) * (unit?.toLowerCase() === "s" ? 1000 : 1) * TICKS_PER_MS;
}
