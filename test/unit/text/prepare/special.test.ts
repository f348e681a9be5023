import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMOJI_START } from "../../../../src/text/prepare/emoji.ts";
import { SpecialFinder } from "../../../../src/text/prepare/special.ts";
import { markedText } from "./prepared.ts";

describe("SpecialFinder", () => {
  it.each([
    ["plain, text.", 0, 12, 12],
    ["a *b*", 0, 5, 2],
    ["a *b*", 3, 5, 4],
    ["a *b*", 0, 2, 2],
    ["so \u{1f600}", 0, 5, 2],
    ["so \u{1f600}", 0, 3, 2],
    ["so \u2764\ufe0f", 0, 5, 2],
    ["at 1\ufe0f\u20e3", 0, 6, 2],
    ["at 1\ufe0f\u20e3", 0, 3, 2],
    ["a *\u20e3", 0, 4, 1],
    ["\u201cno\u201d\u2014", 0, 5, 5],
  ])("looks in %j from %i to %i and stops at %i", (text, from, to, expected) => {
    expect(new SpecialFinder("*<", true).next(text, from, to)).toBe(expected);
  });

  it.each(["<", "[", "\\", "!", "\n", " ", "|", "-", "^", "]"])("knows the mark %j", (mark) => {
    expect(new SpecialFinder(mark, false).next(`ab${mark}`, 0, 3)).toBe(2);
    expect(new SpecialFinder(mark, true).next(`\u2192b${mark}`, 0, 3)).toBe(2);
  });

  it("takes emoji as text where nobody asked for them", () => {
    expect(new SpecialFinder("*", false).next("so \u{1f600} 1\ufe0f\u20e3", 0, 9)).toBe(9);
  });

  it("stops where the pattern of everything special would", () => {
    const marks = "<[*_~`\\!\n";
    const finder = new SpecialFinder(marks, true);
    fc.assert(
      fc.property(markedText, fc.nat(200), fc.nat(200), (text, start, length) => {
        const from = Math.min(start, text.length);
        const to = Math.min(from + length, text.length);
        // Nobody asks from within a pair.
        fc.pre(!/[\udc00-\udfff]/.test(text.charAt(from)));
        const pattern = new RegExp(`[<\\[*_~\`\\\\!\\n]|${EMOJI_START}`, "gu");
        pattern.lastIndex = from;
        const found = pattern.exec(text)?.index ?? to;
        expect(finder.next(text, from, to)).toBe(Math.min(found, to));
      }),
      { seed: 31, numRuns: 500 },
    );
  });

  it.each([
    ["\u{1f600}a", 200_000],
    ["\u2192*", 200_000],
    ["\u2192a", 0],
  ])("goes through 200,000 times %j in linear time", (part, expected) => {
    const text = part.repeat(200_000);
    const finder = new SpecialFinder("*", true);
    let found = 0;
    for (let from = 0; from < text.length; ) {
      const at = finder.next(text, from, text.length);
      if (at < text.length) found += 1;
      // Behind both units of a pair.
      from = Math.max(at, from) + (part.length === 3 ? 2 : 1);
    }
    expect(found).toBe(expected);
  });
});
