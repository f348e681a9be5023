import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChunkSchedule } from "../../../../src/protocol/elevenlabs/chunk-schedule.ts";
import { FrameTiming } from "../../../../src/protocol/elevenlabs/frame-timing.ts";

const alignment = (chars: string, startsMs: readonly number[], endsMs: readonly number[]) => ({
  characters: [...chars],
  character_start_times_seconds: startsMs.map((ms) => ms / 1000),
  character_end_times_seconds: endsMs.map((ms) => ms / 1000),
});

describe("FrameTiming", () => {
  it("gives each message the characters that begin in it, from its own beginning", () => {
    const timing = new FrameTiming();
    timing.push(alignment("abcd", [0, 100, 200, 300], [100, 200, 300, 400]));
    expect(timing.take(0, 150)).toEqual({ chars: ["a", "b"], startsMs: [0, 100], durationsMs: [100, 100] });
    expect(timing.take(150, 150)).toBeNull();
    expect(timing.take(150, 250)).toEqual({ chars: ["c"], startsMs: [50], durationsMs: [100] });
    expect(timing.take(250, Number.POSITIVE_INFINITY)).toEqual({
      chars: ["d"],
      startsMs: [50],
      durationsMs: [100],
    });
    expect(timing.chars).toBe(4);
  });

  it("characters that came late begin with their message and end where they end", () => {
    const timing = new FrameTiming();
    timing.push(alignment("ab", [100, 200], [200, 350]));
    expect(timing.take(300, 400)).toEqual({ chars: ["a", "b"], startsMs: [0, 0], durationsMs: [0, 50] });
  });

  it("a negative origin shifts: times of the whole context", () => {
    const timing = new FrameTiming();
    timing.push(alignment("a", [10], [30]));
    expect(timing.take(-1000, 100)).toEqual({ chars: ["a"], startsMs: [1010], durationsMs: [20] });
  });

  it("whatever the times and cuts: nothing is lost, whole numbers, none negative, neighbours stay neighbours", () => {
    const times = fc.array(fc.double({ min: 0, max: 2, noNaN: true }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(times, fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 20 }), (lengths, cuts) => {
        const ends: number[] = [];
        for (const length of lengths) ends.push((ends.at(-1) ?? 0) + length);
        const starts = [0, ...ends.slice(0, -1)];
        const timing = new FrameTiming();
        const text = lengths.map((_, index) => String.fromCharCode(97 + (index % 26)));
        timing.push({
          characters: text,
          character_start_times_seconds: starts,
          character_end_times_seconds: ends,
        });
        let at = 0;
        const chars: string[] = [];
        const absolute: number[] = [];
        for (const cut of [...cuts, Number.POSITIVE_INFINITY]) {
          const taken = timing.take(at, at + cut);
          for (const [index, char] of (taken?.chars ?? []).entries()) {
            const start = taken?.startsMs[index] ?? -1;
            const duration = taken?.durationsMs[index] ?? -1;
            expect([Number.isInteger(start), Number.isInteger(duration), start >= 0, duration >= 0]).toEqual([
              true,
              true,
              true,
              true,
            ]);
            chars.push(char);
            absolute.push(at + start, at + start + duration);
          }
          at += cut;
        }
        expect(chars).toEqual(text);
        expect(absolute).toEqual(
          starts.flatMap((start, index) => [Math.round(start * 1000), Math.round((ends[index] ?? 0) * 1000)]),
        );
      }),
      { numRuns: 100 },
    );
  });
});

describe("ChunkSchedule", () => {
  it("the vendor's default is 120, 160, 250, 290 and 290 from there on", () => {
    const schedule = new ChunkSchedule();
    const lengths = Array.from({ length: 6 }, () => {
      const { nextChars } = schedule;
      schedule.advance();
      return nextChars;
    });
    expect(lengths).toEqual([120, 160, 250, 290, 290, 290]);
  });

  it("is due at the length, and with a try at fifty characters", () => {
    const schedule = new ChunkSchedule([80]);
    expect([79, 80].map((chars) => schedule.isDue(chars, false))).toEqual([false, true]);
    expect([49, 50].map((chars) => schedule.isDue(chars, true))).toEqual([false, true]);
  });

  it("lengths out of their range are the nearest that is in it", () => {
    const schedule = new ChunkSchedule([1, 10_000]);
    expect(schedule.nextChars).toBe(50);
    schedule.advance();
    expect(schedule.nextChars).toBe(500);
  });
});
