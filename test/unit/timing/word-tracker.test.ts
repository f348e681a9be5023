import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wordsOf } from "../../../src/text/word-positions.ts";
import { wordSpans } from "../../../src/text/words.ts";
import type { TimedCharacters, TimedWord } from "../../../src/timing/timed.ts";
import { WordTracker } from "../../../src/timing/word-tracker.ts";
import { splitText } from "../text/fixtures.ts";

function timedOf(
  text: string,
  start: number,
  end: number,
  timing: TimedCharacters["timing"] = "exact",
): TimedCharacters {
  const characters = [...text.slice(start, end)];
  let at = start;
  const starts = characters.map((character) => {
    const time = at / 10;
    at += character.length;
    return time;
  });
  const ends = characters.map((character, i) => (starts[i] ?? 0) + character.length / 10);
  return { start, end, characters, startSeconds: starts, endSeconds: ends, timing };
}

const tracker = (text: string, joints: readonly number[] = []) => new WordTracker(wordsOf(text, { joints }));

const textsOf = (words: readonly TimedWord[]) => words.map((word) => word.text);

describe("WordTracker", () => {
  it("gives a word when its last character has its time, with the times of its first and last", () => {
    const text = "Hello, you all";
    const words = tracker(text);
    expect(words.push(timedOf(text, 0, 3))).toEqual([]);
    const [hello] = words.push(timedOf(text, 3, 8));
    expect(hello).toEqual({
      text: "Hello",
      start: 0,
      end: 5,
      startSeconds: 0,
      endSeconds: 0.5,
      timing: "exact",
    });
    expect(textsOf(words.push(timedOf(text, 8, 14)))).toEqual(["you", "all"]);
    expect(words.finish()).toEqual([]);
  });

  it("closes words at boundaries: inputs of a dialogue that meet without a space", () => {
    const text = "Hiyou tooend";
    const words = tracker(text, [2, 9, 12]);
    expect(textsOf(words.push(timedOf(text, 0, 12)))).toEqual(["Hi", "you", "too", "end"]);
    expect(textsOf(tracker(text, [2, 2, 9, 50]).push(timedOf(text, 0, 12)))).toEqual([
      "Hi",
      "you",
      "too",
      "end",
    ]);
  });

  it("labels a word with the weakest of its characters", () => {
    const text = "Hello you all";
    const words = tracker(text);
    words.push(timedOf(text, 0, 2, "scaled"));
    const [hello, you] = [...words.push(timedOf(text, 2, 13)), ...words.finish()];
    expect([hello?.timing, you?.timing]).toEqual(["scaled", "exact"]);
  });

  it("leaves out words that were never spoken, and estimates those spoken in part", () => {
    const text = "one two three four";
    const words = tracker(text);
    expect(textsOf(words.push(timedOf(text, 0, 4)))).toEqual(["one"]);
    expect(words.push(timedOf(text, 10, 14)).map(({ text: shown, timing }) => [shown, timing])).toEqual([
      ["three", "estimated"],
    ]);
    expect(textsOf(words.push(timedOf(text, 14, 16)))).toEqual([]);
    expect(words.finish().map(({ text: shown, timing }) => [shown, timing])).toEqual([["four", "estimated"]]);
  });

  it("takes a character's first time only", () => {
    const text = "one two";
    const words = tracker(text);
    words.push(timedOf(text, 0, 2));
    const again = { ...timedOf(text, 0, 7), startSeconds: [9, 9, 9, 9, 9.4, 9.5, 9.6] };
    expect(words.push(again).map((word) => word.startSeconds)).toEqual([0, 9.4]);
  });

  it("never gives a word that starts before the one before it", () => {
    const words = tracker("a b");
    words.push({
      start: 0,
      end: 2,
      characters: ["a", " "],
      startSeconds: [5, 5],
      endSeconds: [5, 5],
      timing: "exact",
    });
    const b = { start: 2, end: 3, characters: ["b"], startSeconds: [1], endSeconds: [2] };
    expect(words.push({ ...b, timing: "exact" })).toMatchObject([{ startSeconds: 5, endSeconds: 5 }]);
  });

  it("gives every word of any text once, in order, however its times are split", () => {
    fc.assert(
      fc.property(splitText, fc.infiniteStream(fc.nat(20)), ({ text }, steps) => {
        const words = tracker(text);
        const found: TimedWord[] = [];
        const characters = [...text];
        let at = 0;
        while (characters.length > 0) {
          const end = at + characters.splice(0, steps.next().value ?? 1).join("").length;
          found.push(...words.push(timedOf(text, at, end)));
          at = end;
        }
        found.push(...words.finish());
        expect(found.map(({ start, end }) => ({ start, end }))).toEqual(wordSpans(text));
        for (const word of found) {
          expect(word.text).toBe(text.slice(word.start, word.end));
          expect(word.startSeconds).toBeCloseTo(word.start / 10, 9);
          expect(word.endSeconds).toBeCloseTo(word.end / 10, 9);
        }
      }),
      { seed: 31, numRuns: 400 },
    );
  });

  it("takes a long text in linear time", () => {
    const text = "hello you ".repeat(20_000);
    const words = tracker(text);
    let count = 0;
    for (let i = 0; i < text.length; i++) count += words.push(timedOf(text, i, i + 1)).length;
    expect(count + words.finish().length).toBe(40_000);
  });
});
