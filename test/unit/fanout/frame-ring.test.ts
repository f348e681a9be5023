import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameRing } from "../../../src/fanout/frame-ring.ts";

const frameOf = (index: number, bytes: number): Uint8Array => new Uint8Array(bytes).fill(index % 251);

describe("FrameRing", () => {
  it("frame() gives back every kept frame as it was appended, whatever the sizes and trims", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ bytes: fc.integer({ min: 0, max: 700 }), trim: fc.integer({ min: 0, max: 3 }) }),
          {
            maxLength: 200,
          },
        ),
        (steps) => {
          const ring = new FrameRing(1_000_000);
          const sizes: number[] = [];
          for (const step of steps) {
            ring.append(frameOf(sizes.length, step.bytes));
            sizes.push(step.bytes);
            ring.trim(ring.first + step.trim);
            for (let index = ring.first; index < ring.next; index += 1) {
              expect(ring.frame(index)).toEqual(frameOf(index, sizes[index] ?? -1));
            }
          }
          expect(ring.next).toBe(steps.length);
        },
      ),
    );
  });

  it("append() overwrites the oldest frames once the arena is at its bound", () => {
    const ring = new FrameRing(4096);
    for (let index = 0; index < 1000; index += 1) ring.append(frameOf(index, 160));
    expect(ring.capacityBytes).toBeLessThanOrEqual(4096);
    expect(ring.first).toBeGreaterThan(970);
    expect(ring.frame(999)).toEqual(frameOf(999, 160));
    expect(ring.frame(ring.first - 1)).toBeUndefined();
  });

  it("append() grows past the bound only for one frame that is larger than it", () => {
    const ring = new FrameRing(2048);
    ring.append(frameOf(1, 10_000));
    expect(ring.frame(0)).toEqual(frameOf(1, 10_000));
  });

  it("frame() is undefined before the first, after trim and beyond the last frame", () => {
    const ring = new FrameRing(4096);
    expect(ring.frame(0)).toBeUndefined();
    ring.append(frameOf(0, 10));
    ring.append(frameOf(1, 10));
    ring.trim(1);
    expect(ring.frame(0)).toBeUndefined();
    expect(ring.frame(1)).toEqual(frameOf(1, 10));
    expect(ring.frame(2)).toBeUndefined();
  });
});
