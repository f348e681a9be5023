import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WordPositions } from "../../../src/text/word-positions.ts";
import { wordSpans } from "../../../src/text/words.ts";
import { anyText } from "./fixtures.ts";

describe("WordPositions", () => {
  it.each([
    ["a word", "alpha bravo", 8, 6],
    ["no word, at its end", "alpha bravo", 5, 5],
    ["a word in quotes", 'say "hello"', 8, 5],
    ["a Chinese word of two characters", "今天北京很冷", 3, 2],
    ["a Thai word", "สวัสดีครับ", 3, 0],
    ["a letter and its marks", "cafe\u0301 noir", 4, 0],
    ["a picture of several code points", "ok 👩‍👩‍👧 yes", 8, 3],
    ["a word of letters outside the BMP", "a 𝒜𝒷𝒸 b", 4, 2],
    ["a break", 'one <break time="1s"/> two', 10, 4],
    ["an element that stays whole", 'the <sub alias="x">World Health</sub> body', 26, 4],
    ["an element that is not closed: its word", 'the <sub alias="x">World Health body', 26, 25],
  ])("goes back to the beginning of %s", (_name, text, at, expected) => {
    expect(new WordPositions(text).before(at)).toBe(expected);
  });

  it("takes `[laughs softly]` for one where it is no text", () => {
    const text = "So [laughs softly] yes";
    expect(new WordPositions(text, { hasDirections: true }).before(14)).toBe(3);
    expect(new WordPositions(text).before(14)).toBe(11);
  });

  it("begins a word where inputs of a dialogue meet", () => {
    expect(new WordPositions("helloworld", { joints: [5, 10] }).before(7)).toBe(5);
  });

  it("never goes on, nor further back than the word that a place is in", () => {
    fc.assert(
      fc.property(anyText, fc.nat(400), (text, anyAt) => {
        const at = anyAt % (text.length + 1);
        const places = new WordPositions(text);
        const before = places.before(at);
        expect(before).toBeLessThanOrEqual(at);
        expect(places.before(before)).toBe(before);
        expect(wordSpans(text).find(({ start, end }) => start < before && before < end)).toBeUndefined();
      }),
    );
  });
});
