/** Sounds in the queue, as clients send and hear them. */
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { encodeUlaw } from "../../src/audio/codecs/g711.ts";
import { bytesOf } from "../../src/audio/codecs/pcm.ts";
import { wavHeader } from "../../src/audio/containers/wav.ts";
import { connect } from "../../src/client/index.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { syntheticSpeech } from "../kit/synthetic-speech.ts";

const SPEAK = { type: "speak", text: "Hello there.", voice_id: "v" };
const EVERYTHING = "events=characters,words,segments,cues,visemes,marks";

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

function ulaw(seconds: number): Uint8Array {
  return encodeUlaw(syntheticSpeech(8000, seconds, 0.5));
}

function wav(sampleRate: number, samples: Int16Array): Uint8Array {
  const data = bytesOf(samples);
  return Buffer.concat([wavHeader({ sampleRate, dataBytes: data.length }), data]);
}

async function soundsBytes(gateway: { metrics(): Promise<string> }): Promise<number> {
  return Number(/^voicewire_sounds_bytes (\d+)$/mu.exec(await gateway.metrics())?.[1]);
}

describe("play", () => {
  it("is heard bit-exact in its own format, as an utterance without text", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(
      gateway,
      `/live/s?format=ulaw_8000&pace=burst&${EVERYTHING}`,
    );
    const sound = ulaw(1);
    client.send({ type: "play", audio: base64(sound), format: "ulaw_8000", utterance_id: "bell" });
    const done = await client.next("utterance.done");
    expect(client.audio.equals(Buffer.from(sound))).toBe(true);
    expect(client.eventsOf("utterance.queued")).toMatchObject([{ utterance_id: "bell", ahead: 0 }]);
    expect(client.eventsOf("utterance.started")).toMatchObject([
      { utterance_id: "bell", voice_ids: [], source_format: "ulaw_8000", start_ms: 0 },
    ]);
    expect(done).toMatchObject({
      utterance_id: "bell",
      outcome: "done",
      end_ms: 1000,
      characters_spoken: 0,
      characters_billed: null,
      timing: "none",
    });
    expect(client.eventsOf("words").length + client.eventsOf("characters").length).toBe(0);
    expect(upstream.requests).toHaveLength(0);
    expect(await soundsBytes(gateway)).toBe(0);
  });

  it("takes its turn between texts, and a WAV file of another rate becomes what each listener has", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_24000&pace=burst");
    await using phone = await TestClient.connect(
      gateway,
      "/live/s?format=ulaw_8000&pace=burst&role=listener",
    );
    client.send({ ...SPEAK, utterance_id: "a" });
    client.send({
      type: "play",
      audio: base64(wav(16_000, syntheticSpeech(16_000, 0.5, 0.5))),
      utterance_id: "bell",
    });
    client.send({ ...SPEAK, utterance_id: "b" });
    client.send({ type: "mark", name: "end" });
    const mark = await client.next("mark");
    await phone.next("utterance.done", 3);
    const dones = client.eventsOf("utterance.done");
    expect(dones.map(({ utterance_id }) => utterance_id)).toEqual(["a", "bell", "b"]);
    const [a, bell, b] = dones;
    expect(bell?.start_ms).toBe((a?.end_ms ?? 0) + (a?.pad_ms ?? 0));
    expect((bell?.end_ms ?? 0) - (bell?.start_ms ?? 0)).toBe(500);
    expect(mark.at_ms).toBe(b?.end_ms);
    expect(phone.frames.length).toBe(client.frames.length);
  });

  it("is cut by interrupt with a receipt of ms and no text, and can't be resumed", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, `/live/s?format=ulaw_8000&${EVERYTHING}`);
    client.send({ type: "play", audio: base64(ulaw(5)), format: "ulaw_8000", utterance_id: "bell" });
    client.send({ ...SPEAK, utterance_id: "next" });
    await client.until(() => client.frames.length > 40);
    client.send({ type: "interrupt", utterance_id: "bell" });
    const cut = await client.next("interrupted");
    expect(cut).toMatchObject({
      utterance_id: "bell",
      heard: { text: "", end: 0 },
      unheard_text: "",
      resumable: false,
    });
    expect(cut.heard.ms).toBeGreaterThan(200);
    expect(cut.heard.ms).toBeLessThan(5000);
    expect(await soundsBytes(gateway)).toBe(0);
    client.send({ type: "resume", utterance_id: "bell" });
    expect(await client.next("error")).toMatchObject({ code: "resume_expired" });
    await client.until(() => client.eventsOf("utterance.done").length === 2);
    expect(client.eventsOf("utterance.done")[1]).toMatchObject({ utterance_id: "next", outcome: "done" });
  });

  it("that was ready behind an interrupted text is played whole", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ ...SPEAK, utterance_id: "text" });
    const sound = ulaw(0.4);
    client.send({ type: "play", audio: base64(sound), format: "ulaw_8000", utterance_id: "bell" });
    await client.until(() => client.frames.length > 20);
    client.send({ type: "interrupt", utterance_id: "text" });
    await client.next("utterance.started", 2);
    const { start_ms: startMs } = client.eventsOf("utterance.started")[1] ?? { start_ms: 0 };
    await client.next("utterance.done", 2);
    const { next_ms: nextMs } = await client.next("interrupted");
    expect(startMs).toBe(nextMs);
    expect(client.audio.includes(Buffer.from(sound))).toBe(true);
  });

  it.each([
    ["no base64", "@@@@", "wav"],
    ["no WAV file", base64(ulaw(0.1)), "wav"],
    ["a rate that nothing is made of", base64(wav(11_025, new Int16Array(500))), "wav"],
    ["a file without samples", base64(wav(8000, new Int16Array(0))), "wav"],
    ["half a sample", base64(new Uint8Array(5)), "pcm_8000"],
  ])("refuses %s, with the field", async (_, audio, format) => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "play", audio, format });
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field: "audio" });
    expect(await soundsBytes(gateway)).toBe(0);
  });

  it("is refused to who only listens", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using _speaker = await TestClient.connect(gateway, "/live/s?format=none&role=speaker");
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&role=listener");
    client.send({ type: "play", audio: base64(ulaw(0.1)), format: "ulaw_8000" });
    expect(await client.next("error")).toMatchObject({ code: "not_a_speaker" });
  });

  it("is refused where the sounds of all sessions fill their memory, until some are over", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { soundsMb: 1 });
    await using client = await TestClient.connect(gateway, "/live/s?format=none&role=speaker");
    const play = { type: "play", audio: base64(ulaw(20)), format: "ulaw_8000" };
    for (let count = 0; count < 7; count += 1) client.send(play);
    expect(await client.next("error")).toMatchObject({ code: "sounds_full", retryable: true });
    expect(client.eventsOf("utterance.queued")).toHaveLength(6);
    expect(await soundsBytes(gateway)).toBe(6 * 160_000);
    client.send({ type: "cancel" });
    await client.next("utterance.done", 6);
    expect(await soundsBytes(gateway)).toBe(0);
    client.send(play);
    await client.next("utterance.queued", 7);
  });

  it("client.play() takes bytes, and resolves when the sound is queued", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const client = await connect({
      baseUrl: gateway.url,
      session: "s",
      settings: { format: "ulaw_8000", pace: "burst" },
      WebSocket,
    });
    const frames: Uint8Array[] = [];
    client.onAudio((frame) => frames.push(frame));
    const over = new Promise((resolve) => client.on("utterance.done", resolve));
    const sound = ulaw(2);
    const queued = await client.play({ audio: sound, format: "ulaw_8000" });
    expect(queued.ahead).toBe(0);
    await over;
    expect(Buffer.concat(frames).equals(Buffer.from(sound))).toBe(true);
    await client.close();
  });
});
