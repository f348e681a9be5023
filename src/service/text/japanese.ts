/**
 * Japanese in kana, which is all that the engine reads: numbers with their counters, dates, times, amounts, and some common
 * words. Other kanji stay as they are.
 */
import { COUNTERS, DAYS, PEOPLE, WORDS } from "./japanese-words.ts";
import { alternatives, applyRules, type Replacement, type Rule, rule } from "./rules.ts";

const KANJI_DIGITS: Readonly<Record<string, number>> = {
  ...{ 〇: 0, 零: 0, 一: 1, 二: 2, 三: 3, 四: 4, 五: 5, 六: 6, 七: 7, 八: 8, 九: 9 },
};
const SMALL_UNITS: Readonly<Record<string, number>> = { 十: 10, 百: 100, 千: 1000 };
const LARGE_UNITS: Readonly<Record<string, number>> = { 万: 10_000, 億: 100_000_000, 兆: 1_000_000_000_000 };

const KANJI_NUMBER = "[〇零一二三四五六七八九十百千万億兆]{1,24}";
const NUMBER = `(?<number>\\d{1,3}(?:,\\d{3}){1,4}|\\d{1,15}|${KANJI_NUMBER})`;
const NOT_AFTER = String.raw`(?<![\p{N}\p{Script=Han}]|\d[.,])`;
const NOT_BEFORE = String.raw`(?![\p{N}\p{Script=Han}]|[.,]\d)`;

const RULES: readonly Rule[] = [
  // Behind a counter another number may follow at once: "3月5日".
  rule(
    `(?<![\\p{N}]|\\d[.,])${NUMBER}\\s?(?<counter>${alternatives(COUNTERS)}|日|人)`,
    ({ groups, before }) => {
      const value = readNumber(groups.number ?? "");
      const isKanji = /^\p{Script=Han}/u.test(groups.number ?? "");
      const isPartOfWord = isKanji && /\p{Script=Han}$/u.test(before) && !COUNTER_END.test(before);
      return value === undefined || isPartOfWord ? undefined : counted(value, groups.counter ?? "");
    },
  ),
  rule(`${NOT_AFTER}(?<number>${KANJI_NUMBER})${NOT_BEFORE}`, ({ groups }) => {
    const written = groups.number ?? "";
    if (isPositional(written))
      return [...written].map((char) => kanaOfNumber(KANJI_DIGITS[char] ?? 0)).join("");
    const value = readNumber(written);
    return value === undefined ? undefined : kanaOfNumber(value);
  }),
  rule(alternatives(WORDS), ({ text, before, after }) => {
    // One kanji beside others is mostly read otherwise.
    const isAlone = !/\p{Script=Han}$/u.test(before) && !/^\p{Script=Han}/u.test(after);
    return text.length > 1 || isAlone ? WORDS[text] : undefined;
  }),
];
/** A number may follow these. */
const COUNTER_END = /[年月日時分秒円第]$/u;

/** In order, none overlapping; time linear in the text. */
export function readJapanese(text: string): Replacement[] {
  return applyRules(RULES, text);
}

function counted(value: number, counter: string): string | undefined {
  if (counter === "日") return DAYS[value] ?? `${kanaOfNumber(value)}にち`;
  if (counter === "人") return PEOPLE[value] ?? `${kanaOfNumber(value)}にん`;
  const known = COUNTERS[counter];
  if (known === undefined) return undefined;
  const { reading, irregular = {} } = known;
  const rest = value - (value % 10);
  const last = irregular[value % 10];
  // "14分" is ten, then four minutes; "10分" has a form of its own.
  if (value % 10 !== 0 && last !== undefined) return `${rest === 0 ? "" : kanaOfNumber(rest)}${last}`;
  const ten = irregular[10];
  if (value % 100 !== 0 && value % 10 === 0 && ten !== undefined) {
    const tens = Math.floor((value % 100) / 10);
    const before = value - (value % 100);
    return `${before === 0 ? "" : kanaOfNumber(before)}${tens === 1 ? "" : kanaOfNumber(tens)}${ten}`;
  }
  return `${kanaOfNumber(value)}${reading}`;
}

/** Digits without "ten", "hundred" and so on. */
function isPositional(written: string): boolean {
  return [...written].every((char) => Object.hasOwn(KANJI_DIGITS, char));
}

/** Undefined where the characters are no number. */
function readNumber(written: string): number | undefined {
  if (/^[\d,]+$/.test(written)) return Number(written.replaceAll(",", ""));
  if (isPositional(written)) return Number([...written].map((char) => KANJI_DIGITS[char]).join(""));
  let total = 0;
  let section = 0;
  let digit: number | undefined;
  for (const char of written) {
    const small = SMALL_UNITS[char];
    const large = LARGE_UNITS[char];
    if (small !== undefined) {
      section += (digit ?? 1) * small;
      digit = undefined;
    } else if (large !== undefined) {
      total += (section + (digit ?? (section === 0 ? 1 : 0))) * large;
      section = 0;
      digit = undefined;
    } else if (digit === undefined) digit = KANJI_DIGITS[char];
    else return undefined;
  }
  const value = total + section + (digit ?? 0);
  return Number.isSafeInteger(value) ? value : undefined;
}

const ONES = ["", "いち", "に", "さん", "よん", "ご", "ろく", "なな", "はち", "きゅう"] as const;
const HUNDREDS: Readonly<Record<number, string>> = {
  1: "ひゃく",
  3: "さんびゃく",
  6: "ろっぴゃく",
  8: "はっぴゃく",
};
const THOUSANDS: Readonly<Record<number, string>> = { 1: "せん", 3: "さんぜん", 8: "はっせん" };
const SCALES = [
  [1_000_000_000_000, "ちょう"],
  [100_000_000, "おく"],
  [10_000, "まん"],
  [1, ""],
] as const;

/** A whole number below 10^16. */
export function kanaOfNumber(value: number): string {
  if (value === 0) return "ぜろ";
  let rest = value;
  let kana = "";
  for (const [scale, name] of SCALES) {
    const count = Math.floor(rest / scale);
    rest %= scale;
    if (count > 0) kana += `${belowTenThousand(count)}${name}`;
  }
  return kana.replace("いちちょう", "いっちょう");
}

function belowTenThousand(value: number): string {
  const thousands = Math.floor(value / 1000);
  const hundreds = Math.floor(value / 100) % 10;
  const tens = Math.floor(value / 10) % 10;
  const digit = (index: number) => ONES[index] ?? "";
  return [
    thousands === 0 ? "" : (THOUSANDS[thousands] ?? `${digit(thousands)}せん`),
    hundreds === 0 ? "" : (HUNDREDS[hundreds] ?? `${digit(hundreds)}ひゃく`),
    tens === 0 ? "" : `${tens === 1 ? "" : digit(tens)}じゅう`,
    digit(value % 10),
  ].join("");
}
