/**
 * The embedded service breaks off. Where its times are at a wrong pace, what is kept of its speech ends in the audio itself
 * where the text ends that was emitted for it, and the rest of the text is asked for: all of it is heard once. Where it has sent
 * no times, what came is heard and the utterance fails.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TruthProxy } from "../../bench/kit/truth-proxy.ts";
import type { Word } from "../../src/protocol/events.ts";
import { type RunningService, startService } from "../../src/service/service.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

const TEXT =
  "The quick brown fox jumps over the lazy dog. Then it sleeps, and nobody dares to wake it. When the sun goes down, the farmer walks home.";
const QUERY = "?format=ulaw_8000&events=words";
const BYTES_PER_MS = 8;
/** A stretch of what is heard that is looked for in what the service said; before it, sound rises. */
const NEEDLE_FROM_MS = 40;
const NEEDLE_MS = 100;
/** How far corrected rates are off, with the end of the speech that falls to nothing. */
const MAX_ERROR_MS = 20;

let service: RunningService;
let proxy: TruthProxy;
let gateway: TestGateway;
/** Of the next request alone. */
let fault = "";
/** They speak side by side: each has a session of its own. */
let untimed: TestClient;
const scaled: TestClient[] = [];
const SCALED_SEED = 200;

beforeAll(async () => {
  service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, faults: true });
  proxy = await TruthProxy.start(service.url, () => {
    const once = fault;
    fault = "";
    return once;
  });
  gateway = await gatewayAt(`http://127.0.0.1:${proxy.port}`, { voice: "" });
  untimed = await speakWith("alignment_missing; truncated after_bytes=72000", 100);
  for (const bytes of [60_000, 72_000, 84_000]) {
    const faults = `alignment_scaled factor=1.1; truncated after_bytes=${bytes}`;
    scaled.push(await speakWith(faults, SCALED_SEED + scaled.length));
  }
});

afterAll(async () => {
  for (const client of [untimed, ...scaled]) await client?.[Symbol.asyncDispose]();
  await gateway?.close();
  await proxy?.[Symbol.asyncDispose]();
  await service?.close();
});

/** Begins to say the text, with faults in its first request. */
async function speakWith(faults: string, seed: number): Promise<TestClient> {
  fault = faults;
  const client = await TestClient.connect(gateway, `/live/broken-${seed}${QUERY}`);
  client.send({ type: "speak", text: TEXT, language_code: "en", seed });
  await client.next("utterance.started");
  return client;
}

/** Up to where what is heard is what the service said in a response, ms of that. */
function keptMs(heard: Buffer, said: Buffer): number {
  const from = NEEDLE_FROM_MS * BYTES_PER_MS;
  const at = said.indexOf(heard.subarray(from, from + NEEDLE_MS * BYTES_PER_MS));
  expect(at).toBeGreaterThanOrEqual(0);
  let length = 0;
  while (at + length < said.length && heard[from + length] === said[at + length]) length += 1;
  return (at + length) / BYTES_PER_MS;
}

/** As a client keeps them: what was emitted of the text that is said again is void. */
function wordsOf(client: TestClient, spokenEnd: number): readonly Word[] {
  const cut = client.events.findIndex((event) => event.type === "warning");
  return client.events.flatMap((event, index) =>
    event.type === "words" ? event.words.filter((word) => index > cut || word.start < spokenEnd) : [],
  );
}

describe("a service that breaks off where its times are missing", () => {
  it("is heard as far as it came, and fails", { timeout: 60_000 }, async () => {
    await untimed.until(() => untimed.eventsOf("utterance.done").length > 0, 30_000);
    expect(untimed.eventsOf("utterance.done")).toMatchObject([
      { outcome: "failed", error: { code: "upstream_truncated", retryable: true } },
    ]);
    expect(untimed.eventsOf("warning")).toEqual([]);
    const [said] = proxy.take(100);
    expect(keptMs(untimed.audio, said?.audio ?? Buffer.alloc(0))).toBeGreaterThan(5000);
  });
});

describe("a service that breaks off where its times are at a wrong pace", () => {
  it("is heard whole, and nothing of it twice", { timeout: 60_000 }, async () => {
    expect(scaled).toHaveLength(3);
    for (const [index, client] of scaled.entries()) {
      await client.until(() => client.eventsOf("utterance.done").length > 0, 30_000);
      expect(client.eventsOf("utterance.done")).toMatchObject([
        { outcome: "done", characters_spoken: TEXT.length },
      ]);
      const [warning] = client.eventsOf("warning");
      expect(warning).toMatchObject({ code: "speech_recovered" });
      const start = warning?.start ?? 0;
      expect(TEXT.slice(0, start)).toMatch(/\w$/);
      expect(TEXT.slice(start)).toMatch(/^\W/);
      const [said] = proxy.take(SCALED_SEED + index);
      expect(said?.text).toBe(TEXT);
      const kept = keptMs(client.audio, said?.audio ?? Buffer.alloc(0));
      const before = said?.characters.findLast(({ offset }) => offset < start);
      const behind = said?.characters.find(({ offset }) => offset > start && /\w/.test(TEXT[offset] ?? ""));
      expect(kept).toBeGreaterThan((before?.endMs ?? Number.NaN) - MAX_ERROR_MS);
      expect(kept).toBeLessThan((behind?.startMs ?? Number.POSITIVE_INFINITY) + MAX_ERROR_MS);
      const words = wordsOf(client, start);
      expect(words.map(({ text }) => text)).toEqual(TEXT.match(/\w+/g));
      const times = words.flatMap((word) => [word.start_ms, word.end_ms]);
      expect(times).toEqual([...times].sort((a, b) => a - b));
    }
  });
});
