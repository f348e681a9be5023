import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecentAudio } from "../../../src/session/recent-audio.ts";

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
        const recent = new RecentAudio();
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
    const recent = new RecentAudio();
    push(recent, 0, [5000], 1);
    recent.clear();
    expect(kept(recent, 0)).toEqual([]);
    const again = push(recent, 100, [3000], 2);
    expect(kept(recent, 0)).toEqual([again]);
  });
});
