/** Tones, rings and noise that the gateway makes, as listeners get them. */
import { describe, expect, it } from "vitest";
import { decodeUlaw } from "../../src/audio/codecs/g711.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { bandPowerDb } from "../kit/spectrum.ts";

const SPEAK = { type: "speak", text: "Hello there.", voice_id: "v", utterance_id: "text" };
/** The power of a sine of full scale, which levels are counted from. */
const FULL_SINE_DB = -3.01;

function decoded(audio: Buffer, format: string): Int16Array {
  if (format === "ulaw_8000") return decodeUlaw(audio);
  return Int16Array.from({ length: audio.length / 2 }, (_, index) => audio.readInt16LE(2 * index));
}

function levelDb(samples: Int16Array): number {
  const power = samples.reduce((sum, sample) => sum + (sample / 32_768) ** 2, 0) / samples.length;
  return 10 * Math.log10(power) - FULL_SINE_DB;
}

async function heardOf(sound: object, format = "pcm_16000") {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  await using client = await TestClient.connect(gateway, `/live/s?format=${format}&pace=burst&events=none`);
  client.send({ type: "play", sound, utterance_id: "made" });
  const done = await client.next("utterance.done");
  expect(done).toMatchObject({ utterance_id: "made", outcome: "done", characters_billed: null });
  expect(upstream.requests).toHaveLength(0);
  return { done, samples: decoded(client.audio, format) };
}

describe("play with sound", () => {
  it.each(["pcm_16000", "ulaw_8000"])("a tone has its frequency, level and length, in %s", async (format) => {
    const { done, samples } = await heardOf({ kind: "tone", hertz: 1000, dbfs: -20, ms: 1500 }, format);
    const rate = Number(format.split("_")[1]);
    expect(done).toMatchObject({ start_ms: 0, end_ms: 1500 });
    expect(samples.length).toBe(1.5 * rate);
    const middle = samples.subarray(0.2 * rate, 1.3 * rate);
    expect(levelDb(middle)).toBeCloseTo(-20, 0);
    expect(bandPowerDb(middle, rate, [900, 1100]) - bandPowerDb(middle, rate, [1200, 3900])).toBeGreaterThan(
      30,
    );
    // It rises and falls: the first and last samples are near nothing.
    expect(Math.max(Math.abs(samples[0] ?? 0), Math.abs(samples.at(-1) ?? 0))).toBeLessThan(100);
  });

  it("two frequencies at once are as loud together as one", async () => {
    const { samples } = await heardOf({ kind: "tone", hertz: [697, 1209], dbfs: -10, ms: 1000 });
    const middle = samples.subarray(1600, 14_400);
    expect(levelDb(middle)).toBeCloseTo(-10, 0);
    const [low, high] = [bandPowerDb(middle, 16_000, [640, 750]), bandPowerDb(middle, 16_000, [1150, 1270])];
    expect(Math.abs(low - high)).toBeLessThan(1);
  });

  it("a cadence is heard and silent in turns, and a ring is one", async () => {
    const { samples } = await heardOf({ kind: "tone", hertz: 425, on_ms: 100, off_ms: 300, ms: 1000 });
    for (const from of [0, 400, 800]) {
      expect(levelDb(samples.subarray((from + 20) * 16, (from + 80) * 16)), `${from} ms`).toBeGreaterThan(
        -22,
      );
      const silent = samples.subarray((from + 100) * 16, Math.min(1000, from + 400) * 16);
      expect(
        silent.every((sample) => sample === 0),
        `${from} ms`,
      ).toBe(true);
    }
    const { samples: ring } = await heardOf({ kind: "ring", ms: 6500 });
    expect(levelDb(ring.subarray(1600, 30_000))).toBeCloseTo(-20, 0);
    expect(ring.subarray(32_000, 96_000).every((sample) => sample === 0)).toBe(true);
    expect(levelDb(ring.subarray(97_000, 102_000))).toBeGreaterThan(-22);
  });

  it.each(["pcm_48000", "ulaw_8000"])("noise has its level, less in each octave, in %s", async (format) => {
    const rate = Number(format.split("_")[1]);
    const { samples } = await heardOf({ kind: "noise", dbfs: -30, ms: 3000 }, format);
    expect(Math.abs(levelDb(samples) + 30)).toBeLessThan(1);
    const octaves = [250, 500, 1000, 2000].map(
      (hz) => bandPowerDb(samples, rate, [hz, 2 * hz]) - 10 * Math.log10(hz),
    );
    for (const [at, octave] of octaves.slice(1).entries())
      expect(octave).toBeLessThan((octaves[at] ?? 0) - 1);
  });

  it("until_speech ends when what is queued behind it has come, and not before", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({
      type: "play",
      sound: { kind: "ring", ms: 60_000, until_speech: true },
      utterance_id: "ring",
    });
    await client.until(() => client.frames.length > 40);
    expect(client.eventsOf("utterance.done")).toHaveLength(0);
    const heldMs = client.frames.length * 20;
    client.send(SPEAK);
    const ring = await client.next("utterance.done");
    const text = await client.next("utterance.done", 2);
    expect(ring).toMatchObject({ utterance_id: "ring", outcome: "done" });
    expect(ring.end_ms).toBeLessThan(30_000);
    expect(ring.end_ms).toBeGreaterThan(heldMs - 1);
    expect(text).toMatchObject({
      utterance_id: "text",
      outcome: "done",
      start_ms: ring.end_ms + ring.pad_ms,
    });
    const end = decodeUlaw(client.audio.subarray(0, ring.end_ms * 8)).subarray(-4);
    expect(Math.max(...end.map(Math.abs))).toBeLessThan(400);
  });

  it("is cut by interrupt with a receipt of ms", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "play", sound: { kind: "noise", ms: 600_000 }, utterance_id: "noise" });
    await client.until(() => client.frames.length > 40);
    client.send({ type: "interrupt" });
    const cut = await client.next("interrupted");
    expect(cut).toMatchObject({ utterance_id: "noise", heard: { text: "", end: 0 }, resumable: false });
    expect(cut.heard.ms).toBeGreaterThan(200);
  });

  it.each([
    ["no kind", { ms: 100 }, "sound.kind"],
    ["a kind that is none", { kind: "gong", ms: 100 }, "sound.kind"],
    ["no length", { kind: "noise" }, "sound.ms"],
    ["more than ten minutes", { kind: "noise", ms: 600_001 }, "sound.ms"],
    ["a tone without a frequency", { kind: "tone", ms: 100 }, "sound.hertz"],
    ["half a cadence", { kind: "tone", hertz: 400, on_ms: 100, ms: 100 }, "sound.off_ms"],
    ["more than full scale", { kind: "noise", dbfs: 1, ms: 100 }, "sound.dbfs"],
  ])("refuses %s, with the field and what is expected", async (_, sound, field) => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "play", sound });
    const message = expect.stringMatching(
      field === "sound.kind" ? /: expected one of tone, ring, noise$/ : /expected/,
    );
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field, message });
    client.send({ type: "play", sound: { kind: "noise", ms: 100 }, audio: "AAAA", format: "pcm_8000" });
    expect(await client.next("error", 2)).toMatchObject({ code: "invalid_field", field: "audio" });
  });
});
