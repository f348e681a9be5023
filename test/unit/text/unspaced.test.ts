import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lastUnspacedWordStart, unspacedWords } from "../../../src/text/unspaced.ts";

const WORDS = new Intl.Segmenter("en", { granularity: "word" });

/** Ideographs, common ones and any, kana, Thai, and what stands between them. */
const unspacedText: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "我们",
        "今天",
        "去",
        "北京大学",
        "的",
        "三",
        "〇",
        "㈠",
        "⺀",
        "々",
        "𠮷",
        "カタ",
        "で",
        "す",
      ),
      fc.constantFrom("สวัสดี", "ครับ", "ไป", "ๆ", "\u0301", "\u200d", "。", "3", "a"),
      fc.integer({ min: 0x4e00, max: 0x9fff }).map((codePoint) => String.fromCodePoint(codePoint)),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(""));

describe("unspacedWords", () => {
  it("gives the words that the dictionary gives one by one", () => {
    fc.assert(
      fc.property(unspacedText, (text) => {
        const expected = Array.from(WORDS.segment(text))
          .filter(({ isWordLike }) => isWordLike)
          .map(({ index, segment }) => ({ start: index, end: index + segment.length }));
        expect(unspacedWords(text)).toEqual(expected);
      }),
      { seed: 41, numRuns: 800 },
    );
  });
});

describe("lastUnspacedWordStart", () => {
  it.each([
    ["我们今天去北京", 99, 5],
    ["我们今天去北京", 4, 4],
    ["我们今天去北京", 3.5, 2],
    ["我们今天去北京", 1, -1],
    ["abc def", 99, -1],
    ["", 5, -1],
  ])("in %j at or before %d is %i", (text, max, expected) => {
    expect(lastUnspacedWordStart(text, max)).toBe(expected);
  });
});
