import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { PIPER_RATE, PIPER_VOICE, piper } from "../../kit/vendors/piper.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import { asked, configOf, serviceAt, speech, TEXT } from "./rig.ts";

describe("Piper's HTTP server", () => {
  it("its file at its voice's rate becomes what was asked for", async () => {
    await using vendor = await startFakeUpstream(piper());
    await using upstream = serviceAt(configOf("piper", vendor.url));
    const truth = speak(TEXT, { sampleRate: PIPER_RATE });
    const native = await asked(upstream, speech(PIPER_VOICE, { outputFormat: "pcm_22050" }));
    expect(native.audio.equals(bytesOf(truth.pcm))).toBe(true);
    const converted = await asked(upstream, speech(PIPER_VOICE, { outputFormat: "ulaw_8000" }));
    expect(converted.bytes / 8000).toBeCloseTo(truth.seconds, 2);
    // What is heard first comes before the rest of the file is converted.
    expect(converted.chunks[0]?.audio.length).toBeLessThan(1000);
  });

  it("is asked for one after the other, with speaker and length", async () => {
    await using vendor = await startFakeUpstream(piper());
    await using upstream = serviceAt(configOf("piper", vendor.url));
    const request = speech(`${PIPER_VOICE}#p7`, { voiceSettings: { speed: 0.8 } });
    const both = [asked(upstream, request), asked(upstream, request)];
    expect(upstream.stats()).toMatchObject({ open: 1, queued: 1 });
    await Promise.all(both);
    expect(vendor.connections.opened).toBe(1);
    expect(vendor.requests[0]?.json).toEqual({
      text: TEXT,
      voice: PIPER_VOICE,
      speaker: "p7",
      length_scale: 1.25,
    });
  });

  it.each([
    ["html under 200", "upstream_not_speech", "check its url"],
    ["empty", "upstream_truncated", "its log may say why"],
    ["header alone", "upstream_truncated", "that its WAV header says are missing"],
    ["stall", "upstream_timeout", "silent"],
    ["cut file", "upstream_truncated", "that its WAV header says are missing"],
    ["fails", "upstream_failed", "its log may say why"],
  ] as const)("%s: %s, with what to do", async (fault, code, hint) => {
    await using vendor = await startFakeUpstream(piper({ fault }));
    await using upstream = serviceAt(configOf("piper", vendor.url), 150);
    const { failure } = await asked(upstream, speech(PIPER_VOICE));
    expect(failure).toMatchObject({ code });
    expect(failure?.message).toContain(hint);
  });
});
