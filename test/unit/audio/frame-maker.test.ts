import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { decodeUlaw, encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { createFrameMaker, type FrameMaker } from "../../../src/audio/framing/frame-maker.ts";
import { Resampler } from "../../../src/audio/resample/resample.ts";
import type { AudioFormat } from "../../../src/protocol/vocabulary.ts";
import { concatPcm, noise, pieces, split, splits, tone } from "./helpers.ts";

function maker(format: AudioFormat, frameMs = 20): { maker: FrameMaker; frames: Uint8Array[] } {
  const frames: Uint8Array[] = [];
  const made = createFrameMaker(
    { format, frameMs },
    {
      frames: (bytes, frameBytes) => frames.push(...split(bytes, frameBytes)),
      error: (error) => expect.fail(error.message),
    },
  );
  return { maker: made, frames };
}

describe("createFrameMaker() for G.711 and PCM", () => {
  it("pushPassThrough() keeps every byte, for any split; flush() pads with the codec's silence", () => {
    const silence = { ulaw_8000: 0xff, alaw_8000: 0xd5, pcm_16000: 0 } as const;
    const bytes = bytesOf(noise(2000));
    for (const format of ["ulaw_8000", "alaw_8000", "pcm_16000"] as const) {
      const sampleBytes = format === "pcm_16000" ? 2 : 1;
      fc.assert(
        fc.property(splits(bytes.length), fc.constantFrom(10, 20, 30, 100), (cuts, frameMs) => {
          const { maker: made, frames } = maker(format, frameMs);
          for (const piece of pieces(bytes, cuts)) made.pushPassThrough(piece);
          const padded = made.flush();
          expect(made.framesPromised).toBe(frames.length);
          const all = concatBytes(frames);
          expect(all.length).toBe(bytes.length + padded * sampleBytes);
          expect(all.subarray(0, bytes.length)).toEqual(bytes);
          expect(all.subarray(bytes.length).every((byte) => byte === silence[format])).toBe(true);
        }),
        { numRuns: 30 },
      );
    }
  });

  it("pushPcm() resamples and encodes the same for any split", () => {
    const pcm = noise(3000);
    const resampler = new Resampler({ fromRate: 24_000, toRate: 8000 });
    const expected = encodeUlaw(concatPcm([resampler.push(pcm), resampler.flush()]));
    fc.assert(
      fc.property(splits(pcm.length), (cuts) => {
        const { maker: made, frames } = maker("ulaw_8000");
        for (const piece of pieces(pcm, cuts)) made.pushPcm(piece, 24_000);
        expect(made.flush()).toBe(120);
        expect(frames).toHaveLength(7);
        expect(concatBytes(frames).subarray(0, 1000)).toEqual(expected);
      }),
      { numRuns: 30 },
    );
  });

  it("pushPcm() at the rendition's own rate is exact in every codec", () => {
    const pcm = noise(1600);
    const encoders = { ulaw_8000: encodeUlaw, alaw_8000: encodeAlaw, pcm_8000: bytesOf } as const;
    for (const format of ["ulaw_8000", "alaw_8000", "pcm_8000"] as const) {
      const { maker: made, frames } = maker(format);
      made.pushPcm(pcm, 8000);
      expect(frames).toHaveLength(10);
      expect(concatBytes(frames)).toEqual(encoders[format](pcm).slice());
      expect(made.flush()).toBe(0);
    }
  });

  it("keeps the order of samples, silence, passed bytes and other rates, to the sample", () => {
    const { maker: made, frames } = maker("ulaw_8000", 10);
    const first = tone({ hz: 440, rate: 24_000, samples: 2401 });
    made.pushPcm(first, 24_000);
    made.pushSilence(33);
    made.pushPassThrough(encodeUlaw(new Int16Array(50).fill(5000)));
    made.pushPcm(new Int16Array(160).fill(-5000), 16_000);
    made.pushPcm(new Int16Array(40).fill(3000), 8000);
    const total = 800 + 33 + 50 + 80 + 40;
    expect(made.flush()).toBe(80 - (total % 80));
    const samples = decodeUlaw(concatBytes(frames));
    const at = (index: number): number => samples[index] ?? Number.NaN;
    expect([800, 832].map(at)).toEqual([0, 0]);
    expect([833, 882].map((index) => Math.round(at(index) / 1000))).toEqual([5, 5]);
    expect([890, 955].map((index) => Math.round(at(index) / 1000))).toEqual([-5, -5]);
    expect([963, 1002].map((index) => Math.round(at(index) / 1000))).toEqual([3, 3]);
    expect(at(1003)).toBe(0);
  });

  it("pushSilence() makes long silence and none", () => {
    const { maker: made, frames } = maker("pcm_48000", 100);
    made.pushSilence(0);
    made.pushSilence(48_000 * 3 + 1);
    expect(made.framesPromised).toBe(30);
    expect(made.flush()).toBe(4799);
    expect(frames.every((frame) => frame.length === 9600 && frame.every((byte) => byte === 0))).toBe(true);
  });

  it("flush() with nothing pushed gives nothing; after it the next utterance starts on a frame", () => {
    const { maker: made, frames } = maker("alaw_8000");
    expect(made.flush()).toBe(0);
    made.pushPcm(new Int16Array(100), 8000);
    made.flush();
    made.pushPcm(new Int16Array(160).fill(1000), 8000);
    expect(frames).toHaveLength(2);
    expect(new Set(frames[1])).toEqual(new Set(encodeAlaw(Int16Array.of(1000))));
  });

  it("reset() drops the partial frame and what the resampler holds", () => {
    const { maker: made, frames } = maker("ulaw_8000");
    made.pushPcm(new Int16Array(1000).fill(8000), 24_000);
    const emitted = frames.length;
    made.reset();
    expect(made.framesPromised).toBe(emitted);
    expect(made.flush()).toBe(0);
    made.pushPcm(new Int16Array(480), 24_000);
    made.flush();
    expect(decodeUlaw(frames.at(-1) ?? new Uint8Array(0)).every((sample) => sample === 0)).toBe(true);
  });

  it("close() ends it: nothing is emitted any more", () => {
    const { maker: made, frames } = maker("ulaw_8000");
    made.close();
    made.close();
    made.pushPassThrough(new Uint8Array(1000));
    made.flush();
    expect(frames).toEqual([]);
  });

  it("refuses frame lengths that are no whole samples, and Opus without a pool", () => {
    expect(() => maker("pcm_22050", 10)).toThrow(RangeError);
    expect(() => maker("opus_48000")).toThrow(TypeError);
  });
});
