/** What the matchers of this folder answer: where a match ends, or one of these. */

export const NO_MATCH = -1;
/** More text may make it a match, or a longer one. */
export const WAIT = -2;

/** Some text, and whether nothing follows it: then no matcher answers `WAIT`. */
export interface View {
  readonly text: string;
  readonly isFinal: boolean;
}

/** The answer where the text ends within something that may still match. */
export function atEnd(view: View): typeof NO_MATCH | typeof WAIT {
  return view.isFinal ? NO_MATCH : WAIT;
}

/** Matches the sticky `pattern` at `at`; returns the end, or `at` where it does not match. */
export function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/** Length of the run of one character, at most `max`. */
export function runLength(text: string, at: number, character: string, max: number): number {
  let length = 0;
  while (length < max && text[at + length] === character) length++;
  return length;
}

/**
 * `more`: text follows; `stall`: it may, and only markup is waited for; `pause`: it may, and nothing may be waited for;
 * `end`: nothing follows.
 */
export type Following = "more" | "stall" | "pause" | "end";
