import { describe, expect, it } from "vitest";
import { until } from "../../helpers/until.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import {
  startWyoming,
  WYOMING_RATE,
  WYOMING_VOICE,
  type WyomingFault,
  type WyomingOptions,
} from "../../kit/vendors/wyoming.ts";
import { nobody, Recorder } from "../../unit/upstream/rig.ts";
import { asked, configOf, serviceAt, speech, TEXT } from "./rig.ts";

const TWO = "Good morning to you. And a good evening.";

async function said(options: WyomingOptions, text = TEXT, more: Parameters<typeof speech>[1] = {}) {
  await using server = await startWyoming(options);
  await using upstream = serviceAt(configOf("wyoming", server.url), 300);
  // No longer than the test wants to wait for it.
  const recorder = await asked(upstream, speech(WYOMING_VOICE, { outputFormat: "pcm_22050", ...more, text }));
  return { recorder, events: server.asked[0] ?? [], faults: server.faults };
}

describe("a Wyoming server", () => {
  it.each([
    { isStreaming: false, isInline: false },
    { isStreaming: false, isInline: true },
    { isStreaming: true, isInline: false },
    { isStreaming: true, isInline: true },
  ])("speaks to the sample: %o", async (options) => {
    const { recorder, events, faults } = await said(options, TWO);
    expect(faults).toEqual([]);
    expect(recorder.failure).toBeNull();
    const sentences = options.isStreaming ? ["Good morning to you.", " And a good evening."] : [TWO];
    const truth = sentences.map((text) => bytesOf(speak(text, { sampleRate: WYOMING_RATE }).pcm));
    expect(recorder.audio.equals(Buffer.concat(truth))).toBe(true);
    expect(recorder.calls).toEqual(["sent", "head", "chunk", "end"]);
    const whole = events.find(({ type }) => type === "synthesize");
    expect(whole?.data).toEqual({ text: TWO, voice: { name: WYOMING_VOICE } });
  });

  it.each(["ulaw_8000", "pcm_24000"])("becomes %s, as long as it was", async (outputFormat) => {
    const { recorder } = await said({ isStreaming: true }, TEXT, { outputFormat });
    const bytesPerSecond = outputFormat === "ulaw_8000" ? 8000 : 48_000;
    expect(recorder.bytes / bytesPerSecond).toBeCloseTo(speak(TEXT, { sampleRate: WYOMING_RATE }).seconds, 2);
  });

  it("names the speaker of a voice that has several", async () => {
    const { events } = await said({}, TEXT, { voiceId: `${WYOMING_VOICE}#p7` });
    expect(events.at(-1)?.data.voice).toEqual({ name: WYOMING_VOICE, speaker: "p7" });
  });

  it("a voice that it does not list is refused, since it would take another one", async () => {
    const { recorder, events } = await said({}, TEXT, { voiceId: "nobody" });
    expect(recorder.failure).toMatchObject({ code: "unknown_voice", field: "voice_id" });
    expect(recorder.failure?.message).toBe(
      'The upstream wyoming knows no voice "nobody" (expected one that GET /voices lists)',
    );
    expect(events.map(({ type }) => type)).toEqual(["describe"]);
  });

  it.each<readonly [WyomingFault, string]>([
    ["error", "upstream_failed"],
    ["no end", "upstream_truncated"],
    ["reset", "upstream_truncated"],
    ["empty", "upstream_truncated"],
    ["closes at once", "upstream_unreachable"],
    ["no voices", "upstream_protocol"],
    ["long header", "upstream_protocol"],
    ["long data", "upstream_protocol"],
    ["long payload", "upstream_protocol"],
    ["not json", "upstream_protocol"],
    ["http", "upstream_protocol"],
    ["bytes of 8 bits", "upstream_protocol"],
    ["another rate in the middle", "upstream_protocol"],
  ])("%s: %s", async (fault, code) => {
    for (const isStreaming of [false, true]) {
      const { recorder } = await said({ fault, isStreaming });
      expect(recorder.failure).toMatchObject({ code });
      expect(recorder.failure?.message).not.toContain("quick");
    }
  });

  it("nobody listens", async () => {
    await using upstream = serviceAt(configOf("wyoming", nobody().url.replace("http", "wyoming")));
    const recorder = await asked(upstream, speech(WYOMING_VOICE));
    expect(recorder.failure).toMatchObject({ code: "upstream_unreachable" });
    await expect(upstream.check()).rejects.toMatchObject({ code: "upstream_unreachable" });
  });

  it("one that stalls in the middle ends with upstream_timeout", async () => {
    const { recorder } = await said({ fault: "stall" });
    expect(recorder.failure).toMatchObject({ code: "upstream_timeout" });
    expect(recorder.bytes).toBeGreaterThan(0);
  });

  it("an abort closes its connection, and the next request has the place", async () => {
    await using server = await startWyoming({ fault: "stall", isStreaming: true });
    await using upstream = serviceAt(configOf("wyoming", server.url));
    const recorder = new Recorder();
    const synthesis = upstream.open(speech(WYOMING_VOICE), recorder);
    await until("some audio", () => recorder.bytes > 0);
    expect(upstream.stats()).toMatchObject({ open: 1, connected: 1 });
    synthesis.abort();
    await until("the end of the connection", () => server.open() === 0);
    expect(upstream.stats()).toMatchObject({ open: 0, connected: 0 });
    expect(recorder.isOver).toBe(false);
    const next = new Recorder();
    upstream.open(speech(WYOMING_VOICE), next);
    await until("its audio", () => next.bytes > 0);
  });

  it("one that is paused is read no further, and goes on to its end", async () => {
    await using server = await startWyoming({ isStreaming: true });
    await using upstream = serviceAt(configOf("wyoming", server.url));
    const recorder = new Recorder();
    const text = Array.from({ length: 60 }, () => TWO).join(" ");
    const synthesis = upstream.open(speech(WYOMING_VOICE, { text, outputFormat: "pcm_22050" }), recorder);
    let bytes = 0;
    recorder.onChunk = () => {
      recorder.onChunk = null;
      synthesis.pause();
    };
    await until("some audio", () => recorder.bytes > 0);
    bytes = recorder.bytes;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(recorder.bytes).toBeLessThanOrEqual(bytes + 64 * 1024);
    synthesis.resume();
    await recorder.over();
    expect(recorder.failure).toBeNull();
    const sentences = text.match(/[^.!?]+[.!?]?/g) ?? [];
    const truth = sentences.map((one) => speak(one, { sampleRate: WYOMING_RATE }).pcm.byteLength);
    expect(recorder.bytes).toBe(truth.reduce((sum, length) => sum + length, 0));
  });

  it("says whether it is there", async () => {
    await using server = await startWyoming();
    await using upstream = serviceAt(configOf("wyoming", server.url));
    expect(await upstream.check()).toBe(200);
    await until("the end of the connection", () => server.open() === 0);
    expect(server.asked).toEqual([[{ type: "describe", data: {} }]]);
  });
});
