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

/** Rules by what they replace: a text is looked through once, however many there are. */
export class Lexicon {
  /** By string, in lower case where case does not matter; of each at most one with and one without word boundaries. */
  readonly #rules = new Map<string, { readonly rule: PronunciationRule; readonly order: number }[]>();
  /** Lengths of the strings that begin with a character, in lower case. */
  readonly #lengths = new Map<string, Set<number>>();

  /** Where several rules fit at one place, the first is used. */
  constructor(rules: Iterable<PronunciationRule>) {
    let order = 0;
    for (const rule of rules) this.#add(rule, order++);
  }

  /** In order, none overlapping another; time linear in the text. */
  respell(text: string): Respelling[] {
    const found: Respelling[] = [];
    for (let at = 0; at < text.length; ) {
      const rule = this.#ruleAt(text, at);
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

  #add(rule: PronunciationRule, order: number): void {
    const written = rule.stringToReplace;
    const key = keyOf(written, rule.caseSensitive);
    const same = this.#rules.get(key) ?? [];
    if (same.some(({ rule: earlier }) => !earlier.wordBoundaries || rule.wordBoundaries)) return;
    this.#rules.set(key, [...same, { rule, order }]);
    const first = (written[0] ?? "").toLowerCase();
    const lengths = this.#lengths.get(first) ?? new Set();
    this.#lengths.set(first, lengths.add(written.length));
  }

  #ruleAt(text: string, at: number): PronunciationRule | undefined {
    let best: { readonly rule: PronunciationRule; readonly order: number } | undefined;
    for (const length of this.#lengths.get((text[at] ?? "").toLowerCase()) ?? []) {
      const written = text.slice(at, at + length);
      if (written.length < length) continue;
      for (const caseSensitive of [true, false]) {
        for (const one of this.#rules.get(keyOf(written, caseSensitive)) ?? []) {
          if (best !== undefined && best.order < one.order) continue;
          if (one.rule.wordBoundaries && !isWhole(text, at, at + length)) continue;
          best = one;
        }
      }
    }
    return best?.rule;
  }
}

function keyOf(written: string, caseSensitive: boolean): string {
  return caseSensitive ? `=${written}` : `~${written.toLowerCase()}`;
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
