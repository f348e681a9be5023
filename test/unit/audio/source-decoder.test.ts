import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import { MAX_LIVE_CODECS } from "../../../src/audio/codecs/opus-codec.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { OggOpusWriter } from "../../../src/audio/containers/ogg.ts";
import { OggOpusEncoder } from "../../../src/audio/containers/ogg-encoder.ts";
import { createSourceDecoder } from "../../../src/audio/containers/source-decoder.ts";
import { encodeWavFile } from "../../kit/wav-file.ts";
import { concatPcm, ffmpegDecode, fitTone, hasProgram, noise, pieces, splits, tone } from "./helpers.ts";

function decode(format: string, chunks: readonly Uint8Array[]): Int16Array {
  const decoder = createSourceDecoder(format);
  try {
    const parts = chunks.map((chunk) => decoder.push(chunk).slice());
    decoder.finish();
    return concatPcm(parts);
  } finally {
    decoder.close();
  }
}

function oggOf(pcm: Int16Array): Uint8Array {
  const encoder = new OggOpusEncoder({ bitrateKbps: 64 });
  const bytes = concatBytes([encoder.push(pcm), encoder.flush()]);
  encoder.close();
  return bytes;
}

const OGG = oggOf(tone({ hz: 440, rate: 48_000, samples: 30_000 }));

describe("createSourceDecoder()", () => {
  it("decodes G.711 and PCM, the same for any split", () => {
    const pcm = noise(700);
    const sources: [string, Uint8Array][] = [
      ["ulaw_8000", encodeUlaw(pcm)],
      ["alaw_8000", encodeAlaw(pcm)],
      ["pcm_24000", bytesOf(pcm)],
    ];
    for (const [format, bytes] of sources) {
      const whole = decode(format, [bytes]);
      expect(whole).toHaveLength(700);
      if (format.startsWith("pcm")) expect(whole).toEqual(pcm);
      fc.assert(
        fc.property(splits(bytes.length, 30), (cuts) => {
          expect(decode(format, pieces(bytes, cuts))).toEqual(whole);
        }),
        { numRuns: 40 },
      );
    }
  });

  it("decodes Ogg Opus to the exact length and place, the same for any split", () => {
    const whole = decode("opus_48000_64", [OGG]);
    expect(whole).toHaveLength(30_000);
    const ideal = tone({ hz: 440, rate: 48_000, samples: 30_000 });
    const difference = whole.map((value, at) => value - (ideal[at] ?? 0));
    expect(fitTone(difference, 440, 48_000).amplitude).toBeLessThan(1000);
    fc.assert(
      fc.property(splits(OGG.length, 20), (cuts) => {
        expect(decode("opus_48000_64", pieces(OGG, cuts))).toEqual(whole);
      }),
      { numRuns: 10 },
    );
  });

  it("decodes streams that are chained, each to its own length", () => {
    const second = oggOf(tone({ hz: 880, rate: 48_000, samples: 10_000 }));
    const both = decode("opus_48000_64", [concatBytes([OGG, second])]);
    expect(both).toHaveLength(40_000);
    expect(both.subarray(30_000)).toEqual(decode("opus_48000_64", [second]));
  });

  it.skipIf(!hasProgram("opusenc") || !hasProgram("ffmpeg"))(
    "decodes what opusenc writes as ffmpeg does (skipped without opusenc and ffmpeg)",
    () => {
      const input = bytesOf(tone({ hz: 440, rate: 48_000, samples: 50_001 }));
      const args = ["--quiet", "--raw", "--raw-rate", "48000", "--raw-chan", "1", "-", "-"];
      const bytes = new Uint8Array(spawnSync("opusenc", args, { input }).stdout);
      const ours = decode("opus_48000_96", [bytes]);
      const theirs = ffmpegDecode(bytes, { rate: 48_000 });
      expect(ours).toHaveLength(50_001);
      expect(theirs).toHaveLength(50_001);
      const difference = ours.map((value, at) => Math.abs(value - (theirs[at] ?? 0)));
      expect(Math.max(...difference)).toBeLessThan(40);
    },
  );

  it("finish() refuses half a sample and half a page, with upstream_protocol", () => {
    const protocol = expect.objectContaining({ code: "upstream_protocol" });
    expect(() => decode("pcm_16000", [new Uint8Array(3)])).toThrow(protocol);
    expect(() => decode("opus_48000_64", [OGG.slice(0, -1)])).toThrow(protocol);
    expect(() => decode("ulaw_8000", [new Uint8Array(3)])).not.toThrow();
  });

  it("push() refuses another format than was asked for, with upstream_protocol", () => {
    const protocol = expect.objectContaining({ code: "upstream_protocol" });
    expect(() => decode("opus_48000_64", [encodeWavFile(noise(9), 48_000)])).toThrow(protocol);
    const writer = new OggOpusWriter({ preSkip: 312, inputSampleRate: 48_000 });
    // Two frames of equal size in an odd number of bytes (RFC 6716 requirement R3).
    const broken = Uint8Array.of((31 << 3) | 1, 1, 2, 3);
    expect(() => decode("opus_48000_64", [writer.header(), writer.push(broken, 1920)])).toThrow(protocol);
  });

  it("refuses formats that a gateway cannot decode, with unknown_format", () => {
    for (const format of ["mp3_44100_128", "wav_16000", "pcm_11025", ""]) {
      expect(() => createSourceDecoder(format)).toThrow(expect.objectContaining({ code: "unknown_format" }));
    }
  });

  it("close() gives the Opus decoder back", () => {
    for (let at = 0; at < MAX_LIVE_CODECS + 1; at += 1) {
      const decoder = createSourceDecoder("opus_48000_64");
      decoder.push(OGG.subarray(0, 2000));
      decoder.close();
      decoder.close();
      expect(() => decoder.push(OGG)).toThrow(TypeError);
    }
  });
});
