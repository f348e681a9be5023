import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findMarkup } from "../../../../src/service/voice/plan/markup.ts";
import { cutPieces } from "../../../../src/service/voice/plan/pieces.ts";

function cut(text: string, audioTags = false) {
  return [...cutPieces(text, findMarkup(text, { audioTags }))];
}
function texts(text: string): string[] {
  return cut(text).map((piece) => piece.text);
}

describe("cutPieces()", () => {
  it("cuts after sentences, not after abbreviations, initials, decimals or inside dates", () => {
    expect(texts("Hello. How are you? Fine!")).toEqual(["Hello. ", "How are you? ", "Fine!"]);
    expect(texts("Dr. J. Smith paid $1,234.56 on March 5, 2024. He left.")).toEqual([
      "Dr. J. Smith paid $1,234.56 on March 5, 2024. ",
      "He left.",
    ]);
    expect(texts('He said "Go!" Then he left...')).toEqual(['He said "Go!" ', "Then he left..."]);
    expect(texts("你好。再见。")).toEqual(["你好。", "再见。"]);
  });
  it("cuts long clauses at commas and leaves short ones together", () => {
    expect(texts("Well, yes, no, maybe.")).toHaveLength(1);
    expect(texts("This is a clause of a good length, and this is one more.")).toHaveLength(2);
  });
  it("ends a piece at a break and gives its pause, capped at three seconds", () => {
    const pieces = cut('One <break time="1s"/> two <break time="250ms" /> three <break time="90s"/>.');
    expect(pieces.map((piece) => piece.text).join("")).toBe(
      'One <break time="1s"/> two <break time="250ms" /> three <break time="90s"/>.',
    );
    const breaksMs = pieces.map(({ markup }) => markup.reduce((sum, tag) => sum + tag.pauseMs, 0));
    expect(breaksMs).toEqual([1000, 250, 3000, 0]);
    expect(pieces.map((piece) => piece.pauseMs)).toEqual([0, 0, 0, 300]);
  });
  it("pauses longer where a paragraph ends, with a full stop or without", () => {
    const pauses = (text: string) => cut(text).map((piece) => piece.pauseMs);
    expect(pauses("One.\n\nTwo\n\nthree. Four")).toEqual([500, 500, 300, 0]);
  });
  it("never cuts inside markup", () => {
    const text = `${"word ".repeat(25)}<say-as interpret-as="a. b. c. d, e, f">x</say-as> end.`;
    for (const piece of cut(text)) expect(piece.text.split("<").length).toBe(piece.text.split(">").length);
  });
  it("bounds pieces without any boundary, between graphemes", () => {
    for (const text of [
      "a".repeat(5000),
      "漢".repeat(2000),
      "ไทย".repeat(1000),
      "👨‍👩‍👧‍👦".repeat(300),
      "7".repeat(2000),
    ]) {
      const pieces = texts(text);
      expect(pieces.join("")).toBe(text);
      for (const piece of pieces) expect(piece.length).toBeLessThan(600);
      const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
      const whole = Array.from(segmenter.segment(text)).length;
      expect(pieces.reduce((sum, piece) => sum + Array.from(segmenter.segment(piece)).length, 0)).toBe(whole);
    }
  });
  it("concatenates to the text, whatever it is", () => {
    const part = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 10 }),
      fc.constantFrom(
        ". ",
        ", ",
        "\n\n",
        "<b>",
        '<break time="1s"/>',
        "<",
        ">",
        "[laughs]",
        "。",
        "…",
        "\u0000",
        "\ud800",
      ),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), fc.boolean(), (parts, audioTags) => {
        const text = parts.join("");
        expect(
          cut(text, audioTags)
            .map((piece) => piece.text)
            .join(""),
        ).toBe(text);
      }),
    );
  });
});

describe("findMarkup()", () => {
  it("takes tags but not comparisons, and audio tags only where asked", () => {
    expect(findMarkup("a < b and c > d", { audioTags: true })).toEqual([]);
    expect(findMarkup("<b>x</b>", { audioTags: false })).toHaveLength(2);
    expect(findMarkup("[laughs] x [1]", { audioTags: true })).toMatchObject([
      { start: 0, end: 8, pauseMs: 0 },
    ]);
    expect(findMarkup("[laughs]", { audioTags: false })).toEqual([]);
    // As long as the gateway takes for one.
    for (const [letters, count] of [
      [62, 1],
      [63, 0],
    ] as const)
      expect(findMarkup(`[${"x".repeat(letters)}]`, { audioTags: true })).toHaveLength(count);
  });
});
