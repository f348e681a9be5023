import { describe, expect, it } from "vitest";
import { TagGate } from "../../../src/text/markup.ts";

/** The text with every tag in ⟦⟧, fed one code point at a time. */
function marked(text: string, hasBracketTags = true): string {
  let shown = "";
  const gate = new TagGate(
    {
      character: (codePoint) => {
        shown += String.fromCodePoint(codePoint);
      },
      tag: (start, end) => {
        shown += `⟦${text.slice(start, end)}⟧`;
      },
    },
    { hasBracketTags },
  );
  let index = 0;
  for (const character of text) {
    gate.step(character.codePointAt(0) ?? 0, index);
    index += character.length;
  }
  gate.finish();
  return shown;
}

describe("TagGate", () => {
  it.each([
    ['a<break time="1s"/>b', 'a⟦<break time="1s"/>⟧b'],
    ["<s>x</s >", "⟦<s>⟧x⟦</s >⟧"],
    ["<a b = 'c>d' e:f=\"\" />", "⟦<a b = 'c>d' e:f=\"\" />⟧"],
    [
      '<phoneme alphabet="ipa"\n ph="təˈmɑːtoʊ😀">t</phoneme>',
      '⟦<phoneme alphabet="ipa"\n ph="təˈmɑːtoʊ😀">⟧t⟦</phoneme>⟧',
    ],
    ["[laughs] [sighs softly]", "⟦[laughs]⟧ ⟦[sighs softly]⟧"],
    ["<3 a < b <= c <> </> <1>", "<3 a < b <= c <> </> <1>"],
    ["<b and c> d", "<b and c> d"],
    ["<a <b>c", "<a ⟦<b>⟧c"],
    ["<a b='<c>", "<a b='⟦<c>⟧"],
    ["[[x] [] [ y] [a\nb]", "[⟦[x]⟧ [] [ y] [a\nb]"],
    ["<a b='[x", "<a b='[x"],
    ["😀<😀>[😀]", "😀<😀>⟦[😀]⟧"],
  ])("knows tags from text in %j", (text, expected) => {
    expect(marked(text)).toBe(expected);
  });

  it("takes brackets for text where it is not asked for them", () => {
    expect(marked("[x] <b>", false)).toBe("[x] ⟦<b>⟧");
  });

  it("bounds what it holds back: a tag one unit too long is text", () => {
    expect(marked(`[${"x".repeat(62)}]`)).toMatch(/^⟦/);
    expect(marked(`[${"x".repeat(63)}]`)).toMatch(/^\[/);
    expect(marked(`<a b="${"x".repeat(504)}">`)).toMatch(/^⟦/);
    expect(marked(`<a b="${"x".repeat(505)}">`)).toMatch(/^<a/);
  });
});
