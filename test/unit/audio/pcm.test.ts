import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf, PcmAligner } from "../../../src/audio/codecs/pcm.ts";
import { concatPcm, noise, pieces, splits } from "./helpers.ts";

describe("PcmAligner", () => {
  it("push() gives the same samples for any split", () => {
    const pcm = noise(500);
    const bytes = bytesOf(pcm);
    fc.assert(
      fc.property(splits(bytes.length, 30), (cuts) => {
        const aligner = new PcmAligner();
        expect(concatPcm(pieces(bytes, cuts).map((piece) => aligner.push(piece)))).toEqual(pcm);
        expect(aligner.pendingBytes).toBe(0);
      }),
    );
  });

  it("push() gives a view of an aligned chunk and copies one at an odd address", () => {
    const aligner = new PcmAligner();
    const buffer = new Uint8Array([0, 1, 2, 3, 4, 5]);
    expect(aligner.push(buffer.subarray(2, 6)).buffer).toBe(buffer.buffer);
    const copied = aligner.push(buffer.subarray(1, 5));
    expect(copied.buffer).not.toBe(buffer.buffer);
    expect([...bytesOf(copied)]).toEqual([1, 2, 3, 4]);
  });

  it("pendingBytes says that half a sample is left, and reset() drops it", () => {
    const aligner = new PcmAligner();
    expect(aligner.push(Uint8Array.of(1, 0, 9))).toEqual(Int16Array.of(1));
    expect(aligner.pendingBytes).toBe(1);
    expect(aligner.push(Uint8Array.of())).toHaveLength(0);
    aligner.reset();
    expect(aligner.pendingBytes).toBe(0);
    expect(aligner.push(Uint8Array.of(2, 0))).toEqual(Int16Array.of(2));
  });

  it("reads little-endian", () => {
    expect(new PcmAligner().push(Uint8Array.of(0x34, 0x12))).toEqual(Int16Array.of(0x1234));
  });
});
