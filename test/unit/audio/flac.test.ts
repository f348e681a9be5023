/** The FLAC encoder against ffmpeg's decoder: lossless, whatever the sound and however it is split. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { FlacEncoder } from "../../../src/audio/codecs/flac.ts";

function decodeFlac(bytes: Uint8Array): Int16Array {
  const args = ["-v", "error", "-xerror", "-f", "flac", "-i", "pipe:0", "-f", "s16le", "pipe:1"];
  const pcm = execFileSync("ffmpeg", args, { input: bytes, maxBuffer: 1 << 27 });
  return new Int16Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.byteLength));
}

function encode(pcm: Int16Array, sampleRate: number, pieceSamples: number): Buffer {
  const encoder = new FlacEncoder({ sampleRate });
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < pcm.length; at += pieceSamples) {
    pieces.push(encoder.push(pcm.subarray(at, at + pieceSamples)));
  }
  return Buffer.concat([...pieces, encoder.flush()]);
}

/** The same numbers each time. */
function noise(length: number): Int16Array {
  let state = 1;
  return Int16Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 16) - 32_768;
  });
}

const tone = (length: number, amplitude = 12_000) =>
  Int16Array.from({ length }, (_, at) => Math.round(amplitude * Math.sin(at / 9) * Math.cos(at / 5000)));

describe("FlacEncoder", () => {
  it.each([
    ["silence", new Int16Array(10_000)],
    ["a tone", tone(30_000)],
    ["noise, which nothing predicts", noise(9000)],
    [
      "steps between the extremes",
      Int16Array.from({ length: 9000 }, (_, at) => (at % 7 < 3 ? 32_767 : -32_768)),
    ],
    ["a whole number of blocks", tone(8192)],
    ["one sample", Int16Array.of(-5)],
    ["three samples", Int16Array.of(1, -32_768, 32_767)],
  ])("%s comes back sample for sample", (_what, pcm) => {
    for (const pieceSamples of [1024, 4096, 100_000]) {
      expect(decodeFlac(encode(pcm, 24_000, pieceSamples))).toEqual(pcm);
    }
  });

  it("numbers its frames in one, two and three bytes", () => {
    const pcm = new Int16Array(4096 * 2050).fill(7);
    const flac = encode(pcm, 48_000, 65_536);
    expect(Buffer.from(decodeFlac(flac).buffer).equals(Buffer.from(pcm.buffer))).toBe(true);
  }, 60_000);

  it("takes less room than the samples where they can be predicted, and never much more", () => {
    expect(encode(tone(40_000), 24_000, 4096).length).toBeLessThan(42_000);
    const random = noise(40_000);
    expect(encode(random, 24_000, 4096).length).toBeLessThan(random.byteLength * 1.01);
  });

  it("an empty stream is its header; rates without a code are refused", () => {
    expect(encode(new Int16Array(0), 24_000, 1)).toHaveLength(42);
    expect(() => new FlacEncoder({ sampleRate: 12_345 })).toThrow(RangeError);
  });
});
