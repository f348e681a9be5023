import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { safeText, textColumns, wrapLines } from "../../../src/cli/output/terminal-text.ts";

function wrapped(text: string, columns: number): string[] {
  return [...wrapLines(text, columns)].map((line) => text.slice(line.start, line.end));
}

describe("textColumns()", () => {
  test.each([
    ["abc", 3],
    ["日本語", 6],
    ["ｱｲｳ", 3],
    ["한글", 4],
    ["e\u0301", 1],
    ["👩‍👩‍👧", 2],
    ["🇩🇪", 2],
    ["❤️", 2],
    ["שלום", 4],
    ["", 0],
  ])("counts %s", (text, columns) => {
    expect(textColumns(text)).toBe(columns);
  });
});

describe("wrapLines()", () => {
  test("breaks at spaces and keeps words whole", () => {
    expect(wrapped("the quick brown fox", 10)).toEqual(["the quick", "brown fox"]);
  });

  test("breaks between wide characters by columns, not by characters", () => {
    expect(wrapped("今日はとても良い天気です", 10)).toEqual(["今日はとて", "も良い天気", "です"]);
  });

  test("does not begin a line with a comma or a full stop", () => {
    expect(wrapped("それから、お茶を。", 8)).toEqual(["それか", "ら、お茶", "を。"]);
  });

  test("breaks inside a word only where it is longer than a line", () => {
    expect(wrapped("a abcdefghijkl b", 5)).toEqual(["a", "abcde", "fghij", "kl b"]);
  });

  test("breaks at every newline", () => {
    expect(wrapped("one\n\ntwo\r\nthree", 20)).toEqual(["one", "", "two", "three"]);
  });

  test("never exceeds the width and loses nothing but spaces at breaks", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "bc", " ", "日", "👍", "e\u0301", "\n") });
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 12 }), (sample, columns) => {
        const lines = wrapped(sample, columns);
        // Spaces at the end of a line may hang over it, as in every editor: they are not visible.
        for (const line of lines) expect(textColumns(line.trimEnd())).toBeLessThanOrEqual(columns);
        expect(lines.join("").replace(/\s/g, "")).toBe(sample.replace(/\s/g, ""));
      }),
    );
  });

  test("starts at the given offset", () => {
    expect([...wrapLines("one two", 10, 4)]).toEqual([{ start: 4, end: 7 }]);
  });
});

test("safeText() takes escape sequences and direction overrides their power and keeps offsets", () => {
  expect(safeText("a\x1b[31mb\x07\u202ec\nd")).toBe("a [31mb  c\nd");
});
