import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Pause, PausedText, Pauses } from "../../../src/timing/pauses.ts";
import { SegmentTiming } from "../../../src/timing/segment-timing.ts";

const pause = (startSeconds: number, endSeconds: number): Pause => ({ startSeconds, endSeconds });

describe("Pauses", () => {
  it("joins a silence that came in two pieces, and leaves out what is no pause", () => {
    const pauses = new Pauses();
    pauses.add([pause(0.5, 0.55)]);
    pauses.add([pause(0.55, 0.6), pause(1, 1.05)]);
    expect(pauses.within(0, 2)).toEqual([pause(0.5, 0.6)]);
  });

  it("gives of a pause what lies in the stretch", () => {
    const pauses = new Pauses();
    pauses.add([pause(0, 0.4), pause(1, 1.5)]);
    expect(pauses.within(0.2, 1.3)).toEqual([pause(0.2, 0.4), pause(1, 1.3)]);
    pauses.forgetBefore(0.7);
    expect(pauses.within(0, 2)).toEqual([pause(1, 1.5)]);
  });
});

describe("PausedText", () => {
  const TEXT = "One two, three. Four five.";
  const at = (part: string): number => TEXT.indexOf(part);

  it("holds marks to the pauses: sound before, sound behind, and the mark in between", () => {
    const paused = new PausedText(TEXT, { from: 0, until: 3, pauses: [pause(0.5, 0.7), pause(1.5, 2)] });
    expect(paused.secondsAt(0)).toBe(0);
    expect(paused.secondsAt(at(", three"))).toBe(0.5);
    expect(paused.secondsAt(at("three"))).toBe(0.7);
    expect(paused.secondsAt(at(". Four"))).toBe(1.5);
    expect(paused.secondsAt(at("Four"))).toBe(2);
    expect(paused.secondsAt(TEXT.length)).toBe(3);
  });

  it("begins behind the silence before the first word, and ends before that behind the last", () => {
    const paused = new PausedText(TEXT, { from: 0, until: 3, pauses: [pause(0, 0.3), pause(2.5, 3)] });
    expect(paused.secondsAt(0)).toBe(0.3);
    expect(paused.secondsAt(TEXT.length - 1)).toBe(2.5);
    expect(paused.secondsAt(TEXT.length)).toBe(3);
  });

  it("takes one pause for the stop, not for the comma, where it stands there", () => {
    const paused = new PausedText(TEXT, { from: 0, until: 3, pauses: [pause(1.6, 2)] });
    expect(paused.secondsAt(at(". Four"))).toBe(1.6);
    expect(paused.secondsAt(at("Four"))).toBe(2);
  });

  it("leaves out a pause that no mark stands for", () => {
    const text = "one two three four five six";
    const paused = new PausedText(text, { from: 0, until: 3, pauses: [pause(1.4, 1.6)] });
    const plain = new PausedText(text, { from: 0, until: 3, pauses: [] });
    for (let offset = 0; offset <= text.length; offset += 1)
      expect(paused.secondsAt(offset)).toBe(plain.secondsAt(offset));
  });

  it("knows marks that no space follows: 一二三。四五六。", () => {
    const text = "一二三。四五六。";
    const paused = new PausedText(text, { from: 0, until: 2, pauses: [pause(0.6, 1.2)] });
    expect(paused.secondsAt(3)).toBe(0.6);
    expect(paused.secondsAt(4)).toBe(1.2);
  });

  it("does not take the point of a number for a stop", () => {
    const text = "It costs 3.50 there. Yes.";
    const paused = new PausedText(text, { from: 0, until: 3, pauses: [pause(2, 2.4)] });
    expect(paused.secondsAt(text.indexOf(". Yes"))).toBe(2);
  });

  it("lets the last word before a mark last longer", () => {
    const paused = new PausedText("aaaa bbbb.", { from: 0, until: 1, pauses: [] });
    const [first, last] = [
      paused.secondsAt(4) - paused.secondsAt(0),
      paused.secondsAt(9) - paused.secondsAt(5),
    ];
    expect(last).toBeGreaterThan(first * 1.2);
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
          const silences: Pause[] = [];
          for (const [gap, length] of raw) {
            silences.push(pause(end + gap, end + gap + length));
            end += gap + length;
          }
          pauses.add(silences);
          const [from, until] = [0.5, 4];
          const paused = new PausedText(text, { from, until, pauses: pauses.within(from, until) });
          let before = from;
          for (let offset = 0; offset <= text.length; offset += 1) {
            const seconds = paused.secondsAt(offset);
            expect(seconds).toBeGreaterThanOrEqual(before);
            expect(seconds).toBeLessThanOrEqual(until);
            before = seconds;
          }
          if (text !== "") expect(before).toBe(until);
        },
      ),
    );
  });
});

describe("a response without any alignment", () => {
  it("is told with its marks where the voice pauses, as an estimate", () => {
    const text = "Hello there. Bye.";
    const timing = new SegmentTiming({ text, textStart: 0 });
    expect(timing.push(null, null, { audioSeconds: 2, pauses: [pause(0, 0.1), pause(0.8, 1.4)] })).toBeNull();
    const timed = timing.finish(2);
    expect(timed?.timing).toBe("estimated");
    expect(timed?.characters.join("")).toBe(text);
    const startOf = (part: string): number => timed?.startSeconds[text.indexOf(part)] ?? Number.NaN;
    expect(startOf("Hello")).toBeCloseTo(0.1, 6);
    expect(startOf(". Bye")).toBeCloseTo(0.8, 6);
    expect(startOf("Bye")).toBeCloseTo(1.4, 6);
    expect(timed?.endSeconds.at(-1)).toBe(2);
  });

  it("is held to pauses in the gap between two that are aligned", () => {
    const text = "Aa. Bb. Cccc";
    const timing = new SegmentTiming({ text, textStart: 0 });
    const aligned = (part: string, from: number) => ({
      characters: [...part],
      character_start_times_seconds: [...part].map((_, i) => from + i / 10),
      character_end_times_seconds: [...part].map((_, i) => from + (i + 1) / 10),
    });
    timing.push(aligned("Aa. ", 0), null, { audioSeconds: 0.4 });
    timing.push(null, null, { audioSeconds: 1.6, pauses: [pause(0.6, 1.6)] });
    const timed = timing.push(aligned("Cccc", 1.6), null, { audioSeconds: 2 });
    expect(timed?.characters.join("")).toBe("Bb. Cccc");
    expect(timed?.startSeconds[2]).toBeCloseTo(0.6, 6);
    expect(timed?.startSeconds[4]).toBeCloseTo(1.6, 6);
  });
});
