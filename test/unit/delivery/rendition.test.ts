/** Where frames stand on the timeline, before and behind cuts. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { OpusPool } from "../../../src/audio/codecs/opus-pool.ts";
import { Rendition } from "../../../src/delivery/rendition.ts";

const MS = 14_112;
const FRAME_MS = 20;

function create(startMs = 0): Rendition {
  return new Rendition({
    format: "ulaw_8000",
    frameMs: FRAME_MS,
    framing: "raw",
    band: "full",
    startTicks: startMs * MS,
    maxRingBytes: 1_000_000,
    opusPool: {} as OpusPool,
    onEncodedFrame: () => undefined,
    onError: (error) => {
      throw error;
    },
  });
}

const push = (rendition: Rendition, frames: number, fill = 1): void =>
  rendition.pushPassThrough(new Uint8Array(frames * 160).fill(fill));
const placesOf = (rendition: Rendition): number[] =>
  Array.from(
    { length: rendition.next - rendition.first },
    (_, offset) => rendition.startTicksOf(rendition.first + offset) / MS,
  );

/** Cuts before frame `index`; the next one starts at `nextTicks`. */
const cut = (rendition: Rendition, index: number, nextTicks: number): void =>
  rendition.cut({ startTicks: 0, heardTicks: rendition.startTicksOf(index), nextTicks });

describe("Rendition.cut()", () => {
  it("takes away frames from an index on; those before stay in their place, the next stands where the caller says", () => {
    const rendition = create();
    push(rendition, 10);
    cut(rendition, 6, 300 * MS);
    push(rendition, 2, 9);
    expect(placesOf(rendition)).toEqual([0, 20, 40, 60, 80, 100, 300, 320]);
    expect(rendition.frame(5)?.[0]).toBe(1);
    expect(rendition.frame(6)?.[0]).toBe(9);
    expect(rendition.endTicks).toBe(340 * MS);
  });

  it("forgets what is half made", () => {
    const rendition = create();
    rendition.pushPassThrough(new Uint8Array(200).fill(1));
    cut(rendition, 1, 20 * MS);
    push(rendition, 1, 9);
    expect(rendition.frame(1)).toEqual(new Uint8Array(160).fill(9));
    expect(rendition.startTicksOf(1)).toBe(20 * MS);
  });

  it("a place that a cut took away leads to the first frame behind the cut", () => {
    const rendition = create();
    push(rendition, 10);
    cut(rendition, 6, 300 * MS);
    push(rendition, 10, 9);
    for (const ms of [120, 140, 199, 250, 299, 300, 319]) expect(rendition.indexAt(ms * MS)).toBe(6);
    expect(rendition.indexAt(119 * MS)).toBe(5);
    expect(rendition.indexAt(320 * MS)).toBe(7);
  });

  it("countBetween() counts the frames that were there, not what a cut took away", () => {
    const rendition = create();
    push(rendition, 10);
    cut(rendition, 6, 300 * MS);
    push(rendition, 4, 9);
    rendition.trim(8);
    expect(rendition.countBetween(100 * MS, 8)).toBe(3);
    expect(rendition.countBetween(200 * MS, 8)).toBe(2);
    expect(rendition.countBetween(340 * MS, 8)).toBe(0);
    expect(rendition.countBetween(400 * MS, 8)).toBe(0);
  });

  it("countBetween() of a rendition that began later counts in its own frames", () => {
    expect(create(1000).countBetween(500 * MS, 0)).toBe(25);
    expect(create(1010).countBetween(500 * MS, 0)).toBe(26);
  });

  it("finds every kept frame by its place, whatever was pushed, cut and trimmed", () => {
    const step = fc.record({
      frames: fc.integer({ min: 0, max: 8 }),
      keep: fc.nat({ max: 8 }),
      holeMs: fc.integer({ min: 0, max: 300 }),
      trim: fc.nat({ max: 4 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const rendition = create();
        const places = new Map<number, number>();
        let edgeMs = 0;
        for (const { frames, keep, holeMs, trim } of steps) {
          for (let count = 0; count < frames; count += 1) {
            places.set(rendition.next, edgeMs);
            push(rendition, 1);
            edgeMs += FRAME_MS;
          }
          const index = Math.max(rendition.next - keep, rendition.next - frames);
          edgeMs += holeMs;
          cut(rendition, index, edgeMs * MS);
          rendition.trim(rendition.first + trim);
          for (let at = rendition.first; at < rendition.next; at += 1) {
            const startMs = places.get(at) ?? -1;
            expect(rendition.startTicksOf(at)).toBe(startMs * MS);
            expect(rendition.indexAt(startMs * MS)).toBe(at);
            expect(rendition.indexAt((startMs + FRAME_MS) * MS - 1)).toBe(at);
          }
        }
      }),
    );
  });
});
