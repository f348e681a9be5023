/** What is made ready before it is played, as clients see it. */
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { encodeUlaw } from "../../src/audio/codecs/g711.ts";
import { connect } from "../../src/client/index.ts";
import { type FakeUpstream, refusal, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { syntheticSpeech } from "../kit/synthetic-speech.ts";

const TEXT = "Hello there, general listener.";
const PREPARE = { type: "prepare", prepared_id: "greeting", text: TEXT, voice_id: "v" };
const QUERY = "format=ulaw_8000&pace=burst&events=characters,words,segments";

function asked(upstream: FakeUpstream): number {
  return upstream.requests.filter(({ method }) => method === "POST").length;
}

async function soundsBytes(gateway: { metrics(): Promise<string> }): Promise<number> {
  return Number(/^voicewire_sounds_bytes (\d+)$/mu.exec(await gateway.metrics())?.[1]);
}

/** Without what is new in each: numbers, ids and the wall clock. */
function heardIn(client: TestClient, utteranceId: string) {
  const words = client.eventsOf("words").filter(({ utterance_id }) => utterance_id === utteranceId);
  const [started] = client
    .eventsOf("utterance.started")
    .filter(({ utterance_id }) => utterance_id === utteranceId);
  const from = started?.start_ms ?? 0;
  return words.flatMap((event) =>
    event.words.map(({ start_ms, end_ms, ...word }) => ({
      ...word,
      start_ms: start_ms - from,
      end_ms: end_ms - from,
      timing: event.timing,
    })),
  );
}

describe("prepare", () => {
  it("a text is asked for once, and played as often as wanted, the same as if it were spoken", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
    await using client = await TestClient.connect(gateway, `/live/s?${QUERY}`);
    client.send(PREPARE);
    const prepared = await client.next("prepared");
    expect(prepared).toMatchObject({
      prepared_id: "greeting",
      characters: TEXT.length,
      ms: TEXT.length * 60,
      expires_in_ms: 600_000,
    });
    expect(client.frames).toHaveLength(0);
    expect(await soundsBytes(gateway)).toBe(TEXT.length * 480);
    // The upstream is not needed any more.
    await upstream.close();
    for (const utterance_id of ["one", "two"]) {
      client.send({ type: "play", prepared_id: "greeting", utterance_id });
    }
    const done = await client.next("utterance.done", 2);
    expect(done).toMatchObject({
      outcome: "done",
      characters_billed: 0,
      characters_spoken: TEXT.length,
      timing: "exact",
    });
    expect(asked(upstream)).toBe(1);
    const half = client.audio.length / 2;
    expect(client.audio.subarray(half).equals(client.audio.subarray(0, half))).toBe(true);
    await using other = await startFakeUpstream();
    await using direct = await gatewayAt(other.url, { trimMs: 0 });
    await using speaker = await TestClient.connect(direct, `/live/s?${QUERY}`);
    speaker.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: "spoken" });
    await speaker.next("utterance.done");
    expect(heardIn(client, "two")).toEqual(heardIn(speaker, "spoken"));
    expect(client.audio.subarray(0, half).equals(speaker.audio)).toBe(true);
    expect(client.eventsOf("utterance.started")[0]).toMatchObject({ voice_ids: ["v"] });
  });

  it("a text that is cut goes on from its own audio, and a receipt has its words", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&lead_ms=100");
    client.send(PREPARE);
    await client.next("prepared");
    client.send({ type: "play", prepared_id: "greeting", utterance_id: "one" });
    await client.until(() => client.frames.length > 40);
    client.send({ type: "interrupt" });
    const cut = await client.next("interrupted");
    expect(cut.heard.text + cut.unheard_text).toBe(TEXT);
    expect(cut.heard.end).toBeGreaterThan(0);
    expect(cut.resumable).toBe(true);
    client.send({ type: "resume" });
    await client.next("utterance.done", 2);
    expect(client.eventsOf("utterance.done")[1]).toMatchObject({
      outcome: "done",
      characters_spoken: TEXT.length,
    });
    expect(asked(upstream)).toBe(1);
  });

  it("what stands behind an interrupted text is still played from memory", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&lead_ms=100");
    client.send(PREPARE);
    await client.next("prepared");
    client.send({ type: "speak", text: "One two.", voice_id: "v", utterance_id: "first" });
    client.send({ type: "play", prepared_id: "greeting", utterance_id: "one" });
    await client.until(() => client.frames.length > 15);
    client.send({ type: "interrupt", utterance_id: "first" });
    await client.next("utterance.done", 2);
    expect(asked(upstream)).toBe(2);
    expect(client.eventsOf("words").flatMap(({ words }) => words).length).toBeGreaterThanOrEqual(4);
  });

  it("a sound is kept under an id, and another one takes its place", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, `/live/s?${QUERY}`);
    const bell = encodeUlaw(syntheticSpeech(8000, 1, 0.5));
    const gong = encodeUlaw(syntheticSpeech(8000, 0.5, 0.5));
    const prepare = (sound: Uint8Array) =>
      client.send({
        type: "prepare",
        prepared_id: "x",
        audio: Buffer.from(sound).toString("base64"),
        format: "ulaw_8000",
      });
    prepare(bell);
    expect(await client.next("prepared")).toMatchObject({ characters: 0, ms: 1000 });
    client.send({ type: "play", prepared_id: "x" });
    prepare(gong);
    client.send({ type: "play", prepared_id: "x" });
    await client.next("utterance.done", 2);
    expect(client.audio.equals(Buffer.concat([bell, gong]))).toBe(true);
    expect(await soundsBytes(gateway)).toBe(gong.length);
  });

  it("says when there is nothing under an id: never, on its way, expired", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { preparedMs: 1000 });
    await using client = await TestClient.connect(gateway, `/live/s?${QUERY}`);
    const play = { type: "play", prepared_id: "greeting" };
    client.send(play);
    client.send(PREPARE);
    client.send(play);
    await client.next("prepared");
    await client.next("error", 2);
    await client.until(() => client.eventsOf("prepared").length === 1);
    while ((await soundsBytes(gateway)) > 0) await new Promise((resolve) => setTimeout(resolve, 50));
    client.send(play);
    await client.next("error", 3);
    for (const error of client.eventsOf("error")) {
      expect(error).toMatchObject({ code: "not_prepared", field: "prepared_id" });
    }
  });

  it("fails with the upstream's reason under its id, and keeps nothing", async () => {
    await using upstream = await startFakeUpstream(() => refusal(401, "invalid_api_key"));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, `/live/s?${QUERY}`);
    client.send(PREPARE);
    expect(await client.next("error")).toMatchObject({
      code: "upstream_unauthorized",
      prepared_id: "greeting",
    });
    expect(await soundsBytes(gateway)).toBe(0);
  });

  it("is bounded: four on their way, and the memory of all sounds", async () => {
    await using upstream = await startFakeUpstream(() => "silence");
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, `/live/s?${QUERY}`);
    for (const prepared_id of ["a", "b", "c", "d", "e"]) client.send({ ...PREPARE, prepared_id });
    expect(await client.next("error")).toMatchObject({ code: "sounds_full", prepared_id: "e" });
    await using talkative = await startFakeUpstream();
    await using small = await gatewayAt(talkative.url, { soundsMb: 1 });
    await using other = await TestClient.connect(small, `/live/s?format=pcm_48000&pace=burst`);
    other.send({ ...PREPARE, text: "This is a rather long text. ".repeat(8) });
    expect(await other.next("error")).toMatchObject({ code: "sounds_full", prepared_id: "greeting" });
    expect(await soundsBytes(small)).toBe(0);
  });

  it.each([
    ["neither text nor audio", { type: "prepare" }, "text"],
    ["an empty text", { type: "prepare", text: " " }, "text"],
    ["both of play", { type: "play", audio: "AAAA", prepared_id: "x" }, "audio"],
  ])("refuses %s", async (_, message, field) => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, `/live/s?${QUERY}`);
    client.send(message);
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field });
  });

  it("client.prepare() resolves when it can be played, while other commands are answered", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const settings = { format: "ulaw_8000", pace: "burst" } as const;
    const client = await connect({ baseUrl: gateway.url, session: "s", settings, WebSocket });
    const preparing = client.prepare({ text: TEXT, voice_id: "v" });
    await expect(client.play({ prepared_id: "none" })).rejects.toMatchObject({ code: "not_prepared" });
    const { prepared_id } = await preparing;
    const over = new Promise<{ utterance_id: string }>((resolve) => client.on("utterance.done", resolve));
    const { utterance_id } = await client.play({ prepared_id });
    expect((await over).utterance_id).toBe(utterance_id);
    await client.close();
  });
});
