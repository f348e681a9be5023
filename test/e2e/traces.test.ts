/** What a collector learns of utterances and requests: whole gateways, a strict collector, and an upstream that also fails. */
import { once } from "node:events";
import { afterEach, beforeEach, expect, it } from "vitest";
import WebSocket from "ws";
import { tracingSettings } from "../../src/tracing/tracing-settings.ts";
import { VERSION } from "../../src/version.ts";
import { type FakeUpstream, refusal, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { type CollectedSpan, Collector } from "../kit/collector.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;
const UNSAMPLED = `00-${TRACE}-${PARENT}-00`;
/** No code: it went well. */
const OK = expect.not.objectContaining({ code: expect.anything() });
const TEXT = "Seven silver swans swam silently seaward.";

let collector: Collector;
let upstream: FakeUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  collector = await Collector.start();
  upstream = await startFakeUpstream();
  const env = { OTEL_BSP_SCHEDULE_DELAY: "10", OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test" };
  gateway = await gatewayAt(upstream.url, {}, { tracing: tracingSettings(collector.url, env) });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
  await collector[Symbol.asyncDispose]();
  expect(collector.faults).toEqual([]);
  // Nothing personal: neither texts nor keys.
  for (const { body } of collector.requests) expect(body).not.toMatch(/swan|test-key/);
});

const eventNames = ({ events }: CollectedSpan): string[] => events.map(({ name }) => name);
const inTrace = { traceId: TRACE, parentSpanId: PARENT };

async function spans(name: string, count = 1): Promise<CollectedSpan[]> {
  await until(`${count} of ${name}`, () => collector.named(name).length >= count);
  return collector.named(name);
}

it("an utterance is a span in its client's trace, and its request to the upstream one in it", async () => {
  await using client = await TestClient.connect(gateway, "/live/s?pace=burst&format=ulaw_8000&events=words");
  client.send({ type: "speak", text: TEXT, utterance_id: "u1", traceparent: TRACEPARENT });
  await client.next("utterance.done");
  const [utterance] = await spans("tts utterance");
  const [request] = await spans("tts request");
  expect(utterance).toMatchObject({
    ...inTrace,
    kind: 2,
    status: OK,
    attributes: {
      "gen_ai.operation.name": "tts",
      "gen_ai.output.type": "speech",
      "vw.session": "s",
      "vw.utterance_id": "u1",
      "vw.outcome": "done",
      "vw.voice_id": "test-voice",
      "vw.characters_spoken": TEXT.length,
      "vw.timing": "exact",
    },
    resource: {
      "service.name": "voicewire",
      "service.version": VERSION,
      "deployment.environment.name": "test",
      "service.instance.id": expect.stringMatching(/./),
    },
  });
  expect(utterance === undefined ? [] : eventNames(utterance)).toEqual([
    "first_byte",
    "first_sound",
    "first_frame",
  ]);
  const [hello] = client.eventsOf("hello");
  expect(request).toMatchObject({
    traceId: TRACE,
    parentSpanId: utterance?.spanId,
    kind: 3,
    attributes: {
      "vw.epoch": hello?.epoch,
      "vw.try": 1,
      "vw.characters": TEXT.length,
      "gen_ai.provider.name": "elevenlabs",
    },
    events: [{ name: "first_byte" }],
  });
  // The request was made in the utterance.
  const nanosOf = (time: string | undefined) => BigInt(time ?? 0);
  expect(nanosOf(request?.startTimeUnixNano)).toBeGreaterThanOrEqual(nanosOf(utterance?.startTimeUnixNano));
  expect(nanosOf(request?.endTimeUnixNano)).toBeLessThanOrEqual(nanosOf(utterance?.endTimeUnixNano));
});

it("each try is a span, with the code of what went wrong", async () => {
  upstream.use((request, index) => (index === 0 ? refusal(500, "oops") : speaking()(request, index)));
  await using client = await TestClient.connect(gateway, "/live/s?pace=burst");
  client.send({ type: "speak", text: TEXT });
  await client.next("utterance.done");
  const [first, second] = await spans("tts request", 2);
  expect(first).toMatchObject({
    status: { code: 2, message: "upstream_failed" },
    attributes: { "vw.try": 1, "error.type": "upstream_failed" },
  });
  expect(second).toMatchObject({ status: OK, attributes: { "vw.try": 2 } });
  expect((await spans("tts utterance"))[0]).toMatchObject({ status: OK });
});

it("an utterance that fails says so", async () => {
  upstream.use(() => refusal(401, "invalid_api_key"));
  await using client = await TestClient.connect(gateway, "/live/s?pace=burst");
  client.send({ type: "speak", text: TEXT });
  const { error } = await client.next("utterance.done");
  expect((await spans("tts utterance"))[0]).toMatchObject({
    status: { code: 2, message: error?.code },
    attributes: { "vw.outcome": "failed" },
  });
});

it("one that is interrupted and goes on is two spans of one trace", async () => {
  await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&events=words");
  client.send({ type: "speak", text: TEXT.repeat(4), traceparent: TRACEPARENT });
  await client.until(() => client.frames.length > 30);
  client.send({ type: "interrupt" });
  await client.next("interrupted");
  client.send({ type: "resume" });
  await client.next("utterance.resumed");
  client.send({ type: "interrupt" });
  const [first, second] = await spans("tts utterance", 2);
  expect(first).toMatchObject({ ...inTrace, attributes: { "vw.outcome": "interrupted" } });
  expect(first === undefined ? [] : eventNames(first)).toContain("interrupted");
  expect(first?.attributes).not.toHaveProperty("vw.resumed");
  expect(second).toMatchObject({
    ...inTrace,
    attributes: { "vw.resumed": true, "vw.outcome": "interrupted" },
  });
});

it("a session that ends marks unsaid utterances as abandoned", async () => {
  {
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "speak", text: TEXT.repeat(4) });
    await client.next("utterance.started");
  }
  await gateway.close();
  expect((await spans("tts utterance"))[0]).toMatchObject({ attributes: { "vw.outcome": "abandoned" } });
  expect((await spans("tts request"))[0]?.attributes["vw.try"]).toBe(1);
});

it("a trace that its client does not keep is not kept here", async () => {
  await using client = await TestClient.connect(gateway, "/live/s?pace=burst");
  client.send({ type: "speak", text: TEXT, utterance_id: "a", traceparent: UNSAMPLED });
  client.send({ type: "speak", text: TEXT, utterance_id: "b" });
  await client.next("utterance.done", 2);
  const kept = await spans("tts utterance");
  expect(kept.map(({ attributes }) => attributes["vw.utterance_id"])).toEqual(["b"]);
});

it("a traceparent that can't be read is refused in a message, and passed over in a header", async () => {
  await using client = await TestClient.connect(gateway, "/live/s?pace=burst");
  client.send({ type: "speak", text: TEXT, traceparent: "00-abc" });
  expect(await client.next("error")).toMatchObject({ code: "invalid_field", field: "traceparent" });
  const answer = await post("/live/s/speak", { text: TEXT }, { traceparent: "00-abc" });
  expect(answer.status).toBe(202);
  const [utterance] = await spans("tts utterance");
  expect(utterance?.traceId).not.toBe(TRACE);
});

const post = (path: string, body: object, headers: Record<string, string> = { traceparent: TRACEPARENT }) =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

it("POST /live/{session}/speak stands in the trace of its header", async () => {
  await using client = await TestClient.connect(gateway, "/live/s?pace=burst");
  expect((await post("/live/s/speak", { text: TEXT })).status).toBe(202);
  await client.next("utterance.done");
  expect((await spans("tts utterance"))[0]).toMatchObject(inTrace);
});

it("POST /v1/audio/speech is a span, and what it asks of the upstream one in it", async () => {
  const answer = await post("/v1/audio/speech", {
    model: "tts-1",
    input: TEXT,
    voice: "tone-a",
    response_format: "pcm",
  });
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  const [http] = await spans("POST /v1/audio");
  expect(http).toMatchObject({ ...inTrace, kind: 2, status: OK });
  expect((await spans("tts request"))[0]).toMatchObject({ traceId: TRACE, parentSpanId: http?.spanId });
  expect((await post("/v1/audio/speech", { model: "tts-1", input: "", voice: "v" })).status).toBe(400);
  const [, refused] = await spans("POST /v1/audio", 2);
  expect(refused?.status).toMatchObject({ code: 2 });
});

it("a request that is passed on is a span; the upstream does not learn of the trace", async () => {
  const answer = await post(
    "/v1/text-to-speech/test-voice/stream?output_format=pcm_16000",
    { text: TEXT },
    {
      traceparent: TRACEPARENT,
      tracestate: "a=b",
      baggage: "user=x",
    },
  );
  await answer.arrayBuffer();
  const [http] = await spans("POST /v1/text-to-speech");
  expect(http).toMatchObject({ ...inTrace, attributes: { "http.response.status_code": 200 }, status: OK });
  const headers = upstream.requests.at(-1)?.headers ?? {};
  for (const name of ["traceparent", "tracestate", "baggage"]) expect(headers).not.toHaveProperty(name);
});

it("requests of a vendor socket stand in the trace of its handshake", async () => {
  const url = `${gateway.wsUrl}/v1/text-to-speech/test-voice/stream-input?output_format=pcm_16000`;
  const socket = new WebSocket(url, { headers: { traceparent: TRACEPARENT } });
  await once(socket, "open");
  for (const text of [" ", `${TEXT} `, ""]) socket.send(JSON.stringify({ text }));
  await once(socket, "close");
  expect((await spans("tts request"))[0]).toMatchObject(inTrace);
});

it("a collector that is down is in nobody's way, and its losses are counted", async () => {
  await collector[Symbol.asyncDispose]();
  await using client = await TestClient.connect(gateway, "/live/s?pace=burst");
  for (let n = 0; n < 5; n += 1) client.send({ type: "speak", text: TEXT });
  await client.next("utterance.done", 5);
  expect(await gateway.metrics()).toMatch(/voicewire_spans_waiting [1-9]/);
  await gateway.close();
  expect(await gateway.metrics()).toMatch(/voicewire_spans_total\{outcome="dropped"\} 10/);
  collector = await Collector.start();
});
