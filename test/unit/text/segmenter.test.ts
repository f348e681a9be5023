import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Segment, Segmenter, type SegmenterOptions } from "../../../src/text/segmenter.ts";
import { FIXTURES, graphemeStarts, splitText } from "./fixtures.ts";

/** One sentence a segment unless the options say otherwise, so that each boundary shows. */
function segmentsOf(parts: readonly string[], options: SegmenterOptions = {}): Segment[] {
  const segmenter = new Segmenter({ minChars: [0], ...options });
  return [...parts.flatMap((part) => segmenter.push(part)), ...segmenter.end()];
}

function textsOf(text: string, options: SegmenterOptions = {}): string[] {
  return segmentsOf([text], options).map((segment) => segment.text);
}

describe("Segmenter sentences", () => {
  it.each([
    ["Hello there. How are you? Fine!  Good.", ["Hello there. ", "How are you? ", "Fine!  ", "Good."]],
    ["Dr. Smith met Mrs. Jones. They left.", ["Dr. Smith met Mrs. Jones. ", "They left."]],
    ["It costs $1,234.56. That is 3.14 times more.", ["It costs $1,234.56. ", "That is 3.14 times more."]],
    [
      "The U.S. Senate met. He left the U.S. The end.",
      ["The U.S. Senate met. ", "He left the U.S. ", "The end."],
    ],
    ["Made in the U.S.A. by us.", ["Made in the U.S.A. by us."]],
    ["Fruit, e.g. Apples, i.e. Food, etc. and so on.", ["Fruit, e.g. Apples, i.e. Food, etc. and so on."]],
    [
      "J. R. R. Tolkien wrote. So do I. Then we read.",
      ["J. R. R. Tolkien wrote. ", "So do I. ", "Then we read."],
    ],
    ["See No. 5 on p. 12. He said no. I left.", ["See No. 5 on p. 12. ", "He said no. ", "I left."]],
    [
      "Go to https://a.com/b.c?d=e. Or www.x.org! Bye.",
      ["Go to https://a.com/b.c?d=e. ", "Or www.x.org! ", "Bye."],
    ],
    ["Wait... What? Well... I think so... maybe.", ["Wait... ", "What? ", "Well... I think so... maybe."]],
    ["“Really?” he said. “Yes!” She ran.", ["“Really?” he said. ", "“Yes!” ", "She ran."]],
    ["(He left.) She stayed. **Bold.** Next.", ["(He left.) ", "She stayed. ", "**Bold.** ", "Next."]],
    ["Yes. — No. - Well, yes. – Oh.", ["Yes. ", "— No. ", "- Well, yes. ", "– Oh."]],
    ["Great! 😀 Let's go. 👍🏽", ["Great! 😀 ", "Let's go. 👍🏽"]],
    ["A:\n1. Milk\n2. Eggs\n- a b\n- c", ["A:\n", "1. Milk\n", "2. Eggs\n", "- a b\n", "- c"]],
    ["Title\n\nText goes\non here.", ["Title\n\n", "Text goes\non here."]],
    ["First 1. Buy. 2. Cook.", ["First 1. ", "Buy. ", "2. Cook."]],
    ["他说：“你好。世界！”然后走了。再见", ["他说：“你好。", "世界！”", "然后走了。", "再见"]],
    ["你好!世界?好的.再见 3.14元", ["你好!", "世界?", "好的.", "再见 3.14元"]],
    ["「散歩。」行きましょう！はい", ["「散歩。」", "行きましょう！", "はい"]],
    ["यह वाक्य है। दूसरा वाक्य।", ["यह वाक्य है। ", "दूसरा वाक्य।"]],
    ["مرحبا. كيف حالك؟ أنا بخير.", ["مرحبا. ", "كيف حالك؟ ", "أنا بخير."]],
    ["안녕하세요. 세계! 네", ["안녕하세요. ", "세계! ", "네"]],
    [
      "Bonjour\u00a0! Il dit «\u00a0Oui.\u00a0» Bon.",
      ["Bonjour\u00a0! ", "Il dit «\u00a0Oui.\u00a0» ", "Bon."],
    ],
    [
      'Hi. <break time="1.5s"/> There. [laughs] Ha. Really?',
      ["Hi. ", '<break time="1.5s"/> There. ', "[laughs] Ha. ", "Really?"],
    ],
    [
      "Say <a b='Hello. There. '/> now. [Oh. No] Yes.",
      ["Say <a b='Hello. There. '/> now. ", "[Oh. No] Yes."],
    ],
    [
      "Version 2.0.1 is out. Use v1.2.3. It is 1,000.50 euros.",
      ["Version 2.0.1 is out. ", "Use v1.2.3. ", "It is 1,000.50 euros."],
    ],
    [
      "See docs.example.co.uk/a.html. Then node.js is fine.",
      ["See docs.example.co.uk/a.html. ", "Then node.js is fine."],
    ],
    [
      "We met at 5 p.m. The show began. It is 7 a.m. in Rome.",
      ["We met at 5 p.m. ", "The show began. ", "It is 7 a.m. in Rome."],
    ],
    ["Wait . . . What? Yes… no… He left.", ["Wait . . . ", "What? ", "Yes… no… ", "He left."]],
    ["Il dit « Oui. » Bon. « Non ! » Puis.", ["Il dit « Oui. » ", "Bon. ", "« Non ! » ", "Puis."]],
    ["„Komm.“ Er ging. »Nein.« Gut.", ["„Komm.“ ", "Er ging. ", "»Nein.« ", "Gut."]],
    ["Am 3. Mai kam er. Es sind 3. Dann ging er.", ["Am 3. Mai kam er. ", "Es sind 3. ", "Dann ging er."]],
    [
      "¿Qué tal? ¡Hola! El Sr. Pérez vino a EE. UU. ayer.",
      ["¿Qué tal? ", "¡Hola! ", "El Sr. Pérez vino a EE. UU. ayer."],
    ],
    ["a) Milk\nb) Eggs\n• Salt\n(d) Tea", ["a) Milk\n", "b) Eggs\n", "• Salt\n", "(d) Tea"]],
    ["Это был я. Он ушёл. А. С. Пушкин и т.д.", ["Это был я. ", "Он ушёл. ", "А. С. Пушкин и т.д."]],
    ["好.再见。『本。』を読む。（終。）次", ["好.", "再见。", "『本。』", "を読む。", "（終。）", "次"]],
    ["네. 3.14입니다! 그래요.", ["네. ", "3.14입니다! ", "그래요."]],
    ["डॉ. राम ३.१४ लाए। श्लोक ॥ हाँ।", ["डॉ. राम ३.१४ लाए। ", "श्लोक ॥ ", "हाँ।"]],
    ["قال د. أحمد «نعم؛ ٣٫١٤». ثم ذهب.", ["قال د. أحمد «نعم؛ ٣٫١٤». ", "ثم ذهب."]],
    ["นพ. สมชาย และ ดร.สมหญิง เกิด พ.ศ.๒๕๖๗", ["นพ. สมชาย และ ดร.สมหญิง เกิด พ.ศ.๒๕๖๗"]],
    ["<s>Hello. </s>There. <b>Bye.</b> Oh.", ["<s>Hello. </s>", "There. ", "<b>Bye.</b> ", "Oh."]],
    ["5 < 6. And 7 > 6. I <3 you. Yes.", ["5 < 6. ", "And 7 > 6. ", "I <3 you. ", "Yes."]],
  ])("cuts %j at sentence ends", (text, expected) => {
    expect(textsOf(text)).toEqual(expected);
  });

  it("cuts only once the next character shows that the sentence is over", () => {
    const segmenter = new Segmenter();
    expect(segmenter.push("It is 3.")).toEqual([]);
    expect(segmenter.push("14 today.")).toEqual([]);
    expect(segmenter.push(" ")).toEqual([]);
    expect(segmenter.push("W")).toEqual([{ text: "It is 3.14 today. ", start: 0, end: 18 }]);
    expect(segmenter.pendingChars).toBe(1);
  });

  it("waits for the next word where an abbreviation leaves it open", () => {
    const segmenter = new Segmenter();
    expect(segmenter.push("In the U.S. The")).toEqual([]);
    expect(segmenter.push(" end").map((segment) => segment.text)).toEqual(["In the U.S. "]);
  });
});

describe("Segmenter limits", () => {
  const long =
    "So, when we first came to the valley, there was nothing but grass and a river that ran without a bridge from one end to the other";

  it("cuts a long piece at the last clause that is no crumb, else between words, the first one shorter", () => {
    expect(textsOf(long, { firstMaxChars: 40, maxChars: 60 })).toEqual([
      "So, when we first came to the valley, ",
      "there was nothing but grass and a river that ran without a ",
      "bridge from one end to the other",
    ]);
    expect(textsOf(`So, ${"word ".repeat(20)}`, { firstMaxChars: 40, maxChars: 60 })[0]).toBe(
      `So, ${"word ".repeat(7)}`,
    );
  });

  it("keeps a piece of exactly the limit and cuts one that is one longer", () => {
    expect(textsOf("aaaa bbbb cccc", { firstMaxChars: 14, maxChars: 14 })).toEqual(["aaaa bbbb cccc"]);
    expect(textsOf("aaaa bbbb ccccd", { firstMaxChars: 14, maxChars: 14 })).toEqual(["aaaa bbbb ", "ccccd"]);
  });

  it("does not part a title from its name, or initials", () => {
    expect(textsOf("we all met Dr. Smith there", { firstMaxChars: 17, maxChars: 17 })[0]).toBe("we all met ");
    expect(textsOf("books by J. R. R. Tolkien are", { firstMaxChars: 14, maxChars: 14 })[0]).toBe(
      "books by ",
    );
  });

  it.each([
    ["Chinese", "我们今天去北京大学学习计算机科学与技术然后回家吃饭".repeat(6)],
    ["Thai", "สวัสดีครับวันนี้อากาศดีมากและเราจะไปเที่ยวทะเลกับครอบครัวของเรา".repeat(4)],
    ["Khmer", "ភាសាខ្មែរជាភាសាផ្លូវការរបស់ព្រះរាជាណាចក្រកម្ពុជា".repeat(4)],
  ])("cuts %s without spaces between dictionary words", (_script, text) => {
    const segments = segmentsOf([text], { firstMaxChars: 30, maxChars: 60 });
    const starts = new Set(
      Array.from(new Intl.Segmenter("en", { granularity: "word" }).segment(text), ({ index }) => index),
    );
    expect(segments.length).toBeGreaterThan(3);
    for (const segment of segments) {
      expect(segment.text.length).toBeLessThanOrEqual(60);
      expect(starts.has(segment.start)).toBe(true);
    }
  });

  it("keeps an overlong word whole up to four times the limit, then cuts between graphemes", () => {
    const url = `https://example.com/${"x".repeat(700)}`;
    expect(textsOf(`Go to ${url} now. Yes.`, { maxChars: 100 })).toEqual([
      "Go to ",
      `${url} `,
      "now. ",
      "Yes.",
    ]);
    const family = "👨‍👩‍👧";
    const segments = segmentsOf([family.repeat(400)], { maxChars: 100 });
    expect(segments.length).toBeGreaterThan(1);
    for (const segment of segments) expect(segment.start % family.length).toBe(0);
  });

  it("never cuts inside a tag, however long the piece gets", () => {
    const tag = `<phoneme alphabet="ipa" ph="${"t ".repeat(100)}">`;
    const texts = textsOf(`word ${tag} word`, { firstMaxChars: 10, maxChars: 20 });
    expect(texts.filter((text) => text.includes(tag))).toHaveLength(1);
  });
});

describe("Segmenter with spans that must not be cut", () => {
  /** What stands between braces is said for something else. */
  const cut = (text: string, limits: SegmenterOptions = {}): string[] => {
    const stretches = [...text.matchAll(/\{[^}]*\}/g)].map(({ index, 0: found }) => [
      index,
      index + found.length,
    ]);
    const placeBefore = (at: number, maxChars: number): number => {
      const [start = 0, end = 0] = stretches.find(([from = 0, to = 0]) => from < at && at < to) ?? [];
      return end - start > maxChars ? at : end === 0 ? at : start;
    };
    return textsOf(text, { ...limits, placeBefore });
  };
  const limits = { firstMaxChars: 12, maxChars: 20 };

  it.each([
    ["sentences", "{One. Two.} Three. ", {}, ["{One. Two.} ", "Three. "]],
    ["paragraphs", "{One.\n\nTwo} three. Four", {}, ["{One.\n\nTwo} three. ", "Four"]],
    ["before a long one", "some {words in one} more", limits, ["some ", "{words in one} more"]],
    ["behind a long one", "{words in one} more of it", limits, ["{words in one} ", "more of it"]],
    ["in one too long", "{all these words are one} x", limits, ["{all these ", "words are one} x"]],
    ["around an element", "a {b <sub> c} d e</sub> f g", limits, ["a ", "{b <sub> c} d e</sub> ", "f g"]],
    [
      "without spaces",
      "今日は{とても良い}天気で",
      { firstMaxChars: 8, maxChars: 20 },
      ["今日", "は{とても良い}天気で"],
    ],
  ])("%s", (_name, text, options, expected) => {
    expect(cut(text, options)).toEqual(expected);
  });

  it("nor when the text stands still", () => {
    const segmenter = new Segmenter({ placeBefore: (at) => (at > 3 && at < 9 ? 3 : at) });
    expect(segmenter.push("to {a b c d} e")).toEqual([]);
    expect(segmenter.cutNow("word")).toEqual([{ text: "to {a b c d} ", start: 0, end: 13 }]);
    const open = new Segmenter({ placeBefore: (at) => (at > 3 && at < 12 ? 3 : at) });
    open.push("to {a b c d");
    expect(open.cutNow("word")).toEqual([{ text: "to ", start: 0, end: 3 }]);
  });
});

describe("Segmenter white space and flush", () => {
  it("gives nothing for white space alone, and keeps it with its neighbours", () => {
    expect(textsOf("")).toEqual([]);
    expect(textsOf(" \n\t ")).toEqual([]);
    expect(textsOf("  \n Hello.  \n")).toEqual(["  \n Hello.  \n"]);
  });

  it("flush() speaks what is there, keeps white space for the next segment, end() drops what is left", () => {
    const segmenter = new Segmenter();
    expect(segmenter.push("Hello wor")).toEqual([]);
    expect(segmenter.flush()).toEqual([{ text: "Hello wor", start: 0, end: 9 }]);
    expect(segmenter.push("  ")).toEqual([]);
    expect(segmenter.flush()).toEqual([]);
    expect(segmenter.pendingChars).toBe(2);
    expect([...segmenter.push("ld."), ...segmenter.flush()]).toEqual([{ text: "  ld.", start: 9, end: 14 }]);
    segmenter.push(" ");
    expect(segmenter.end()).toEqual([]);
    expect(segmenter.pendingChars).toBe(0);
    expect(segmenter.end()).toEqual([]);
  });

  it("keeps marks without a word with the text behind them, and speaks them when nothing else is left", () => {
    expect(textsOf("!!! Hello. Yes.")).toEqual(["!!! Hello. ", "Yes."]);
    expect(textsOf("😀")).toEqual(["😀"]);
    expect(textsOf("...")).toEqual(["..."]);
  });
});

describe("Segmenter properties", () => {
  const options = fc.constantFrom<SegmenterOptions>(
    {},
    { firstMaxChars: 8, maxChars: 20 },
    { firstMaxChars: 1, maxChars: 1 },
    { minChars: [0, 60, 120, 200] },
    { minChars: [10, 30], firstMaxChars: 40, maxChars: 60 },
  );

  it("any split of a text gives the same segments", () => {
    fc.assert(
      fc.property(splitText, options, ({ text, parts }, limits) => {
        expect(segmentsOf(parts, limits)).toEqual(segmentsOf([text], limits));
      }),
      { seed: 7, numRuns: 600 },
    );
    for (const text of FIXTURES) expect(segmentsOf(Array.from(text))).toEqual(segmentsOf([text]));
  });

  it("the segments are the text, in order, without holes, cut between graphemes, none of white space only", () => {
    fc.assert(
      fc.property(splitText, options, ({ text, parts }, limits) => {
        const segments = segmentsOf(parts, limits);
        const starts = graphemeStarts(text);
        let at = 0;
        for (const segment of segments) {
          expect(segment.start).toBe(at);
          expect(segment.text).toBe(text.slice(segment.start, segment.end));
          expect(segment.text.trim()).not.toBe("");
          expect(starts.has(segment.end)).toBe(true);
          at = segment.end;
        }
        expect(
          text
            .slice(at)
            .replace(/[\p{Cf}\p{Cc}]/gu, "")
            .trim(),
        ).toBe("");
      }),
      { seed: 8, numRuns: 600 },
    );
  });
});

describe("Segmenter bad input", () => {
  // Linear time: each of these takes hours where it is quadratic, and a fraction of a second here.
  it.each([
    ["300 kB without a space", ["x".repeat(300_000)]],
    ["a million one-letter tokens", [..."Hello there, my friend. ".repeat(42_000)]],
    ["300 kB of open tags", ['<a b="'.repeat(50_000)]],
    ["300 kB of open brackets", ["[a".repeat(150_000)]],
    ["one grapheme of 300,000 marks", [`e${"\u0301".repeat(300_000)}`]],
    ["initials without end", ["A. ".repeat(100_000)]],
    ["120 kB of Thai", ["สวัสดีครับวันนี้อากาศดีมาก".repeat(5_000)]],
    ["nothing to speak", ["*** ".repeat(80_000)]],
    ["a megabyte of dots", [".".repeat(1_000_000)]],
    ["300 kB of <", ["<".repeat(300_000)]],
    ["elements inside each other", ["<w>a. ".repeat(50_000)]],
    ["tags between letters without spaces", ["中<b/>".repeat(50_000)]],
    ["closing tags", [" </w>".repeat(50_000)]],
    ["short elements", ["<w>A. B</w> ".repeat(20_000)]],
  ])("takes %s in linear time and loses nothing", (_name, parts) => {
    const segments = segmentsOf(parts);
    expect(segments.reduce((sum, segment) => sum + segment.text.length, 0)).toBe(parts.join("").length);
  });
});
