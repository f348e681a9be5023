/**
 * Text normalization of languages other than English: currency, percent, units, dates and times are written out in the
 * language's words, which Intl has for most of them. Numbers stay digits: the engine reads them.
 */
import { LRUCache } from "lru-cache";
import { CLOCKS, CURRENCY_SIGNS, OWN_WORDS, PERCENT, UNIT_SIGNS } from "./locale-words.ts";
import { alternatives, applyRules, type Found, patternOf, type Replacement, type Rule } from "./rules.ts";

/** Letters of scripts that put no spaces between words, or none before particles: another word may begin at any of them. */
const UNSPACED = ["Han", "Hiragana", "Katakana", "Hangul", "Thai", "Lao", "Khmer", "Myanmar"]
  .map((script) => String.raw`\p{Script_Extensions=${script}}`)
  .join("");
/** These go on with a number: 3000万. */
const MAGNITUDES = "十百千万萬亿億兆만억조";
/** A character that a number or a sign can't stand beside: it is a part of the same word. */
const OF_WORD = String.raw`(?:[${MAGNITUDES}]|(?![${UNSPACED}])[\p{L}\p{N}_])`;
const BEGIN = String.raw`(?<!${OF_WORD}|\d[.,:/-])`;
const END = String.raw`(?!${OF_WORD}|[.,:/-]\d)`;
/** Groups of three digits behind a space or apostrophe, or any behind points and commas. */
const NUMBER = String.raw`(?<number>\d{1,3}(?:['’ \u00a0\u202f]\d{3}){1,4}(?:[.,]\d{1,9})?|\d{1,15}(?:[.,]\d{1,9}){0,5})`;
const CURRENCY = `(?<currency>${alternatives(CURRENCY_SIGNS)})`;
/** Between a number and its sign. */
const GAP = String.raw`[\s\u00a0\u202f]?`;

/** Some languages have no space there. The engine reads "20শতাংশ" as one word; Chinese, Japanese and Korean as several. */
const BETWEEN_NUMBER_AND_WORD =
  /(?<=\d)(?=\p{L})(?![\p{Script=Han}\p{Script=Hangul}\p{Script=Katakana}])|(?<=[\p{L}\p{M}])(?<!\p{Script=Han})(?=\d)/gu;

type Groups = Found["groups"];

interface LocaleRule {
  readonly pattern: RegExp;
  /** As a rule's, in the words of a language. */
  say(groups: Groups, words: LocaleWords): string | undefined;
}

function localeRule(source: string, say: LocaleRule["say"]): LocaleRule {
  return { pattern: patternOf(source), say };
}

function date({ year = "", month = "", day = "" }: Groups, words: LocaleWords): string | undefined {
  return words.date(year, month, day);
}

const RULES: readonly LocaleRule[] = [
  localeRule(`${BEGIN}(?<year>\\d{4})-(?<month>\\d{1,2})-(?<day>\\d{1,2})${END}`, date),
  localeRule(`${BEGIN}(?<year>\\d{4})[./](?<month>\\d{1,2})[./](?<day>\\d{1,2})${END}`, date),
  localeRule(`${BEGIN}(?<day>\\d{1,2})\\.\\s?(?<month>\\d{1,2})\\.\\s?(?<year>\\d{4})${END}`, date),
  localeRule(
    `${BEGIN}(?<first>\\d{1,2})/(?<second>\\d{1,2})/(?<year>\\d{4})${END}`,
    ({ first = "", second = "", year = "" }, words) =>
      words.isMonthFirst ? words.date(year, first, second) : words.date(year, second, first),
  ),
  localeRule(`${BEGIN}(?<hour>\\d{1,2}):(?<minute>\\d{2})${END}`, ({ hour, minute }, words) =>
    words.time(Number(hour), Number(minute)),
  ),
  localeRule(`(?<!${OF_WORD})${CURRENCY}${GAP}${NUMBER}${END}`, (groups, words) => words.money(groups)),
  localeRule(`${BEGIN}${NUMBER}${GAP}${CURRENCY}(?!${OF_WORD})`, (groups, words) => words.money(groups)),
  localeRule(`${BEGIN}${NUMBER}${GAP}(?<unit>${alternatives(UNIT_SIGNS)})(?!${OF_WORD}|/)`, (groups, words) =>
    words.measure(groups),
  ),
  localeRule(String.raw`(?<=\s)&(?=\s)`, (_groups, words) => words.and),
];

/** In order, none overlapping; time linear in the text. */
export function normalizeLocale(text: string, words: LocaleWords): Replacement[] {
  const rules = RULES.map(({ pattern, say }): Rule => ({ pattern, say: ({ groups }) => say(groups, words) }));
  return applyRules(rules, text);
}

/** An amount as Intl takes it, and how many digits stand behind its point. */
interface Amount {
  readonly value: number;
  readonly decimals: number;
}

/** The words of a language (ISO 639-1), by Intl where it knows it. */
class LocaleWords {
  readonly #language: string;
  /** With the digits of ASCII and the calendar that dates are written in. */
  readonly #locale: string;
  readonly #isKnown: boolean;
  /** By their options, of which the tables of signs allow some 500. A text may have thousands of numbers. */
  readonly #numberFormats = new Map<string, Intl.NumberFormat>();
  #dateFormat: Intl.DateTimeFormat | null = null;
  #isMonthFirst: boolean | null = null;
  #and: { readonly word: string | undefined } | null = null;

  constructor(language: string) {
    this.#language = language;
    this.#locale = `${language}-u-ca-gregory-nu-latn`;
    this.#isKnown = Intl.NumberFormat.supportedLocalesOf([language]).length > 0;
  }

  get isMonthFirst(): boolean {
    this.#isMonthFirst ??= this.#isKnown && this.#putsMonthFirst();
    return this.#isMonthFirst;
  }

  #putsMonthFirst(): boolean {
    const parts = new Intl.DateTimeFormat(this.#locale, { dateStyle: "short" }).formatToParts(0);
    const order = parts.map(({ type }) => type);
    return order.indexOf("month") < order.indexOf("day") && order.indexOf("day") < order.indexOf("year");
  }

  /** "and", as a list has it; undefined where it is not known. */
  get and(): string | undefined {
    this.#and ??= { word: this.#isKnown ? this.#conjunction() : undefined };
    return this.#and.word;
  }

  #conjunction(): string | undefined {
    const parts = new Intl.ListFormat(this.#locale, { type: "conjunction" }).formatToParts(["1", "2"]);
    const word = parts.find(({ type }) => type === "literal")?.value.trim();
    return word === undefined || !/^\p{L}[\p{L}\p{M}]*$/u.test(word) ? undefined : word;
  }

  /** Undefined where it is no date. */
  date(year: string, month: string, day: string): string | undefined {
    const [monthNumber, dayNumber] = [Number(month), Number(day)];
    const date = new Date(Date.UTC(Number(year), monthNumber - 1, dayNumber));
    if (date.getUTCMonth() !== monthNumber - 1 || date.getUTCDate() !== dayNumber) return undefined;
    if (!this.#isKnown) return this.#ownDate(year, monthNumber, dayNumber);
    this.#dateFormat ??= new Intl.DateTimeFormat(this.#locale, {
      ...{ day: "numeric", month: "long", year: "numeric" },
      timeZone: "UTC",
    });
    const parts = this.#dateFormat
      .formatToParts(date)
      .map(({ type, value }) => (type === "literal" ? spoken(value) : value));
    return parts.join("").trim();
  }

  time(hour: number, minute: number): string | undefined {
    if (hour > 24 || minute > 59) return undefined;
    const [whole, withMinutes] = CLOCKS[this.#language] ?? ["{h} {m}", "{h} {m}"];
    return (minute === 0 ? whole : withMinutes).replace("{h}", String(hour)).replace("{m}", String(minute));
  }

  money({ currency: sign = "", number = "" }: Groups): string | undefined {
    const currency = this.#language === "zh" && /[¥￥]/.test(sign) ? "CNY" : CURRENCY_SIGNS[sign];
    const amount = this.#read(number);
    if (currency === undefined || amount === undefined) return undefined;
    if (this.#isKnown) return this.#format(amount, { style: "currency", currency, currencyDisplay: "name" });
    const name = OWN_WORDS[this.#language]?.currencies[currency];
    return name === undefined ? undefined : `${number} ${name}`;
  }

  measure({ unit: sign = "", number = "" }: Groups): string | undefined {
    const unit = UNIT_SIGNS[sign];
    const amount = this.#read(number);
    if (unit === undefined || amount === undefined) return undefined;
    const percent = unit === "percent" ? PERCENT[this.#language] : undefined;
    if (percent !== undefined) return percent.replace("{0}", number);
    if (this.#isKnown) return this.#format(amount, { style: "unit", unit, unitDisplay: "long" });
    const name = OWN_WORDS[this.#language]?.units[unit];
    return name === undefined ? undefined : `${number} ${name}`;
  }

  #format({ value, decimals }: Amount, options: Intl.NumberFormatOptions): string {
    const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    const format = this.#numberFormat({ ...options, ...digits, useGrouping: false });
    return format.format(value).replace(BETWEEN_NUMBER_AND_WORD, " ");
  }

  #numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
    const key = JSON.stringify(options);
    const known = this.#numberFormats.get(key);
    if (known !== undefined) return known;
    const format = new Intl.NumberFormat(this.#locale, options);
    this.#numberFormats.set(key, format);
    return format;
  }

  #ownDate(year: string, month: number, day: number): string | undefined {
    const name = OWN_WORDS[this.#language]?.months[month - 1];
    return name === undefined ? undefined : `${day} ${name} ${year}`;
  }

  /** Undefined where the separators are not the language's, and not plainly another's. */
  #read(number: string): Amount | undefined {
    const separators = [...number].filter((char) => !/\d/.test(char));
    const last = separators.at(-1);
    const decimal = last === undefined || !this.#isDecimal(separators, number) ? undefined : last;
    const [whole = "", fraction = ""] = decimal === undefined ? [number] : splitLast(number, decimal);
    const groups = whole.split(/\D/);
    const isGrouped = groups.slice(1).every((group) => group.length === 3) && (groups[0] ?? "").length <= 3;
    if ((groups.length > 1 && !isGrouped) || /^0\d/.test(whole)) return undefined;
    const value = Number(`${groups.join("")}.${fraction}0`);
    return Number.isSafeInteger(Math.trunc(value)) ? { value, decimals: fraction.length } : undefined;
  }

  /** Whether the last separator is a decimal point: it is another than those before, or the language's own. */
  #isDecimal(separators: readonly string[], number: string): boolean {
    const last = separators.at(-1) ?? "";
    if (separators.length > 1) return separators[0] !== last;
    const isThousands = number.length - number.lastIndexOf(last) === 4;
    return last === this.#decimalPoint || !isThousands;
  }

  get #decimalPoint(): string {
    if (!this.#isKnown) return ",";
    const parts = this.#numberFormat({}).formatToParts(0.5);
    return parts.find(({ type }) => type === "decimal")?.value ?? ".";
  }
}

/** The most used of a thread. Each may hold some 500 formats of 22 KB. */
const MAX_LANGUAGES = 8;

/** The words of the languages that were spoken last, for all requests of a thread: what Intl makes takes up to 2 ms each. */
export class Locales {
  readonly #words = new LRUCache<string, LocaleWords>({ max: MAX_LANGUAGES });

  /** `language`: an ISO 639-1 code. */
  wordsOf(language: string): LocaleWords {
    const known = this.#words.get(language);
    if (known !== undefined) return known;
    const words = new LocaleWords(language);
    this.#words.set(language, words);
    return words;
  }
}

/** What stands between the parts of a date, without what would be read as letters: "2024 г.", "2024-ж.", "5(a)". */
function spoken(literal: string): string {
  return literal
    .replace(/-?\p{L}{1,2}\./gu, "")
    .replace(/[()]/g, "")
    .replace(/\s+/gu, " ");
}

function splitLast(text: string, separator: string): [string, string] {
  const at = text.lastIndexOf(separator);
  return [text.slice(0, at), text.slice(at + 1)];
}
