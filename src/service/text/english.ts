/**
 * English text normalization: which stretches of a text are said differently from how they are written, and how.
 * Rules run in order of precedence and never overlap; what no rule claims is spoken as written.
 */
import { cardinal, decade, decimal, ordinal, spelled, year } from "./english-numbers.ts";
import { ABBREVIATIONS, CURRENCIES, MONTHS, SYMBOLS, TITLES, UNITS } from "./english-words.ts";
import { alternatives, applyRules, type Found, type Replacement, type Rule, rule } from "./rules.ts";

const NUM = String.raw`(?:\d{1,3}(?:,\d{3})+|\d+)`;
const BEGIN = String.raw`(?<![\p{L}\p{N}_]|\d[.,:])`;
const END = String.raw`(?![\p{L}\p{N}_])`;
const SIGN = String.raw`(?<sign>(?<=^|[\s(])[-−])?`;
const MONTH = `(?<month>${MONTHS.flatMap((month) => [month, `${month.slice(0, 3)}\\.?`]).join("|")}|Sept\\.?)`;

function signed(groups: Found["groups"], words: string): string {
  return groups.sign === undefined ? words : `minus ${words}`;
}

function money(groups: Found["groups"]): string | undefined {
  const currency = CURRENCIES[groups.currency ?? ""];
  if (currency === undefined) return undefined;
  const whole = (groups.whole ?? "").replaceAll(",", "");
  const fraction = groups.fraction ?? "";
  const scale = groups.scale === undefined ? undefined : (MAGNITUDES[groups.scale] ?? groups.scale);
  if (scale !== undefined) {
    const amount = fraction === "" ? whole : `${whole}.${fraction}`;
    return signed(groups, `${decimal(amount)} ${scale} ${currency.many}`);
  }
  const main = `${cardinal(whole)} ${whole === "1" ? currency.one : currency.many}`;
  if (fraction === "" || /^0+$/.test(fraction)) return signed(groups, main);
  if (fraction.length !== 2 || currency.cent === undefined) {
    return signed(groups, `${decimal(`${whole}.${fraction}`)} ${currency.many}`);
  }
  const cents = String(Number(fraction));
  const minor = `${cardinal(cents)} ${cents === "1" ? currency.cent : currency.cents}`;
  return signed(groups, Number(whole) === 0 ? minor : `${main} and ${minor}`);
}

const MAGNITUDES: Readonly<Record<string, string>> = {
  k: "thousand",
  K: "thousand",
  m: "million",
  M: "million",
  bn: "billion",
  B: "billion",
  T: "trillion",
};

function monthName(written: string | undefined): string {
  const head = (written ?? "").slice(0, 3);
  return MONTHS.find((month) => month.startsWith(head)) ?? "";
}

function date(month: string, day: string, yearDigits: string | undefined): string | undefined {
  if (month === "" || Number(day) < 1 || Number(day) > 31) return undefined;
  const spokenDay = ordinal(String(Number(day)));
  return `${month} ${spokenDay}${yearDigits === undefined ? "" : `, ${year(yearDigits)}`}`;
}

function numericDate(groups: Found["groups"]): string | undefined {
  const written = groups.year ?? "";
  const full = written.length === 2 ? `20${written}` : written;
  return date(MONTHS[Number(groups.month) - 1] ?? "", groups.day ?? "0", full);
}

function time(groups: Found["groups"]): string | undefined {
  const hour = Number(groups.hour);
  const minute = Number(groups.minute ?? "0");
  if (hour > 24 || minute > 59) return undefined;
  const half = groups.half === undefined ? undefined : `${groups.half.toUpperCase()} M`;
  const words = [cardinal(String(hour))];
  if (minute > 0) words.push(minute < 10 ? `oh ${cardinal(String(minute))}` : cardinal(String(minute)));
  else if (half === undefined && groups.second === undefined) words.push(hour > 12 ? "hundred" : "o'clock");
  if (groups.second !== undefined) words.push(`and ${cardinal(String(Number(groups.second)))} seconds`);
  if (half !== undefined) words.push(half);
  return words.join(" ");
}

function measured(groups: Found["groups"]): string | undefined {
  const unit = UNITS[groups.unit ?? ""];
  if (unit === undefined) return undefined;
  const number = groups.number ?? "";
  return signed(groups, `${decimal(number)} ${number === "1" ? unit[0] : unit[1]}`);
}

function fraction(groups: Found["groups"]): string | undefined {
  const top = groups.top ?? "";
  const bottom = Number(groups.bottom);
  if (bottom < 2) return undefined;
  const name = bottom === 2 ? "half" : bottom === 4 ? "quarter" : ordinal(String(bottom));
  if (Number(top) === 1) return `one ${name}`;
  return `${cardinal(top)} ${bottom === 2 ? "halves" : `${name}s`}`;
}

/** "St." is a saint before a name and a street after one; "Dr." a doctor or a drive. */
function saintOrStreet(found: Found): string | undefined {
  const isAddress = /(?<!\d)\d+\s+(?:\p{Lu}[\p{L}'-]*\s+)+$/u.test(found.before);
  const isBeforeName = /^\s+\p{Lu}/u.test(found.after);
  const isTitle = isBeforeName && !isAddress;
  const written = found.groups.word ?? "";
  if (written === "St") {
    if (isTitle) return "Saint";
    const [lastWord = ""] = /(?<![\p{L}'-])[\p{L}'-]+\s+$/u.exec(found.before) ?? [];
    return /\p{Lu}/u.test(lastWord) ? withFullStop("Street", found) : undefined;
  }
  if (isTitle) return TITLES[written];
  return written === "Dr" && isAddress ? withFullStop("Drive", found) : undefined;
}

/** An abbreviation's point that also ends the sentence keeps its sound. */
function withFullStop(words: string, found: Found): string {
  return found.text.endsWith(".") && /^["')\]\s]*$/u.test(found.after) ? `${words}.` : words;
}

function symbol(found: Found): string | undefined {
  const words = SYMBOLS[found.text];
  if (words === undefined) return undefined;
  const lead = /\S$/u.test(found.before) ? " " : "";
  const tail = /^\S/u.test(found.after) ? " " : "";
  return `${lead}${words}${tail}`;
}

const YEAR = /^(?:1[1-9]|20)\d\d$/;

const RULES: readonly Rule[] = [
  rule(
    `${SIGN}(?<![\\p{L}])(?<currency>(?:US|CA|A)?\\$|[£€¥₹])\\s?(?<whole>${NUM})(?:\\.(?<fraction>\\d+))?` +
      `(?:\\s?(?<scale>thousand|million|billion|trillion|bn|[kKmMBT]))?${END}`,
    ({ groups }) => money(groups),
  ),
  rule(
    `${BEGIN}${SIGN}(?<whole>${NUM})(?:\\.(?<fraction>\\d+))?\\s?(?<currency>€|£|USD|EUR|GBP)${END}`,
    ({ groups }) => money(groups),
  ),
  rule(`${BEGIN}(?<year>\\d{4})-(?<month>\\d{2})-(?<day>\\d{2})${END}`, ({ groups }) => numericDate(groups)),
  rule(`${BEGIN}(?<month>\\d{1,2})/(?<day>\\d{1,2})/(?<year>\\d{4}|\\d{2})${END}(?!/)`, ({ groups }) =>
    numericDate(groups),
  ),
  rule(
    `${BEGIN}${MONTH}\\s+(?<day>\\d{1,2})(?:st|nd|rd|th)?(?:,?\\s+(?<year>\\d{4}))?${END}(?![:/]\\d|[.,]\\d)`,
    ({ groups }) => date(monthName(groups.month), groups.day ?? "0", groups.year),
  ),
  rule(
    `${BEGIN}(?<day>\\d{1,2})(?:st|nd|rd|th)?\\s+${MONTH}(?:,?\\s+(?<year>\\d{4}))?${END}`,
    ({ groups }) => {
      const words = date(monthName(groups.month), groups.day ?? "0", undefined);
      if (words === undefined) return undefined;
      const spokenDay = ordinal(String(Number(groups.day)));
      const spokenYear = groups.year === undefined ? "" : ` ${year(groups.year)}`;
      return `the ${spokenDay} of ${monthName(groups.month)}${spokenYear}`;
    },
  ),
  rule(
    `${BEGIN}(?<hour>\\d{1,2}):(?<minute>\\d{2})(?::(?<second>\\d{2}))?(?:\\s?(?<half>[aApP])\\.?[mM]\\b\\.?)?${END}(?!:)`,
    ({ groups }) => time(groups),
  ),
  rule(`${BEGIN}(?<hour>\\d{1,2})\\s?(?<half>[aApP])\\.?[mM]\\b\\.?${END}`, ({ groups }) => time(groups)),
  rule(
    `${BEGIN}(?:\\+?1[- ])?\\(?\\d{3}\\)?[- ]\\d{3}-\\d{4}${END}|${BEGIN}\\d{3}-\\d{4}${END}`,
    ({ text }) =>
      text
        .split(/\D+/)
        .filter((digits) => digits !== "")
        .map(spelled)
        .join(", "),
  ),
  rule(`${BEGIN}${SIGN}(?<number>${NUM}(?:\\.\\d+)?)\\s?%`, ({ groups }) =>
    signed(groups, `${decimal(groups.number ?? "")} percent`),
  ),
  rule(`${BEGIN}(?<number>${NUM})(?:st|nd|rd|th)${END}`, ({ groups }) =>
    ordinal((groups.number ?? "").replaceAll(",", "")),
  ),
  rule(`${BEGIN}(?<number>(?:1\\d|20)\\d0)'?s${END}`, ({ groups }) => decade(groups.number ?? "")),
  rule(
    `${BEGIN}${SIGN}(?<number>${NUM}(?:\\.\\d+)?)\\s?(?<unit>${alternatives(UNITS)})${END}`,
    ({ groups }) => measured(groups),
  ),
  rule(`${BEGIN}(?<top>\\d{1,2})/(?<bottom>\\d{1,2})${END}(?!/)`, ({ groups }) => fraction(groups)),
  rule(`#\\s?(?<number>\\d+)${END}`, ({ groups }) => `number ${cardinal(groups.number ?? "")}`),
  rule(`${BEGIN}\\d+(?:\\.\\d+){2,}${END}`, ({ text }) => text.split(".").map(cardinal).join(" point ")),
  rule(`${BEGIN}(?<from>${NUM})[–-](?<to>${NUM})${END}(?!-)`, ({ groups }) => {
    const from = (groups.from ?? "").replaceAll(",", "");
    const to = (groups.to ?? "").replaceAll(",", "");
    return Number(from) < Number(to) ? `${number(from)} to ${number(to)}` : undefined;
  }),
  rule(`${BEGIN}${SIGN}(?<number>${NUM}\\.\\d+)${END}`, ({ groups }) =>
    signed(groups, decimal(groups.number ?? "")),
  ),
  rule(`${BEGIN}${SIGN}(?<number>${NUM})${END}`, ({ groups, text }) =>
    isPlain(text) ? undefined : signed(groups, number((groups.number ?? "").replaceAll(",", ""))),
  ),
  rule(`${BEGIN}(?<word>${alternatives(TITLES)}|St)\\b\\.?`, saintOrStreet),
  rule(`${BEGIN}No\\.(?=\\s?\\d)`, () => "number"),
  rule(`${BEGIN}(?<word>${alternatives(ABBREVIATIONS)})${END}`, (found) => {
    const words = ABBREVIATIONS[found.text];
    return words === undefined ? undefined : withFullStop(words, found);
  }),
  rule(`[${Object.keys(SYMBOLS).join("")}]`, symbol),
];

const FULL_RULES: readonly Rule[] = [
  ...RULES,
  rule(`${BEGIN}(?<number>\\d+)${END}`, ({ groups }) => number(groups.number ?? "")),
];

/** Whether the engine reads these digits as `number` would write them: years and numbers from zero it does not. */
function isPlain(written: string): boolean {
  return /^[1-9]\d{0,5}$/.test(written) && !YEAR.test(written);
}

/** A bare four-digit number in the range of years is read as one. */
function number(digits: string): string {
  return YEAR.test(digits) ? year(digits) : cardinal(digits);
}

/**
 * The replacements for `text`, in order, none overlapping; time linear in the text. Plain whole numbers are left to the
 * engine unless all is to be written out.
 */
export function normalizeEnglish(text: string, options: { readonly isFull: boolean }): Replacement[] {
  return applyRules(options.isFull ? FULL_RULES : RULES, text);
}
