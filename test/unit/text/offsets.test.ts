import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CodePointOffsets } from "../../../src/text/code-points.ts";
import { anyText } from "./fixtures.ts";

describe("CodePointOffsets", () => {
  it("counts a surrogate pair as one, and an offset inside it as its start", () => {
    const offsets = new CodePointOffsets("a😀b😀");
    expect([0, 1, 2, 3, 4, 5, 6].map((at) => offsets.codePointsOf(at))).toEqual([0, 1, 1, 2, 3, 3, 4]);
  });

  it("counts lone halves as one each", () => {
    const offsets = new CodePointOffsets("\ude00\ud83d\ud83d\ude00\ud83d");
    expect([0, 1, 2, 4, 5].map((at) => offsets.codePointsOf(at))).toEqual([0, 1, 2, 3, 4]);
  });

  it("agrees with the iterator for every character of any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const offsets = new CodePointOffsets(text);
        let utf16 = 0;
        for (const [index, character] of [...text].entries()) {
          expect(offsets.codePointsOf(utf16)).toBe(index);
          utf16 += character.length;
        }
        expect(offsets.codePointsOf(text.length)).toBe([...text].length);
      }),
      { seed: 3, numRuns: 150 },
    );
  });

  it("answers a million questions about a million emoji at once", () => {
    const offsets = new CodePointOffsets("😀".repeat(1_000_000));
    let sum = 0;
    for (let i = 0; i < 1_000_000; i++) sum += offsets.codePointsOf(2 * i) - i;
    expect(sum).toBe(0);
  });
});
