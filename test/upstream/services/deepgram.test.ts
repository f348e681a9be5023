import { describe, expect, it } from "vitest";
import { encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { DEEPGRAM_KEY, DEEPGRAM_VOICE, type DeepgramFault, deepgram } from "../../kit/vendors/deepgram.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import { asked, charactersOf, configOf, serviceAt, speech, TEXT } from "./rig.ts";

async function said(
  fault?: DeepgramFault,
  more: Parameters<typeof speech>[1] = {},
  { key = DEEPGRAM_KEY, timeoutMs }: { key?: string; timeoutMs?: number } = {},
) {
  await using vendor = await startFakeUpstream(deepgram(fault === undefined ? {} : { fault }));
  await using upstream = serviceAt(configOf("deepgram", vendor.url, { key }), timeoutMs);
  return await asked(upstream, speech(DEEPGRAM_VOICE, more));
}

describe("Deepgram", () => {
  it.each([
    ["pcm_24000", 24_000, bytesOf],
    ["pcm_32000", 32_000, bytesOf],
    ["ulaw_8000", 8000, encodeUlaw],
    ["alaw_8000", 8000, encodeAlaw],
  ])("makes %s itself, without times", async (outputFormat, sampleRate, encode) => {
    const recorder = await said(undefined, { outputFormat });
    expect(recorder.failure).toBeNull();
    expect(recorder.audio.equals(encode(speak(TEXT, { sampleRate }).pcm))).toBe(true);
    expect(charactersOf(recorder.chunks)).toEqual([]);
  });

  it("its header says what it bills", async () => {
    const recorder = await said();
    expect(recorder.heads).toMatchObject([{ characterCost: TEXT.length }]);
  });

  it("pcm_22050 is converted", async () => {
    const recorder = await said(undefined, { outputFormat: "pcm_22050" });
    expect(recorder.bytes / 44_100).toBeCloseTo(speak(TEXT, { sampleRate: 24_000 }).seconds, 3);
  });

  it("names speed and language, which it has not", async () => {
    const recorder = await said(undefined, { voiceSettings: { speed: 1.1 }, languageCode: "en" });
    expect(recorder.heads[0]?.ignored).toEqual(["voice_settings.speed", "language_code"]);
  });

  it.each([
    ["html", "upstream_not_speech"],
    ["empty", "upstream_truncated"],
    ["reset", "upstream_truncated"],
    ["too many", "upstream_rate_limited"],
    ["no money", "upstream_forbidden"],
    ["fails", "upstream_failed"],
  ] as const)("%s: %s", async (fault, code) => {
    expect(await said(fault)).toMatchObject({ failure: { code } });
  });

  it("a stall, a voice and a key that are none", async () => {
    expect(await said("stall", {}, { timeoutMs: 150 })).toMatchObject({
      failure: { code: "upstream_timeout" },
    });
    expect(await said(undefined, { voiceId: "nobody" })).toMatchObject({
      failure: { code: "upstream_invalid" },
    });
    expect(await said(undefined, {}, { key: "other" })).toMatchObject({
      failure: { code: "upstream_unauthorized" },
    });
  });
});
