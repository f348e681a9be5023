import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecentAudio } from "../../../../src/session/output/recent-audio.ts";

interface Pushed {
  readonly startTicks: number;
  readonly ticks: number;
  readonly pieces: readonly number[][];
}

/** A slice of one tick a byte, whose bytes are changed after it was pushed: a copy has to be kept. */
function push(recent: RecentAudio, startTicks: number, lengths: readonly number[], fill: number): Pushed {
  const pieces = lengths.map((length) => new Uint8Array(length).fill(fill % 251));
  const ticks = lengths.reduce((sum, length) => sum + length, 0);
  recent.push(startTicks, {
    format: "ulaw_8000",
    ticks,
    pcmRate: 8000,
    raw: () => pieces,
    pcm: () => new Int16Array(),
  });
  const pushed = { startTicks, ticks, pieces: pieces.map((piece) => [...piece]) };
  for (const piece of pieces) piece.fill(255);
  return pushed;
}

function kept(recent: RecentAudio, ticks: number): Pushed[] {
  return recent.since(ticks).map(({ startTicks, slice }) => ({
    startTicks,
    ticks: slice.ticks,
    pieces: slice.raw().map((piece) => [...piece]),
  }));
}

describe("RecentAudio", () => {
  it("since() gives back what was pushed and ends behind, whatever the sizes and what was forgotten", () => {
    const step = fc.record({
      lengths: fc.array(fc.integer({ min: 1, max: 2500 }), { minLength: 1, maxLength: 4 }),
      /** Of what is there, this share is forgotten. */
      forgotten: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const recent = new RecentAudio(1 << 20);
        const all: Pushed[] = [];
        let edge = 0;
        let forgotten = 0;
        steps.forEach(({ lengths, forgotten: share }, index) => {
          const pushed = push(recent, edge, lengths, index);
          all.push(pushed);
          edge += pushed.ticks;
          forgotten = Math.floor(forgotten + (edge - forgotten) * share);
          recent.forgetBefore(forgotten);
          expect(kept(recent, forgotten)).toEqual(
            all.filter((one) => one.startTicks + one.ticks > forgotten),
          );
        });
      }),
      { numRuns: 60 },
    );
  });

  it("clear() forgets everything and can be pushed to again", () => {
    const recent = new RecentAudio(1 << 20);
    push(recent, 0, [5000], 1);
    recent.clear();
    expect(kept(recent, 0)).toEqual([]);
    const again = push(recent, 100, [3000], 2);
    expect(kept(recent, 0)).toEqual([again]);
  });

  it("keeps no more than its bound: the oldest goes, also where one slice is larger", () => {
    const recent = new RecentAudio(1000);
    for (let at = 0; at < 20; at += 1) push(recent, at * 100, [60, 40], at);
    expect(recent.startTicks).toBe(1000);
    expect(kept(recent, 0)).toHaveLength(10);
    push(recent, 2000, [1500], 21);
    expect(recent.startTicks).toBe(2000);
    expect(kept(recent, 0)[0]?.pieces[0]).toEqual(new Array(1500).fill(21));
  });

  it("reports the memory that it takes: rising with what is kept, less once it shrinks, none when cleared", () => {
    const recent = new RecentAudio(1 << 20);
    expect(recent.bytes).toBe(0);
    push(recent, 0, [40_000], 1);
    expect(recent.bytes).toBeGreaterThanOrEqual(40_000);
    expect(recent.bytes).toBeLessThan(48_000);
    push(recent, 40_000, [10], 2);
    recent.forgetBefore(40_000);
    recent.shrink();
    expect(recent.bytes).toBeLessThan(8000);
    recent.clear();
    expect(recent.bytes).toBe(0);
  });

  it("shrink() changes nothing of what is kept", () => {
    const recent = new RecentAudio(1 << 20);
    const all = Array.from({ length: 40 }, (_, at) => push(recent, at * 700, [400, 300], at));
    recent.forgetBefore(35 * 700);
    recent.shrink();
    expect(kept(recent, 0)).toEqual(all.slice(35));
    all.push(push(recent, 40 * 700, [9000], 40));
    expect(kept(recent, 0)).toEqual(all.slice(35));
    recent.forgetBefore(Number.POSITIVE_INFINITY);
    recent.shrink();
    push(recent, 60_000, [5], 41);
    expect(kept(recent, 0)).toHaveLength(1);
  });
});
