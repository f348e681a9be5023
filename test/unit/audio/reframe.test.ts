import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../src/audio/pcm.ts";
import { Reframer } from "../../../src/audio/reframe.ts";
import { noise, pieces, splits } from "./helpers.ts";

const BYTES = bytesOf(noise(300));

function frames(reframer: Reframer, chunks: readonly Uint8Array[]): number[][] {
  const out: number[][] = [];
  for (const chunk of chunks) reframer.push(chunk, (frame) => out.push([...frame]));
  return out;
}

describe("Reframer", () => {
  it("cuts the same frames for any split and any size", () => {
    fc.assert(
      fc.property(splits(BYTES.length, 20), fc.integer({ min: 1, max: 700 }), (cuts, frameBytes) => {
        const reframer = new Reframer({ frameBytes, padByte: 0xff });
        const out = frames(reframer, pieces(BYTES, cuts));
        expect(reframer.pendingBytes).toBe(BYTES.length % frameBytes);
        const padded = reframer.flush((frame) => out.push([...frame]));
        expect(padded).toBe((frameBytes - (BYTES.length % frameBytes)) % frameBytes);
        expect(out.every((frame) => frame.length === frameBytes)).toBe(true);
        expect(out.flat()).toEqual([...BYTES, ...new Array(padded).fill(0xff)]);
        expect(reframer.pendingBytes).toBe(0);
      }),
    );
  });

  it("push() emits views of the chunk where a frame lies inside it", () => {
    const seen: Uint8Array[] = [];
    new Reframer({ frameBytes: 160, padByte: 0 }).push(BYTES, (frame) => seen.push(frame));
    expect(seen).toHaveLength(3);
    expect(seen.every((frame) => frame.buffer === BYTES.buffer)).toBe(true);
  });

  it("push() does not change a frame that it emitted before", () => {
    const reframer = new Reframer({ frameBytes: 4, padByte: 0 });
    const seen: Uint8Array[] = [];
    for (const byte of [1, 2, 3, 4, 5, 6, 7, 8])
      reframer.push(Uint8Array.of(byte), (frame) => seen.push(frame));
    expect(seen.map((frame) => [...frame])).toEqual([
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ]);
  });

  it("flush() with nothing pending emits nothing, reset() drops the partial frame", () => {
    const reframer = new Reframer({ frameBytes: 160, padByte: 0 });
    expect(reframer.flush(() => expect.unreachable())).toBe(0);
    reframer.push(new Uint8Array(10), () => expect.unreachable());
    reframer.reset();
    expect(reframer.flush(() => expect.unreachable())).toBe(0);
  });

  it("refuses a frame of no bytes", () => {
    expect(() => new Reframer({ frameBytes: 0, padByte: 0 })).toThrow(RangeError);
  });
});
