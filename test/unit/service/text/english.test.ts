import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normalizeEnglish } from "../../../../src/service/text/english.ts";
import { cardinal, ordinal, year } from "../../../../src/service/text/english-numbers.ts";

function said(text: string): string {
  let result = "";
  let at = 0;
  for (const { start, end, text: words } of normalizeEnglish(text, { isFull: true })) {
    result += text.slice(at, start) + words;
    at = end;
  }
  return result + text.slice(at);
}

describe("normalizeEnglish()", () => {
  it.each([
    [
      "It costs $1,234.56 now.",
      "It costs one thousand two hundred thirty-four dollars and fifty-six cents now.",
    ],
    [
      "$0.99, $1, -$3.50, $5 million",
      "ninety-nine cents, one dollar, minus three dollars and fifty cents, five million dollars",
    ],
    ["£1.01 and 20€", "one pound and one penny and twenty euros"],
    ["10% of 3.14 is -5", "ten percent of three point one four is minus five"],
    ["the 21st, 3rd and 112th", "the twenty-first, third and one hundred twelfth"],
    [
      "In 1984, 2005, 1905 and 2024",
      "In nineteen eighty-four, two thousand five, nineteen oh five and twenty twenty-four",
    ],
    ["the 1990s", "the nineteen nineties"],
    ["Dr. Smith met Mr. Jones", "Doctor Smith met Mister Jones"],
    ["St. Mark is at 12 Main St.", "Saint Mark is at twelve Main Street."],
    ["R&D a & b", "R and D a and b"],
    ["at 3:30 pm, 10:05 and 7:00", "at three thirty P M, ten oh five and seven o'clock"],
    ["March 5, 2024", "March fifth, twenty twenty-four"],
    ["2024-03-05 or 3/5/2024", "March fifth, twenty twenty-four or March fifth, twenty twenty-four"],
    ["5 kg at 20°C and 60mph", "five kilograms at twenty degrees Celsius and sixty miles per hour"],
    ["3/4 of it", "three quarters of it"],
    ["call 555-1234", "call five five five, one two three four"],
    ["version 1.2.3", "version one point two point three"],
    ["10-20 people", "ten to twenty people"],
    ["agent 007", "agent zero zero seven"],
    ["B2B mp3 4K", "B2B mp3 4K"],
    ["nothing here", "nothing here"],
  ])("says %j as %j", (text, words) => expect(said(text)).toBe(words));

  it("gives ordered replacements that do not overlap, for any text", () => {
    const piece = fc.constantFrom(
      "$1,234.56",
      "5",
      " ",
      "%",
      "St.",
      "Dr.",
      "-",
      "/",
      ":",
      "10",
      "2024",
      "&",
      "°C",
      "é",
      "😀",
      "<",
      "km",
      ",",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (parts) => {
        const text = parts.join("");
        let at = 0;
        for (const { start, end } of normalizeEnglish(text, { isFull: true })) {
          expect(start).toBeGreaterThanOrEqual(at);
          expect(end).toBeGreaterThan(start);
          at = end;
        }
        expect(at).toBeLessThanOrEqual(text.length);
      }),
    );
  });
});

describe("a long text of abbreviations", () => {
  it("is read like a short one", () => {
    const words = (count: number) =>
      normalizeEnglish("5 Main St. and ".repeat(count), { isFull: true }).map(({ text }) => text);
    expect(words(1)).toEqual(["five", "Street"]);
    expect(words(3000)).toEqual(Array.from({ length: 3000 }, () => words(1)).flat());
  });

  it("an address and a name are distinguished by what stands near", () => {
    const words = (text: string) =>
      normalizeEnglish(text, { isFull: true }).map((replacement) => replacement.text);
    expect(words(`5 ${"Main ".repeat(60)}St. Anna`)).toEqual(["five", "Saint"]);
    expect(words("5 Main St. Anna")).toEqual(["five", "Street"]);
  });
});

describe("numbers in English words", () => {
  it("cardinal() covers zero to the trillions and spells what is longer", () => {
    expect(cardinal("0")).toBe("zero");
    expect(cardinal("1000000")).toBe("one million");
    expect(cardinal("999999999999999")).toMatch(/^nine hundred ninety-nine trillion/);
    expect(cardinal("1000000000000000")).toMatch(/^one zero zero/);
  });
  it("ordinal() and year() follow usage", () => {
    expect(["1", "12", "20", "101"].map(ordinal)).toEqual([
      "first",
      "twelfth",
      "twentieth",
      "one hundred first",
    ]);
    expect(["1900", "2000", "2010", "1066"].map(year)).toEqual([
      "nineteen hundred",
      "two thousand",
      "twenty ten",
      "ten sixty-six",
    ]);
  });
});
