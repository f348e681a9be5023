import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Replacement } from "../../../../src/protocol/commands.ts";
import { foldCase } from "../../../../src/text/prepare/letters.ts";
import { prepared, said } from "./prepared.ts";

const loose = { whole_word: false };

describe("replacing", () => {
  it.each<[string, readonly Replacement[], string]>([
    ["SQL and MySQL, SQL.", [{ from: "SQL", to: "sequel" }], "sequel and MySQL, sequel."],
    ["sql Sql", [{ from: "SQL", to: "sequel" }], "sql Sql"],
    ["sql Sql", [{ from: "SQL", to: "sequel", ignore_case: true }], "sequel sequel"],
    ["MySQL", [{ from: "SQL", to: "sequel", ...loose }], "Mysequel"],
    [
      "New York City",
      [
        { from: "New York", to: "NY" },
        { from: "New York City", to: "NYC" },
      ],
      "NYC",
    ],
    [
      "New York Cit",
      [
        { from: "New York", to: "NY" },
        { from: "New York City", to: "NYC" },
      ],
      "NY Cit",
    ],
    [
      "abcd",
      [
        { from: "bc", to: "2", ...loose },
        { from: "abcx", to: "1", ...loose },
      ],
      "a2d",
    ],
    [
      "abcd",
      [
        { from: "bcd", to: "2", ...loose },
        { from: "ab", to: "1", ...loose },
      ],
      "1cd",
    ],
    [
      "US",
      [
        { from: "us", to: "1", ignore_case: true },
        { from: "US", to: "2" },
      ],
      "1",
    ],
    [
      "US",
      [
        { from: "US", to: "2" },
        { from: "us", to: "1", ignore_case: true },
      ],
      "2",
    ],
    [
      "a b",
      [
        { from: "a", to: "b" },
        { from: "b", to: "c" },
      ],
      "b c",
    ],
    ["aaa", [{ from: "a", to: "aa", ...loose }], "aaaaaa"],
    ["a, b", [{ from: "a", to: "" }], ", b"],
    ["C++ C++11", [{ from: "C++", to: "C plus plus" }], "C plus plus C++11"],
    ["e e\u0301", [{ from: "e", to: "x" }], "x e\u0301"],
    ["ΣΊΣΥΦΟΣ", [{ from: "σίσυφος", to: "x", ignore_case: true }], "x"],
    ["I ı", [{ from: "i", to: "x", ignore_case: true }], "x ı"],
    ["我用AI写", [{ from: "AI", to: "人工智能" }], "我用人工智能写"],
    ["我爱北京天安门", [{ from: "北京", to: "首都" }], "我爱首都天安门"],
    ["الرياض و الرياضيات", [{ from: "الرياض", to: "العاصمة" }], "العاصمة و الرياضيات"],
    ["काम कामना", [{ from: "काम", to: "कार्य" }], "कार्य कामना"],
    ["क कि", [{ from: "क", to: "x" }], "x कि"],
    ["ไปกรุงเทพนะ", [{ from: "กรุงเทพ", to: "เมืองหลวง" }], "ไปเมืองหลวงนะ"],
    ["กา กี", [{ from: "ก", to: "x", ...loose }], "xา xี"],
    ["a <b a='a'> [a] a", [{ from: "a", to: "x" }], "x <b a='a'> [a] x"],
  ])("in %j by %j gives %j", (text, rules, expected) => {
    expect(said(text, [], rules)).toBe(expected);
  });

  it("sees the cleaned text, and its match holds what was taken out of it", () => {
    const rules = [{ from: "foo bar", to: "x" }];
    const { spoken, spans } = prepared(["a **foo** bar b"], { clean: ["markdown"], replacements: rules });
    expect(spoken).toBe("a x b");
    expect(spans.map((p) => [p.spokenStart, p.spokenEnd, p.clientStart, p.clientEnd])).toEqual([
      [0, 2, 0, 2],
      [2, 2, 2, 4],
      [2, 3, 4, 13],
      [3, 5, 13, 15],
    ]);
  });

  it("may take a part of what cleaning put there", () => {
    const rules = [{ from: "dot", to: "point" }];
    const { spoken, spans } = prepared(["www.a.b ok"], { clean: ["urls"], replacements: rules });
    expect(spoken).toBe("a point b ok");
    expect(spans.map((p) => [p.spokenStart, p.spokenEnd, p.clientStart, p.clientEnd])).toEqual([
      [0, 2, 0, 7],
      [2, 7, 7, 7],
      [7, 9, 7, 7],
      [9, 12, 7, 10],
    ]);
  });

  it("does what trying every rule at every place does", () => {
    const rule = fc.record({
      from: fc.string({ unit: fc.constantFrom("a", "b", "A", " "), minLength: 1, maxLength: 5 }),
      to: fc.constantFrom("", "1", "ab"),
      ignore_case: fc.boolean(),
      whole_word: fc.boolean(),
    });
    const text = fc.string({ unit: fc.constantFrom("a", "b", "A", " "), maxLength: 40 });
    fc.assert(
      fc.property(text, fc.array(rule, { maxLength: 8 }), (whole, rules) => {
        expect(said(whole, [], rules)).toBe(replacedOneByOne(whole, rules));
      }),
      { numRuns: 1000 },
    );
  });

  it("folds case as regular expressions do", () => {
    const codePoint = fc.oneof(
      fc.integer({ min: 0x80, max: 0x2fff }),
      fc.integer({ min: 0xa640, max: 0x1e943 }),
    );
    fc.assert(
      fc.property(
        codePoint.filter((code) => code < 0xd800 || code > 0xdfff),
        (code) => {
          const folded = foldCase(code);
          expect(new RegExp(`^\\u{${code.toString(16)}}$`, "iu").test(String.fromCodePoint(folded))).toBe(
            true,
          );
          expect(foldCase(folded)).toBe(folded);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

function replacedOneByOne(text: string, rules: readonly Replacement[]): string {
  let out = "";
  for (let at = 0; at < text.length; ) {
    let best: Replacement | undefined;
    for (const rule of rules) {
      const found = text.slice(at, at + rule.from.length);
      const isFound = rule.ignore_case
        ? found.toLowerCase() === rule.from.toLowerCase()
        : found === rule.from;
      const sides = [text.slice(0, at).slice(-1), text.charAt(at + found.length)];
      const isWord = sides.every((side) => !/[a-z]/i.test(side));
      if (isFound && (isWord || !rule.whole_word) && rule.from.length > (best?.from.length ?? 0)) best = rule;
    }
    out += best ? best.to : text.charAt(at);
    at += best ? best.from.length : 1;
  }
  return out;
}
