import { describe, expect, it } from "vitest";
import type { Silence } from "../../../../src/audio/analysis/pause-finder.ts";
import { Pauses } from "../../../../src/timing/estimate/pauses.ts";
import { responseTimesOf } from "../../../../src/timing/response-times-of.ts";

const pause = (startSeconds: number, endSeconds: number): Silence => ({ startSeconds, endSeconds });

describe("Pauses", () => {
  it("joins a silence that came in two pieces, and leaves out what is no pause", () => {
    const pauses = new Pauses();
    pauses.add([pause(0.5, 0.55)]);
    pauses.add([pause(0.55, 0.7), pause(1, 1.1)]);
    expect(pauses.within({ startSeconds: 0, endSeconds: 2 })).toEqual([pause(0.5, 0.7)]);
  });

  it("takes a shorter silence for a pause at the start or end of the span: it goes on beyond", () => {
    const pauses = new Pauses();
    pauses.add([pause(0, 0.1), pause(0.5, 0.6), pause(1, 1.2)]);
    expect(pauses.within({ startSeconds: 0, endSeconds: 1.1 })).toEqual([pause(0, 0.1), pause(1, 1.1)]);
  });

  it("gives the part of a pause that lies in the span", () => {
    const pauses = new Pauses();
    pauses.add([pause(0, 0.4), pause(1, 1.5)]);
    expect(pauses.within({ startSeconds: 0.2, endSeconds: 1.3 })).toEqual([pause(0.2, 0.4), pause(1, 1.3)]);
    pauses.forgetBefore(0.7);
    expect(pauses.within({ startSeconds: 0, endSeconds: 2 })).toEqual([pause(1, 1.5)]);
  });
});

describe("a response without any alignment", () => {
  it("is emitted with its marks where the voice pauses, as an estimate", () => {
    const text = "Hello there. Bye.";
    const timing = responseTimesOf({ text });
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
    const timing = responseTimesOf({ text });
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
