/** Texts that the pieces of this folder are tried on: every script, and every trap that users complain of. */
import fc from "fast-check";

export const FIXTURES = [
  "Hello there. How are you? I'm fine, thanks!",
  "Dr. Smith paid $1,234.56 (or 3.14) in the U.S. Senate. He left the U.S.A. The end.",
  "See e.g. https://example.com/a.b?c=d. Write to a.b@example.com, please. J. R. R. Tolkien wrote it.",
  "Wait... What? Well… I think so — “Really?” he said. 'Yes!' She ran.",
  "List:\n1. Milk\n2. Eggs (10%)\n- one\n- two\n\nTitle\nText goes on.",
  "Great! 😀 Let's go 👨‍👩‍👧‍👦, 🇩🇪🇫🇷 and 🏳️‍🌈! 👍🏽 1️⃣ ❤️ ok.",
  "e\u0301te\u0301 nai\u0308ve Zo\u00eb. \u0301 odd",
  "مرحبا، كيف حالك؟ أنا بخير. שלום, עולם! ארה״ב.",
  "नमस्ते दुनिया। क्या हाल है? क्‍षत्रिय।",
  "สวัสดีครับ วันนี้อากาศดีมากและเราจะไปเที่ยวทะเลกับครอบครัว",
  "他说：“你好。世界！”然后他走了……我们3.14年后见?好的!再见",
  "今日は良い天気です。「散歩」に行きましょう！iPhoneを買いました。",
  "안녕하세요, 세계! 대한민국은 아름답습니다.",
  'Hi <break time="1s"/> there [laughs]. <phoneme alphabet="ipa" ph="t">to</phoneme> a < b <b and c> [',
  "*** **Bold.** _Next_ `code` C++ C# word(s) (s)he 50% -5 +49 #tag @me",
  "Bonjour\u00a0! Il a dit «\u00a0Oui.\u00a0» 10\u202f000 €.",
  "\r\n\t  \u200b\u2060 \u200e",
  "ພາສາລາວ ភាសាខ្មែរ។ မြန်မာဘာသာ။",
  "",
];

// Letters of six historic scripts that make one grapheme with whatever follows, even a space or a stop: not handled.
const REPHA =
  /[\u0d4e\u{111c2}\u{111c3}\u{113d1}\u{1193f}\u{11941}\u{11a3a}\u{11a84}-\u{11a89}\u{11d46}\u{11f02}]/u;

/** Fixtures, pieces of them, and anything that UTF-16 can hold (whole code points), joined. */
export const anyText: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      fc.constantFrom(...FIXTURES),
      fc.constantFrom(...FIXTURES.flatMap((text) => text.split(/(?<=\s)/u))),
      fc.constantFrom(
        " ",
        "\n",
        ". ",
        ", ",
        "? ",
        "... ",
        "。",
        "，",
        "—",
        "\u0301",
        "\u200d",
        "\ufe0f",
        "[",
        "<a ",
        "1. ",
      ),
      fc.string({ unit: "grapheme", maxLength: 6 }),
      fc.string({ unit: "binary", maxLength: 4 }).filter((text) => !REPHA.test(text)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

/** A text cut at any of its code points. */
export function splitOf(text: string, cuts: readonly number[]): string[] {
  const characters = Array.from(text);
  const places = [
    ...new Set([0, ...cuts.map((cut) => cut % (characters.length + 1)), characters.length]),
  ].sort((a, b) => a - b);
  return places.slice(1).map((end, i) => characters.slice(places[i], end).join(""));
}

/** A text cut into pieces. */
export const splitText: fc.Arbitrary<{ readonly text: string; readonly parts: readonly string[] }> = fc
  .tuple(anyText, fc.array(fc.nat(400), { maxLength: 12 }))
  .map(([text, cuts]) => {
    return { text, parts: splitOf(text, cuts) };
  });

/** Offsets where a grapheme starts, and the end. */
export function graphemeStarts(text: string): ReadonlySet<number> {
  const segments = new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text);
  return new Set([...Array.from(segments, ({ index }) => index), text.length]);
}
