import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readPls, writePls } from "../../../../src/service/text/pls.ts";
import type { PronunciationRule } from "../../../../src/service/text/pronunciation.ts";
import { XmlError } from "../../../../src/service/text/xml.ts";

const HEAD = `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon"
      xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
      xsi:schemaLocation="http://www.w3.org/2005/01/pronunciation-lexicon http://www.w3.org/TR/2007/CR/pls.xsd"
      alphabet="cmu-arpabet" xml:lang="en-GB">`;
const WHOLE = { caseSensitive: true, wordBoundaries: true };

describe("readPls", () => {
  it("reads graphemes, aliases and phonemes, in the alphabet of the lexicon or their own", () => {
    const document = `${HEAD}
      <!-- a comment -->
      <lexeme><grapheme>tomato</grapheme><grapheme>Tomato</grapheme><phoneme>T AH0 M AA1 T OW0</phoneme></lexeme>
      <metadata><any x="y"/></metadata>
      <lexeme xml:id="x"><grapheme>UN</grapheme><alias>United &amp; Nations&#33;</alias><example>no</example></lexeme>
      <lexeme><grapheme>a</grapheme><phoneme alphabet='ipa'>ə</phoneme><phoneme prefer="true" alphabet="ipa">eɪ</phoneme></lexeme>
    </lexicon>`;
    expect(readPls(document)).toEqual([
      {
        ...WHOLE,
        type: "phoneme",
        stringToReplace: "tomato",
        phoneme: "T AH0 M AA1 T OW0",
        alphabet: "cmu-arpabet",
      },
      {
        ...WHOLE,
        type: "phoneme",
        stringToReplace: "Tomato",
        phoneme: "T AH0 M AA1 T OW0",
        alphabet: "cmu-arpabet",
      },
      { ...WHOLE, type: "alias", stringToReplace: "UN", alias: "United & Nations!" },
      { ...WHOLE, type: "phoneme", stringToReplace: "a", phoneme: "eɪ", alphabet: "ipa" },
    ]);
  });

  it.each([
    ["a document type", `<!DOCTYPE lexicon [<!ENTITY x "y">]>${HEAD}</lexicon>`, "document type"],
    [
      "an entity",
      `${HEAD}<lexeme><grapheme>&x;</grapheme><alias>b</alias></lexeme></lexicon>`,
      "no entity &x;",
    ],
    [
      "a character that XML has not",
      `${HEAD}<lexeme><grapheme>&#0;</grapheme><alias>b</alias></lexeme></lexicon>`,
      "&#0;",
    ],
    ["another root", "<html></html>", "expected <lexicon>"],
    ["elements that do not end", `${HEAD}<lexeme>`, "expected an element"],
    [
      "elements that end in another order",
      `${HEAD}<lexeme><grapheme>a</lexeme></grapheme></lexicon>`,
      "expected </grapheme>",
    ],
    ["an attribute twice", '<lexicon a="1" a="2"></lexicon>', "stands twice"],
    ["CDATA", `${HEAD}<![CDATA[a]]></lexicon>`, "expected an element"],
    [
      "an alphabet that is not known",
      '<lexicon alphabet="x-sampa"><lexeme><grapheme>a</grapheme><phoneme>a</phoneme></lexeme></lexicon>',
      "x-sampa",
    ],
    [
      "a lexeme that says nothing",
      `${HEAD}<lexeme><grapheme>a</grapheme></lexeme></lexicon>`,
      "neither phoneme nor alias",
    ],
    ["a misspelt lexeme", `${HEAD}<lexem><grapheme>a</grapheme></lexem></lexicon>`, "<lexem> is no element"],
    [
      "a misspelt grapheme beside a right one",
      `${HEAD}<lexeme><grapheme>a</grapheme><graphem>b</graphem><alias>c</alias></lexeme></lexicon>`,
      "<graphem> is no element of <lexeme>",
    ],
    [
      "an element inside a grapheme",
      `${HEAD}<lexeme><grapheme>a<b>c</b></grapheme><alias>d</alias></lexeme></lexicon>`,
      "<b> is no element of <grapheme>",
    ],
    [
      "a role",
      `${HEAD}<lexeme role="noun"><grapheme>a</grapheme><alias>b</alias></lexeme></lexicon>`,
      "the attribute role of <lexeme>",
    ],
    [
      "a preference that is neither true nor false",
      `${HEAD}<lexeme><grapheme>a</grapheme><alias prefer="yes">b</alias></lexeme></lexicon>`,
      "neither true nor false",
    ],
    ["what stands behind the root", `${HEAD}</lexicon><lexicon/>`, "outermost"],
    ["elements in each other", "<a>".repeat(50), "inside each other"],
    ["nothing", "", "expected an element"],
  ])("refuses %s", (_name, document, message) => {
    expect(() => readPls(document)).toThrow(XmlError);
    expect(() => readPls(document)).toThrow(message);
  });

  it("says the line", () => {
    expect(() => readPls(`${HEAD}\n<lexeme>\n</wrong>`)).toThrow(/line 7/);
  });

  it("readPls reads what writePls wrote", () => {
    const text = fc
      .string({ minLength: 1, maxLength: 20, unit: fc.constantFrom(..."aé<>&\"' 漢😀") })
      .filter((one) => one === one.trim());
    const rule = fc.record({ stringToReplace: text, alias: text });
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 5 }), (given) => {
        const rules = given.map((one): PronunciationRule => ({ ...one, ...WHOLE, type: "alias" }));
        expect(readPls(writePls(rules))).toEqual(rules);
      }),
    );
  });

  it("throws nothing else, whatever the document", () => {
    const part = fc.constantFrom(
      "<lexicon>",
      "</lexicon>",
      "<lexeme>",
      "<!--",
      "-->",
      "<a b='c'>",
      "&amp;",
      "&",
      "<",
      "x",
      '"',
      "<?xml ?>",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        try {
          readPls(parts.join(""));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(XmlError);
        }
      }),
    );
  });
});
