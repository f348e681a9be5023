/**
 * The pieces that captions are laid out from: each word with the punctuation that is shown with it, how wide it is, and
 * how good a place for a break the space behind it is. All shown text comes from the source, never from joined tokens.
 */
import type { TimedWord } from "../timed.ts";

/** Where a text breaks, best to worst: end of a sentence, of a clause, of a word. */
export type BreakRank = "sentence" | "clause" | "word";

export interface Unit {
  /** The word with its quotes, brackets and punctuation. */
  readonly shown: string;
  /** A space stands before it, unless it begins a line. */
  readonly hasSpaceBefore: boolean;
  /** What the space behind it is. */
  readonly rank: BreakRank;
  readonly word: TimedWord;
  /** Width of `shown`, in Latin characters. */
  readonly columns: number;
}

/** Columns of a wide letter where nothing else is known: as of Chinese. */
const WIDE_COLUMNS = 42 / 16;
const WIDE =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Bopomofo}\u3000-\u303f\u30fb\u30fc\uff01-\uff60]/u;
const INVISIBLE = /[\p{M}\p{Cf}]/u;
const EMOJI = /\p{Emoji_Presentation}/u;
/** Between words a bracket with letters can only be a tag: the letters of any other are words. */
const TAG = /<\/?[A-Za-z][^<>]*>|\[\p{L}[^[\]\n]*\]/gu;
/** Marks that stand behind a word. */
const CLOSER = /[\p{Pe}\p{Pf}]|(?!["'¿¡])\p{Po}/u;
/**
 * The space before a tag that a space or a mark follows: it would be double, or stand before the mark. The lookbehind
 * keeps a long run of blanks from being looked at again from each of them.
 */
const SPACE_BEFORE_TAG = new RegExp(
  `(?<![^\\S\\n])[^\\S\\n]+(?=(?:${TAG.source})(?:\\s|${CLOSER.source}))`,
  "gu",
);
const ONLY_CLOSERS = new RegExp(`^(?:${CLOSER.source})+$`, "u");
const OPENER = /[\p{Ps}\p{Pi}"'¿¡]/u;
const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });

export function newUnit(
  shown: string,
  facts: Omit<Unit, "shown" | "columns">,
  wideColumns = WIDE_COLUMNS,
): Unit {
  return { ...facts, shown, columns: columnsOf(shown, wideColumns) };
}

/** How many wide letters a text has. */
export function countWide(text: string): number {
  let count = 0;
  for (const character of text) if (character >= "\u0300" && WIDE.test(character)) count += 1;
  return count;
}

/** Width of shown text in Latin characters. `wideColumns`: of a Chinese, Japanese or Korean letter. */
export function columnsOf(text: string, wideColumns = WIDE_COLUMNS): number {
  let columns = 0;
  for (const character of text) {
    if (character < "\u0300") columns += 1;
    else if (INVISIBLE.test(character)) continue;
    else if (WIDE.test(character)) columns += wideColumns;
    else columns += EMOJI.test(character) ? 2 : 1;
  }
  return columns;
}

export interface Gap {
  /** What stays with the word before. */
  readonly closing: string;
  /** What goes with the word behind. */
  readonly opening: string;
  readonly hasSpace: boolean;
}

/** Shares out the text between two words, without tags: marks close the word before, quotes and brackets open the next. */
export function splitGap(text: string): Gap {
  const gap = withoutTags(text);
  const line = gap.lastIndexOf("\n");
  if (line >= 0) {
    // What begins a line belongs to it: the bullet of a list.
    const before = squash(gap.slice(0, line));
    const bullet = squash(gap.slice(line));
    const opening = bullet !== "" && /\s$/.test(gap) ? `${bullet} ` : bullet;
    return { closing: joined(gap, before), opening, hasSpace: true };
  }
  const lastSpace = gap.search(/\s\S*$/u);
  if (lastSpace < 0) return { ...splitUnspaced(gap), hasSpace: false };
  return {
    closing: joined(gap, squash(gap.slice(0, lastSpace))),
    opening: gap.slice(lastSpace).trim(),
    hasSpace: true,
  };
}

/** What is shown with the last word, of the text behind it: up to the next word, which was not spoken. */
export function closingOf(text: string): string {
  const rest = withoutTags(text);
  const gap = /^[^\p{L}\p{N}\p{So}]*/u.exec(rest)?.[0] ?? "";
  const { closing, opening } = splitGap(gap);
  // Behind its own space (French), and with no word that it could open.
  const isLast = gap.length === rest.length && ONLY_CLOSERS.test(opening);
  return isLast && /^\s/u.test(rest) ? `${closing} ${opening}` : closing.trimEnd();
}

/** As `splitGap` where one voice ends at `at` and another begins: nothing goes over. */
export function splitGapAt(text: string, at: number): Gap {
  const before = withoutTags(text.slice(0, at));
  return {
    closing: joined(before, squash(before)),
    opening: squash(withoutTags(text.slice(at))),
    hasSpace: true,
  };
}

/** Between words without a space: what follows the first opening mark opens, all before it closes. */
function splitUnspaced(gap: string): { closing: string; opening: string } {
  const opener = gap.search(OPENER);
  const at = opener < 0 ? gap.length : opener;
  return { closing: gap.slice(0, at), opening: gap.slice(at) };
}

/** The closing marks with the space before them, if there is one: "word -" and "word,". */
function joined(gap: string, closing: string): string {
  return closing !== "" && /^\s/u.test(gap) ? ` ${closing}` : closing;
}

function withoutTags(text: string): string {
  return text.replace(SPACE_BEFORE_TAG, "").replace(TAG, "");
}

function squash(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}

/** A unit wider than a line as several that fit, each with its share of the time. */
export function splitWide(unit: Unit, maxColumns: number, wideColumns = WIDE_COLUMNS): Unit[] {
  if (unit.columns <= maxColumns) return [unit];
  const parts: string[] = [];
  let part = "";
  for (const { segment } of GRAPHEMES.segment(unit.shown)) {
    if (part !== "" && columnsOf(part + segment, wideColumns) > maxColumns) {
      parts.push(part);
      part = "";
    }
    part += segment;
  }
  parts.push(part);
  const { word } = unit;
  const duration = word.endSeconds - word.startSeconds;
  let said = 0;
  return parts.map((shown, i) => {
    const from = said / unit.shown.length;
    said += shown.length;
    const startSeconds = word.startSeconds + duration * from;
    const endSeconds = word.startSeconds + (duration * said) / unit.shown.length;
    const isLast = i === parts.length - 1;
    return newUnit(
      shown,
      {
        hasSpaceBefore: i === 0 && unit.hasSpaceBefore,
        rank: isLast ? unit.rank : "word",
        word: { ...word, startSeconds, endSeconds },
      },
      wideColumns,
    );
  });
}
