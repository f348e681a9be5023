/** Pronunciation rules: what a word is said as, and where a text has such words. */
import { type Alphabet, readPronunciation } from "./phonemes.ts";

interface RuleBase {
  readonly stringToReplace: string;
  readonly caseSensitive: boolean;
  /** Only where it is a whole word; in scripts without spaces between words it is one anywhere. */
  readonly wordBoundaries: boolean;
}
interface AliasRule extends RuleBase {
  readonly type: "alias";
  readonly alias: string;
}
interface PhonemeRule extends RuleBase {
  readonly type: "phoneme";
  readonly phoneme: string;
  readonly alphabet: Alphabet;
}
export type PronunciationRule = AliasRule | PhonemeRule;

/** UTF-16 code units of a string to replace, of an alias and of a phoneme. */
export const MAX_STRING_LENGTH = 100;
export const MAX_SAID_LENGTH = 300;

/** A stretch of a text (UTF-16 indices) that a rule is about. Plain data: it crosses threads. */
export interface Respelling {
  readonly start: number;
  readonly end: number;
  /** An alias, or mnemonics of the engine's English phonemes. */
  readonly said: { readonly text: string } | { readonly mnemonics: string };
}

/** The rules for one string in lower case, first rules first. */
interface Entry {
  readonly key: string;
  readonly rules: { readonly rule: PronunciationRule; readonly order: number }[];
}

/** Rules by what they replace. */
export class Lexicon {
  /** By key, in the order of UTF-16 code units: keys that begin alike stand together. */
  readonly #entries: readonly Entry[];

  /** Where several rules fit at one place, the first is used. */
  constructor(rules: Iterable<PronunciationRule>) {
    const entries = new Map<string, Entry>();
    let order = 0;
    for (const given of rules) {
      const rule = { ...given, stringToReplace: given.stringToReplace.normalize("NFC") };
      const key = inLowerCase(rule.stringToReplace);
      const entry = entries.get(key) ?? { key, rules: [] };
      entries.set(key, entry);
      entry.rules.push({ rule, order });
      order += 1;
    }
    this.#entries = [...entries.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
  }

  /**
   * In order, none overlapping. At each place of the text the strings to replace are compared character by character, all at
   * once: at most MAX_STRING_LENGTH steps, each a search among those that fit so far.
   */
  respell(written: string): Respelling[] {
    const { text, placeOf } = composed(written);
    const lower = inLowerCase(text);
    const found: Respelling[] = [];
    for (let at = 0; at < text.length; ) {
      const rule = this.#ruleAt(text, lower, at);
      const said = rule === undefined ? undefined : saidFor(rule);
      const [start, end] = [placeOf(at), placeOf(at + (rule?.stringToReplace.length ?? 0))];
      if (rule === undefined || said === undefined || start === undefined || end === undefined) {
        at += 1;
        continue;
      }
      found.push({ start, end, said });
      at += rule.stringToReplace.length;
    }
    return found;
  }

  #ruleAt(text: string, lower: string, at: number): PronunciationRule | undefined {
    let best: Entry["rules"][number] | undefined;
    let [from, to] = [0, this.#entries.length];
    for (let length = 0; from < to; length++) {
      const entry = this.#entries[from];
      if (entry?.key.length === length) {
        const fitting = entry.rules.find(({ rule }) => fits(rule, text, at));
        if (fitting !== undefined && fitting.order < (best?.order ?? Infinity)) best = fitting;
        from += 1;
      }
      if (at + length >= lower.length) break;
      const unit = lower.charCodeAt(at + length);
      [from, to] = [
        this.#first(from, to, { length, unit }),
        this.#first(from, to, { length, unit: unit + 1 }),
      ];
    }
    return best?.rule;
  }

  /** Among entries that are alike for `length` units, the first whose next unit is not below `unit`. */
  #first(
    from: number,
    to: number,
    { length, unit }: { readonly length: number; readonly unit: number },
  ): number {
    let [low, high] = [from, to];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle]?.key.charCodeAt(length) ?? 0) < unit) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

interface Composed {
  readonly text: string;
  /** Where a place of it stands in the text as it was written; undefined inside a character that is written otherwise there. */
  readonly placeOf: (at: number) => number | undefined;
}

/** In NFC, as rules are compared: "é" is one character or two, and is the same. */
function composed(written: string): Composed {
  const text = written.normalize("NFC");
  if (text === written) return { text, placeOf: (at) => at };
  const parts: string[] = [];
  const places = new Map<number, number>();
  let at = 0;
  for (const { segment, index } of new Intl.Segmenter("en").segment(written)) {
    const part = segment.normalize("NFC");
    // One that is the same may begin a string inside itself, too.
    const own = part === segment ? part.length : 1;
    for (let unit = 0; unit < own; unit += 1) places.set(at + unit, index + unit);
    parts.push(part);
    at += part.length;
  }
  places.set(at, written.length);
  return { text: parts.join(""), placeOf: (place) => places.get(place) };
}

/** Unit by unit, so that both have the same length: "İ" stays as it is. */
function inLowerCase(text: string): string {
  return text.replace(/[^a-z ]/g, (unit) => {
    const lower = unit.toLowerCase();
    return lower.length === unit.length ? lower : unit;
  });
}

function fits(
  { stringToReplace, caseSensitive, wordBoundaries }: RuleBase,
  text: string,
  at: number,
): boolean {
  if (caseSensitive && !text.startsWith(stringToReplace, at)) return false;
  return !wordBoundaries || isWhole(text, at, at + stringToReplace.length);
}

function saidFor(rule: PronunciationRule): Respelling["said"] | undefined {
  if (rule.type === "alias") return { text: rule.alias };
  const read = readPronunciation(rule.phoneme, rule.alphabet);
  // Rules with other symbols are refused before they are stored.
  return "unknown" in read ? undefined : { mnemonics: read.mnemonics };
}

const WORD = /[\p{L}\p{M}\p{N}_]/u;
/** Written without spaces between words: which letters are one word is not known, so that a word may end at each. */
const UNSPACED =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u;
/** Is said with the letter before it. */
const MARK = /\p{M}/u;

/** Whether neither end stands inside a word. */
function isWhole(text: string, start: number, end: number): boolean {
  return !isInsideWord(text, start) && !isInsideWord(text, end);
}

function isInsideWord(text: string, at: number): boolean {
  const [before, after] = [codePointBefore(text, at), codePointAt(text, at)];
  if (!WORD.test(before) || !WORD.test(after)) return false;
  return MARK.test(after) || !(UNSPACED.test(before) || UNSPACED.test(after));
}

function codePointAt(text: string, at: number): string {
  const code = text.codePointAt(at);
  return code === undefined ? "" : String.fromCodePoint(code);
}

function codePointBefore(text: string, at: number): string {
  const isPair = at > 1 && /[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 2, at));
  return text.slice(Math.max(0, at - (isPair ? 2 : 1)), at);
}
