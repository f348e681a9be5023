/** Which normalization a language gets. */
import { normalizeEnglish } from "./english.ts";
import { readJapanese } from "./japanese.ts";
import { type Locales, normalizeLocale } from "./locale.ts";
import type { Replacement } from "./rules.ts";

/**
 * `off`: nothing is written out, and digits are read one by one. `auto`: in English all but plain whole numbers is written out;
 * other languages and plain numbers are left to the engine. `on`: all is written out that there are words for.
 */
export type Normalization = "auto" | "on" | "off";

export interface NormalizerOptions {
  readonly normalization: Normalization;
  /** Japanese in kana. */
  readonly readsJapanese: boolean;
}

/** For the texts of one request. */
export class Normalizer {
  readonly #options: NormalizerOptions;
  readonly #locales: Locales;

  constructor(options: NormalizerOptions, locales: Locales) {
    this.#options = options;
    this.#locales = locales;
  }

  /** Whether digits are read one by one. */
  get spellsDigits(): boolean {
    return this.#options.normalization === "off";
  }

  /** In order, none overlapping; time linear in the text. `language`: an ISO 639-1 code. */
  normalize(text: string, language: string): Replacement[] {
    const replacements = this.#writeOut(text, language);
    if (language !== "ja") return replacements;
    if (this.#options.readsJapanese) return inKana(text, replacements);
    // The engine knows no kanji: what is written out for it has none either.
    return replacements.map((one) => ({ ...one, text: kanaOf(one.text) }));
  }

  #writeOut(text: string, language: string): Replacement[] {
    const isFull = this.#options.normalization === "on";
    if (this.spellsDigits) return [];
    if (language === "en") return normalizeEnglish(text, { isFull });
    return isFull ? normalizeLocale(text, this.#locales.wordsOf(language)) : [];
  }
}

/** What was written out is read in kana, and so is the rest. */
function inKana(text: string, replacements: readonly Replacement[]): Replacement[] {
  const all: Replacement[] = [];
  let at = 0;
  for (const replacement of [...replacements, { start: text.length, end: text.length, text: "" }]) {
    const { start, end } = replacement;
    for (const one of readJapanese(text.slice(at, start))) {
      all.push({ ...one, start: at + one.start, end: at + one.end });
    }
    if (end > start) all.push({ start, end, text: kanaOf(replacement.text) });
    at = end;
  }
  return all;
}

function kanaOf(text: string): string {
  let at = 0;
  let kana = "";
  for (const { start, end, text: reading } of readJapanese(text)) {
    kana += text.slice(at, start) + reading;
    at = end;
  }
  return kana + text.slice(at);
}
