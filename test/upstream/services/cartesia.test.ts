import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, type CartesiaOptions, cartesia } from "../../kit/vendors/cartesia.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import { asked, charactersOf, configOf, serviceAt, speech, TEXT, wordTimes } from "./rig.ts";

async function said(options: CartesiaOptions, more: Parameters<typeof speech>[1] = {}, timeoutMs?: number) {
  await using vendor = await startFakeUpstream(cartesia(options));
  await using upstream = serviceAt(configOf("cartesia", vendor.url, { key: CARTESIA_KEY }), timeoutMs);
  const recorder = await asked(upstream, speech(CARTESIA_VOICE, more));
  return { recorder, request: vendor.requests[0] };
}

describe("Cartesia", () => {
  it("speaks PCM to the sample, with each word at its time", async () => {
    const { recorder } = await said({});
    expect(recorder.failure).toBeNull();
    const truth = speak(TEXT, { sampleRate: 24_000 });
    expect(recorder.audio.equals(bytesOf(truth.pcm))).toBe(true);
    const words = wordTimes(recorder, TEXT);
    expect(words.map(({ text }) => text)).toEqual(truth.words.map(({ text }) => text));
    for (const [index, { start, end }] of truth.words.entries()) {
      expect(words[index]?.start).toBeCloseTo(start, 6);
      expect(words[index]?.end).toBeCloseTo(end, 6);
    }
  });

  it.each([
    ["ulaw_8000", "pcm_mulaw", 8000],
    ["alaw_8000", "pcm_alaw", 8000],
    ["pcm_48000", "pcm_s16le", 48_000],
    ["pcm_32000", "pcm_s16le", 44_100],
    ["opus_48000_64", "pcm_s16le", 48_000],
    ["mp3_44100_128", "pcm_s16le", 44_100],
  ])("%s is asked for as %s at %i", async (outputFormat, encoding, rate) => {
    const { recorder, request } = await said({}, { outputFormat });
    expect(recorder.failure).toBeNull();
    expect(request?.json).toMatchObject({ output_format: { container: "raw", encoding, sample_rate: rate } });
    expect(recorder.bytes).toBeGreaterThan(1000);
  });

  it("converts to a rate that it does not make: as long as it was", async () => {
    const { recorder } = await said({}, { outputFormat: "pcm_32000" });
    expect(recorder.bytes / 64_000).toBeCloseTo(speak(TEXT, { sampleRate: 44_100 }).seconds, 3);
  });

  it("gets speed and language; what it can't do is named", async () => {
    const { recorder, request } = await said(
      {},
      {
        voiceSettings: { speed: 1.1, stability: 0.4, style: 0.2 },
        languageCode: "en",
        seed: 7,
      },
    );
    expect(request?.json).toMatchObject({ language: "en", generation_config: { speed: 1.1 } });
    expect(recorder.heads).toMatchObject([
      { ignored: ["voice_settings.stability", "voice_settings.style", "seed"] },
    ]);
  });

  it("is asked for no times where nobody wants any", async () => {
    const { recorder, request } = await said({}, { wantsTiming: false });
    expect(request?.json).toMatchObject({ add_timestamps: false });
    expect(charactersOf(recorder.chunks)).toEqual([]);
    expect(recorder.isEnded).toBe(true);
  });

  it("times on lines of their own, behind all audio", async () => {
    const { recorder } = await said({ fault: "times behind the audio" });
    const truth = speak(TEXT, { sampleRate: 24_000 });
    expect(wordTimes(recorder, TEXT).map(({ start }) => start)).toEqual(
      truth.words.map(({ start }) => expect.closeTo(start, 6)),
    );
  });

  it("a number that is written out stands at its place, and the words behind it at theirs", async () => {
    const text = "I have 25 cats, and 3 dogs.";
    const say = "I have twenty five cats and three dogs".split(" ");
    const { recorder } = await said({ say }, { text });
    const truth = speak(text, { sampleRate: 24_000, say }).words;
    const words = wordTimes(recorder, text);
    const at = (word: string) => words.find((each) => each.text === word);
    expect(at("25")).toMatchObject({
      start: expect.closeTo(truth[2]?.start ?? 0, 6),
      end: expect.closeTo(truth[3]?.end ?? 0, 6),
    });
    expect(at("cats")?.start).toBeCloseTo(truth[4]?.start ?? 0, 6);
    expect(at("3")?.start).toBeCloseTo(truth[6]?.start ?? 0, 6);
    expect(at("dogs")?.start).toBeCloseTo(truth[7]?.start ?? 0, 6);
  });

  it("no times: none are made up", async () => {
    const { recorder } = await said({ fault: "no times" });
    expect(recorder.isEnded).toBe(true);
    expect(charactersOf(recorder.chunks)).toEqual([]);
  });

  it("times that go back are not believed, nor any behind them", async () => {
    const { recorder } = await said({ fault: "times go back" });
    expect(recorder.isEnded).toBe(true);
    const known = charactersOf(recorder.chunks).filter(({ start }) => !Number.isNaN(start));
    expect(known.length).toBeGreaterThan(10);
    expect(known.every(({ start }, index) => start >= (known[index - 1]?.start ?? 0))).toBe(true);
    expect(Math.max(...known.map(({ end }) => end))).toBeLessThan(1.6);
  });

  it("lists of times that are short leave words without times", async () => {
    const { recorder } = await said({ fault: "times short" });
    expect(recorder.isEnded).toBe(true);
    expect(charactersOf(recorder.chunks).every(({ start }) => Number.isNaN(start))).toBe(true);
  });

  it.each([
    ["error after 200", "upstream_failed"],
    ["no done", "upstream_truncated"],
    ["words missing", "upstream_truncated"],
    ["empty", "upstream_truncated"],
    ["html", "upstream_protocol"],
    ["not json", "upstream_protocol"],
    ["reset", "upstream_truncated"],
    ["too many", "upstream_rate_limited"],
  ] as const)("%s: %s", async (fault, code) => {
    const { recorder } = await said({ fault });
    expect(recorder.failure).toMatchObject({ code });
    expect(recorder.failure?.message).not.toContain("quick");
    expect(recorder.failure?.message).not.toContain(CARTESIA_KEY);
  });

  it("a stall ends with upstream_timeout", async () => {
    const { recorder } = await said({ fault: "stall" }, {}, 150);
    expect(recorder.failure).toMatchObject({ code: "upstream_timeout" });
  });

  it("a voice that it does not know, and a key that it refuses", async () => {
    await using vendor = await startFakeUpstream(cartesia());
    await using upstream = serviceAt(configOf("cartesia", vendor.url, { key: CARTESIA_KEY }));
    await using locked = serviceAt(configOf("cartesia", vendor.url, { key: "wrong-key" }));
    expect(await (await asked(upstream, speech("nobody"))).failed()).toMatchObject({
      code: "unknown_voice",
      field: "voice_id",
    });
    const refused = await (await asked(locked, speech(CARTESIA_VOICE))).failed();
    expect(refused.code).toBe("upstream_unauthorized");
    expect(refused.message).toContain("key-env");
  });

  it("zero retention is refused before anything is asked", async () => {
    const { recorder, request } = await said({}, { enableLogging: false });
    expect(recorder.failure).toMatchObject({ code: "upstream_invalid", field: "enable_logging" });
    expect(request).toBeUndefined();
  });
});
