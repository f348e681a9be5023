import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BoundaryFinder } from "../../../src/text/boundaries.ts";
import { graphemeStarts, splitText } from "./fixtures.ts";

function ranksOf(text: string): Record<string, string> {
  const found = new BoundaryFinder().push(text);
  return Object.fromEntries(found.map(({ at, rank }) => [text.slice(at, at + 4), rank]));
}

describe("BoundaryFinder", () => {
  it("ranks sentence ends, clauses, words and what belongs together", () => {
    expect(ranksOf("Well, Dr. Who (the man) left. She - of all - wept; bye")).toMatchObject({
      "Dr. ": "clause",
      "Who ": "weak",
      "(the": "word",
      left: "clause",
      "She ": "sentence",
      "of a": "clause",
      bye: "clause",
    });
  });

  it("ranks marks that need no space behind them", () => {
    expect(ranksOf("你好，世界。再见——很好…走了 no—yes")).toMatchObject({
      "世界。再": "clause",
      "再见——": "sentence",
      "很好…走": "clause",
      "走了 n": "clause",
      yes: "clause",
    });
  });

  it("finds the same boundaries however the text is split, all between graphemes", () => {
    fc.assert(
      fc.property(splitText, ({ text, parts }) => {
        const finder = new BoundaryFinder();
        const found = parts.flatMap((part) => finder.push(part));
        expect(found).toEqual(new BoundaryFinder().push(text));
        const starts = graphemeStarts(text);
        for (const { at, spokenEnd } of found) {
          expect(starts.has(at)).toBe(true);
          expect(spokenEnd).toBeLessThanOrEqual(text.length);
        }
      }),
      { seed: 5, numRuns: 400 },
    );
  });
});
