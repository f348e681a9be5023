/** Sounds under speech, as listeners get them: decoded, and told apart from speech by their frequency. */
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { decodeUlaw, encodeUlaw } from "../../src/audio/codecs/g711.ts";
import { createOpusDecoder } from "../../src/audio/codecs/opus-decoder.ts";
import { bytesOf } from "../../src/audio/codecs/pcm.ts";
import { connect } from "../../src/client/index.ts";
import { ndjsonSpeech, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { FakeCarrier } from "../kit/carriers/fake-carrier.ts";
import { bandPowerDb } from "../kit/spectrum.ts";

const TEXT = "Hello there, how are you today?";
const SPEAK = { type: "speak", text: TEXT, voice_id: "v", utterance_id: "text" };
/** Speech of the fake upstream has hardly anything there. */
const HERTZ = 3100;
const BAND = [3000, 3200] as const;
const TONE = { kind: "tone", hertz: HERTZ, dbfs: -20, ms: 60_000 };
const UNDER = { type: "play", under: true, sound: TONE, loop: true, utterance_id: "typing" };

function tone(rate: number, seconds: number, hertz = HERTZ): Int16Array {
  return Int16Array.from({ length: rate * seconds }, (_, at) =>
    Math.round(3276 * Math.sin((2 * Math.PI * hertz * at) / rate)),
  );
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

function decoded({ audio, frames }: TestClient, format: string): Int16Array {
  if (format === "ulaw_8000") return decodeUlaw(audio);
  if (format !== "opus_48000") {
    return Int16Array.from({ length: audio.length / 2 }, (_, index) => audio.readInt16LE(2 * index));
  }
  const decoder = createOpusDecoder();
  const samples = frames.flatMap((packet) => [...decoder.decode(packet)]);
  decoder.close();
  return Int16Array.from(samples);
}

/** How strong the sound is between two places on the timeline, dB of a sine of full scale. */
function underDb(samples: Int16Array, rate: number, [fromMs, toMs]: readonly [number, number]): number {
  const part = samples.subarray(Math.round((fromMs * rate) / 1000), Math.round((toMs * rate) / 1000));
  return bandPowerDb(part, rate, BAND) + 3.01;
}

async function soundsBytes(gateway: { metrics(): Promise<string> }): Promise<number> {
  return Number(/^voicewire_sounds_bytes (\d+)$/mu.exec(await gateway.metrics())?.[1]);
}

describe.concurrent("a sound under speech", () => {
  it.each(["pcm_16000", "ulaw_8000", "opus_48000"])(
    "is heard between utterances, softer under them, and ends by stop, in %s",
    async (format) => {
      await using upstream = await startFakeUpstream();
      await using gateway = await gatewayAt(upstream.url);
      await using client = await TestClient.connect(gateway, `/live/s?format=${format}&events=words`);
      client.send(UNDER);
      await client.until(() => client.frames.length > 50);
      client.send(SPEAK);
      const done = await client.next("utterance.done");
      const heldTo = client.frames.length + 75;
      await client.until(() => client.frames.length > heldTo);
      client.send({ type: "stop", utterance_id: "typing" });
      const ended = await client.next("sound.ended");
      client.send({ type: "ping" });
      await client.next("pong");
      const [started] = client.eventsOf("sound.started");
      expect(started).toMatchObject({ utterance_id: "typing", start_ms: 0 });
      expect(ended).toMatchObject({ utterance_id: "typing", outcome: "stopped", start_ms: 0 });
      expect(done.start_ms).toBeGreaterThan(900);
      await client.until(() => client.frames.length * 20 >= ended.end_ms);

      const rate = Number(format.split("_")[1]);
      const samples = decoded(client, format);
      const { start_ms: from, end_ms: to } = done;
      expect(underDb(samples, rate, [100, from - 100])).toBeCloseTo(-20, 0);
      expect(Math.abs(underDb(samples, rate, [from + 150, to - 50]) + 32)).toBeLessThan(1.5);
      expect(underDb(samples, rate, [to + 500, ended.end_ms - 150])).toBeCloseTo(-20, 0);
      // Nowhere a hole, also where the utterance begins and ends.
      const hole = Math.round(rate / 100);
      for (let at = hole; at < (ended.end_ms - 40) * (rate / 1000) - hole; at += hole) {
        const peak = samples
          .subarray(at, at + hole)
          .reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
        expect(peak, `at ${(at / rate) * 1000} ms`).toBeGreaterThan(500);
      }
    },
    60_000,
  );

  it("leaves times and receipts of speech as they are", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const told = async (isUnder: boolean) => {
      await using client = await TestClient.connect(
        gateway,
        `/live/${crypto.randomUUID()}?format=pcm_16000&pace=burst&events=words,characters,visemes`,
      );
      if (isUnder) client.send(UNDER);
      client.send(SPEAK);
      const { start_ms, end_ms, pad_ms, characters_spoken, timing } = await client.next("utterance.done");
      const timed = [...client.eventsOf("words"), ...client.eventsOf("viseme")].map(
        ({ seq: _, ...event }) => event,
      );
      const isHeard = underDb(decoded(client, "pcm_16000"), 16_000, [100, end_ms - 100]) > -40;
      return { timed, done: { start_ms, end_ms, pad_ms, characters_spoken, timing }, isHeard };
    };
    const [plain, mixed] = [await told(false), await told(true)];
    expect(plain.isHeard).toBe(false);
    expect(mixed.isHeard).toBe(true);
    expect(mixed.timed).toEqual(plain.timed);
    expect(mixed.done).toEqual(plain.done);
  });

  it("is mixed into speech that is passed through only while it plays", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&events=none");
    const text =
      "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen";
    client.send({ ...SPEAK, text });
    await client.until(() => client.frames.length > 30);
    client.send({ ...UNDER, loop: false, sound: { ...TONE, ms: 500 } });
    const ended = await client.next("sound.ended");
    const done = await client.next("utterance.done");
    expect(upstream.requests.map(({ query }) => query.get("output_format"))).toEqual(["ulaw_8000"]);
    expect(ended.outcome).toBe("done");
    expect(ended.end_ms - ended.start_ms).toBe(500);
    const speech = Buffer.from(ndjsonSpeech({ text, format: "ulaw_8000" }).audio);
    const { audio } = client;
    const [from, to] = [ended.start_ms * 8, ended.end_ms * 8];
    expect(to).toBeLessThan(done.end_ms * 8 - 800);
    expect(audio.subarray(0, from).equals(speech.subarray(0, from))).toBe(true);
    expect(audio.subarray(from, to).equals(speech.subarray(from, to))).toBe(false);
    const end = audio.length - (audio.length % 160) - 160;
    expect(audio.subarray(to + 160, end).equals(speech.subarray(to + 160, end))).toBe(true);
  });

  it("is not in what resume goes on with, and ends with an interruption of everything", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_16000&events=words");
    client.send(UNDER);
    client.send({ ...SPEAK, text: `${TEXT} ${TEXT} ${TEXT}` });
    await client.next("utterance.started");
    const before = client.frames.length;
    await client.until(() => client.frames.length > before + 60);
    client.send({ type: "interrupt" });
    const cut = await client.next("interrupted");
    expect(cut).toMatchObject({ utterance_id: "text", resumable: true });
    expect(cut.heard.text + cut.unheard_text).toBe(`${TEXT} ${TEXT} ${TEXT}`);
    const ended = await client.next("sound.ended");
    expect(ended).toMatchObject({ utterance_id: "typing", outcome: "interrupted" });
    expect(client.eventsOf("interrupted")).toHaveLength(1);
    const frames = client.frames.length;
    client.send({ type: "resume" });
    const resumed = await client.next("utterance.resumed");
    await client.next("utterance.done", 2);
    const rest = Buffer.concat(client.frames.slice(frames));
    const samples = Int16Array.from({ length: rest.length / 2 }, (_, at) => rest.readInt16LE(2 * at));
    expect(resumed.start_ms).toBeGreaterThanOrEqual(ended.end_ms);
    expect(bandPowerDb(samples.subarray(1600), 16_000, BAND)).toBeLessThan(-55);
  });

  it("alone is interrupted by its id or all at once, with a receipt of ms; speech goes on", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send(UNDER);
    client.send({ ...UNDER, utterance_id: "rain" });
    await client.until(() => client.frames.length > 30);
    client.send({ type: "interrupt", utterance_id: "rain" });
    expect(await client.next("interrupted")).toMatchObject({
      utterance_id: "rain",
      heard: { text: "", end: 0, source: "estimate" },
      unheard_text: "",
      resumable: false,
      next_ms: null,
    });
    client.send({ type: "interrupt" });
    const { heard, utterance_id } = await client.next("interrupted", 2);
    expect(utterance_id).toBe("typing");
    expect(heard.ms).toBeGreaterThan(200);
    await client.next("sound.ended", 2);
    client.send({ type: "interrupt" });
    expect(await client.next("error")).toMatchObject({ code: "nothing_to_interrupt" });
    client.send(UNDER);
    expect(await client.next("error", 2)).toMatchObject({ code: "utterance_id_taken" });
    client.send({ ...UNDER, utterance_id: "again" });
    client.send({ ...SPEAK, replace: "all" });
    client.send({ ...SPEAK, replace: "all", utterance_id: "next" });
    await client.next("utterance.done", 2);
    expect(client.eventsOf("sound.ended")).toHaveLength(2);
  });

  it("repeats a file of another rate without a seam, and gives its memory back", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_24000&events=none");
    const audio = base64(bytesOf(tone(16_000, 0.2)));
    client.send({ type: "play", under: true, audio, format: "pcm_16000", loop: true, utterance_id: "loop" });
    await client.until(() => client.frames.length > 75);
    expect(await soundsBytes(gateway)).toBe(6400);
    client.send({ type: "stop", fade_ms: 200 });
    const ended = await client.next("sound.ended");
    await client.until(() => client.frames.length * 20 >= ended.end_ms);
    expect(await soundsBytes(gateway)).toBe(0);
    const samples = decoded(client, "pcm_24000").subarray(24 * 50, 24 * (ended.end_ms - 250));
    // Of a steady tone nothing is anywhere else in the spectrum.
    const db = bandPowerDb(samples, 24_000, BAND);
    expect(db).toBeGreaterThan(-24);
    expect(bandPowerDb(samples, 24_000, [100, 2900])).toBeLessThan(db - 45);
    expect(bandPowerDb(samples, 24_000, [3300, 11_000])).toBeLessThan(db - 45);
  });

  it("loop=speech ends when nothing is queued any more, by its fade", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&events=none");
    client.send({ ...UNDER, loop: "speech", fade_out_ms: 300 });
    await client.until(() => client.frames.length > 20);
    expect(client.eventsOf("sound.ended")).toHaveLength(0);
    client.send({ ...SPEAK, text: "One." });
    client.send({ ...SPEAK, text: "Two.", utterance_id: "two" });
    const ended = await client.next("sound.ended");
    const last = await client.next("utterance.done", 2);
    expect(ended.outcome).toBe("done");
    expect(ended.end_ms).toBeGreaterThanOrEqual(last.end_ms + 300);
    // What replaces all others goes on with it; an interruption of the last one ends it.
    client.send({ ...UNDER, loop: "speech", utterance_id: "more" });
    client.send({ ...SPEAK, text: TEXT, utterance_id: "three" });
    await client.next("utterance.started", 3);
    client.send({ ...SPEAK, text: TEXT, utterance_id: "four", replace: "all" });
    await client.next("utterance.started", 4);
    expect(client.eventsOf("sound.ended")).toHaveLength(1);
    client.send({ type: "interrupt", utterance_id: "four" });
    expect(await client.next("sound.ended", 2)).toMatchObject({ utterance_id: "more", outcome: "done" });
  });

  it("who takes audio as it comes hears it under speech alone", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_16000&pace=burst&events=none");
    client.send({ ...UNDER, loop: "speech" });
    client.send({ type: "ping" });
    await client.next("pong");
    expect(client.frames).toHaveLength(0);
    client.send(SPEAK);
    const done = await client.next("utterance.done");
    expect(await client.next("sound.ended")).toMatchObject({
      outcome: "done",
      start_ms: 0,
      end_ms: done.end_ms + done.pad_ms,
    });
    expect(client.frames.length).toBe(Math.ceil(done.end_ms / 20));
    expect(underDb(decoded(client, "pcm_16000"), 16_000, [150, done.end_ms - 50])).toBeCloseTo(-32, 0);
  });

  it("is what was prepared, if that is a sound", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&events=none");
    const audio = base64(encodeUlaw(tone(8000, 1)));
    client.send({ type: "prepare", prepared_id: "sound", audio, format: "ulaw_8000" });
    client.send({ type: "prepare", prepared_id: "speech", text: "Hello.", voice_id: "v" });
    await client.next("prepared", 2);
    client.send({ type: "play", under: true, prepared_id: "speech" });
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field: "prepared_id" });
    client.send({ type: "play", under: true, prepared_id: "sound", gain_db: 6, utterance_id: "x" });
    expect(await client.next("sound.ended")).toMatchObject({
      utterance_id: "x",
      outcome: "done",
      end_ms: 1000,
    });
    await client.until(() => client.frames.length >= 50);
    expect(underDb(decodeUlaw(client.audio), 8000, [100, 900])).toBeCloseTo(-14, 0);
  });

  it.each([
    ["a gain in the queue", { sound: TONE, gain_db: 3 }, "under"],
    ["a priority", { under: true, sound: TONE, priority: 3 }, "under"],
    ["until_speech", { under: true, sound: { ...TONE, until_speech: true } }, "sound.until_speech"],
    ["too much gain", { under: true, sound: TONE, gain_db: 21 }, "gain_db"],
    ["a long fade", { under: true, sound: TONE, fade_in_ms: 10_001 }, "fade_in_ms"],
    ["a loop that is none", { under: true, sound: TONE, loop: "twice" }, "loop"],
    ["no sound", { under: true }, "audio"],
  ])("is refused with %s, and the field", async (_, fields, field) => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "play", ...fields });
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field });
  });

  it("says what loop may be", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ ...UNDER, loop: "twice" });
    const { message } = await client.next("error");
    expect(message).toBe('Field loop of play is not valid: expected true, false or "speech"');
  });

  it("is one of four at most", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=none&role=speaker");
    const audio = base64(encodeUlaw(tone(8000, 1)));
    for (let count = 0; count < 5; count += 1) {
      client.send({ type: "play", under: true, audio, format: "ulaw_8000" });
    }
    expect(await client.next("error")).toMatchObject({ code: "sounds_full", retryable: true });
    expect(await soundsBytes(gateway)).toBe(4 * 8000);
    client.send({ type: "stop", utterance_id: "nobody" });
    expect(await client.next("error", 2)).toMatchObject({ code: "unknown_utterance", field: "utterance_id" });
    client.send({ type: "stop" });
    await client.next("sound.ended", 4);
    expect(await soundsBytes(gateway)).toBe(0);
  });

  it("is heard by a caller between utterances, with the carrier's marks as far apart as ever", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?role=speaker&events=call");
    const carrier = await FakeCarrier.dial({
      carrier: "twilio",
      url: `${gateway.wsUrl}/carrier/twilio`,
      call: { parameters: { session: "s" } },
    });
    await client.next("call");
    client.send(UNDER);
    await until("the caller hears it", () => carrier.playedSamples > 8000);
    client.send(SPEAK);
    await client.next("utterance.done");
    const spoken = carrier.playedSamples;
    await until("it goes on", () => carrier.playedSamples > spoken + 8000, { deadlineMs: 20_000 });
    const heard = decodeUlaw(carrier.heard());
    expect(underDb(heard, 8000, [200, 900])).toBeCloseTo(-20, 0);
    const marks = carrier.received.filter((message) => String(message).includes(`"mark"`)).length;
    expect(marks).toBeLessThanOrEqual(heard.length / 8000 / 0.1);
    client.send({ type: "stop" });
    expect(await client.next("sound.ended")).toMatchObject({ outcome: "stopped" });
    await carrier.hangUp();
    expect(carrier.violations).toEqual([]);
  });

  it("is noise of its own in sessions with calls, where comfort-noise-dbfs is set", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { comfortNoiseDbfs: -40 });
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_8000&events=call");
    client.send({ type: "ping" });
    await client.next("pong");
    expect(client.frames).toHaveLength(0);
    const carrier = await FakeCarrier.dial({
      carrier: "twilio",
      url: `${gateway.wsUrl}/carrier/twilio`,
      call: { parameters: { session: "s" } },
    });
    await until("the caller hears it", () => carrier.playedSamples > 12_000, { deadlineMs: 20_000 });
    const noise = decodeUlaw(carrier.heard()).subarray(800, 11_200);
    expect(Math.abs(bandPowerDb(noise, 8000, [0, 4000]) + 3.01 + 40)).toBeLessThan(1.5);
    for (const message of [{ type: "interrupt" }, { type: "stop" }]) client.send(message);
    await client.next("error", 2);
    expect(client.eventsOf("error").map(({ code }) => code)).toEqual([
      "nothing_to_interrupt",
      "unknown_utterance",
    ]);
    client.send(SPEAK);
    const done = await client.next("utterance.done");
    await client.until(() => client.frames.length * 20 > done.end_ms + 500);
    await carrier.hangUp();
    expect(carrier.violations).toEqual([]);
    await client.next("call", 2);
    // Nothing comes any more, or this never ends.
    for (let length = -1; length !== client.frames.length; ) {
      length = client.frames.length;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    const samples = decoded(client, "pcm_8000");
    const behind = samples.subarray((done.end_ms + 100) * 8, (done.end_ms + 400) * 8);
    expect(Math.abs(bandPowerDb(behind, 8000, [0, 4000]) + 43.01)).toBeLessThan(3);
    const types = new Set(client.events.map(({ type }) => type));
    expect(types.has("sound.started") || types.has("sound.ended")).toBe(false);
  });

  it("client.play() and client.stop() of the client package", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const client = await connect({
      baseUrl: gateway.url,
      session: "s",
      settings: { format: "ulaw_8000" },
      WebSocket,
    });
    const begun = new Promise((resolve) => client.on("sound.started", resolve));
    const over = new Promise<{ outcome: string }>((resolve) => client.on("sound.ended", resolve));
    const { utterance_id, ahead } = await client.play({
      under: true,
      audio: encodeUlaw(tone(8000, 1)),
      format: "ulaw_8000",
      loop: true,
    });
    expect(ahead).toBe(0);
    await begun;
    client.stop({ utterance_id });
    expect((await over).outcome).toBe("stopped");
    await client.close();
  });
});
