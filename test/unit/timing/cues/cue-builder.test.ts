import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BoundaryFinder } from "../../../../src/text/boundaries.ts";
import { WordScanner } from "../../../../src/text/words.ts";
import { type Cue, CueBuilder, type CueOptions } from "../../../../src/timing/cues/cue-builder.ts";
import { columnsOf } from "../../../../src/timing/cues/cue-units.ts";
import type { TimedWord } from "../../../../src/timing/timed.ts";
import { anyText, FIXTURES } from "../../text/fixtures.ts";

/** Words at `step` seconds a UTF-16 code unit; `pauses`: seconds of silence before the word at an offset. */
function wordsOf(text: string, step = 0.07, pauses: Readonly<Record<number, number>> = {}): TimedWord[] {
  const scanner = new WordScanner();
  let shift = 0;
  return [...scanner.push(text), ...scanner.endWord()].map((word) => {
    shift += pauses[word.start] ?? 0;
    const startSeconds = word.start * step + shift;
    return { ...word, startSeconds, endSeconds: word.end * step + shift, timing: "exact" };
  });
}

function cuesOf(text: string, words = wordsOf(text), options: Partial<CueOptions> = {}): Cue[] {
  const builder = new CueBuilder({ breaks: new BoundaryFinder(), ...options });
  builder.append(text);
  return [...words.flatMap((word) => builder.push([word])), ...builder.flush()];
}

const linesOf = (cues: readonly Cue[]) => cues.map((cue) => cue.lines.map((line) => line.text));

describe("CueBuilder lines", () => {
  it("shows words with their punctuation, one cue a sentence, short ones together", () => {
    expect(
      linesOf(cuesOf("“Hello,” she said (twice). Yes. No! Then — finally — we left the house…")),
    ).toEqual([["“Hello,” she said (twice)."], ["Yes. No! Then — finally —", "we left the house…"]]);
  });

  it("breaks long sentences into two lines at clauses, and into cues where two lines are full", () => {
    const text =
      "When we first came to the valley, there was nothing but grass, and a river that ran without a bridge from one end to the other.";
    expect(linesOf(cuesOf(text))).toEqual([
      ["When we first came to the valley,", "there was nothing but grass,"],
      ["and a river that ran without", "a bridge from one end to the other."],
    ]);
  });

  it("does not take a title's stop for the end of a sentence", () => {
    expect(linesOf(cuesOf("Nobody there had ever met Dr. Smith. He left."))[0]).toEqual([
      "Nobody there had ever met Dr. Smith.",
    ]);
  });

  it("breaks Chinese at 16 characters a line, without spaces, marks staying with their word", () => {
    const text = "我们今天去北京大学学习计算机科学与技术，然后回家吃饭。「你好」，世界！";
    const lines = linesOf(cuesOf(text));
    expect(lines.flat().join("")).toBe(text);
    for (const line of lines.flat()) {
      expect([...line].length).toBeLessThanOrEqual(16);
      expect(line).not.toMatch(/^[，。」！]|「$/u);
    }
  });

  it("leaves tags out and begins lists with their bullets", () => {
    const text = 'Hi <break time="1s"/> there.\n- one\n- two';
    expect(linesOf(cuesOf(text, wordsOf(text, 0.02)))).toEqual([["Hi there. - one"], ["- two"]]);
  });

  it("cuts a word wider than a line, its time shared", () => {
    const url = `https://example.com/${"abcdefghij".repeat(12)}`;
    const cues = cuesOf(url);
    expect(linesOf(cues).flat().join("")).toBe(url);
    for (const line of linesOf(cues).flat()) expect(line.length).toBeLessThanOrEqual(42);
    expect(cues.at(-1)?.endSeconds).toBeGreaterThanOrEqual(url.length * 0.07 - 1e-9);
  });
});

describe("CueBuilder times", () => {
  it("starts with its first word and stays long enough to be read where the pause allows it", () => {
    const text = "Stop right there. And now we go on with the rest.";
    const [first, second] = cuesOf(text, wordsOf(text, 0.02, { 18: 3 }));
    expect(first?.startSeconds).toBe(0);
    expect(first?.endSeconds).toBeCloseTo(17 / 20, 6);
    expect(second?.startSeconds).toBeCloseTo(3.36, 6);
  });

  it("ends a little before the next, also where there is no time to read it, but never before its last word", () => {
    const text = "Stop right there now. And now we go on with the rest.";
    const [first, second] = cuesOf(text, wordsOf(text, 0.02, { 22: 0.3 }));
    expect(first?.endSeconds).toBeCloseTo((second?.startSeconds ?? 0) - 0.083, 6);
    const [tight, next] = cuesOf(text, wordsOf(text, 0.02));
    expect(tight?.endSeconds).toBeCloseTo(0.4, 6);
    expect(next?.startSeconds).toBeCloseTo(0.44, 6);
  });

  it("breaks at a pause, wherever it is", () => {
    const text = "one two three four";
    expect(linesOf(cuesOf(text, wordsOf(text, 0.07, { 8: 0.75 })))).toEqual([["one two"], ["three four"]]);
  });

  it("shows no cue for longer than seven seconds of speech", () => {
    const text = "one two three four five six seven";
    for (const cue of cuesOf(text, wordsOf(text, 0.5))) {
      const words = cue.lines.flatMap((line) => line.words);
      expect((words.at(-1)?.endSeconds ?? 0) - cue.startSeconds).toBeLessThanOrEqual(7);
    }
  });

  it("flush() lets the last cue stay until it is read, or as long as it may", () => {
    const build = (until?: number) => {
      const builder = new CueBuilder({ breaks: new BoundaryFinder() });
      builder.append("Hi.");
      builder.push(wordsOf("Hi."));
      return builder.flush(until)[0]?.endSeconds;
    };
    expect(build()).toBeCloseTo(5 / 6, 6);
    expect(build(0.5)).toBeCloseTo(0.417, 6);
    expect(build(0)).toBeCloseTo(0.14, 6);
  });

  it("flush() shows the marks behind the last word, and no word that was not spoken", () => {
    const text = "Hello there, (my) friend. Bye!";
    const shown = (count: number) => linesOf(cuesOf(text, wordsOf(text).slice(0, count)));
    expect(shown(2)).toEqual([["Hello there,"]]);
    expect(shown(3)).toEqual([["Hello there, (my)"]]);
    expect(shown(5)).toEqual([["Hello there, (my) friend."], ["Bye!"]]);
  });

  it("starts no earlier than the utterance before left its last cue", () => {
    expect(cuesOf("Hello.", wordsOf("Hello."), { notBeforeSeconds: 0.2 })[0]?.startSeconds).toBe(0.2);
  });
});

describe("CueBuilder properties", () => {
  const timing = fc.record({
    step: fc.constantFrom(0.01, 0.07, 0.3),
    pauses: fc.dictionary(fc.nat(300).map(String), fc.constantFrom(0.1, 0.5, 1, 9), { maxKeys: 6 }),
  });

  it("every word is in one cue, in order, in its place; lines fit; cues never overlap", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.constantFrom(...FIXTURES)), timing, (text, { step, pauses }) => {
        const words = wordsOf(text, step, pauses);
        const cues = cuesOf(text, words);
        const shown = cues.flatMap((cue) => cue.lines.flatMap((line) => line.words));
        // A word wider than a line is in several parts.
        const starts = shown.map((word) => word.start);
        expect(starts.filter((start, i) => start !== starts[i - 1])).toEqual(words.map((word) => word.start));
        let last = 0;
        for (const cue of cues) {
          expect(cue.startSeconds).toBeGreaterThanOrEqual(last);
          expect(cue.endSeconds).toBeGreaterThanOrEqual(cue.startSeconds);
          expect(cue.lines.length).toBeGreaterThan(0);
          expect(cue.lines.length).toBeLessThanOrEqual(2);
          last = cue.endSeconds;
          for (const line of cue.lines) {
            expect(line.text).not.toMatch(/[\r\n]/);
            // One grapheme can't be cut; all else fits.
            if ([...line.text].length > 2) expect(columnsOf(line.text)).toBeLessThanOrEqual(42 + 2.625);
            expect(line.words.map((word) => word.at)).toEqual(
              line.words.map((word) => word.at).sort((a, b) => a - b),
            );
          }
        }
      }),
      { seed: 41, numRuns: 400 },
    );
  });

  it("text and words that come in pieces make the same cues", () => {
    const text = FIXTURES.slice(0, 5).join(" ");
    const builder = new CueBuilder({ breaks: new BoundaryFinder() });
    const words = wordsOf(text);
    const cues: Cue[] = [];
    let next = 0;
    // A word comes a few characters after its text, as with a real upstream.
    for (let i = 0; i < text.length; i++) {
      builder.append(text[i] ?? "");
      while ((words[next]?.end ?? Number.POSITIVE_INFINITY) + 12 <= i)
        cues.push(...builder.push(words.slice(next, ++next)));
    }
    cues.push(...builder.push(words.slice(next)), ...builder.flush());
    expect(cues).toEqual(cuesOf(text));
  });
});

describe("columnsOf", () => {
  it("counts wide characters as 42/16, emoji as two, marks as none", () => {
    expect(columnsOf("abc")).toBe(3);
    expect(columnsOf("我".repeat(16))).toBe(42);
    expect(columnsOf("e\u0301\u200b😀")).toBe(3);
  });
});
