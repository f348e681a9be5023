import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ServiceWord, WordMatcher } from "../../../src/upstream/services/word-matcher.ts";

/** Words of half a second each, one behind the other. */
function said(words: string): ServiceWord[] {
  return words
    .split(" ")
    .map((text, index) => ({ text, startSeconds: index / 2, endSeconds: (index + 1) / 2 }));
}

/** The times of each word of the text, in steps of half a second; null: not known. */
function aligned(text: string, words: readonly ServiceWord[], each = 1) {
  const aligner = new WordMatcher(text);
  const characters: { text: string; start: number; end: number }[] = [];
  const take = (alignment: ReturnType<WordMatcher["finish"]>): void => {
    for (const [index, character] of (alignment?.characters ?? []).entries()) {
      const start = alignment?.character_start_times_seconds[index] ?? Number.NaN;
      characters.push({
        text: character,
        start,
        end: alignment?.character_end_times_seconds[index] ?? Number.NaN,
      });
    }
  };
  for (let at = 0; at < words.length; at += each) take(aligner.push(words.slice(at, at + each)));
  take(aligner.finish());
  const joined = characters.map((character) => character.text).join("");
  let at = 0;
  const places = characters.map((character) => {
    at += character.text.length;
    return at - character.text.length;
  });
  const times = [...joined.matchAll(/[\p{L}\p{M}\p{N}'$%.,-]*[\p{L}\p{N}]/gu)].map(({ 0: word, index }) => {
    const start = characters[places.indexOf(index)]?.start ?? Number.NaN;
    const end = characters[places.findLastIndex((place) => place < index + word.length)]?.end ?? Number.NaN;
    return [word, Number.isNaN(start) ? null : start * 2, Number.isNaN(end) ? null : end * 2];
  });
  return { joined, times, aligner };
}

it("a word's characters share the time of its sounds; those outside of it are passed over", () => {
  const word = { text: "Mint", startSeconds: 0, endSeconds: 1, soundStarts: [0, 0.1, 0.5, 2] };
  const alignment = new WordMatcher("Mint").push([word]);
  const rounded = (times: readonly number[] | undefined) => times?.map((time) => Number(time.toFixed(6)));
  expect(rounded(alignment?.character_start_times_seconds)).toEqual([0, 0.075, 0.3, 0.625]);
  expect(rounded(alignment?.character_end_times_seconds)).toEqual([0.075, 0.3, 0.625, 1]);
});

describe("words in a text", () => {
  it.each([
    ["in another case, without punctuation", "Hello, World!", "hello world", [0, 1]],
    ["a number in words", "I have 25 cats", "I have twenty five cats", [0, 1, 2, 4]],
    [
      "an amount in words",
      "It costs $1,250 now",
      "It costs one thousand two hundred fifty dollars now",
      [0, 1, 2, 8],
    ],
    ["a number at the end", "Room 12", "Room twelve", [0, 1]],
    ["a number at the start", "12 rooms", "twelve rooms", [0, 1]],
    ["an abbreviation", "Dr. Smith is here", "doctor smith is here", [0, 1, 2, 3]],
    [
      "a word that comes again",
      "the dog and the cat and the dog",
      "the dog and the cat and the dog",
      [0, 1, 2, 3, 4, 5, 6, 7],
    ],
    ["accents", "Caf\u00e9 d\u00e9j\u00e0 vu", "cafe deja vu", [0, 1, 2]],
  ])("%s", (_what, text, words, starts) => {
    for (const each of [1, 2, 100]) {
      const { joined, times } = aligned(text, said(words), each);
      expect(joined).toBe(text);
      expect(times.map(([, start]) => start)).toEqual(starts);
    }
  });

  it("a contraction that comes in two parts, and two words that come as one", () => {
    expect(aligned("I can't go", said("I can 't go")).joined).toBe("I can't go");
    expect(aligned("in New York today", said("in NewYork today")).times.at(-1)).toEqual(["today", 2, 3]);
  });

  it("scripts without spaces: characters and words of them", () => {
    const text = "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002";
    const { joined, aligner } = aligned(text, said("\u4eca\u5929 \u5929\u6c14 \u5f88 \u597d"));
    expect(joined).toBe(text);
    expect(aligner.endSeconds).toBe(2);
  });

  it("a short word is not taken for the same one far behind", () => {
    const text = "1/2 cup of a thing that is a cup";
    const { times } = aligned(text, said("one half cup of a thing that is a cup"));
    expect(times.find(([word]) => word === "thing")).toEqual(["thing", 5, 6]);
  });

  it("text that nobody said has no times, and what follows has its own", () => {
    const { times } = aligned("See (ibid) the end", said("See the end"));
    expect(times).toEqual([
      ["See", 0, 1],
      ["ibid", null, null],
      ["the", 1, 2],
      ["end", 2, 3],
    ]);
  });

  it("what stands behind words without times has none either, or it would leave them no audio", () => {
    const timesOf = (text: string, words: readonly ServiceWord[]) => {
      const aligner = new WordMatcher(text);
      const given = [aligner.push(words), aligner.finish()].filter((alignment) => alignment !== null);
      return given
        .flatMap(({ characters, character_start_times_seconds: starts }) =>
          characters.map((character, index) => (Number.isNaN(starts[index]) ? "-" : character)),
        )
        .join("");
    };
    const back = said("one two three four").map((word, index) =>
      index < 2 ? word : { ...word, startSeconds: word.startSeconds - 1, endSeconds: word.endSeconds - 1 },
    );
    expect(timesOf("One, two, three, four.", back)).toBe("One, two--------------");
    const untimed = said("one two three four").map((word, index) =>
      index === 1 ? { ...word, startSeconds: Number.NaN, endSeconds: Number.NaN } : word,
    );
    expect(timesOf("One, two, three, four.", untimed)).toBe("One-------three, four.");
  });

  it("several words that are said in other words have no times: nobody knows when each begins", () => {
    const timesOf = (text: string, words: string) =>
      aligned(text, said(words)).times.map(([, start]) => start);
    expect(timesOf("The fox jumps over", "The animal hops over")).toEqual([0, null, null, 3]);
    expect(timesOf("Fox jumps over it", "animal hops over it")).toEqual([null, null, 2, 3]);
    expect(timesOf("Over fox jumps", "Over animal hops")).toEqual([0, null, null]);
    expect(timesOf("Fox jumps", "an animal hops")).toEqual([null, null]);
  });

  it("several letters of a script without spaces are taken for several words", () => {
    const known = (text: string, words: string) => {
      const aligner = new WordMatcher(text);
      const given = [aligner.push(said(words)), aligner.finish()];
      return given
        .flatMap((alignment) => alignment?.character_start_times_seconds ?? [])
        .map(Number.isFinite);
    };
    const [today, fine, weather, number] = ["\u4eca\u65e5", "\u597d", "\u5929\u6c14", "\u4e8c\u5341"];
    expect(known(`${today}${weather}${fine}`, `${today} ab ${fine}`)).toEqual([
      true,
      true,
      false,
      false,
      true,
    ]);
    expect(known(`${today}20${fine}`, `${today} ${number} ${fine}`)).toEqual([true, true, true, true, true]);
  });

  it("knows when the last word ends, whether it is one of the text or not", () => {
    const { aligner } = aligned("Hello there you", said("there you Hello"));
    expect(aligner.isTimedToEnd).toBe(true);
    expect(aligner.toldSeconds).toBe(1.5);
    const untimed = said("Hello there").map((word) => ({ ...word, endSeconds: Number.NaN }));
    expect(aligned("Hello there", untimed).aligner.isTimedToEnd).toBe(false);
  });

  it("words that are not in the text change nothing", () => {
    expect(aligned("Hello there", said("Hello um there")).times).toEqual([
      ["Hello", 0, 1],
      ["there", 2, 3],
    ]);
  });

  it("knows what was not said", () => {
    expect(aligned("Hello there you", said("Hello there")).aligner.unsaidLetters).toBe(3);
    expect(aligned("Hello there", said("Hello there")).aligner.isTimedToEnd).toBe(true);
  });

  it("other words at the end stand for the end, and not for more than can be said in their time", () => {
    const { joined, aligner } = aligned("Room 12.", said("Room twelve"));
    expect(joined).toBe("Room 12.");
    expect(aligner.isTimedToEnd).toBe(true);
    const cut = aligned("I have 25 cats and a great many other animals", said("I have twenty")).aligner;
    expect(cut.unsaidLetters).toBe("25catsandagreatmanyotheranimals".length);
  });

  it("gives the characters of the text in order, each once, whatever is said", () => {
    const word = fc.constantFrom(
      "the",
      "a",
      "quick",
      "fox",
      "25",
      "twenty",
      "it's",
      "caf\u00e9",
      "\u4eca",
      "...",
      "",
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), fc.array(word, { maxLength: 20 }), (text, words) => {
        const whole = text.join(" ");
        const { joined } = aligned(whole, said(words.join(" ")));
        const own = /^\s/.test(whole) ? joined : joined.replace(/^ /, "");
        expect(whole.startsWith(own)).toBe(true);
      }),
    );
  });
});
