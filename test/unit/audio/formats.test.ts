import { describe, expect, it } from "vitest";
import {
  AUDIO_FORMATS,
  bytesPerMs,
  frameSamples,
  isFrameLengthAllowed,
  OUTPUT_FORMATS,
  parseUpstreamFormat,
  STREAM_FORMATS,
  streamedPcm,
} from "../../../src/audio/formats.ts";
import { SAMPLE_RATES } from "../../../src/audio/resample/resample.ts";
import { type AudioFormat, LISTENER_FORMATS } from "../../../src/protocol/vocabulary.ts";

describe("parseUpstreamFormat()", () => {
  it("has 28 formats, 21 of them streamed", () => {
    expect(STREAM_FORMATS).toHaveLength(21);
    expect(new Set(OUTPUT_FORMATS).size).toBe(28);
    for (const name of OUTPUT_FORMATS) expect(parseUpstreamFormat(name)?.name).toBe(name);
  });

  it("reads codec, rate and bit rate from the name", () => {
    expect(parseUpstreamFormat("mp3_22050_32")).toEqual({
      name: "mp3_22050_32",
      codec: "mp3",
      sampleRate: 22_050,
      bitrateKbps: 32,
    });
    expect(parseUpstreamFormat("ulaw_8000")).toMatchObject({
      codec: "ulaw",
      sampleRate: 8000,
      bitrateKbps: null,
    });
    expect(parseUpstreamFormat("opus_48000_192")).toMatchObject({ codec: "opus", bitrateKbps: 192 });
    expect(parseUpstreamFormat("wav_44100")).toMatchObject({ codec: "wav", sampleRate: 44_100 });
  });

  it("refuses what the interface does not have", () => {
    for (const name of ["", "mp3_44100", "pcm_11025", "ULAW_8000", "opus_48000", "wav_8000_16", "toString"]) {
      expect(parseUpstreamFormat(name)).toBeUndefined();
    }
  });
});

describe("bytesPerMs()", () => {
  it.each([
    ["ulaw_8000", 8],
    ["alaw_8000", 8],
    ["pcm_22050", 44.1],
    ["wav_48000", 96],
    ["mp3_44100_128", 16],
    ["opus_48000_32", 4],
  ])("%s: %d bytes", (format, bytes) => {
    expect(bytesPerMs(format)).toBeCloseTo(bytes, 9);
  });
});

describe("streamedPcm()", () => {
  it.each([
    [8000, "pcm_8000"],
    [12_000, "pcm_16000"],
    [22_050, "pcm_22050"],
    [48_000, "pcm_48000"],
    [96_000, "pcm_48000"],
  ])("%d Hz: %s", (sampleRate, format) => {
    expect(streamedPcm(sampleRate)).toBe(format);
  });
});

describe("SAMPLE_RATES", () => {
  it.each(OUTPUT_FORMATS)("has the rate of the upstream's %s, which can be resampled then", (name) => {
    const why = `No listener format has the rate of ${name}: see AUDIO_FORMATS in src/audio/formats.ts`;
    expect(SAMPLE_RATES, why).toContain(parseUpstreamFormat(name)?.sampleRate);
  });

  it("rises at most sixfold: the kernel has no room for more outputs", () => {
    const ratio = Math.max(...SAMPLE_RATES) / Math.min(...SAMPLE_RATES);
    expect(ratio, "See MAX_OUTPUTS in src/audio/resample/resample-kernel.ts").toBeLessThanOrEqual(6);
  });
});

describe("isFrameLengthAllowed()", () => {
  const audioFormats = LISTENER_FORMATS.filter((format): format is AudioFormat => format !== "none");

  it("covers every listener format", () => {
    expect(Object.keys(AUDIO_FORMATS).sort()).toEqual([...audioFormats].sort());
  });

  it("allows only whole numbers of samples", () => {
    for (const format of audioFormats) {
      for (let ms = 0; ms <= 120; ms += 1) {
        if (isFrameLengthAllowed(format, ms)) {
          expect(Number.isInteger((AUDIO_FORMATS[format].sampleRate * ms) / 1000)).toBe(true);
          expect(ms % 10 === 0 && ms >= 10 && ms <= 100).toBe(true);
        } else {
          expect(() => frameSamples(format, ms)).toThrow(RangeError);
        }
      }
    }
  });

  it("allows pcm_22050 in steps of 20 ms and Opus in 10, 20, 40 and 60 ms", () => {
    const allowed = (format: AudioFormat) =>
      [10, 20, 30, 40, 50, 60, 70, 80, 90, 100].filter((ms) => isFrameLengthAllowed(format, ms));
    expect(allowed("pcm_22050")).toEqual([20, 40, 60, 80, 100]);
    expect(allowed("opus_48000")).toEqual([10, 20, 40, 60]);
    expect(allowed("pcm_44100")).toHaveLength(10);
    expect(allowed("ulaw_8000")).toHaveLength(10);
  });

  it("counts samples at the format's own rate", () => {
    expect(frameSamples("ulaw_8000", 20)).toBe(160);
    expect(frameSamples("pcm_22050", 20)).toBe(441);
    expect(frameSamples("opus_48000", 60)).toBe(2880);
  });
});
