/** Speech of voices that are not equally loud, as a listener gets it: decoded, and measured as EBU R128 has it. */
import { describe, expect, it } from "vitest";
import { decodeUlaw } from "../../src/audio/codecs/g711.ts";
import { bytesOf } from "../../src/audio/codecs/pcm.ts";
import { startService } from "../../src/service/service.ts";
import type { FakeScript } from "../helpers/fake-upstream.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { measureLoudness } from "../kit/loudness-meter.ts";
import { syntheticSpeech } from "../kit/synthetic-speech.ts";

const LEVELS: Readonly<Record<string, number>> = { loud: 2, middle: 0.5, quiet: 0.12 };
const TARGET_LUFS = -19;
const LOUDEST_LUFS = -10;

/** Each voice says every text in six seconds, as loud as it is. */
const script: FakeScript = (request) => {
  const voice = request.path.split("/")[3] ?? "";
  const format = request.query.get("output_format") ?? "";
  const rate = Number(format.split("_")[1]);
  const speech = bytesOf(syntheticSpeech(rate, 6, LEVELS[voice] ?? 1));
  return { headers: { "content-type": "audio/pcm", "request-id": "r" }, body: [speech], splitBytes: 8000 };
};

/**
 * A click of 8 ms every 83 ms, at a quarter of the rate: its samples are all 3 dB under the peaks between them, so that cutting them
 * off would not do.
 */
function clicks(sampleRate: number, seconds: number): Int16Array {
  const [click, period] = [sampleRate * 0.008, Math.round(sampleRate * 0.083)];
  const ramp = sampleRate * 0.001;
  return Int16Array.from({ length: sampleRate * seconds }, (_, at) => {
    const place = at % period;
    const edge = Math.max(0, Math.min(1, place / ramp, (click - place) / ramp));
    return Math.round(4000 * edge * Math.sin((Math.PI / 2) * at + Math.PI / 4));
  });
}

/** What a new listener hears of one utterance. */
async function heard(gateway: TestGateway, message: object, format = "pcm_16000") {
  await using client = await TestClient.connect(
    gateway,
    `/live/${crypto.randomUUID()}?format=${format}&pace=burst&events=none`,
  );
  client.send({ type: "speak", text: "Hello.", ...message });
  const done = await client.next("utterance.done");
  expect(done.outcome).toBe("done");
  const { audio } = client;
  const samples = format.startsWith("ulaw") ? decodeUlaw(audio) : samplesOf(audio);
  return { done, audio, ...measureLoudness(samples, Number(format.split("_")[1])) };
}

function samplesOf(audio: Buffer): Int16Array {
  return Int16Array.from({ length: audio.length / 2 }, (_, index) => audio.readInt16LE(2 * index));
}

describe("loudness-lufs", () => {
  it.each(["pcm_16000", "ulaw_8000"])("a loud and a quiet voice come equally loud, in %s", async (format) => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url, { loudnessLufs: TARGET_LUFS });
    for (const round of ["new", "known"]) {
      for (const voice_id of Object.keys(LEVELS)) {
        const { lufs, truePeakDb } = await heard(gateway, { voice_id }, format);
        expect(Math.abs(lufs - TARGET_LUFS), `${voice_id}, ${round}`).toBeLessThan(0.75);
        expect(truePeakDb).toBeLessThanOrEqual(-1);
      }
    }
    const rate = format.split("_")[1];
    expect(new Set(upstream.requests.map(({ query }) => query.get("output_format")))).toEqual(
      new Set([`pcm_${rate}`]),
    );
  });

  it("brings the gain down before a peak that comes at once: no true peak is over -1 dB", async () => {
    await using upstream = await startFakeUpstream(() => ({
      headers: { "content-type": "audio/pcm", "request-id": "r" },
      body: [bytesOf(clicks(16_000, 6))],
      splitBytes: 8000,
    }));
    await using gateway = await gatewayAt(upstream.url, { loudnessLufs: LOUDEST_LUFS });
    const { lufs, truePeakDb } = await heard(gateway, { voice_id: "v" });
    // Louder by 14 dB than they come: their peaks would be over full scale.
    expect(lufs).toBeGreaterThan(-15);
    expect(truePeakDb).toBeLessThanOrEqual(-1);
  });

  it("is off unless it is set: each voice comes as it is", async () => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
    const { audio, lufs } = await heard(gateway, { voice_id: "quiet" });
    const said = Buffer.from(bytesOf(syntheticSpeech(16_000, 6, LEVELS.quiet ?? 1)));
    expect(audio.subarray(0, said.length).equals(said)).toBe(true);
    expect((await heard(gateway, { voice_id: "loud" })).lufs - lufs).toBeGreaterThan(20);
  });

  it("an utterance may ask for another loudness, or for none", async () => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url, { loudnessLufs: TARGET_LUFS, trimMs: 0 });
    const other = await heard(gateway, { voice_id: "loud", loudness_lufs: -26 });
    expect(other.lufs).toBeCloseTo(-26, 0);
    const none = await heard(gateway, { voice_id: "quiet", loudness_lufs: 0 });
    const said = Buffer.from(bytesOf(syntheticSpeech(16_000, 6, LEVELS.quiet ?? 1)));
    expect(none.audio.subarray(0, said.length).equals(said)).toBe(true);
  });

  it("refuses a loudness that nobody can listen to", async () => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s");
    client.send({ type: "speak", text: "Hello.", loudness_lufs: -3 });
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field: "loudness_lufs" });
    await expect(gatewayAt(upstream.url, { loudnessLufs: -5 })).rejects.toMatchObject({
      code: "invalid_config",
      field: "loudness-lufs",
    });
  });

  it("changes no time of a word, no length, and no cue", async () => {
    await using upstream = await startFakeUpstream();
    const runs: unknown[] = [];
    for (const loudnessLufs of [0, TARGET_LUFS]) {
      await using gateway = await gatewayAt(upstream.url, { loudnessLufs });
      await using client = await TestClient.connect(
        gateway,
        "/live/s?format=pcm_16000&pace=burst&events=characters,words,cues,segments",
      );
      const text = "One two three, four five. ".repeat(40);
      client.send({ type: "speak", text, voice_id: "v", utterance_id: "u" });
      const done = await client.next("utterance.done");
      const timed = ["characters", "words", "cue", "segment"] as const;
      const events = timed.flatMap((type) => client.eventsOf(type).map(({ seq: _, ...event }) => event));
      runs.push({ endMs: done.end_ms, frames: client.frames.length, events });
    }
    expect(runs[1]).toEqual(runs[0]);
  });

  it("what was interrupted goes on as loud as it was", async () => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url, { loudnessLufs: TARGET_LUFS });
    await heard(gateway, { voice_id: "quiet" });
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_16000&events=none&lead_ms=0");
    client.send({ type: "speak", text: "Hello.", voice_id: "quiet" });
    await client.until(() => client.frames.length > 60);
    client.send({ type: "interrupt" });
    const { next_ms: nextMs } = await client.next("interrupted");
    client.send({ type: "resume" });
    await client.next("utterance.resumed");
    await client.until(() => client.frames.length > 200);
    const rest = samplesOf(client.audio).subarray(Math.round((nextMs ?? 0) * 16));
    expect(Math.abs(measureLoudness(rest, 16_000).lufs - TARGET_LUFS)).toBeLessThan(1.5);
  });

  it("two voices of the built-in service come within 1.5 LU of each other", { timeout: 60_000 }, async () => {
    const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false });
    try {
      const response = await fetch(`${service.url}/v1/voices`);
      const { voices } = (await response.json()) as { voices: { voice_id: string }[] };
      const ids = voices.slice(0, 4).map(({ voice_id }) => voice_id);
      await using gateway = await gatewayAt(service.url, { loudnessLufs: -16 });
      const text =
        "The ferry leaves at noon from the old harbour, and comes back in the evening when the tide is high.";
      const loudness: number[] = [];
      for (const voice_id of ids) {
        const { lufs, truePeakDb } = await heard(gateway, { voice_id, text }, "pcm_24000");
        expect(truePeakDb).toBeLessThanOrEqual(-1);
        loudness.push(lufs);
      }
      expect(ids).toHaveLength(4);
      expect(Math.max(...loudness) - Math.min(...loudness)).toBeLessThan(1.5);
    } finally {
      await service.close();
    }
  });
});
