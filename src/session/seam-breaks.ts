/** Silence that a text asks for itself at either end: `<break time="1s"/>` is part of what is said, not silence to be trimmed. */
import { TICKS_PER_MS } from "./playhead.ts";

const FIRST = /^[^\p{L}\p{N}<]*<break\b[^<>]*>/iu;
const LAST = /<break\b([^<>]*)>[^\p{L}\p{N}<]*$/iu;
const TIME = /\btime\s*=\s*["']\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*["']/iu;
/** A tag is no longer than that; only the ends of a text are looked at. */
const MAX_TAG_CHARS = 256;

export function beginsWithBreak(text: string): boolean {
  return FIRST.test(text.slice(0, MAX_TAG_CHARS));
}

/** The text as if it did not ask for a break at its end: its punctuation asks for a pause besides. */
export function withoutLastBreak(text: string): string {
  return text.replace(/(?:<break\b[^<>]*>\s*)+$/iu, "");
}

/** The length of the break that a text ends with, ticks: 0 where it tells none; null where it ends with no break. */
export function lastBreakTicks(text: string): number | null {
  const [, attributes] = LAST.exec(text.slice(-MAX_TAG_CHARS)) ?? [];
  if (attributes === undefined) return null;
  const [, count = "0", unit] = TIME.exec(attributes) ?? [];
  return Number(count) * (unit?.toLowerCase() === "s" ? 1000 : 1) * TICKS_PER_MS;
}
