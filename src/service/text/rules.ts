/**
 * Rules of text normalization: what is found in a text and what is said for it. They run in order of precedence and never
 * overlap; what no rule claims is spoken as written.
 */

/** A stretch of the text (UTF-16 indices) and what is said in its place. */
export interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** What a rule sees around its stretch, UTF-16 code units: less is enough to know an address or a sentence's end. */
const CONTEXT_CHARS = 200;

export interface Found {
  readonly groups: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** Up to CONTEXT_CHARS of what stands before it, and behind. */
  readonly before: string;
  readonly after: string;
}

export interface Rule {
  readonly pattern: RegExp;
  /** The words; undefined leaves the stretch to later rules. */
  say(found: Found): string | undefined;
}

export function rule(source: string, say: Rule["say"]): Rule {
  return { pattern: patternOf(source), say };
}

export function patternOf(source: string): RegExp {
  return new RegExp(source, "gu");
}

/** The keys as a pattern, the longest first. */
export function alternatives(words: Readonly<Record<string, unknown>>): string {
  return Object.keys(words)
    .sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"))
    .join("|");
}

/** In order, none overlapping. */
export function applyRules(rules: readonly Rule[], text: string): Replacement[] {
  const replacements: Replacement[] = [];
  /** 1 = has a replacement, by UTF-16 code unit. */
  const claimed = new Uint8Array(text.length);
  for (const { pattern, say } of rules) {
    for (const match of text.matchAll(pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      if (claimed.subarray(start, end).includes(1)) continue;
      const words = say({
        groups: match.groups ?? {},
        text: match[0],
        before: text.slice(Math.max(0, start - CONTEXT_CHARS), start),
        after: text.slice(end, end + CONTEXT_CHARS),
      });
      if (words === undefined || words === match[0]) continue;
      replacements.push({ start, end, text: words });
      claimed.fill(1, start, end);
    }
  }
  return replacements.sort((a, b) => a.start - b.start);
}
