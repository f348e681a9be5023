import { describe, expect, it } from "vitest";
import { AUDIO_FORMATS, isStreamFormat } from "../../../src/audio/formats.ts";
import type { AudioFormat, Band } from "../../../src/protocol/vocabulary.ts";
import { chooseSourceFormat, isPassThrough } from "../../../src/session/route.ts";

const FORMATS = Object.keys(AUDIO_FORMATS) as AudioFormat[];

const need = (format: AudioFormat, frameMs = 20, band: Band = "full") => ({ format, frameMs, band });

describe("chooseSourceFormat()", () => {
  it.each([
    [[], "ulaw_8000"],
    [[need("ulaw_8000"), need("ulaw_8000", 40)], "ulaw_8000"],
    [[need("alaw_8000")], "alaw_8000"],
    [[need("pcm_48000")], "pcm_48000"],
    [[need("opus_48000")], "opus_48000_64"],
    [[need("opus_48000", 60)], "pcm_24000"],
    [[need("opus_48000"), need("opus_48000", 40)], "pcm_24000"],
    [[need("ulaw_8000"), need("opus_48000")], "pcm_24000"],
    [[need("ulaw_8000"), need("alaw_8000")], "pcm_8000"],
    [[need("ulaw_8000"), need("pcm_16000")], "pcm_16000"],
    [[need("opus_48000"), need("pcm_44100")], "pcm_44100"],
  ] as const)("%j asks for %s", (needs, expected) => {
    expect(chooseSourceFormat(needs, { opusBitrateKbps: "64", isLevelled: false })).toBe(expected);
  });

  it.each([
    [[need("ulaw_8000")], "pcm_8000"],
    [[need("opus_48000")], "pcm_24000"],
    [[need("pcm_16000"), need("alaw_8000")], "pcm_16000"],
  ] as const)("%j asks for %s where it gets another loudness", (needs, expected) => {
    expect(chooseSourceFormat(needs, { opusBitrateKbps: "64", isLevelled: true })).toBe(expected);
  });

  it("asks for PCM where a listener has the band of a telephone", () => {
    const options = { opusBitrateKbps: "64", isLevelled: false } as const;
    expect(chooseSourceFormat([need("ulaw_8000", 20, "telephone")], options)).toBe("pcm_8000");
    expect(chooseSourceFormat([need("opus_48000"), need("opus_48000", 20, "telephone")], options)).toBe(
      "pcm_24000",
    );
  });

  it("asks for PCM where the voice's upstream makes no Opus", () => {
    const options = { opusBitrateKbps: null, isLevelled: false };
    expect(chooseSourceFormat([need("opus_48000")], options)).toBe("pcm_24000");
    expect(chooseSourceFormat([need("ulaw_8000")], options)).toBe("ulaw_8000");
  });
});

describe.each(FORMATS)("what is asked of the upstream for a listener of %s", (format) => {
  const options = { opusBitrateKbps: "64", isLevelled: false } as const;

  it("is a format that it has, alone and beside each other format", () => {
    for (const other of FORMATS) {
      const source = chooseSourceFormat([need(format), need(other)], options);
      expect(isStreamFormat(source), `${source}, beside ${other}`).toBe(true);
    }
  });

  it("keeps all frequencies of its rate, as far as the upstream has them", () => {
    if (format === "opus_48000") return;
    const { sampleRate } = AUDIO_FORMATS[format];
    const source = chooseSourceFormat([need(format)], { ...options, isLevelled: true });
    expect(source).toMatch(/^pcm_/);
    expect(Number(source.slice(4))).toBeGreaterThanOrEqual(Math.min(sampleRate, 48_000));
  });
});

describe("isPassThrough()", () => {
  it("takes the same codec as it is, Opus only in packets of its frame length", () => {
    expect(isPassThrough(need("ulaw_8000", 60), "ulaw_8000")).toBe(true);
    expect(isPassThrough(need("ulaw_8000"), "pcm_8000")).toBe(false);
    expect(isPassThrough(need("opus_48000"), "opus_48000_128")).toBe(true);
    expect(isPassThrough(need("opus_48000", 40), "opus_48000_128")).toBe(false);
    expect(isPassThrough(need("ulaw_8000", 20, "telephone"), "ulaw_8000")).toBe(false);
  });
});
