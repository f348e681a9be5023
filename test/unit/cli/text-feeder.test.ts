import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type FedText, TextFeeder } from "../../../src/cli/say/text-feeder.ts";

function feedAll(tokens: readonly string[], maxUtteranceChars: number, maxPieceChars = maxUtteranceChars) {
  const pieces: FedText[] = [];
  const ended: string[] = [];
  let ids = 0;
  const feeder = new TextFeeder({
    maxUtteranceChars,
    maxPieceChars,
    newUtteranceId: () => `u${++ids}`,
  });
  for (const next of [...tokens.flatMap((token) => [...feeder.push(token)]), ...feeder.end()]) {
    if (next.text === null) ended.push(next.utteranceId);
    else pieces.push(next);
  }
  const utterances = ended.map((id) =>
    pieces
      .filter((piece) => piece.utteranceId === id)
      .map((piece) => piece.text)
      .join(""),
  );
  return { pieces, ended, utterances };
}

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

describe("TextFeeder", () => {
  test("hands each token on at once, with its offset", () => {
    const { pieces, ended } = feedAll(["Hel", "lo ", "there"], 100);
    expect(pieces.map((piece) => [piece.text, piece.start])).toEqual([
      ["Hel", 0],
      ["lo ", 3],
      ["there", 6],
    ]);
    expect(ended).toEqual(["u1"]);
  });

  test("begins another utterance at a space where one is full", () => {
    expect(feedAll(["one two three four"], 10).utterances).toEqual(["one two ", "three four"]);
    expect(feedAll(["123456789", "0", " next"], 10).utterances).toEqual(["1234567890", "next"]);
  });

  test("prefers the end of a sentence, and takes a word that does not fit along", () => {
    expect(feedAll(["One two. Three four. Five"], 24).utterances).toEqual(["One two. Three four. ", "Five"]);
    expect(feedAll(["今日は。元気ですか。はい"], 10).utterances).toEqual(["今日は。元気ですか。", "はい"]);
    expect(feedAll(["one two ", "fourteen."], 10).utterances).toEqual(["one two ", "fourteen."]);
  });

  test("ends nearly full utterances before a token that begins with a space", () => {
    const { utterances } = feedAll(["a".repeat(95), " word", " more"], 100);
    expect(utterances).toEqual(["a".repeat(95), "word more"]);
  });

  test("feeds nothing and ends nothing for blanks", () => {
    expect(feedAll([" \n", ""], 10)).toEqual({ pieces: [], ended: [], utterances: [] });
  });

  test("keeps every bound, every visible character and whole surrogate pairs, however tokens are split", () => {
    const token = fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", "👍", "日") });
    fc.assert(
      fc.property(
        fc.array(token),
        fc.integer({ min: 2, max: 20 }),
        fc.integer({ min: 2, max: 20 }),
        (tokens, max, maxPiece) => {
          const { pieces, ended, utterances } = feedAll(tokens, max, maxPiece);
          for (const piece of pieces) {
            expect(piece.text.length).toBeLessThanOrEqual(maxPiece);
            expect(piece.text).not.toMatch(LONE_SURROGATE);
          }
          for (const utterance of utterances) expect(utterance.length).toBeLessThanOrEqual(max);
          expect(new Set(ended).size).toBe(ended.length);
          expect(utterances.join("").replace(/\s/g, "")).toBe(tokens.join("").replace(/\s/g, ""));
        },
      ),
    );
  });
});
