import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TagBalance } from "../../../src/text/balance.ts";
import { splitText } from "./fixtures.ts";

function oddOf(parts: readonly string[]): readonly string[] {
  const balance = new TagBalance();
  for (const part of parts) balance.push(part);
  return balance.end();
}

describe("TagBalance", () => {
  it.each([
    ["<speak><p>a</p> <W>b</w></speak>", []],
    ['<break time="1s"> <break/> <sub/> <b>no</i> a < b', []],
    ["<sub alias='x'>a", ["sub"]],
    ["a</say-as>", ["/say-as"]],
    ["<emphasis><prosody rate='slow'>a</emphasis>", ["prosody"]],
    ["<p><s>a</p></s>", ["s", "/s"]],
    ["<w>a<w>b</w>", ["w"]],
    ["<voice><lang>", ["voice", "lang"]],
    ["<audio", []],
    ['Hello <break time="1s" there.', ["<break"]],
    ['Hello <BREAK time="1s', ["<break"]],
    ["Hello <break time=1s> there.", ["<break"]],
    ['<break time="1s <sub alias="x">a</sub>', ["<break"]],
    [`Hello <break time="1s" there. ${"And on. ".repeat(100)}`, ["<break"]],
    [`<break${" ".repeat(600)}time="1s"`, []],
    ["Say <phoneme ph='a'>tomato</phoneme now.", ["</phoneme", "phoneme"]],
    ["a</sub", ["</sub"]],
    ["if a <b c=d and a </i now, or a <p and b", []],
    ["Ha [laughs that is fun.", ["["]],
    ["Ha laughs] that is fun.", ["]"]],
    ["Ha [laughs] that <break time='1s'/>[sighs] is fun.", []],
    ["[0, 1) and a[b[0]], :] and [ ] and 0]", []],
    ["[whispers [laughs] on", ["["]],
    ['[laughs <break time="1s"', ["<break", "["]],
  ])("of %j", (text, expected) => {
    expect(oddOf([text])).toEqual(expected);
    expect(oddOf(Array.from(text))).toEqual(expected);
  });

  it("says the same however the text is split", () => {
    fc.assert(
      fc.property(splitText, ({ text, parts }) => {
        expect(oddOf(parts)).toEqual(oddOf([text]));
      }),
      { seed: 11, numRuns: 200 },
    );
  });

  it("names no more than 16, and follows elements deeper than 64 by number", () => {
    const names = "phoneme say-as sub w emphasis prosody speak p s voice lang audio".split(" ");
    expect(oddOf(names.map((name) => `</${name}><${name}>`))).toHaveLength(16);
    expect(oddOf(["<w>".repeat(200_000), "</w>".repeat(200_000)])).toEqual([]);
    expect(oddOf(["<p>".repeat(100), "</p>".repeat(101)])).toEqual(["/p"]);
    expect(oddOf(["[a ".repeat(200_000), "a]".repeat(200_000)])).toEqual([]);
    expect(oddOf(["[a ".repeat(100), "a]".repeat(101)])).toEqual(["]"]);
  });
});
