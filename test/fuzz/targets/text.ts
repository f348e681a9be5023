/** Text that is to be spoken, and text that is shown: cleaning, replacing, cutting, markup, captions. */

import { cueOfEvent, srtCue, vttCue } from "../../../src/protocol/captions.ts";
import { type Replacement, replacements } from "../../../src/protocol/commands.ts";
import type { CueEvent } from "../../../src/protocol/events.ts";
import { CLEANINGS, type Cleaning } from "../../../src/protocol/vocabulary.ts";
import { requireRules } from "../../../src/service/http/dictionaries/dictionary-schema.ts";
import { Locales } from "../../../src/service/text/locale.ts";
import { Normalizer } from "../../../src/service/text/normalizer.ts";
import { findPhonemeTags } from "../../../src/service/text/phoneme-tags.ts";
import { readPronunciation } from "../../../src/service/text/phonemes.ts";
import { readPls, writePls } from "../../../src/service/text/pls.ts";
import { Lexicon } from "../../../src/service/text/pronunciation.ts";
import { XmlError } from "../../../src/service/text/xml.ts";
import { isBlank } from "../../../src/text/characters.ts";
import { findBadText } from "../../../src/text/check.ts";
import { TextPreparer } from "../../../src/text/prepare/text-preparer.ts";
import { type Segment, Segmenter } from "../../../src/text/segmenter.ts";
import { wordSpans } from "../../../src/text/words.ts";
import { taggedPhones } from "../../../src/timing/visemes/tagged-phones.ts";
import { TextBuffer } from "../../../src/vendor-sockets/text-buffer.ts";
import { linesOf, pieceLengths, requireSame, type Target, textOf } from "../target.ts";

const MARKUP_WORDS = [
  ..."**bold** _i_ `code` ``` ~~~ # - 1. > | [a](b) ![a](b) <br> <!-- --> &amp; https://a.example/b?c www.".split(
    " ",
  ),
  ..."a@b.example 👩‍👩‍👧 🇩🇪 👍🏽 1️⃣ <break/> <phoneme </phoneme> <sub alias='x'> [laughs] … “ ” 。 ا ไทย 日本語".split(
    " ",
  ),
  ..."Dr. e.g. 3.14 $5.00 10:30 1st § \u0301 \u200d \ufe0f \r\n \t".split(" "),
  " ",
  "\n\n",
  "\\",
];
const PROSE = [
  "Dr. Smith paid $5.00 (or 3.14 %) at 10:30, e.g. for **two** [books](https://a.example/b). Really? Yes!",
  '# Title\n\n- one\n- two `x = 1`\n\n```js\ncode\n```\n> quote <break time="1s"/> [laughs] 👍🏽',
  '<phoneme alphabet="ipa" ph="təˈmeɪtoʊ">tomato</phoneme> 日本語です。ไทยไม่มีช่องว่าง «Bonjour» — fin…',
];
/** What text may be held back, UTF-16 units (TextPreparer). */
const MAX_HELD_CHARS = 4096;

/** The text in pieces between code points. */
function textPieces(input: Buffer, text: string): string[] {
  const characters = Array.from(text);
  const pieces: string[] = [];
  let at = 0;
  for (const length of pieceLengths(input)) {
    if (at < characters.length) pieces.push(characters.slice(at, at + length).join(""));
    at += length;
  }
  return pieces;
}

/** Without what is refused before it gets here. */
function speakable(text: string): string {
  return findBadText(text) === null ? text : text.replace(/(?![\t\n\r])[\p{Cc}\p{Cs}]/gu, "");
}

const RULES: readonly Replacement[] = [
  { from: "Smith", to: "Smythe" },
  { from: "AI", to: "A. I.", ignore_case: true },
  { from: "a", to: "", whole_word: false },
];

/** The first line may be replacement rules in JSON. */
const prepare: Target = {
  words: [...MARKUP_WORDS, '[{"from":"a","to":"b"}]', '"ignore_case":true', '"whole_word":false'],
  seeds: [...PROSE, `[{"from":"two","to":"2"},{"from":"ss","to":"ß","ignore_case":true}]\n${PROSE[0]}`],
  run: (input) => {
    const { rules, text } = rulesAndText(input);
    for (const clean of [CLEANINGS, []] as const) {
      const whole = prepared([text], rules, clean);
      requireSame("cut", whole, prepared(textPieces(input, text), rules, clean));
    }
  },
};

function rulesAndText(input: Buffer): { readonly rules: readonly Replacement[]; readonly text: string } {
  const [head = "", ...rest] = linesOf(input);
  if (head.startsWith("[{")) {
    try {
      const read = replacements.safeParse(JSON.parse(head));
      if (read.success) return { rules: read.data, text: speakable(rest.join("\n")) };
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError)) throw thrown;
    }
  }
  return { rules: RULES, text: speakable(textOf(input)) };
}

function prepared(
  pieces: readonly string[],
  rules: readonly Replacement[],
  clean: readonly Cleaning[],
): string {
  const preparer = new TextPreparer({ clean, replacements: rules });
  let spoken = "";
  for (const piece of pieces) {
    spoken += preparer.push(piece);
    if (preparer.heldChars > MAX_HELD_CHARS)
      throw new Error(`${preparer.heldChars} characters are held back`);
  }
  return spoken + preparer.end();
}

const segment: Target = {
  words: MARKUP_WORDS,
  seeds: PROSE,
  run: (input) => {
    const text = speakable(textOf(input));
    const whole = segmentsOf([text]);
    const joined = whole.map((each) => each.text).join("");
    // Blanks behind the last segment are not spoken.
    requireSame("joined", joined, isBlank(text.slice(joined.length)) ? text.slice(0, joined.length) : text);
    requireSame("cut", JSON.stringify(whole), JSON.stringify(segmentsOf(textPieces(input, text))));
  },
};

function segmentsOf(pieces: readonly string[]): Segment[] {
  const segmenter = new Segmenter();
  return [...pieces.flatMap((piece) => segmenter.push(piece)), ...segmenter.end()];
}

const words: Target = {
  words: MARKUP_WORDS,
  seeds: PROSE,
  run: (input) => {
    const text = textOf(input);
    let last = 0;
    for (const { start, end } of wordSpans(text)) {
      if (start < last || end <= start || end > text.length)
        throw new Error("a word lies outside or before another");
      last = end;
      taggedPhones(text, { start, end });
    }
  },
};

const vendorText: Target = {
  words: [...MARKUP_WORDS, "</sub>", "<w>", "<say-as interpret-as='x'>"],
  seeds: PROSE,
  run: (input) => {
    const text = textOf(input);
    for (const keepsMarkup of [true, false]) {
      const buffer = new TextBuffer(keepsMarkup);
      const said: string[] = [];
      for (const piece of textPieces(input, text)) {
        buffer.push(piece);
        said.push(buffer.takeWords() ?? "");
      }
      said.push(...buffer.takeAll());
      const letters = (of: string): string => of.replace(/[\s\p{P}\p{C}]/gu, "");
      // Blanks and what can't be said may go, nothing else.
      if (!letters(text).startsWith(letters(said.join("")).slice(0, 100)))
        throw new Error("text is said in another order");
    }
  },
};

/** Lines: each is a line of a cue, the first one the speaker's name. */
const captionFiles: Target = {
  words: [
    "-->",
    "<v ",
    "<00:00:01.000>",
    "&lt;",
    "NOTE",
    "WEBVTT",
    "STYLE",
    "\u2028",
    "\r",
    "\u00a0",
    "</v>",
  ],
  seeds: ["Ann\nHello <b>there</b> --> & you", "\n1\n00:00:01,000 --> 00:00:02,000"],
  run: (input) => {
    const [speaker = "", ...texts] = linesOf(input);
    const lines = texts.map((text) => ({
      text,
      words: wordSpans(text).map(({ start, end }, index) => ({
        text: text.slice(start, end),
        start,
        end,
        start_ms: index * 10,
        end_ms: index * 10 + 9,
      })),
    }));
    const event = { start_ms: 0, end_ms: 900, start: 0, end: 9, lines, voice_id: "v", speaker };
    const cue = cueOfEvent(event as unknown as CueEvent, 0);
    for (const file of [vttCue(cue), vttCue(cue, { hasWordTimes: true }), srtCue(cue, 1)]) {
      if (file.split("-->").length !== 2) throw new Error("a text can be taken for a timing line");
      if (!file.endsWith("\n\n") || /\n[\r\n]/.test(file.slice(0, -2)))
        throw new Error("a text can end its cue");
    }
  },
};

const NORMALIZATIONS = ["on", "auto", "off"] as const;

/** A lexicon; what is no lexicon is a text that is normalized, and has phoneme tags. */
/** As a voice's thread keeps them. */
const LOCALES = new Locales();

const serviceText: Target = {
  words: [
    ...MARKUP_WORDS,
    ..."<lexicon <lexeme> <grapheme> <alias> <phoneme> </lexeme> </lexicon> alphabet= ipa cmu-arpabet".split(
      " ",
    ),
    ..."<![CDATA[ ]]> <!DOCTYPE <?xml &#x41; &#0; &lt; xmlns:x= 1,234,567.89 €5 -3°C 2026-11-24 1/2 IV km/h".split(
      " ",
    ),
    ..."九百 第3回 １２ T AH0 M EY1".split(" "),
  ],
  seeds: [
    '<?xml version="1.0"?><lexicon version="1.0" alphabet="ipa" xml:lang="en" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon"><lexeme><grapheme>a</grapheme><alias>b</alias></lexeme><lexeme><grapheme>c</grapheme><phoneme>siː</phoneme></lexeme></lexicon>',
    "On 2026-11-24 at 10:30 Dr. Smith paid $1,234.50 for 3/4 kg, i.e. 50% of 12:00. Call +49 30 1234567!",
    "第3回は12月24日です。１２個。",
    ...PROSE,
  ],
  run: (input) => {
    const text = textOf(input);
    findPhonemeTags(text);
    for (const alphabet of ["ipa", "cmu-arpabet"] as const) readPronunciation(text.slice(0, 300), alphabet);
    for (const language of ["en", "de", "ja"]) {
      // One of the three is enough for an input.
      const normalization = NORMALIZATIONS[input.length % NORMALIZATIONS.length] ?? "on";
      new Normalizer({ normalization, readsJapanese: true }, LOCALES).normalize(text, language);
    }
    try {
      const rules = readPls(text);
      requireRules(rules);
      new Lexicon(rules).respell(text);
      readPls(writePls(rules));
    } catch (thrown) {
      if (!(thrown instanceof XmlError)) throw thrown;
    }
  },
};

export const TEXT_TARGETS: Readonly<Record<string, Target>> = {
  "text-cleaning": prepare,
  "text-segments": segment,
  "text-words": words,
  "vendor-text": vendorText,
  "caption-files": captionFiles,
  "service-text": serviceText,
};
