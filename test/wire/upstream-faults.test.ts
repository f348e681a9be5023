/** What a client sees when the upstream misbehaves: one utterance fails by name, the session goes on. */
import { describe, expect, it } from "vitest";
import {
  type FakeReaction,
  type FakeStep,
  isTimed,
  refusal,
  speaking,
  speechAnswer,
  speechFor,
  startFakeUpstream,
} from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

const SPEAK = { type: "speak", text: "Hello there.", voice_id: "v" };

async function failWith(script: Parameters<typeof startFakeUpstream>[0], overrides = {}) {
  await using upstream = await startFakeUpstream(script);
  await using gateway = await gatewayAt(upstream.url, overrides);
  await using client = await TestClient.connect(gateway, "/live/s?format=pcm_8000&pace=burst");
  client.send({ ...SPEAK, utterance_id: "bad" });
  const error = await client.next("error");
  const done = await client.next("utterance.done");
  expect(done).toMatchObject({ utterance_id: "bad", outcome: "failed", error: { code: error.code } });
  expect(error.utterance_id).toBe("bad");
  // The next utterance works: the failure cost nobody else anything.
  upstream.use(speaking());
  client.send({ ...SPEAK, utterance_id: "good" });
  expect(await client.next("utterance.done", 2)).toMatchObject({ utterance_id: "good", outcome: "done" });
  return { error, frames: client.frames.length };
}

/** Records without any alignment: nobody knows what of the text was said. */
function untimed(speech: ReturnType<typeof speechFor>, ...tail: FakeStep[]): FakeReaction {
  const lines = speech.chunks.map(
    ({ audio }) =>
      `${JSON.stringify({ audio_base64: Buffer.from(audio).toString("base64"), alignment: null })}\n`,
  );
  return { headers: { "content-type": "application/json" }, body: [...lines, ...tail] };
}

describe.concurrent("upstream faults", () => {
  it.each([
    [401, "invalid_api_key", "upstream_unauthorized"],
    [403, "output_format_not_allowed", "upstream_forbidden"],
    [404, "voice_not_found", "unknown_voice"],
    [422, "invalid", "upstream_invalid"],
  ])("status %i %s: %s", async (status, word, code) => {
    const { error } = await failWith(() => refusal(status, word));
    expect(error).toMatchObject({ code, retryable: false });
  });

  it("status 500: tried again, then upstream_failed", async () => {
    let tries = 0;
    const { error } = await failWith((request) => {
      if (request.method === "POST") tries += 1;
      return refusal(500, "internal_error");
    });
    expect(error).toMatchObject({ code: "upstream_failed", retryable: true });
    expect(tries).toBe(5);
  });

  it("status 429: tried again while patience lasts, then upstream_rate_limited", async () => {
    for (const [upstreamPatienceMs, leastTries] of [
      [0, 1],
      [250, 2],
    ] as const) {
      let tries = 0;
      const script: Parameters<typeof startFakeUpstream>[0] = (request) => {
        if (request.method === "POST") tries += 1;
        return refusal(429, "too_many_concurrent_requests");
      };
      const { error } = await failWith(script, { upstreamPatienceMs });
      expect(error).toMatchObject({ code: "upstream_rate_limited", retryable: true });
      expect(tries).toBeGreaterThanOrEqual(leastTries);
      expect(tries).toBeLessThan(5);
    }
  });

  it("a 500 that passes is never noticed", async () => {
    await using upstream = await startFakeUpstream((request, index) =>
      index === 0
        ? refusal(500, "internal_error")
        : speechAnswer(speechFor(request), { isTimed: isTimed(request) }),
    );
    await using gateway = await gatewayAt(upstream.url);
    // The gateway warms a connection, so requests are counted by method here.
    upstream.use((request) =>
      upstream.requests.filter((one) => one.method === "POST").length === 1
        ? refusal(500, "internal_error")
        : speechAnswer(speechFor(request), { isTimed: isTimed(request) }),
    );
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    client.send(SPEAK);
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
    expect(client.eventsOf("error")).toEqual([]);
  });

  it("down: upstream_unreachable", async () => {
    const upstream = await startFakeUpstream();
    await upstream.close();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send(SPEAK);
    expect(await client.next("error")).toMatchObject({ code: "upstream_unreachable", retryable: true });
  });

  it("silence: upstream_timeout", async () => {
    const { error } = await failWith(() => "silence", { upstreamTimeoutMs: 150 });
    expect(error).toMatchObject({ code: "upstream_timeout", retryable: true });
  });

  it("a broken line: upstream_protocol", async () => {
    const { error } = await failWith(() => ({
      headers: { "content-type": "application/json" },
      body: ['{"audio_base64": "AAAA", "alignment": nul\n'],
    }));
    expect(error).toMatchObject({ code: "upstream_protocol" });
  });

  it.each(["reset", "cut"] as const)(
    "a body that ends early (%s) and was not timed: what came is played, then upstream_truncated",
    async (end) => {
      const { error, frames } = await failWith((request) =>
        untimed(speechFor(request), { afterMs: 50 }, end),
      );
      expect(error).toMatchObject({ code: "upstream_truncated", retryable: true });
      expect(frames).toBe(2 * Math.ceil((SPEAK.text.length * 60) / 20));
    },
  );

  it("a timed body that ends early and looks whole: what is missing is asked for again", async () => {
    let asked = 0;
    await using upstream = await startFakeUpstream((request) => {
      asked += 1;
      const speech = speechFor(request);
      return speechAnswer(asked === 1 ? { ...speech, chunks: speech.chunks.slice(0, 2) } : speech);
    });
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_8000&pace=burst&events=words");
    client.send(SPEAK);
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
    expect(asked).toBeGreaterThan(1);
    expect(client.frames.length).toBe(Math.ceil((SPEAK.text.length * 60) / 20));
  });

  it("a key the gateway sends is never in an error", async () => {
    const { error } = await failWith(() => refusal(401, "invalid_api_key"));
    expect(JSON.stringify(error)).not.toContain("test-key");
  });
});

describe("shutdown", () => {
  it("close() ends every connection with 1001 and aborts the upstream", async () => {
    await using upstream = await startFakeUpstream((request) =>
      speechAnswer(speechFor(request), { isTimed: isTimed(request), tail: ["stall"] }),
    );
    const gateway = await gatewayAt(upstream.url);
    const client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send(SPEAK);
    await client.until(() => client.frames.length > 0);
    await Promise.all([gateway.close(), gateway.close()]);
    expect((await client.untilClosed()).code).toBe(1001);
    await until("it is aborted", () => upstream.requests.some((one) => one.abortedAtMs !== null));
  });

  it("drain() lets speech end and takes no new connection", async () => {
    await using upstream = await startFakeUpstream();
    const gateway = await gatewayAt(upstream.url);
    const client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send(SPEAK);
    await client.next("utterance.started");
    const drained = gateway.drain();
    await expect(fetch(`${gateway.url}/healthz`)).rejects.toThrow();
    await drained;
    expect(client.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
    expect((await client.untilClosed()).code).toBe(1001);
  });
});
