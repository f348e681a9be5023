import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Lexicon, type PronunciationRule } from "../../../../src/service/text/pronunciation.ts";

function alias(
  stringToReplace: string,
  said: string,
  more: Partial<PronunciationRule> = {},
): PronunciationRule {
  return { stringToReplace, caseSensitive: true, wordBoundaries: true, ...more, type: "alias", alias: said };
}

/** The text with what is said in place of what is written. */
function respelled(text: string, ...rules: readonly PronunciationRule[]): string {
  let at = 0;
  let out = "";
  for (const { start, end, said } of new Lexicon(rules).respell(text)) {
    out += text.slice(at, start) + ("text" in said ? said.text : `[${said.mnemonics}]`);
    at = end;
  }
  return out + text.slice(at);
}

describe("Lexicon", () => {
  it("case_sensitive: true matches the same letters only, false any case", () => {
    expect(respelled("UN un Un", alias("UN", "x"))).toBe("x un Un");
    expect(respelled("UN un Un", alias("Un", "x", { caseSensitive: false }))).toBe("x x x");
    expect(respelled("ÉTÉ", alias("été", "x", { caseSensitive: false }))).toBe("x");
  });

  it("word_boundaries: true matches whole words only, false inside words, too", () => {
    expect(respelled("cat, cats; bobcat (cat)", alias("cat", "x"))).toBe("x, cats; bobcat (x)");
    expect(respelled("cat, cats; bobcat", alias("cat", "x", { wordBoundaries: false }))).toBe("x, xs; bobx");
    expect(respelled("𝒳cat", alias("cat", "x"))).toBe("𝒳cat");
    // A rule that ends in a mark has its border there.
    expect(respelled("C++11 C++", alias("C++", "see plus plus"))).toBe("see plus plus11 see plus plus");
  });

  it("word_boundaries: in scripts without spaces each letter may end a word", () => {
    expect(respelled("我喜欢北京的秋天", alias("北京", "x"))).toBe("我喜欢x的秋天");
    expect(respelled("東京タワーは高い", alias("タワー", "x"))).toBe("東京xは高い");
    expect(respelled("สวัสดีครับผมชื่อ", alias("ครับ", "x"))).toBe("สวัสดีxผมชื่อ");
    expect(respelled("用SQL查询SQLite", alias("SQL", "x"))).toBe("用x查询SQLite");
    // A vowel sign belongs to its letter.
    expect(respelled("ครับผมชื่อ ชอ", alias("ช", "x"))).toBe("ครับผมชื่อ xอ");
    // These have spaces.
    expect(respelled("서울시 서울", alias("서울", "x"))).toBe("서울시 x");
  });

  it("a letter with its accent is the same in one character and in two", () => {
    for (const rule of ["café", "cafe\u0301"]) {
      expect(respelled("Un café, un cafe\u0301.", alias(rule, "x"))).toBe("Un x, un x.");
      expect(respelled("CAFE\u0301 fin", alias(rule, "x", { caseSensitive: false }))).toBe("x fin");
    }
    // The stretches are of the text as it was written.
    const written = `e\u0301 ${"한국".normalize("NFD")}`;
    expect(new Lexicon([alias("한국", "x")]).respell(written)).toMatchObject([{ start: 3, end: 9 }]);
    expect(respelled("e\u0301", alias("e", "x", { wordBoundaries: false }))).toBe("e\u0301");
    expect(respelled("e\u0301👩‍👩‍👧", alias("👧", "x", { wordBoundaries: false }))).toBe("e\u0301👩‍👩‍x");
  });

  it("the first rule that fits at a place is used, and what it says is not looked at again", () => {
    expect(respelled("a b", alias("a", "b"), alias("b", "c"))).toBe("b c");
    expect(respelled("New York", alias("New York", "x"), alias("New", "y"))).toBe("x");
    expect(respelled("New York", alias("New", "y"), alias("New York", "x"))).toBe("y York");
    expect(respelled("cat", alias("cat", "x"), alias("cat", "y"))).toBe("x");
    expect(respelled("cats", alias("cat", "x"), alias("cat", "y", { wordBoundaries: false }))).toBe("ys");
  });

  it("phonemes are the engine's", () => {
    const rule: PronunciationRule = {
      ...alias("tomato", ""),
      type: "phoneme",
      phoneme: "təˈmɑːtoʊ",
      alphabet: "ipa",
    };
    expect(respelled("my tomato.", rule)).toBe("my [t|@|m|'A:|t|oU].");
  });

  it("finds what comparing every rule at every place finds", () => {
    const word = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom(..."abA ") });
    const rule = fc.record({ stringToReplace: word, caseSensitive: fc.boolean() });
    fc.assert(
      fc.property(
        fc.string({ maxLength: 30, unit: fc.constantFrom(..."abA ") }),
        fc.array(rule),
        (text, given) => {
          const rules = given.map((one) =>
            alias(one.stringToReplace, "x", { ...one, wordBoundaries: false }),
          );
          const expected: number[][] = [];
          for (let at = 0; at < text.length; at++) {
            const first = rules.find(({ stringToReplace: written, caseSensitive }) => {
              const there = text.slice(at, at + written.length);
              return caseSensitive ? there === written : there.toLowerCase() === written.toLowerCase();
            });
            if (first === undefined) continue;
            expected.push([at, at + first.stringToReplace.length]);
            at += first.stringToReplace.length - 1;
          }
          expect(new Lexicon(rules).respell(text).map(({ start, end }) => [start, end])).toEqual(expected);
        },
      ),
    );
  });

  it("spans are in order and within the text, for any text and rules", () => {
    const unit = fc.constantFrom(..."aAİiß😀 .e\u0301\u0323\u1100\u1161한");
    const word = fc.string({ minLength: 1, maxLength: 4, unit });
    const rules = fc.array(fc.record({ word, caseSensitive: fc.boolean(), wordBoundaries: fc.boolean() }), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.string({ maxLength: 40, unit }), rules, (text, given) => {
        const lexicon = new Lexicon(given.map(({ word: written, ...rest }) => alias(written, "x", rest)));
        let last = 0;
        for (const { start, end } of lexicon.respell(text)) {
          expect(start).toBeGreaterThanOrEqual(last);
          expect(end).toBeGreaterThan(start);
          last = end;
        }
        expect(last).toBeLessThanOrEqual(text.length);
      }),
    );
  });
});
