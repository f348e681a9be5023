import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Replacement } from "../../../src/protocol/commands.ts";
import type { Cleaning } from "../../../src/protocol/vocabulary.ts";
import { SpokenText } from "../../../src/text/spoken-text.ts";
import { ClientTimes } from "../../../src/timing/client-times.ts";
import type { TimedCharacters, TimedWord } from "../../../src/timing/timed.ts";

interface Options {
  readonly clean?: readonly Cleaning[];
  readonly replacements?: readonly Replacement[];
}

/** A tenth of a second for each code unit. */
function timed(spoken: string, start: number, end: number): TimedCharacters {
  const characters = [...spoken.slice(start, end)];
  let at = start;
  const startSeconds: number[] = [];
  const endSeconds: number[] = [];
  for (const character of characters) {
    startSeconds.push(at / 10);
    at += character.length;
    endSeconds.push(at / 10);
  }
  return { start, end, characters, startSeconds, endSeconds, timing: "exact" };
}

function wordsIn(spoken: string): TimedWord[] {
  return [...spoken.matchAll(/[\p{L}\p{N}']+/gu)].map((match) => ({
    text: match[0],
    start: match.index,
    end: match.index + match[0].length,
    startSeconds: match.index / 10,
    endSeconds: (match.index + match[0].length) / 10,
    timing: "exact" as const,
  }));
}

/** All characters and words of a text in one response, pushed in pieces that end at `cuts`. */
function emitted(client: string, options: Options, cuts: readonly number[] = []) {
  const text = new SpokenText(options);
  text.append(client);
  text.end();
  const times = new ClientTimes(text, 0);
  const ends = [...cuts.filter((cut) => cut > 0 && cut < text.spoken.length), text.spoken.length];
  const pieces: TimedCharacters[] = [];
  let start = 0;
  ends.forEach((end, index) => {
    if (end <= start) return;
    const piece = times.characters(timed(text.spoken, start, end), index === ends.length - 1);
    if (piece !== null) pieces.push(piece);
    start = end;
  });
  return { spoken: text.spoken, pieces, words: times.words(wordsIn(text.spoken), true) };
}

const MARKDOWN: Options = { clean: ["markdown"] };
const VW: Options = { replacements: [{ from: "VW", to: "voicewire" }] };

describe("ClientTimes", () => {
  it("leaves everything alone where both texts are the same", () => {
    const { pieces, words } = emitted("Hello there", {});
    expect(pieces).toEqual([timed("Hello there", 0, 11)]);
    expect(words).toEqual(wordsIn("Hello there"));
  });

  it("spreads the time of a replacement over the replaced text, and calls it scaled", () => {
    const { pieces, words, spoken } = emitted("My VW runs", VW);
    expect(spoken).toBe("My voicewire runs");
    const [piece] = pieces;
    expect(piece?.characters.join("")).toBe("My VW runs");
    expect(piece?.startSeconds[3]).toBeCloseTo(0.3);
    expect(piece?.endSeconds[3]).toBeCloseTo(0.75);
    expect(piece?.startSeconds[4]).toBeCloseTo(0.75);
    expect(piece?.endSeconds[4]).toBeCloseTo(1.2);
    expect(piece?.timing).toBe("scaled");
    expect(words.map(({ text, start, end, timing }) => [text, start, end, timing])).toEqual([
      ["My", 0, 2, "exact"],
      ["VW", 3, 5, "scaled"],
      ["runs", 6, 10, "exact"],
    ]);
    expect(words[1]?.startSeconds).toBeCloseTo(0.3);
    expect(words[1]?.endSeconds).toBeCloseTo(1.2);
  });

  it("makes one word of several that stand for one, and of one that stands for several", () => {
    const several = emitted("Say AI now", { replacements: [{ from: "AI", to: "artificial intelligence" }] });
    expect(several.words.map((word) => word.text)).toEqual(["Say", "AI", "now"]);
    const one = emitted("in New York today", { replacements: [{ from: "New York", to: "NYC" }] });
    expect(one.words.map((word) => word.text)).toEqual(["in", "New York", "today"]);
  });

  it("gives what was taken out no time of its own", () => {
    const { pieces, words } = emitted("So **very** good", MARKDOWN);
    const [piece] = pieces;
    expect(piece?.characters.join("")).toBe("So **very** good");
    expect(piece?.startSeconds[3]).toBe(piece?.endSeconds[4]);
    expect(words.map(({ text, start, end }) => [text, start, end])).toEqual([
      ["So", 0, 2],
      ["very", 5, 9],
      ["good", 12, 16],
    ]);
  });

  it("reports what is taken out at the end with the last characters", () => {
    const { pieces } = emitted("So **good**", MARKDOWN);
    expect(pieces.at(-1)?.end).toBe(11);
  });

  it("does not report characters again in the next response that the one before has emitted", () => {
    const text = new SpokenText({ replacements: [{ from: "VW", to: "one. Two" }] });
    text.append("My VW runs");
    text.end();
    expect(text.spoken).toBe("My one. Two runs");
    const before = new ClientTimes(text, 0).characters(timed(text.spoken, 0, 8), true);
    const next = new ClientTimes(text, 8);
    const behind = next.characters(timed(text.spoken, 8, 16), true);
    expect(next.words(wordsIn(text.spoken).slice(2), true).map((word) => word.text)).toEqual(["runs"]);
    expect(behind?.start).toBe(before?.end);
    expect(`${before?.characters.join("")}${behind?.characters.join("")}`).toBe("My VW runs");
  });

  it("what is taken out behind a pause is emitted once, with what follows", () => {
    const text = new SpokenText({ clean: ["markdown"] });
    text.append("**Hi there.**");
    text.flush();
    expect(text.spoken).toBe("Hi there.");
    const before = new ClientTimes(text, 0).characters(timed(text.spoken, 0, 9), true);
    text.append(" Bye");
    text.end();
    const behind = new ClientTimes(text, 9).characters(timed(text.spoken, 9, 13), true);
    expect([before?.start, before?.end, behind?.start, behind?.end]).toEqual([0, 11, 11, 17]);
  });

  it("any text, cleaned, replaced and cut anywhere: the client's characters in a row, times that rise", () => {
    const client = fc
      .array(
        fc.constantFrom(
          "Hello ",
          "**b**",
          "VW",
          " ",
          "😀",
          "um ",
          "`x`",
          "https://a.example/b ",
          ". ",
          "\n",
          "naïve ",
        ),
        { maxLength: 14 },
      )
      .map((pieces) => pieces.join(""));
    const options: Options = {
      clean: ["markdown", "emoji", "urls", "code"],
      replacements: [
        { from: "VW", to: "voice wire", whole_word: false },
        { from: "um ", to: "", whole_word: false },
      ],
    };
    fc.assert(
      fc.property(client, fc.array(fc.nat(120), { maxLength: 6 }), (sent, cuts) => {
        const safe = cuts.sort((a, b) => a - b);
        const { pieces, words, spoken } = emitted(sent, options, /[\ud800-\udfff]/.test(sent) ? [] : safe);
        let at = pieces[0]?.start ?? 0;
        for (const piece of pieces) {
          expect(piece.start).toBe(at);
          expect(piece.characters.join("")).toBe(sent.slice(piece.start, piece.end));
          at = piece.end;
        }
        if (spoken !== "") expect([pieces[0]?.start, at]).toEqual([0, sent.length]);
        const times = pieces.flatMap((piece) =>
          piece.startSeconds.flatMap((start, index) => [start, piece.endSeconds[index] ?? Number.NaN]),
        );
        times.forEach((time, index) => {
          expect(time).toBeGreaterThanOrEqual((times[index - 1] ?? 0) - 1e-9);
        });
        words.forEach((word, index) => {
          expect(sent.slice(word.start, word.end)).toBe(word.text);
          expect(word.start).toBeGreaterThanOrEqual(words[index - 1]?.end ?? 0);
        });
      }),
      { numRuns: 300 },
    );
  });
});
