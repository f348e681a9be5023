import { describe, expect, it } from "vitest";
import { Segmenter, type SegmenterOptions } from "../../../src/text/segmenter.ts";

function textsOf(text: string, options: SegmenterOptions = {}): string[] {
  const segmenter = new Segmenter(options);
  return [...segmenter.push(text), ...segmenter.end()].map((segment) => segment.text);
}

/** A sentence of exactly `length` code units, and a space. */
function sentence(length: number): string {
  return `${"Some ".repeat(length).slice(0, length - 3)}ow. `;
}

describe("Segmenter minChars", () => {
  it("collects whole sentences: the first alone, later pieces longer and longer", () => {
    const lengths = textsOf(sentence(20).repeat(60)).map((text) => text.trimEnd().length);
    expect(lengths.slice(0, 5)).toEqual([20, 62, 125, 209, 209]);
  });

  it("counts without the white space at the end, and the last number goes for the rest", () => {
    const options = { minChars: [20, 41] };
    expect(textsOf(sentence(20).repeat(6), options).map((text) => text.length)).toEqual([21, 42, 42, 21]);
    expect(textsOf(`${sentence(19)} ${sentence(20)}`, options)).toHaveLength(1);
  });

  it("cuts at the sentence end before when the next sentence does not fit", () => {
    const options = { minChars: [0, 90], maxChars: 100 };
    const text = sentence(10) + sentence(60) + sentence(39) + sentence(60) + sentence(40);
    expect(textsOf(text, options)).toEqual([
      sentence(10),
      sentence(60) + sentence(39),
      sentence(60),
      sentence(40),
    ]);
    expect(textsOf(sentence(10) + sentence(60) + sentence(200), options).slice(0, 2)).toEqual([
      sentence(10),
      sentence(60),
    ]);
  });

  it("cuts at a blank line whatever the length", () => {
    expect(textsOf("Title\n\nA word. Then more.\n \nEnd. It is.")).toEqual([
      "Title\n\n",
      "A word. Then more.\n \n",
      "End. It is.",
    ]);
  });

  it("keeps list items together as sentences", () => {
    expect(textsOf("List:\n1. Milk\n2. Eggs\n3. Salt")).toEqual(["List:\n", "1. Milk\n2. Eggs\n3. Salt"]);
  });

  it("bounds what it collects by firstMaxChars for the first piece", () => {
    const text = sentence(30) + sentence(30);
    expect(textsOf(text, { minChars: [50], firstMaxChars: 40 })[0]).toBe(sentence(30));
  });

  it("takes no numbers as none", () => {
    expect(textsOf("So be it. See to it.", { minChars: [] })).toEqual(["So be it. ", "See to it."]);
  });

  it("counts the segments", () => {
    const segmenter = new Segmenter();
    expect(segmenter.segmentCount).toBe(0);
    segmenter.push("Hello. There");
    expect([segmenter.segmentCount, segmenter.pendingChars]).toEqual([1, 5]);
    segmenter.end();
    expect(segmenter.segmentCount).toBe(2);
  });
});

describe("Segmenter elements", () => {
  const options = { minChars: [0], firstMaxChars: 30, maxChars: 60 };

  it.each(["phoneme", "say-as", "sub", "w", "emphasis", "SUB"])("never cuts inside <%s>", (name) => {
    const element = `<${name} a="b">One. Two, three.\n\nFour</${name.toLowerCase()}>`;
    const texts = textsOf(`Say so. ${element} is it. Yes.`, { ...options, maxChars: 100 });
    expect(texts).toEqual(["Say so. ", `${element} is it. `, "Yes."]);
  });

  it("cuts before an element that does not fit any more, and keeps elements inside elements", () => {
    const element = "<emphasis>in <w>a. B</w>. C</emphasis>";
    expect(textsOf(`So this is what it is all about ${element} there`, options)).toEqual([
      "So this is what it is all ",
      `about ${element} there`,
    ]);
  });

  it("cuts an element longer than maxChars as text, but not the one inside it", () => {
    const texts = textsOf(
      `<emphasis>Who is it. ${"Oh. ".repeat(12)}<w>A. B. C</w> is. End</emphasis>`,
      options,
    );
    expect(texts.slice(0, 3)).toEqual(["<emphasis>Who is it. ", "Oh. ", "Oh. "]);
    expect(texts.filter((text) => text.includes("<w>A. B. C</w>"))).toHaveLength(1);
  });

  it("takes other elements, unmatched tags and tags that stand alone as they come", () => {
    expect(textsOf("<p>One. Two.</p> </sub> <w/> So. <break/> It.", options)).toEqual([
      "<p>One. ",
      "Two.</p> </sub> ",
      "<w/> So. ",
      "<break/> It.",
    ]);
  });

  it("does not look for words in a tag that has some in a script without spaces", () => {
    const tag = `<x alias="${"世界贸易组织".repeat(4)}">`;
    const texts = textsOf(`${"你好".repeat(10)}${tag}${"世界".repeat(30)}`, options);
    expect(texts.filter((text) => text.includes(tag))).toHaveLength(1);
    expect(texts.length).toBeGreaterThan(2);
  });
});
