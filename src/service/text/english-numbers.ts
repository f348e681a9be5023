/** English words for numbers: cardinals, ordinals, years and digits one by one. Input is ASCII digits without separators. */

const ONES = [
  "zero",
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
  "thirteen",
  "fourteen",
  "fifteen",
  "sixteen",
  "seventeen",
  "eighteen",
  "nineteen",
] as const;
const TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"] as const;
const SCALES = ["", " thousand", " million", " billion", " trillion"] as const;
/** Digits that the scales cover; longer numbers are read digit by digit. */
const MAX_DIGITS = SCALES.length * 3;

const IRREGULAR_ORDINALS: Readonly<Record<string, string>> = {
  one: "first",
  two: "second",
  three: "third",
  five: "fifth",
  eight: "eighth",
  nine: "ninth",
  twelve: "twelfth",
};

function one(index: number): string {
  return ONES[index] ?? "";
}

function belowHundred(value: number): string {
  if (value < 20) return one(value);
  const rest = value % 10;
  return `${TENS[Math.floor(value / 10)] ?? ""}${rest === 0 ? "" : `-${one(rest)}`}`;
}

function belowThousand(value: number): string {
  const hundreds = Math.floor(value / 100);
  const rest = value % 100;
  if (hundreds === 0) return belowHundred(rest);
  return rest === 0 ? `${one(hundreds)} hundred` : `${one(hundreds)} hundred ${belowHundred(rest)}`;
}

/** "1234" -> "one thousand two hundred thirty-four"; numbers with a leading zero or over 15 digits are spelled. */
export function cardinal(digits: string): string {
  if (digits.length > MAX_DIGITS || (digits.length > 1 && digits.startsWith("0"))) return spelled(digits);
  const parts: string[] = [];
  for (let end = digits.length, scale = 0; end > 0; end -= 3, scale++) {
    const group = Number(digits.slice(Math.max(0, end - 3), end));
    if (group > 0) parts.unshift(`${belowThousand(group)}${SCALES[scale] ?? ""}`);
  }
  return parts.length === 0 ? "zero" : parts.join(" ");
}

/** "21" -> "twenty-first". */
export function ordinal(digits: string): string {
  const words = cardinal(digits);
  const cut = Math.max(words.lastIndexOf(" "), words.lastIndexOf("-")) + 1;
  const last = words.slice(cut);
  const irregular = IRREGULAR_ORDINALS[last];
  if (irregular !== undefined) return words.slice(0, cut) + irregular;
  return `${words.slice(0, cut)}${last.endsWith("y") ? `${last.slice(0, -1)}ieth` : `${last}th`}`;
}

/** "1984" -> "nineteen eighty-four", "2005" -> "two thousand five", "1905" -> "nineteen oh five". */
export function year(digits: string): string {
  const value = Number(digits);
  const century = Math.floor(value / 100);
  const rest = value % 100;
  if (value < 1000 || value > 9999 || (century % 10 === 0 && rest < 10)) return cardinal(digits);
  if (rest === 0) return `${belowHundred(century)} hundred`;
  return `${belowHundred(century)} ${rest < 10 ? `oh ${one(rest)}` : belowHundred(rest)}`;
}

/** "1990" -> "nineteen nineties". */
export function decade(digits: string): string {
  const words = year(digits);
  if (words.endsWith("y")) return `${words.slice(0, -1)}ies`;
  return `${words}s`;
}

/** "404" -> "four zero four". */
export function spelled(digits: string): string {
  return Array.from(digits, (digit) => one(Number(digit))).join(" ");
}

/** "3.14" -> "three point one four"; commas between thousands are read over. */
export function decimal(number: string): string {
  const [whole = "0", fraction] = number.replaceAll(",", "").split(".");
  const words = cardinal(whole === "" ? "0" : whole);
  return fraction === undefined || fraction === "" ? words : `${words} point ${spelled(fraction)}`;
}
