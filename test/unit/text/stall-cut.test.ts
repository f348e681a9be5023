import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TagGate } from "../../../src/text/markup.ts";
import { type Segment, Segmenter } from "../../../src/text/segmenter.ts";
import { anyText, graphemeStarts } from "./fixtures.ts";

const RANKS = ["sentence", "clause", "word"] as const;

/** What is cut when `text` stalls, by rank; null = nothing. */
function cuts(text: string): (string | null)[] {
  return RANKS.map((rank) => {
    const segmenter = new Segmenter({ minChars: [500] });
    expect(segmenter.push(text)).toEqual([]);
    return segmenter.cutNow(rank)[0]?.text ?? null;
  });
}

describe("Segmenter.cutNow", () => {
  it.each([
    ["Hello there.", ["Hello there.", "Hello there.", "Hello there."]],
    ["Hello, ", [null, "Hello, ", "Hello, "]],
    ["Hello,", [null, "Hello,", "Hello,"]],
    ["Hello wor", [null, null, "Hello "]],
    ["Hello", [null, null, null]],
    ["One. Two, three fo", ["One. ", "One. Two, ", "One. Two, three "]],
    ["I met Dr.", [null, null, "I met "]],
    ["I met Dr. ", [null, null, "I met "]],
    ["In the U.S.", [null, null, "In the "]],
    ["It is 3.", [null, null, "It is "]],
    ["It is 3. ", ["It is 3. ", "It is 3. ", "It is 3. "]],
    ["It is 1,", [null, null, "It is "]],
    ["Is it 3?", ["Is it 3?", "Is it 3?", "Is it 3?"]],
    ["Go to https:", [null, null, "Go to "]],
    ["Go to https://a.b/c?", [null, null, "Go to "]],
    ["“Yes!”", ["“Yes!”", "“Yes!”", "“Yes!”"]],
    ["(Yes.) ", ["(Yes.) ", "(Yes.) ", "(Yes.) "]],
    ["Great! 😀", ["Great! 😀", "Great! 😀", "Great! 😀"]],
    ["Go. Great! 👩\u200d", ["Go. ", "Go. ", "Go. "]],
    ["Great! \u{1f1e9}", [null, null, null]],
    ["Great! \u{1f1e9}\u{1f1ea}", Array(3).fill("Great! \u{1f1e9}\u{1f1ea}")],
    ["Great! 🏴\u{e0067}\u{e0062}", [null, null, null]],
    ["Great! 🏴\u{e0067}\u{e0062}\u{e007f}", Array(3).fill("Great! 🏴\u{e0067}\u{e0062}\u{e007f}")],
    ["Wait...", [null, "Wait...", "Wait..."]],
    ["List:\n1. ", ["List:\n", "List:\n", "List:\n"]],
    ["Title\n", [null, "Title\n", "Title\n"]],
    ["Title\n\n", ["Title\n\n", "Title\n\n", "Title\n\n"]],
    ["Yes.\r", [null, null, null]],
    ["Hi. <break", ["Hi. ", "Hi. ", "Hi. "]],
    ["Hi.</", [null, null, null]],
    ["Ha. [laughs] ", ["Ha. ", "Ha. ", "Ha. "]],
    ["Say <sub alias='x'>who. Is ", [null, null, "Say "]],
    ["<sub alias='x'>Who.</sub>", Array(3).fill("<sub alias='x'>Who.</sub>")],
    ["你好，世界。", ["你好，世界。", "你好，世界。", "你好，世界。"]],
    ["今天天气很好我们去", [null, null, "今天天气很好"]],
    ["ดี. ๓.", [null, "ดี. ", "ดี. "]],
    ["สวัสดีครับวันนี้อากาศดีมากและเราจะไป๓.", [null, null, "สวัสดีครับวันนี้อากาศดีมาก"]],
    // A decimal that begins, behind more text without a space than is compared with lists.
    [`你好。${"今天天气很好".repeat(4)}是3.`, ["你好。", "你好。", `你好。${"今天天气很好".repeat(4)}`]],
    [`你好。${"今天天气很好".repeat(4)}是1,`, ["你好。", "你好。", `你好。${"今天天气很好".repeat(4)}`]],
    ["สวัสดีครับวันนี้อากาศดีมากและเราจะไป", [null, null, "สวัสดีครับวันนี้อากาศดี"]],
    ["क्या हाल है?", ["क्या हाल है?", "क्या हाल है?", "क्या हाल है?"]],
    ["...", [null, null, null]],
    ["", [null, null, null]],
  ])("of %j", (text, expected) => {
    expect(cuts(text)).toEqual(expected);
  });

  it("lets the text go on as a new piece, with its offsets", () => {
    const segmenter = new Segmenter();
    segmenter.push("Well, I thi");
    expect(segmenter.cutNow("clause")).toEqual([{ text: "Well, ", start: 0, end: 6 }]);
    expect(segmenter.cutNow("clause")).toEqual([]);
    expect(segmenter.pendingChars).toBe(5);
    segmenter.push("nk so.");
    expect(segmenter.cutNow("sentence")).toEqual([{ text: "I think so.", start: 6, end: 17 }]);
    segmenter.push(" Then. More");
    expect(segmenter.segmentCount).toBe(2);
    expect(segmenter.end()).toEqual([{ text: " Then. More", start: 17, end: 28 }]);
  });

  it("lets an element that is open be cut once it is too long", () => {
    const segmenter = new Segmenter({ minChars: [500], firstMaxChars: 40, maxChars: 40 });
    expect(segmenter.push(`<emphasis>${"word ".repeat(6)}`)).toEqual([]);
    expect(segmenter.cutNow("word")).toEqual([]);
    expect(segmenter.push("word word").map((segment) => segment.text)).toEqual([
      `<emphasis>${"word ".repeat(6)}`,
    ]);
  });
});

function tagsOf(text: string): { start: number; end: number }[] {
  const tags: { start: number; end: number }[] = [];
  const gate = new TagGate(
    { character: () => undefined, tag: (start, end) => tags.push({ start, end }) },
    { hasBracketTags: true },
  );
  let index = 0;
  for (const character of text) {
    gate.step(character.codePointAt(0) ?? 0, index);
    index += character.length;
  }
  return tags;
}

const tagged = fc
  .array(
    fc.oneof(
      anyText,
      fc.constantFrom("<sub alias='世界'>W. H. O</sub>", "<w>", "</w> ", "<break/>", "Hi. ", "so, "),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(""));

describe("Segmenter.cutNow anywhere", () => {
  it("gives the text, cut between graphemes and never inside a tag", () => {
    const moves = fc.array(fc.tuple(fc.nat(60), fc.constantFrom(...RANKS)), { maxLength: 20 });
    const options = fc.constantFrom({}, { minChars: [500] }, { firstMaxChars: 8, maxChars: 20 });
    fc.assert(
      fc.property(tagged, moves, options, (text, steps, limits) => {
        const segmenter = new Segmenter(limits);
        const starts = graphemeStarts(text);
        const segments: Segment[] = [];
        let pushed = 0;
        for (const [length, rank] of steps) {
          let end = Math.min(pushed + length, text.length);
          while (!starts.has(end)) end += 1;
          segments.push(...segmenter.push(text.slice(pushed, end)), ...segmenter.cutNow(rank));
          pushed = end;
        }
        segments.push(...segmenter.push(text.slice(pushed)), ...segmenter.end());
        expect(segmenter.segmentCount).toBe(segments.length);
        const joined = segments.map((segment) => segment.text).join("");
        expect(text.startsWith(joined)).toBe(true);
        expect(text.slice(joined.length)).toMatch(/^[\s\p{Cf}\p{Cc}]*$/u);
        const tags = tagsOf(text);
        for (const { start, end, text: piece } of segments) {
          expect(piece).toBe(text.slice(start, end));
          expect(piece.trim()).not.toBe("");
          expect(starts.has(end)).toBe(true);
          expect(tags.some((tag) => tag.start < end && end < tag.end)).toBe(false);
        }
      }),
      { seed: 9, numRuns: 600 },
    );
  });
});
