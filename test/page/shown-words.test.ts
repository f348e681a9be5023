import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addCharacters, addWord, type ShownWord } from "../../src/page/speech/shown-words.ts";
import type { CharactersEvent, Word } from "../../src/protocol/events.ts";

/** Characters of `text` from `start` on, ten milliseconds each. */
function characters(text: string, start: number): CharactersEvent {
  const list = Array.from(text);
  let at = start;
  const offsets = list.map((character) => {
    at += character.length;
    return at - character.length;
  });
  return {
    type: "characters",
    seq: 1,
    at_ms: 0,
    utterance_id: "u",
    start,
    end: at,
    characters: list,
    start_ms: offsets.map((offset) => offset * 10),
    end_ms: offsets.map((offset) => offset * 10 + 10),
    timing: "exact",
  };
}

function word(text: string, start: number): Word {
  const end = start + text.length;
  return { text, start, end, start_ms: start * 10, end_ms: end * 10 };
}

function texts(words: readonly ShownWord[]): string[] {
  return words.map(({ text, isProvisional }) => (isProvisional ? `${text}?` : text));
}

describe("addCharacters()", () => {
  it("shows a long word from its first characters, with the time of the first", () => {
    const words: ShownWord[] = [word("paid", 0)];
    addCharacters(words, characters("$1,234.5", 5));
    expect(texts(words)).toEqual(["paid", "$1,234.5?"]);
    expect(words[1]).toMatchObject({ start: 5, end: 13, start_ms: 50 });
  });

  it("leaves alone what is covered by a word, and punctuation by itself", () => {
    const words: ShownWord[] = [word("Hello", 0)];
    addCharacters(words, characters("Hello, – ", 0));
    expect(texts(words)).toEqual(["Hello"]);
  });

  it("shows nothing that takes no time: a tag, or what was taken out", () => {
    const words: ShownWord[] = [];
    const tag = characters("[laughs]", 0);
    addCharacters(words, {
      ...tag,
      end_ms: tag.characters.map(() => 0),
      start_ms: tag.characters.map(() => 0),
    });
    addCharacters(words, characters(" So", 8));
    expect(texts(words)).toEqual(["So?"]);
  });

  it("gives the same words however the characters are split", () => {
    const text = "Dr. Novak paid 1,234.56 for 2nd-hand naïveté, ok? مساء 晚上好。";
    const characterCount = Array.from(text).length;
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: characterCount - 1 })), (cuts) => {
        const whole: ShownWord[] = [];
        addCharacters(whole, characters(text, 0));
        const split: ShownWord[] = [];
        let offset = 0;
        const borders = [0, ...cuts.sort((a, b) => a - b), characterCount];
        for (let part = 1; part < borders.length; part += 1) {
          const piece = Array.from(text)
            .slice(borders[part - 1], borders[part])
            .join("");
          addCharacters(split, characters(piece, offset));
          offset += piece.length;
        }
        expect(split).toEqual(whole);
      }),
    );
  });
});

describe("addWord()", () => {
  it("drives out what was put together for it, even where the borders differ", () => {
    const words: ShownWord[] = [];
    addCharacters(words, characters("“Hello world", 0));
    addWord(words, word("Hello", 1));
    expect(texts(words)).toEqual(["Hello", "world?"]);
    addWord(words, word("world", 7));
    expect(texts(words)).toEqual(["Hello", "world"]);
  });

  it("replaces one run of Chinese by its words", () => {
    const words: ShownWord[] = [];
    addCharacters(words, characters("晚上好你好", 0));
    expect(texts(words)).toEqual(["晚上好你好?"]);
    addWord(words, word("晚上好", 0));
    addWord(words, word("你好", 3));
    expect(texts(words)).toEqual(["晚上好", "你好"]);
  });

  it("keeps the words in order when they come late, and takes the newer of two", () => {
    const words: ShownWord[] = [];
    addWord(words, word("three", 8));
    addWord(words, word("one", 0));
    addWord(words, word("two", 4));
    addWord(words, { ...word("two", 4), end_ms: 999 });
    expect(texts(words)).toEqual(["one", "two", "three"]);
    expect(words[1]?.end_ms).toBe(999);
  });
});
