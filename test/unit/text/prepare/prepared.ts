/** What the tests of this folder share: texts made ready in one go, and texts full of marks. */
import fc from "fast-check";
import type { Replacement } from "../../../../src/protocol/commands.ts";
import type { Cleaning } from "../../../../src/protocol/vocabulary.ts";
import type { MappedSpan } from "../../../../src/text/prepare/spoken-map.ts";
import { type PrepareOptions, TextPreparer } from "../../../../src/text/prepare/text-preparer.ts";
import { FIXTURES } from "../fixtures.ts";

export const ALL: readonly Cleaning[] = ["markdown", "code", "urls", "emoji"];

export interface Prepared {
  readonly spoken: string;
  readonly spans: readonly MappedSpan[];
  readonly mostHeld: number;
}

export function prepared(parts: readonly string[], options: PrepareOptions): Prepared {
  const preparer = new TextPreparer(options);
  let mostHeld = 0;
  const spoken = parts.map((part) => {
    const settled = preparer.push(part);
    mostHeld = Math.max(mostHeld, preparer.heldChars);
    return settled;
  });
  spoken.push(preparer.end());
  return {
    spoken: spoken.join(""),
    spans: preparer.map.spans(0, preparer.map.spokenLength, true),
    mostHeld,
  };
}

/** The spoken text of one push. */
export function said(
  text: string,
  clean: readonly Cleaning[] = ALL,
  replacements: readonly Replacement[] = [],
): string {
  return prepared([text], { clean, replacements }).spoken;
}

const SNIPPETS = [
  ..."*_~`#>-+|\\!<[]().:=@/ \n\t\r1aé中ไ😀",
  "**",
  "```",
  "~~",
  "- ",
  "1. ",
  "# ",
  " #",
  "> ",
  "---\n",
  "| a | b |\n",
  "|---|\n",
  "- [x] ",
  "<!-- x -->",
  "<!--",
  "[a](b)",
  "![",
  "](",
  "[^1]",
  "`a`",
  "a**b",
  "`c**d`",
  "```js\n",
  "\n```\n",
  "https://www.a.com/b",
  "http://",
  "www.",
  "a.b@c.de",
  "@c.de",
  "word",
  "Word's",
  "👨‍👩‍👧",
  "\u200d",
  "\ufe0f",
  "1\ufe0f\u20e3",
  "🇩🇪",
  "🏽",
  "🏴\u{e0067}\u{e0062}\u{e007f}",
  "❤",
  " 🎉 ",
  '<break time="1s"/>',
  "[laughs]",
  "重要",
  "यह",
  "สวัสดี",
  "سلام",
];

export const markedText: fc.Arbitrary<string> = fc
  .array(fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...SNIPPETS) }, fc.constantFrom(...FIXTURES)), {
    maxLength: 24,
  })
  .map((parts) => parts.join(""));

export const anyOptions: fc.Arbitrary<PrepareOptions> = fc.record({
  clean: fc.subarray([...ALL]),
  replacements: fc.array(
    fc.record({
      from: fc.constantFrom(
        "a",
        "word",
        "word a",
        "Word's",
        "dot com",
        "com",
        "o",
        "重要",
        "a b",
        "😀",
        "1",
        ".",
        "s",
        "wor",
        "or",
      ),
      to: fc.constantFrom("", "X", "a longer word"),
      ignore_case: fc.boolean(),
      whole_word: fc.boolean(),
    }),
    { maxLength: 4 },
  ),
  dropsAudioTags: fc.boolean(),
});
