import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameRing } from "../../../src/delivery/frame-ring.ts";

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

  it("append() takes frames in a row as one after the other", () => {
    const step = fc.record({ count: fc.integer({ min: 1, max: 12 }), trim: fc.integer({ min: 0, max: 14 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), fc.constantFrom(3000, 1_000_000), (steps, maxBytes) => {
        const ring = new FrameRing(maxBytes);
        let appended = 0;
        for (const { count, trim } of steps) {
          const row = Array.from({ length: count }, (_, index) => [...frameOf(appended + index, 160)]);
          ring.append(Uint8Array.from(row.flat()), 160);
          appended += count;
          ring.trim(ring.first + trim);
          expect(ring.next).toBe(appended);
          expect(ring.capacityBytes).toBeLessThanOrEqual(maxBytes);
          for (let index = ring.first; index < ring.next; index += 1) {
            expect(ring.frame(index)).toEqual(frameOf(index, 160));
          }
        }
      }),
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

describe("FrameRing.cutTo()", () => {
  it("forgets the frames from there on; those before it and those appended since come back as they were", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            bytes: fc.integer({ min: 1, max: 700 }),
            trim: fc.nat({ max: 2 }),
            cut: fc.option(fc.nat({ max: 6 }), { nil: null }),
          }),
          { maxLength: 150 },
        ),
        (steps) => {
          const ring = new FrameRing(1_000_000);
          const kept = new Map<number, Uint8Array>();
          steps.forEach((step, turn) => {
            const frame = frameOf(turn, step.bytes);
            kept.set(ring.next, frame);
            ring.append(frame);
            ring.trim(ring.first + step.trim);
            if (step.cut !== null) {
              const index = ring.next - step.cut;
              const { first } = ring;
              ring.cutTo(index);
              expect(ring.next).toBe(Math.max(first, index));
              expect(ring.first).toBe(first);
            }
            expect(ring.frame(ring.next)).toBeUndefined();
            for (let index = ring.first; index < ring.next; index += 1) {
              expect(ring.frame(index)).toEqual(kept.get(index));
            }
          });
        },
      ),
    );
  });

  it("beyond the last frame does nothing", () => {
    const ring = new FrameRing(4096);
    ring.append(frameOf(0, 10));
    ring.cutTo(1);
    ring.cutTo(99);
    expect(ring.next).toBe(1);
    expect(ring.frame(0)).toEqual(frameOf(0, 10));
  });
});
