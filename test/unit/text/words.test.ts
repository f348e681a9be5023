import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WordScanner, wordSpans } from "../../../src/text/words.ts";
import { FIXTURES, graphemeStarts, splitText } from "./fixtures.ts";

function wordsOf(text: string): string[] {
  return wordSpans(text).map(({ start, end }) => text.slice(start, end));
}

function scan(parts: readonly string[]) {
  const scanner = new WordScanner();
  return [...parts.flatMap((part) => scanner.push(part)), ...scanner.endWord()];
}

describe("wordSpans", () => {
  it.each([
    ["“Hello,” she said—'yes'!", ["Hello", "she", "said", "yes"]],
    ["(don't) l’été rock'n'roll co-op", ["don't", "l’été", "rock'n'roll", "co-op"]],
    [
      "$1,234.56, -5 +49 .5 3% 5€ 20° 18+ 3.14.",
      ["$1,234.56", "-5", "+49", ".5", "3%", "5€", "20°", "18+", "3.14"],
    ],
    [
      "Dr. Smith, U.S. (U.S.A.) e.g. etc... J. p.m.",
      ["Dr.", "Smith", "U.S.", "U.S.A.", "e.g.", "etc", "J.", "p.m."],
    ],
    ["C++ C# (C++), F#. A+ TV™", ["C++", "C#", "C++", "F#", "A+", "TV™"]],
    ["word(s) (s)he f(x). [note] {a}", ["word(s)", "(s)he", "f(x)", "note", "a"]],
    [
      "See https://en.wikipedia.org/wiki/Foo_(bar)--x. <a.b@c.org>, www.x.org/!",
      ["See", "https://en.wikipedia.org/wiki/Foo_(bar)--x", "a.b@c.org", "www.x.org/"],
    ],
    ["wait...what… no--yes", ["wait", "what", "no", "yes"]],
    ["**bold** _it_ `code` # Title - item", ["bold", "it", "code", "Title", "item"]],
    ["Tom & Jerry 2 + 2 = 4 #tag @me", ["Tom", "&", "Jerry", "2", "+", "2", "=", "4", "#tag", "@me"]],
    [" ... - — !? ", []],
    ["Hi😀👍🏽! 👨‍👩‍👧 🇩🇪🇫🇷 🏳️‍🌈 1️⃣ ❤️", ["Hi", "😀👍🏽", "👨‍👩‍👧", "🇩🇪🇫🇷", "🏳️‍🌈", "1️⃣", "❤️"]],
    ["!\u200d🇩🇪🇫🇷 🧑‍⚖️", ["🇩🇪🇫🇷", "🧑‍⚖️"]],
    ["e\u0301te\u0301, क्‍षत्रिय। है", ["e\u0301te\u0301", "क्‍षत्रिय", "है"]],
    ["مرحبا، كيف؟ שלום! ארה״ב ג׳", ["مرحبا", "كيف", "שלום", "ארה״ב", "ג׳"]],
    ["안녕하세요, 세계!", ["안녕하세요", "세계"]],
    ["我们今天去。「你好」，世界", ["我们", "今天", "去", "你好", "世界"]],
    ["iPhoneを買う3月", ["iPhone", "を", "買う", "3", "月"]],
    ["สวัสดีครับ อากาศ", ["สวัสดี", "ครับ", "อากาศ"]],
    ['Hi<break time="1s"/>there <b>you</b> a < b', ["Hi", "there", "you", "a", "<", "b"]],
    ["10\u00a0000 a\u200bb \u200ex\u200f", ["10", "000", "a", "b", "x"]],
  ])("finds the words of %j", (text, expected) => {
    expect(wordsOf(text)).toEqual(expected);
  });

  it("spans lie inside the text, in order, and never cut a grapheme", () => {
    fc.assert(
      fc.property(splitText, ({ text }) => {
        const starts = graphemeStarts(text);
        let at = 0;
        for (const span of wordSpans(text)) {
          expect(span.start).toBeGreaterThanOrEqual(at);
          expect(span.end).toBeGreaterThan(span.start);
          expect(starts.has(span.start) && starts.has(span.end)).toBe(true);
          at = span.end;
        }
        expect(at).toBeLessThanOrEqual(text.length);
      }),
      { seed: 11, numRuns: 600 },
    );
  });

  it("every letter and digit outside tags is in a word", () => {
    fc.assert(
      fc.property(fc.constantFrom(...FIXTURES), (text) => {
        const tagless = text.replace(/<\/?[a-z]+( [a-z]+="[^"]*")*\/?>/g, (tag) => " ".repeat(tag.length));
        const inWords = wordSpans(text)
          .map(({ start, end }) => tagless.slice(start, end))
          .join("");
        const letters = (all: string): string => all.replace(/[^\p{L}\p{N}]/gu, "");
        expect(letters(inWords)).toBe(letters(tagless));
      }),
      { seed: 12, numRuns: 100 },
    );
  });
});

describe("WordScanner", () => {
  it("any split of a text gives the same words", () => {
    fc.assert(
      fc.property(splitText, ({ text, parts }) => {
        const words = scan(parts);
        expect(words).toEqual(scan([text]));
        for (const word of words) expect(word.text).toBe(text.slice(word.start, word.end));
      }),
      { seed: 13, numRuns: 600 },
    );
    for (const text of FIXTURES) expect(scan(Array.from(text))).toEqual(scan([text]));
  });

  it("gives a word out when the character behind it shows that it is complete", () => {
    const scanner = new WordScanner();
    expect(scanner.push("U.S")).toEqual([]);
    expect(scanner.push(".")).toEqual([]);
    expect(scanner.push(" ")).toEqual([{ text: "U.S.", start: 0, end: 4 }]);
    expect(scanner.push("th")).toEqual([]);
    expect(scanner.push("e")).toEqual([]);
    expect(scanner.endWord()).toEqual([{ text: "the", start: 5, end: 8 }]);
  });

  it("gives the words of a long run without spaces before it ends", () => {
    const scanner = new WordScanner();
    const run = "我们今天去北京大学学习计算机科学与技术".repeat(40);
    const words = Array.from(run).flatMap((character) => scanner.push(character));
    expect(words.at(-1)?.end).toBeGreaterThan(run.length - 300);
    expect([...words, ...scanner.endWord()].map((word) => word.text).join("")).toBe(run);
  });

  it.each([
    ["200 kB without a space", "x".repeat(200_000)],
    ["200 kB of closing marks", `a${"!".repeat(200_000)}`],
    ["200 kB of slashes", `a${"/".repeat(200_000)}`],
    ["200 kB of addresses", "a@".repeat(100_000)],
    ["200 kB of brackets", "(".repeat(200_000)],
    ["a grapheme of 200,000 marks", `e${"\u0301".repeat(200_000)}`],
    ["Chinese without marks", "我们今天去北京大学".repeat(10_000)],
  ])("takes %s in linear time, letter by letter too", (_name, text) => {
    expect(scan(Array.from(text))).toHaveLength(scan([text]).length);
  });

  it("takes directions to the voice for no words where the model acts on them", () => {
    const text = "Hi [laughs] there [sighs, then goes on]. See [1] and [Ann";
    const found = (parts: readonly string[], hasDirections: boolean): string[] => {
      const scanner = new WordScanner(hasDirections);
      return [...parts.flatMap((part) => scanner.push(part)), ...scanner.endWord()].map((word) => word.text);
    };
    const words = ["Hi", "there", "See", "1", "and", "Ann"];
    expect(found([text], true)).toEqual(words);
    expect(found([...text], true)).toEqual(words);
    expect(found([text], false)).toContain("laughs");
  });
});
