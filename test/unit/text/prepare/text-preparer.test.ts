import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type PrepareOptions, TextPreparer } from "../../../../src/text/prepare/text-preparer.ts";
import { anyText, splitOf } from "../fixtures.ts";
import { ALL, anyOptions, markedText, prepared, said } from "./prepared.ts";

const PLAIN: PrepareOptions = { clean: [], replacements: [] };
const RULES = [{ from: "colour", to: "color" }];
const text = fc.oneof(anyText, markedText);
const cuts = fc.array(fc.nat(2000), { maxLength: 20 });

describe("TextPreparer on any text", () => {
  it("a line that ends in signs after letters gets its full stop, however it is split", () => {
    const options = { clean: ["markdown" as const], replacements: [] };
    expect(prepared(["1. http://"], options).spoken).toBe("1. http://.");
    expect(prepared([..."1. http://"], options).spoken).toBe("1. http://.");
  });

  it.each([
    "- [x] \tbread",
    `- [x]${" ".repeat(100)}bread`,
    "- [x] \t",
    "# \tbread",
    `#${" ".repeat(100)}bread`,
    "# \t",
    "# \t#",
  ])("all blanks behind a task's box or a heading's mark go, however it is split: %j", (text) => {
    const options = { clean: ["markdown" as const], replacements: [] };
    expect(prepared([...text], options)).toMatchObject({ spoken: prepared([text], options).spoken });
  });

  it.each(["a**b `c**d` e", "a**b `c**d` e**f", "a**b ` c**d", "a**b \\`c**d", "a**b `` c**d `e`"])(
    "code between runs within words is the same, however it is split: %j",
    (whole) => {
      const options = { clean: ["markdown" as const], replacements: [] };
      for (let at = 0; at <= whole.length; at += 1) {
        const parts = [whole.slice(0, at), whole.slice(at)];
        expect(prepared(parts, options).spoken).toBe(prepared([whole], options).spoken);
      }
      expect(prepared([...whole], options).spoken).toBe(prepared([whole], options).spoken);
    },
  );

  it.each([2046, 2047, 2048, 2049, 3000])(
    "an address of %d units is said alike, however it is split",
    (units) => {
      const options = { clean: ["urls" as const], replacements: [] };
      const address = `http://a.${"x".repeat(units - 9)}`;
      expect(prepared([...address], options).spoken).toBe(prepared([address], options).spoken);
    },
  );

  it("any split gives the same spoken text and the same map", () => {
    fc.assert(
      fc.property(text, cuts, anyOptions, (whole, places, options) => {
        const expected = prepared([whole], options);
        for (const parts of [splitOf(whole, places), Array.from(whole)]) {
          const got = prepared(parts, options);
          expect(got.spoken).toBe(expected.spoken);
          expect(got.spans).toEqual(expected.spans);
        }
      }),
      { numRuns: 400 },
    );
  });

  it("the spans tile both texts, and what is the same is the same", () => {
    fc.assert(
      fc.property(text, anyOptions, (whole, options) => {
        const { spoken, spans } = prepared([whole], options);
        let [spokenAt, clientAt] = [0, 0];
        for (const piece of spans) {
          expect([piece.spokenStart, piece.clientStart]).toEqual([spokenAt, clientAt]);
          expect(piece.spokenEnd + piece.clientEnd).toBeGreaterThan(spokenAt + clientAt);
          const client = whole.slice(piece.clientStart, piece.clientEnd);
          if (piece.isSame) expect(spoken.slice(piece.spokenStart, piece.spokenEnd)).toBe(client);
          for (const [side, at] of [
            [whole, piece.clientEnd],
            [spoken, piece.spokenEnd],
          ] as const) {
            expect(/^[\ud800-\udbff][\udc00-\udfff]$/.test(side.slice(at - 1, at + 1))).toBe(false);
          }
          [spokenAt, clientAt] = [piece.spokenEnd, piece.clientEnd];
        }
        expect([spokenAt, clientAt]).toEqual([spoken.length, whole.length]);
      }),
      { numRuns: 400 },
    );
  });

  it("a flush leaves nothing held but half a pair, and nothing is lost", () => {
    fc.assert(
      fc.property(text, cuts, anyOptions, (whole, places, options) => {
        const preparer = new TextPreparer(options);
        let spoken = "";
        for (const part of splitOf(whole, places)) {
          spoken += preparer.push(part) + preparer.flush();
          expect(preparer.heldChars).toBeLessThanOrEqual(1);
        }
        spoken += preparer.end();
        expect([preparer.map.spokenLength, preparer.map.clientLength]).toEqual([spoken.length, whole.length]);
      }),
    );
  });

  it("a stall loses nothing, and what follows is still spoken", () => {
    const waits = fc.constantFrom("short" as const, "long" as const);
    fc.assert(
      fc.property(text, cuts, anyOptions, waits, (whole, places, options, wait) => {
        const preparer = new TextPreparer(options);
        let spoken = "";
        for (const part of splitOf(whole, places)) spoken += preparer.push(part) + preparer.stall(wait);
        spoken += preparer.end();
        expect([preparer.map.spokenLength, preparer.map.clientLength]).toEqual([spoken.length, whole.length]);
      }),
    );
  });

  it("a short stall makes no difference but behind a word with its full stop, and an exclamation mark", () => {
    fc.assert(
      fc.property(text, cuts, anyOptions, (whole, places, options) => {
        const parts = splitOf(whole, places);
        fc.pre(!parts.some((part) => /[.:!]$/.test(part)));
        const preparer = new TextPreparer(options);
        const spoken = parts.map((part) => preparer.push(part) + preparer.stall("short")).join("");
        expect(spoken + preparer.end()).toBe(prepared([whole], options).spoken);
      }),
    );
  });

  it("without options the text is spoken as it is, in one piece", () => {
    fc.assert(
      fc.property(text, cuts, (whole, places) => {
        const { spoken, spans } = prepared(splitOf(whole, places), PLAIN);
        expect(spoken).toBe(whole);
        expect(spans.length).toBe(whole === "" ? 0 : 1);
        expect(spans.every((piece) => piece.isSame)).toBe(true);
      }),
    );
  });

  it("without Markdown no mark of it is touched", () => {
    const marks = "# A\n- *b* __c__ ~~d~~ `e` [f](g) ![h](i)\n> j\n| k |\n|---|\n***\n<!-- l -->\\*";
    expect(said(marks, ["urls", "emoji"])).toBe(marks);
  });
});

describe("TextPreparer holding back", () => {
  it.each([
    ["**bold x", "bold"],
    ["a *", "a "],
    ["x [laughs", "x "],
    ["x [link](htt", "x "],
    ["x <break", "x "],
    ["see https://exa", "see "],
    ["write to ann", "write to "],
    ["Hi 👨", "Hi"],
    ["my colo", "my "],
    ["my colour", "my "],
    ["my colour x", "my color"],
    ["- Milk ", "Milk"],
    ["``", ""],
  ])("of %j settles %j at once", (part, settled) => {
    expect(new TextPreparer({ clean: ALL, replacements: RULES }).push(part).trimEnd()).toBe(
      settled.trimEnd(),
    );
  });

  it("a flush decides, and more may come", () => {
    const preparer = new TextPreparer({ clean: ALL, replacements: RULES });
    const spoken = ["my colour", " [a", "](b) https://x.c", "om 😀", " ok"].map(
      (part) => preparer.push(part) + preparer.flush(),
    );
    expect(spoken.join("|")).toBe("my color| [a|](b) x dot c|om | ok");
  });
});

describe("TextPreparer on what was made to be slow", () => {
  const MANY = 30_000;
  const long = { from: `${"a".repeat(199)}b`, to: "x", whole_word: false };
  it.each([
    ["stars", "*".repeat(MANY)],
    ["stars between letters", "*a".repeat(MANY)],
    ["dashes", "-".repeat(MANY)],
    ["pipes", "|".repeat(MANY)],
    ["an open fence", `\`\`\`\n${"code\n".repeat(MANY / 5)}`],
    ["ticks", "`".repeat(MANY)],
    ["growing runs of ticks", Array.from({ length: 400 }, (_, i) => "`".repeat(i + 1)).join(" ")],
    ["open brackets", "[".repeat(MANY)],
    ["an open bracket", `[${"a".repeat(MANY)}`],
    ["links that never close", "[a](".repeat(MANY / 4)],
    ["less-than signs", "<".repeat(MANY)],
    ["open comments", "<!--".repeat(MANY / 4)],
    ["open tags", '<a b="'.repeat(MANY / 6)],
    ["emoji", "😀".repeat(MANY / 2)],
    ["one endless emoji", "👨\u200d".repeat(MANY / 3)],
    ["flags", "🇩".repeat(MANY / 2)],
    ["at signs", "@".repeat(MANY)],
    ["one endless mail name", `${"a.".repeat(MANY / 2)}@b.c`],
    ["one endless address", `https://a.b/${"c".repeat(MANY)} end`],
    ["hosts", "www.".repeat(MANY / 4)],
    ["spaces", " ".repeat(MANY)],
    ["spaces in an item", `- a${" ".repeat(MANY)}\n`],
    ["quotes", ">".repeat(MANY)],
    ["what almost matches a rule", "a".repeat(MANY)],
    ["a match full of marks", `a${"**".repeat(MANY / 2)}a`],
    ["one endless row", `|${" a |".repeat(MANY / 4)}`],
    ["digits", "1".repeat(MANY)],
    ["backslashes", "\\".repeat(MANY)],
    ["newlines", "\n".repeat(MANY)],
  ])("%s: nothing is lost and little is held, whatever the split", (_, whole) => {
    const options = { clean: ALL, replacements: [long] };
    const expected = prepared([whole], options);
    expect(expected.mostHeld).toBeLessThanOrEqual(4096);
    const spans = whole.match(/.{1,97}/gsu) ?? [];
    const got = prepared(spans, options);
    expect(got.mostHeld).toBeLessThanOrEqual(4096);
    expect(got.spoken === expected.spoken).toBe(true);
    expect(got.spans.length).toBe(expected.spans.length);
    expect(expected.spans.at(-1)?.clientEnd).toBe(whole.length);
  });
});
