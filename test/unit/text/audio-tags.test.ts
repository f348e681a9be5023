import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isAudioTag } from "../../../src/text/markup.ts";
import { Segmenter } from "../../../src/text/segmenter.ts";
import { SpokenText } from "../../../src/text/spoken-text.ts";
import { FIXTURES, splitOf, splitText } from "./fixtures.ts";
import { markedText } from "./prepare/prepared.ts";

/** What is spoken of a text that comes in these pieces; the map leads back to the client's text. */
function spokenOf(parts: readonly string[]): SpokenText {
  const text = new SpokenText({ dropsAudioTags: true });
  for (const part of parts) text.append(part);
  text.end();
  return text;
}

describe("an audio tag", () => {
  it.each([
    "[laughs]",
    "[Laughs harder]",
    "[strong French accent]",
    "[sighs, tired]",
    "[half-laughing]",
    "[doesn't laugh]",
    "[笑]",
    "[seufzt müde]",
  ])("is %s", (tag) => {
    expect(isAudioTag(tag)).toBe(true);
  });

  it.each([
    "[1]",
    "[^1]",
    "[x]",
    "[T]",
    "[ ]",
    "[Smith, 2020]",
    "[a.b]",
    "[0:30]",
    "[one two three four five six]",
    "[two  spaces]",
    "[https://example.com]",
    "<laughs>",
  ])("is not %s", (text) => {
    expect(isAudioTag(text)).toBe(false);
  });
});

describe("a text without its audio tags", () => {
  it.each([
    ["Hi [laughs] there", "Hi there"],
    ["[laughs] Hi.", "Hi."],
    ["Ha! [laughs][sighs softly] Next.", "Ha! Next."],
    ["Wait[laughs]what", "Wait what"],
    ["你好[笑]世界", "你好世界"],
    ["Yes [sighs]\nNo", "Yes \nNo"],
    ["[laughs]", ""],
    [
      "As in [1] and [Smith, 2020], [t]he [link](http://a.b) [",
      "As in [1] and [Smith, 2020], [t]he [link](http://a.b) [",
    ],
    ['<phoneme alphabet="ipa" ph="[tɛst]">a</phoneme>', '<phoneme alphabet="ipa" ph="[tɛst]">a</phoneme>'],
    ['One <break time="1s"/> [laughs] two', 'One <break time="1s"/> two'],
  ])("%j is spoken as %j", (text, spoken) => {
    expect(spokenOf([text]).spoken).toBe(spoken);
    expect(spokenOf([...text]).spoken).toBe(spoken);
  });

  it("leads back to the client's text", () => {
    const client = "Hi [laughs] there";
    const text = spokenOf(client.split(/(?= )/));
    const at = text.spoken.indexOf("there");
    expect(text.clientRange(at, at + 5)).toEqual({ start: 12, end: 17 });
  });

  it("keeps what a bracket in code says, and Markdown's link", () => {
    const text = new SpokenText({ clean: ["markdown"], dropsAudioTags: true });
    expect(text.append("`list[index]` and [the page](http://a.b) [laughs] end") + text.end()).toBe(
      "list[index] and the page end",
    );
  });

  it("is one with the client's where there is no bracket: nothing is held back", () => {
    fc.assert(
      fc.property(splitText, ({ text: whole, parts }) => {
        fc.pre(!/[<[]/.test(whole));
        const text = new SpokenText({ dropsAudioTags: true });
        expect(parts.map((part) => text.append(part))).toEqual(parts);
        expect(text.isSame).toBe(true);
      }),
    );
  });

  it("is the same for any split", () => {
    fc.assert(
      fc.property(markedText, fc.array(fc.nat(), { maxLength: 8 }), (whole, cuts) => {
        const [once, split] = [spokenOf([whole]), spokenOf(splitOf(whole, cuts))];
        expect(split.spoken).toBe(once.spoken);
        for (let at = 0; at <= once.spoken.length; at += 1)
          expect(split.clientEnd(at)).toBe(once.clientEnd(at));
      }),
    );
    for (const text of FIXTURES) expect(spokenOf([...text]).spoken).toBe(spokenOf([text]).spoken);
  });

  it("is cut at its sentences", () => {
    const segmenter = new Segmenter();
    const text = spokenOf(["It was so funny [laughs]. There is more of it."]);
    expect(segmenter.push(text.spoken).map((segment) => segment.text)).toEqual(["It was so funny . "]);
  });
});
