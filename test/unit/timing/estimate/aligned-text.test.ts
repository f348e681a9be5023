import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Silence } from "../../../../src/audio/analysis/pause-finder.ts";
import { AlignedText } from "../../../../src/timing/estimate/aligned-text.ts";
import { Pauses } from "../../../../src/timing/estimate/pauses.ts";

const pause = (startSeconds: number, endSeconds: number): Silence => ({ startSeconds, endSeconds });

describe("AlignedText", () => {
  const TEXT = "One two, three. Four five.";
  const at = (part: string): number => TEXT.indexOf(part);

  it("holds marks to the pauses: sound before, sound behind, and the mark in between", () => {
    const heard = new AlignedText(TEXT, {
      startSeconds: 0,
      endSeconds: 3,
      pauses: [pause(0.5, 0.7), pause(1.5, 2)],
    });
    expect(heard.secondsAt(0)).toBe(0);
    expect(heard.secondsAt(at(", three"))).toBe(0.5);
    expect(heard.secondsAt(at("three"))).toBe(0.7);
    expect(heard.secondsAt(at(". Four"))).toBe(1.5);
    expect(heard.secondsAt(at("Four"))).toBe(2);
    expect(heard.secondsAt(TEXT.length)).toBe(3);
  });

  it("begins behind the silence before the first word, and ends before that behind the last", () => {
    const heard = new AlignedText(TEXT, {
      startSeconds: 0,
      endSeconds: 3,
      pauses: [pause(0, 0.3), pause(2.5, 3)],
    });
    expect(heard.secondsAt(0)).toBe(0.3);
    expect(heard.secondsAt(TEXT.length - 1)).toBe(2.5);
    expect(heard.secondsAt(TEXT.length)).toBe(3);
  });

  it("ends before the silence behind the last word where no mark follows it, but for the last character", () => {
    const text = "one two three four";
    const spoken = new AlignedText(text, { startSeconds: 0, endSeconds: 1.2, pauses: [] });
    for (const [end, said] of [
      ["", 17],
      [" ", 18],
    ] as const) {
      const at = { startSeconds: 0, endSeconds: 2.2 };
      const heard = new AlignedText(text + end, { ...at, pauses: [pause(1.2, 2.2)] });
      for (let offset = 0; offset <= said; offset += 1)
        expect(heard.secondsAt(offset)).toBeCloseTo(spoken.secondsAt(offset), 6);
      expect(heard.secondsAt(text.length + end.length)).toBe(2.2);
    }
  });

  it("leaves a silence that a letter may come behind to the mark before that letter", () => {
    const heard = new AlignedText("end. N", {
      startSeconds: 0,
      endSeconds: 1,
      pauses: [pause(0.4, 0.96)],
    });
    expect([heard.secondsAt(3), heard.secondsAt(5)]).toEqual([0.4, 0.96]);
  });

  it("leaves no sound to nothing where there are marks alone", () => {
    for (const text of [". ", " "]) {
      const heard = new AlignedText(text, {
        startSeconds: 0,
        endSeconds: 1,
        pauses: [pause(0.4, 1)],
      });
      expect(heard.secondsAt(0)).toBe(0);
    }
  });

  it("spreads over all of it what is said so quietly that it is taken for silence", () => {
    const text = "One two, three.";
    const at = { startSeconds: 0.5, endSeconds: 2.5 };
    const plain = new AlignedText(text, { ...at, pauses: [] });
    for (const pauses of [[pause(0.5, 2.5)], [pause(0.5, 1), pause(1.02, 2.5)]]) {
      const heard = new AlignedText(text, { ...at, pauses });
      for (let offset = 0; offset <= text.length; offset += 1)
        expect(heard.secondsAt(offset)).toBe(plain.secondsAt(offset));
    }
  });

  it("takes time that grows with the text, whatever marks it has", () => {
    const startMs = performance.now();
    const text = `${"!".repeat(60_000)}x`;
    expect(new AlignedText(text, { startSeconds: 0, endSeconds: 1, pauses: [] }).secondsAt(0)).toBe(0);
    expect(performance.now() - startMs).toBeLessThan(1500);
  });

  it("takes one pause for the stop, not for the comma, where it stands there", () => {
    const heard = new AlignedText(TEXT, {
      startSeconds: 0,
      endSeconds: 3,
      pauses: [pause(1.6, 2)],
    });
    expect(heard.secondsAt(at(". Four"))).toBe(1.6);
    expect(heard.secondsAt(at("Four"))).toBe(2);
  });

  it("leaves out a pause that no mark stands for", () => {
    const text = "one two three four five six";
    const heard = new AlignedText(text, {
      startSeconds: 0,
      endSeconds: 3,
      pauses: [pause(1.4, 1.6)],
    });
    const plain = new AlignedText(text, { startSeconds: 0, endSeconds: 3, pauses: [] });
    for (let offset = 0; offset <= text.length; offset += 1)
      expect(heard.secondsAt(offset)).toBe(plain.secondsAt(offset));
  });

  it("knows marks that no space follows: 一二三。四五六。", () => {
    const text = "一二三。四五六。";
    const heard = new AlignedText(text, {
      startSeconds: 0,
      endSeconds: 2,
      pauses: [pause(0.6, 1.2)],
    });
    expect(heard.secondsAt(3)).toBe(0.6);
    expect(heard.secondsAt(4)).toBe(1.2);
  });

  it("does not take the point of a number for a stop", () => {
    const text = "It costs 3.50 there. Yes.";
    const heard = new AlignedText(text, {
      startSeconds: 0,
      endSeconds: 3,
      pauses: [pause(2, 2.4)],
    });
    expect(heard.secondsAt(text.indexOf(". Yes"))).toBe(2);
  });

  it("lets the last word before a mark last longer", () => {
    const heard = new AlignedText("aaaa bbbb.", {
      startSeconds: 0,
      endSeconds: 1,
      pauses: [],
    });
    const [first, last] = [heard.secondsAt(4) - heard.secondsAt(0), heard.secondsAt(9) - heard.secondsAt(5)];
    expect(last).toBeGreaterThan(first * 1.2);
  });

  it("lengthens a short last word as much as a long one, and gives punctuation without a pause hardly any time", () => {
    const at = { startSeconds: 0, endSeconds: 1 };
    const text = "aaaaaa bb.";
    const heard = new AlignedText(text, { ...at, pauses: [] });
    // Six letters, a space, and two that last as long as five; what is left is the stop's.
    expect(heard.secondsAt(7)).toBeCloseTo(6.5 / 12.1, 6);
    expect(heard.secondsAt(9)).toBeCloseTo(11.5 / 12.1, 6);
    // Where pauses are not known, one may be in it.
    const unheard = new AlignedText(text, { ...at, pauses: null });
    expect(unheard.secondsAt(9)).toBeCloseTo(11.5 / 15.5, 6);
  });

  it("rises from one end to the other, whatever the text and the pauses", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "b", " ", ".", ",", "。", "字", "😀", "\n", "-", "5") }),
        fc.array(
          fc.tuple(fc.double({ min: 0, max: 5, noNaN: true }), fc.double({ min: 0.1, max: 1, noNaN: true })),
        ),
        (text, raw) => {
          const pauses = new Pauses();
          let end = 0;
          const silences: Silence[] = [];
          for (const [gap, length] of raw) {
            silences.push(pause(end + gap, end + gap + length));
            end += gap + length;
          }
          pauses.add(silences);
          const [from, until] = [0.5, 4];
          const span = { startSeconds: from, endSeconds: until };
          const heard = new AlignedText(text, { ...span, pauses: pauses.within(span) });
          let before = from;
          for (let offset = 0; offset <= text.length; offset += 1) {
            const seconds = heard.secondsAt(offset);
            expect(seconds).toBeGreaterThanOrEqual(before);
            expect(seconds).toBeLessThanOrEqual(until);
            before = seconds;
          }
          if (text !== "") expect(before).toBe(until);
        },
      ),
      {
        examples: [
          ["😀", []],
          ["。😀a", []],
          ["a\n ", [[0.7, 0.5]]],
        ],
      },
    );
  });

  it("a silence behind the last mark is its own; without one, sound is not left without text", () => {
    const text = "Aa, bb.";
    const at = { startSeconds: 0, endSeconds: 2 };
    const trailed = new AlignedText(text, { ...at, pauses: [pause(0.6, 0.8), pause(1.7, 2)] });
    expect([trailed.secondsAt(2), trailed.secondsAt(4), trailed.secondsAt(6)]).toEqual([0.6, 0.8, 1.7]);
    const open = new AlignedText(text, { ...at, pauses: [pause(1.6, 1.8)] });
    expect(open.secondsAt(6)).not.toBe(1.6);
  });
});
