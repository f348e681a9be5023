/** Pronunciation rules: what a word is said as, and where a text has such words. */
import { type Alphabet, readPronunciation } from "./phonemes.ts";

interface RuleBase {
  readonly stringToReplace: string;
  readonly caseSensitive: boolean;
  /** Only where no letter or digit stands beside it. */
  readonly wordBoundaries: boolean;
}
export interface AliasRule extends RuleBase {
  readonly type: "alias";
  readonly alias: string;
}
export interface PhonemeRule extends RuleBase {
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
    for (const rule of rules) {
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
  respell(text: string): Respelling[] {
    const lower = inLowerCase(text);
    const found: Respelling[] = [];
    for (let at = 0; at < text.length; ) {
      const rule = this.#ruleAt(text, lower, at);
      const said = rule === undefined ? undefined : saidFor(rule);
      if (rule === undefined || said === undefined) {
        at += 1;
        continue;
      }
      const end = at + rule.stringToReplace.length;
      found.push({ start: at, end, said });
      at = end;
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

/** Whether neither end stands inside a word. */
function isWhole(text: string, start: number, end: number): boolean {
  return !isInsideWord(text, start) && !isInsideWord(text, end);
}

function isInsideWord(text: string, at: number): boolean {
  return WORD.test(codePointBefore(text, at)) && WORD.test(codePointAt(text, at));
}

function codePointAt(text: string, at: number): string {
  const code = text.codePointAt(at);
  return code === undefined ? "" : String.fromCodePoint(code);
}

function codePointBefore(text: string, at: number): string {
  const isPair = at > 1 && /[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 2, at));
  return text.slice(Math.max(0, at - (isPair ? 2 : 1)), at);
}
