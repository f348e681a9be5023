import { describe, expect, test } from "vitest";
import { outputFormatOf } from "../../../src/cli/output/output-plan.ts";

describe("outputFormatOf()", () => {
  test.each([
    ["a.wav", undefined, "wav", "pcm_24000"],
    ["a.WAV", "pcm_8000", "wav", "pcm_8000"],
    ["a.ogg", undefined, "ogg", "opus_48000"],
    ["a.opus", "opus_48000", "ogg", "opus_48000"],
    ["a.mp3", undefined, "mp3", "pcm_44100"],
    ["a.mp3", "pcm_24000", "mp3", "pcm_24000"],
    ["a.ulaw", undefined, "raw", "ulaw_8000"],
    ["a.alaw", undefined, "raw", "alaw_8000"],
    ["a.pcm", "pcm_16000", "raw", "pcm_16000"],
    ["-", undefined, "raw", "pcm_24000"],
    ["-", "opus_48000", "raw", "opus_48000"],
  ])("%s with format %s is %s of %s", (path, wanted, container, format) => {
    expect(outputFormatOf(path, wanted)).toEqual({ container, format });
  });

  test.each([
    ["a.flac", undefined, 'Output "a.flac": expected a name that ends in .wav'],
    ["a", undefined, "or -"],
    ["a.ulaw", "pcm_8000", "can't hold pcm_8000, expected ulaw_8000"],
    ["a.wav", "ulaw_8000", "can't hold ulaw_8000, expected pcm_*"],
    ["a.mp3", "pcm_8000", "expected pcm_22050, pcm_24000, pcm_44100"],
    ["a.wav", "pcm_2400", 'did you mean "pcm_24000"?'],
    ["-", "none", 'Flag --format: "none", expected one of ulaw_8000'],
  ])("refuses %s with format %s", (path, wanted, message) => {
    expect(() => outputFormatOf(path, wanted)).toThrow(message);
  });
});
