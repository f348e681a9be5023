import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { Reframer } from "../../../src/audio/framing/frame-maker-samples.ts";
import { noise, pieces, split, splits } from "./helpers.ts";

const BYTES = bytesOf(noise(300));

function frames(reframer: Reframer, frameBytes: number, chunks: readonly Uint8Array[]): number[][] {
  const out: number[][] = [];
  for (const chunk of chunks) {
    reframer.push(chunk, (whole) => {
      expect(whole.length % frameBytes).toBe(0);
      for (const frame of split(whole, frameBytes)) out.push([...frame]);
    });
  }
  return out;
}

describe("Reframer", () => {
  it("cuts the same frames for any split and any size", () => {
    fc.assert(
      fc.property(splits(BYTES.length, 20), fc.integer({ min: 1, max: 700 }), (cuts, frameBytes) => {
        const reframer = new Reframer({ frameBytes, padByte: 0xff });
        const out = frames(reframer, frameBytes, pieces(BYTES, cuts));
        expect(reframer.pendingBytes).toBe(BYTES.length % frameBytes);
        const padded = reframer.flush((frame) => out.push([...frame]));
        expect(padded).toBe((frameBytes - (BYTES.length % frameBytes)) % frameBytes);
        expect(out.every((frame) => frame.length === frameBytes)).toBe(true);
        expect(out.flat()).toEqual([...BYTES, ...new Array(padded).fill(0xff)]);
        expect(reframer.pendingBytes).toBe(0);
      }),
    );
  });

  it("push() emits one view of the chunk for all frames that lie inside it", () => {
    const seen: Uint8Array[] = [];
    new Reframer({ frameBytes: 160, padByte: 0 }).push(BYTES, (frames) => seen.push(frames));
    expect(seen).toHaveLength(1);
    expect(seen[0]?.byteLength).toBe(3 * 160);
    expect(seen[0]?.buffer).toBe(BYTES.buffer);
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
