import { describe, expect, it } from "vitest";
import { wavHeader } from "../../../src/audio/containers/wav.ts";
import type { ServiceConfig } from "../../../src/upstream/services/service-config.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import {
  OPENAI_KEY,
  OPENAI_VOICE,
  type OpenAiManner,
  type OpenAiOptions,
  openAi,
} from "../../kit/vendors/openai.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import { jsonError } from "../../kit/vendors/timed-steps.ts";
import { asked, charactersOf, configOf, serviceAt, speech, TEXT } from "./rig.ts";

async function said(
  options: OpenAiOptions = {},
  more: Parameters<typeof speech>[1] = {},
  {
    timeoutMs,
    patienceMs,
    ...config
  }: Partial<ServiceConfig> & { timeoutMs?: number; patienceMs?: number } = {},
) {
  await using vendor = await startFakeUpstream(openAi(options));
  await using upstream = serviceAt(configOf("openai", vendor.url, config), timeoutMs, patienceMs);
  const recorder = await asked(upstream, speech(OPENAI_VOICE, more));
  return { recorder, requests: vendor.requests };
}

const TRUTH = bytesOf(speak(TEXT, { sampleRate: 24_000 }).pcm);

describe("servers of OpenAI's shape", () => {
  it.each([
    "openai",
    "whole file",
    "wav for pcm",
    "own rate",
    "said rate",
    "file for each sentence",
    "stream for each sentence",
    "events",
    "stereo",
  ] as const)("%s: its samples, and nothing else", async (manner) => {
    const { recorder } = await said({ manner });
    expect(recorder.failure).toBeNull();
    expect(recorder.audio.equals(TRUTH)).toBe(true);
    expect(charactersOf(recorder.chunks)).toEqual([]);
  });

  it("floats become samples", async () => {
    const { recorder } = await said({ manner: "floats" });
    const pcm = new Int16Array(Uint8Array.from(recorder.audio).buffer);
    const truth = speak(TEXT, { sampleRate: 24_000 }).pcm;
    expect(pcm.length).toBe(truth.length);
    expect(pcm.every((sample, index) => Math.abs(sample - (truth[index] ?? 0)) <= 1)).toBe(true);
  });

  it.each<readonly [OpenAiManner, number, number | null]>([
    ["own rate", 22_050, null],
    ["said rate", 16_000, null],
    ["whole file", 22_050, null],
    ["own rate", 16_000, 16_000],
    // What the answer says wins over what is set.
    ["said rate", 16_000, 24_000],
    ["wav for pcm", 22_050, 24_000],
  ])("%s at %i Hz, with sample-rate %s: at the rate that it has", async (manner, sampleRate, set) => {
    const { recorder } = await said({ manner, sampleRate }, {}, { sampleRate: set });
    expect(recorder.failure).toBeNull();
    expect(recorder.bytes / 48_000).toBeCloseTo(speak(TEXT, { sampleRate }).seconds, 3);
  });

  it("samples that are too few for their text fail: they are at another rate than is set, or cut off", async () => {
    const own = { manner: "own rate", sampleRate: 8000 } as const;
    const { recorder } = await said(own, {}, { sampleRate: 24_000 });
    expect(recorder.failure).toMatchObject({ code: "upstream_truncated" });
    expect(recorder.failure?.message).toContain("at another rate than it says");
    // Who asks for speech at three times its rate gets it.
    const quick = await said(own, { voiceSettings: { speed: 3 } }, { sampleRate: 24_000 });
    expect(quick.recorder.failure).toBeNull();
  });

  it("samples that are far too many for their text fail: they are at another rate than is set", async () => {
    const own = { manner: "own rate", sampleRate: 48_000 } as const;
    const set = { sampleRate: 8000 };
    const { recorder } = await said(own, {}, set);
    expect(recorder.failure).toMatchObject({ code: "upstream_audio_rate" });
    expect(recorder.failure?.message).toMatch(
      /upstream openai .*too long for \d+ letters\. Set the service to/,
    );
    // Who asks for slow speech gets it, and what may be spelled can take as long.
    for (const more of [
      { voiceSettings: { speed: 0.25 } },
      { text: TEXT.toUpperCase() },
      { text: "12345 ".repeat(9) },
    ])
      expect((await said(own, more, set)).recorder.failure).toBeNull();
  });

  it("a voice may pause as long as it likes", async () => {
    const text = "Breathe in, and hold it. Now let it go, slowly, and rest a while.";
    const { pcm } = speak(text, { sampleRate: 24_000 });
    const paused = new Int16Array(pcm.length + 24_000 * 40);
    paused.set(pcm.subarray(0, 24_000));
    paused.set(pcm.subarray(24_000), 24_000 * 41);
    await using vendor = await startFakeUpstream(() => ({
      status: 200,
      headers: { "content-type": "audio/pcm;rate=24000" },
      body: [bytesOf(paused)],
    }));
    await using upstream = serviceAt(configOf("openai", vendor.url));
    const recorder = await asked(upstream, speech(OPENAI_VOICE, { text }));
    expect(recorder.failure).toBeNull();
    expect(recorder.bytes).toBe(paused.byteLength);
  });

  it("asks for WAV, and for PCM only where its rate is set", async () => {
    const formats = [];
    for (const sampleRate of [null, 24_000]) {
      const { requests } = await said({}, {}, { sampleRate });
      formats.push((requests[0]?.json as { response_format?: string } | undefined)?.response_format);
    }
    expect(formats).toEqual(["wav", "pcm"]);
  });

  it("gets speed and the model; tags are not read aloud", async () => {
    const text = 'Hello <break time="1s"/> there.';
    const voiceSettings = { speed: 1.2, style: 0.1 };
    const { recorder, requests } = await said({}, { text, voiceSettings }, { model: "kokoro" });
    expect(requests[0]?.json).toMatchObject({ model: "kokoro", speed: 1.2 });
    expect(requests[0]?.text).not.toContain("break");
    expect(recorder.heads[0]?.ignored).toEqual(["voice_settings.style", "text (markup)"]);
  });

  it.each([
    ["html", "upstream_not_speech"],
    ["html without its type", "upstream_not_speech"],
    ["json under 200", "upstream_invalid"],
    ["mp3", "upstream_not_speech"],
    ["mp3 without tags", "upstream_not_speech"],
    ["empty", "upstream_truncated"],
    ["header alone", "upstream_truncated"],
    ["odd format", "upstream_not_speech"],
    ["reset", "upstream_truncated"],
    ["too many", "upstream_rate_limited"],
    ["no quota", "upstream_forbidden"],
  ] as const)("%s: %s", async (fault, code) => {
    const { recorder } = await said({ fault });
    expect(recorder.failure).toMatchObject({ code });
    // A voice may be spoken by several: each error says by which.
    expect(recorder.failure?.message).toMatch(/\bupstream openai\b/);
  });

  it.each([
    ["html", "check its url"],
    ["html without its type", "it is a web page, expected WAV or samples: check its url"],
    ["mp3", "set the server to one of these"],
    ["odd format", "expected PCM of 16 bits"],
    ["empty", "its log may say why"],
    ["reset", "ask again for the rest"],
  ] as const)("%s: says what to do", async (fault, hint) => {
    const { recorder } = await said({ fault });
    expect(recorder.failure?.message).toContain(hint);
  });

  it.each([
    [400, "the field"],
    [404, "no other cause"],
  ])("a refusal of %i that names the parameter voice is unknown_voice, with %s", async (status) => {
    const error = { message: "Voice 'nobody' not found", type: "invalid_request_error", param: "voice" };
    await using vendor = await startFakeUpstream(() => jsonError(status, { error }));
    await using upstream = serviceAt(configOf("openai", vendor.url));
    const { failure } = await asked(upstream, speech("nobody"));
    expect(failure).toMatchObject({ code: "unknown_voice", field: "voice_id" });
    expect(failure?.message).toContain('knows no voice "nobody"');
  });

  it.each([
    ["no quota", "credit left"],
    ["too many", "max-open"],
    ["json without a code", "check its url"],
  ] as const)("%s: says what to change", async (fault, hint) => {
    const script =
      fault === "json without a code"
        ? () => ({ headers: { "content-type": "application/json" }, body: ['{"ok":'] })
        : openAi({ fault });
    await using vendor = await startFakeUpstream(script);
    await using upstream = serviceAt(configOf("openai", vendor.url));
    expect((await asked(upstream, speech(OPENAI_VOICE))).failure?.message).toContain(hint);
  });

  it.each([
    ["event error", "upstream_failed"],
    ["events without end", "upstream_truncated"],
  ] as const)("%s: %s", async (fault, code) => {
    const { recorder } = await said({ manner: "events", fault });
    expect(recorder.failure).toMatchObject({ code });
  });

  it("a file that ends before its header says so is cut off", async () => {
    const { recorder } = await said({ manner: "whole file", fault: "cut file" });
    expect(recorder.failure).toMatchObject({ code: "upstream_truncated" });
  });

  it("an error under 200 names what the service says, and no other status", async () => {
    const { recorder } = await said({ fault: "json under 200" });
    expect(recorder.failure?.message).toMatch(
      /^The upstream openai refused the request \(.*\): model_not_found$/,
    );
  });

  it.each([
    ["text/plain", "Not implemented on this server, look elsewhere", "it is a text"],
    ["application/xml", "<Error><Code>AccessDenied</Code></Error>", "it is a text"],
    ["application/octet-stream", '<?xml version="1.0"?><Error></Error>', "it is XML"],
    ["application/octet-stream", "<!-- a proxy --><html><body>no</body></html>", "it is a web page"],
    ["application/json", '["no", "audio", "here"]', "it is JSON"],
  ])("%s in place of samples whose rate is set is not played: %s", async (type, body, what) => {
    await using vendor = await startFakeUpstream(() => ({ headers: { "content-type": type }, body: [body] }));
    await using upstream = serviceAt(configOf("openai", vendor.url, { sampleRate: 24_000 }));
    const { failure, chunks } = await asked(upstream, speech(OPENAI_VOICE));
    expect(failure).toMatchObject({ code: "upstream_not_speech", isRetryable: false });
    expect(failure?.message).toContain(`${what}, expected WAV or samples: check its url`);
    expect(chunks).toEqual([]);
  });

  it.each(["text/plain", "application/json"])("a WAV file that is called %s is spoken", async (type) => {
    const file = Buffer.concat([wavHeader({ sampleRate: 24_000, dataBytes: TRUTH.length }), TRUTH]);
    await using vendor = await startFakeUpstream(() => ({ headers: { "content-type": type }, body: [file] }));
    await using upstream = serviceAt(configOf("openai", vendor.url));
    const recorder = await asked(upstream, speech(OPENAI_VOICE));
    expect(recorder.failure).toBeNull();
    expect(recorder.audio.equals(TRUTH)).toBe(true);
  });

  it("a stall ends with upstream_timeout, however long its first audio may take", async () => {
    const { recorder } = await said({ fault: "stall" }, {}, { timeoutMs: 150 });
    expect(recorder.failure).toMatchObject({ code: "upstream_timeout" });
  });

  it("an empty account is not asked again, too many requests are", async () => {
    const empty = await said({ fault: "no quota" }, {}, { patienceMs: 2000 });
    expect(empty.requests).toHaveLength(1);
    const many = await said({ fault: "too many" }, {}, { patienceMs: 600 });
    expect(many.requests.length).toBeGreaterThan(1);
    expect(many.recorder.failure).toMatchObject({ code: "upstream_rate_limited" });
  });

  it("shows the key where there is one", async () => {
    const { recorder } = await said({ key: OPENAI_KEY }, {}, { key: OPENAI_KEY });
    expect(recorder.failure).toBeNull();
    const { recorder: refused } = await said({ key: OPENAI_KEY });
    expect(refused.failure).toMatchObject({ code: "upstream_unauthorized" });
  });

  it("OpenAI's own refuses a text that is too long before anything is asked", async () => {
    await using upstream = serviceAt(configOf("openai", "https://api.openai.com", { key: OPENAI_KEY }));
    const recorder = await asked(upstream, speech(OPENAI_VOICE, { text: "a".repeat(4097) }));
    expect(recorder.failure).toMatchObject({ code: "text_too_long", field: "text" });
    expect(recorder.failure?.message).toContain("4096");
    expect(recorder.calls).not.toContain("sent");
  });

  it("says how long its first audio may take", async () => {
    await using vendor = await startFakeUpstream(openAi());
    await using upstream = serviceAt(configOf("openai", vendor.url));
    const waits: unknown[] = [];
    await new Promise<void>((resolve) => {
      upstream.open(speech(OPENAI_VOICE), {
        requestSent: (firstAudioMs) => waits.push(firstAudioMs),
        head: () => undefined,
        chunk: () => undefined,
        end: resolve,
        error: () => resolve(),
      });
    });
    expect(waits).toEqual([20_000]);
  });
});
