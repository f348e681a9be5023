/** Figures that answer an operator's questions: what was heard, what it cost, how sockets close, how fast clients answer. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { VERSION } from "../../src/version.ts";
import { startNodes } from "../helpers/cluster-nodes.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { samplesOf } from "../helpers/samples.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const TEXT = "One two three four five six seven eight nine ten eleven twelve.";
let upstream: FakeUpstream;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
});
afterAll(async () => {
  await upstream.close();
});

/** Asks until it holds: a client sees the end of its socket before the gateway does, or behind it. */
async function whenTrue(isTrue: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error("Never came");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

it("the program and Node are known by their versions", async () => {
  await using gateway = await gatewayAt(upstream.url);
  const name = `voicewire_build_info{version="${VERSION}",node="${process.version}"}`;
  expect((await samplesOf(gateway)).get(name)).toBe(1);
});

it("audio sent is counted by format, in bytes and seconds; audio made and heard once a session", async () => {
  await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
  const formats = ["ulaw_8000", "pcm_16000", "pcm_16000", "opus_48000"];
  const clients: TestClient[] = [];
  for (const format of formats) {
    const client = await TestClient.connect(gateway, `/live/s?format=${format}&pace=burst`);
    await client.next("hello");
    clients.push(client);
  }
  clients[0]?.send({ type: "speak", text: TEXT });
  const bytes = new Map<string, number>();
  let endMs = 0;
  for (const [index, client] of clients.entries()) {
    endMs = (await client.next("utterance.done")).end_ms;
    const format = formats[index] ?? "";
    bytes.set(format, (bytes.get(format) ?? 0) + client.audio.length);
  }
  const samples = await samplesOf(gateway);
  for (const [format, sent] of bytes) {
    expect(samples.get(`voicewire_audio_sent_bytes_total{format="${format}"}`)).toBe(sent);
  }
  const seconds = (format: string) =>
    samples.get(`voicewire_audio_sent_seconds_total{format="${format}"}`) ?? 0;
  expect(seconds("ulaw_8000")).toBeCloseTo((bytes.get("ulaw_8000") ?? 0) / 8000, 6);
  expect(seconds("pcm_16000")).toBeCloseTo(2 * seconds("ulaw_8000"), 6);
  expect(samples.get("voicewire_audio_heard_seconds_total")).toBeCloseTo(endMs / 1000, 3);
  const made = samples.get("voicewire_audio_made_seconds_total") ?? 0;
  expect(Math.abs(made - endMs / 1000)).toBeLessThan(0.1);
  for (const client of clients) await client[Symbol.asyncDispose]();
});

it("characters count once, though an utterance is interrupted and resumed; its receipt counts by its source", async () => {
  await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
  await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&lead_ms=100");
  await client.next("hello");
  client.send({ type: "speak", text: TEXT });
  await client.until(() => client.frames.length > 20);
  expect((await samplesOf(gateway)).get("voicewire_utterances_in_flight")).toBe(1);
  client.send({ type: "interrupt" });
  const { heard } = await client.next("interrupted");
  const cut = await samplesOf(gateway);
  expect(cut.get('voicewire_characters_total{outcome="heard"}')).toBe(heard.end);
  expect(cut.get('voicewire_receipt_bound_seconds_count{source="estimate"}')).toBe(1);
  expect(cut.get('voicewire_receipt_bound_seconds_count{source="ack"}')).toBe(0);
  expect(cut.get("voicewire_utterances_in_flight")).toBe(0);
  client.send({ type: "resume" });
  const done = await client.next("utterance.done", 2);
  const samples = await samplesOf(gateway);
  for (const outcome of ["requested", "heard"]) {
    expect(samples.get(`voicewire_characters_total{outcome="${outcome}"}`)).toBe(TEXT.length);
  }
  expect(samples.get('voicewire_characters_total{outcome="billed"}')).toBe(done.characters_billed);
  expect(samples.get('voicewire_characters_total{outcome="cached"}')).toBe(0);
  // What was heard of the word that was cut is heard again.
  const seconds = samples.get("voicewire_audio_heard_seconds_total") ?? 0;
  expect(Math.abs(seconds - (TEXT.length * 20) / 1000)).toBeLessThan(0.3);
});

it("characters of tokens count as they come, and those of the phrase cache where it answers", async () => {
  await using gateway = await gatewayAt(upstream.url, { phraseCacheMb: 8 });
  for (const session of ["first", "second"]) {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=ulaw_8000&pace=burst`);
    client.send({ type: "text", text: "Hello " });
    client.send({ type: "text", text: "there." });
    client.send({ type: "end" });
    await client.next("utterance.done");
  }
  const samples = await samplesOf(gateway);
  expect(samples.get('voicewire_characters_total{outcome="requested"}')).toBe(24);
  expect(samples.get('voicewire_characters_total{outcome="heard"}')).toBe(24);
  expect(samples.get('voicewire_characters_total{outcome="cached"}')).toBe(12);
});

it("a session that is taken over counts its characters once in the whole cluster", async () => {
  await using nodes = await startNodes(upstream.url, { drainMs: 10_000 });
  const { one, two } = nodes;
  // Silent for so long, a node may be asked whether it is there.
  await new Promise((resolve) => setTimeout(resolve, 3200));
  await using speaker = await TestClient.connect(one.gateway, "/live/moved?role=speaker&format=none");
  await speaker.next("hello");
  const path = "/live/moved?role=listener&format=ulaw_8000&lead_ms=100";
  await using before = await TestClient.connect(two.gateway, path);
  const { resume_token } = await before.next("hello");
  speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
  await before.until(() => before.frames.length > 20);
  one.bus.cut();
  await before.untilClosed();
  let after: TestClient | undefined;
  await whenTrue(async () => {
    after = await TestClient.connect(two.gateway, `${path}&resume=${resume_token}`);
    const client = after;
    await client.until(() => client.events.length > 0 || client.closed !== null);
    return client.eventsOf("hello").length > 0;
  });
  await after?.next("utterance.done");
  const { start = Number.NaN } = after?.eventsOf("utterance.resumed")[0] ?? {};
  await one.gateway.close();
  const taken = await samplesOf(two.gateway);
  const former = one.gateway.counters.characters;
  expect(former.requested).toBe(TEXT.length);
  expect(taken.get('voicewire_characters_total{outcome="requested"}')).toBe(0);
  // What was heard there before is counted there; here the rest is.
  expect(start).toBeGreaterThan(0);
  expect(former.heard).toBeGreaterThan(0);
  expect(taken.get('voicewire_characters_total{outcome="heard"}')).toBe(TEXT.length - start);
  await after?.[Symbol.asyncDispose]();
});

it("sockets count by their close code, those of refused ones too; codes that nobody knows are `other`", async () => {
  await using gateway = await gatewayAt(upstream.url);
  for (const code of [1000, 4321]) {
    const client = await TestClient.connect(gateway, "/live/s?format=none");
    await client.next("hello");
    client.socket.close(code);
    await client.untilClosed();
  }
  const refused = await TestClient.connect(gateway, "/live/s?format=mp3_9");
  const { code } = await refused.untilClosed();
  const closes = (label: string, samples: Map<string, number>) =>
    samples.get(`voicewire_socket_closes_total{code="${label}"}`);
  await whenTrue(async () => closes(String(code), await samplesOf(gateway)) === 1);
  const samples = await samplesOf(gateway);
  expect([closes("1000", samples), closes("other", samples)]).toEqual([1, 1]);
});

it("clients of the native socket are asked how fast they answer", async () => {
  await using gateway = await gatewayAt(upstream.url);
  await using client = await TestClient.connect(gateway, "/live/s?format=none");
  await client.next("hello");
  await whenTrue(
    async () => (await samplesOf(gateway)).get("voicewire_client_round_trip_seconds_count") === 1,
  );
});
