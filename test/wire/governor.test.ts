/** A vendor that lets only so many requests through: nobody on the gateway sees its 429, as long as waiting is worth it. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { listening } from "../helpers/listening.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

interface Limits {
  readonly limit: number;
  /** Whether answers say what the limit is. */
  readonly answersWithLimit: boolean;
  readonly workMs?: number;
}

/** Speaks a little mu-law after a while, and turns away what is over its limit. */
async function limitedVendor({ limit, answersWithLimit, workMs = 15 }: Limits) {
  const seen = { open: 0, most: 0, turnedAway: 0, served: 0, bodies: [] as string[] };
  const work = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of req) parts.push(part as Buffer);
    if (seen.open >= limit) {
      seen.turnedAway += 1;
      const detail = {
        type: "rate_limit_error",
        code: "concurrent_limit_exceeded",
        status: "too_many_concurrent_requests",
      };
      res.writeHead(429, { "content-type": "application/json" }).end(JSON.stringify({ detail }));
      return;
    }
    seen.open += 1;
    seen.most = Math.max(seen.most, seen.open);
    const current = seen.open;
    await new Promise((resolve) => setTimeout(resolve, workMs));
    seen.bodies.push(Buffer.concat(parts).toString());
    if (!res.destroyed) seen.served += 1;
    res.writeHead(200, {
      "content-type": "audio/basic",
      ...(answersWithLimit
        ? { "current-concurrent-requests": current, "maximum-concurrent-requests": limit }
        : {}),
    });
    res.end(Buffer.alloc(1600, 0xff));
    seen.open -= 1;
  };
  const server = createServer((req, res) => {
    req.on("error", () => undefined);
    work(req, res).catch(() => res.destroy());
  });
  return Object.assign(await listening(server), {
    seen,
  });
}

const PATH = "/v1/text-to-speech/v/stream?output_format=ulaw_8000";

function ask(url: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(url + PATH, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...init,
  });
}

async function queuedAt({ opsUrl }: TestGateway): Promise<number> {
  const { upstream } = (await (await fetch(`${opsUrl}/readyz`)).json()) as { upstream: { queued: number } };
  return upstream.queued;
}

describe("an upstream that is at its limit", () => {
  it.each([
    { limit: 5, answersWithLimit: true },
    { limit: 5, answersWithLimit: false },
    { limit: 1, answersWithLimit: true },
  ])("with %o no 429 reaches any of 60 proxied requests, and each is served once", async (limits) => {
    await using vendor = await limitedVendor({ ...limits, workMs: 5 });
    await using gateway = await gatewayAt(vendor.url);
    const answers = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const answer = await ask(gateway.url, { text: `Number ${index}`, model_id: "eleven_flash_v2_5" });
        return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
      }),
    );
    expect(answers.every(({ status, bytes }) => status === 200 && bytes === 1600)).toBe(true);
    expect(vendor.seen.most).toBeLessThanOrEqual(limits.limit);
    expect(vendor.seen.served).toBe(60);
    expect(new Set(vendor.seen.bodies).size).toBe(60);
    // Once the limit is known it is kept to.
    const before = vendor.seen.turnedAway;
    if (!limits.answersWithLimit) return;
    await Promise.all(
      Array.from({ length: 20 }, () => ask(gateway.url, { text: "More", model_id: "eleven_flash_v2_5" })),
    );
    expect(vendor.seen.turnedAway).toBe(before);
  });

  it("every live session speaks", async () => {
    await using vendor = await limitedVendor({ limit: 3, answersWithLimit: true });
    await using gateway = await gatewayAt(vendor.url);
    const clients = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        TestClient.connect(gateway, `/live/s${index}?format=ulaw_8000&events=none&pace=burst`),
      ),
    );
    for (const client of clients) client.send({ type: "speak", text: "Hello." });
    for (const client of clients) {
      const done = await client.next("utterance.done");
      expect(done).toMatchObject({ outcome: "done" });
      await client[Symbol.asyncDispose]();
    }
    expect(vendor.seen.most).toBeLessThanOrEqual(3);
  });

  it("one client's 200 requests do not hold up another's speech by more than the one that is open", async () => {
    await using vendor = await limitedVendor({ limit: 100, answersWithLimit: false, workMs: 30 });
    const settings = { upstreamConnections: 1, trustedProxies: "127.0.0.1", proxiedPerClient: 0 };
    await using gateway = await gatewayAt(vendor.url, settings);
    const leaving = new AbortController();
    const noisy = Array.from({ length: 200 }, (_, index) =>
      ask(
        gateway.url,
        { text: `Noise ${index}` },
        {
          headers: { "content-type": "application/json", "x-forwarded-for": "192.0.2.1" },
          signal: leaving.signal,
        },
      ).catch(() => null),
    );
    await expect.poll(async () => await queuedAt(gateway)).toBeGreaterThanOrEqual(180);
    await using client = await TestClient.connect(
      gateway,
      "/live/s?format=ulaw_8000&events=none&pace=burst",
      {
        headers: { "x-forwarded-for": "192.0.2.2" },
      },
    );
    client.send({ type: "speak", text: "Hello.", voice_id: "v" });
    const before = vendor.seen.bodies.length;
    await client.next("utterance.queued");
    await client.next("utterance.done");
    leaving.abort();
    await Promise.all(noisy);
    const place = vendor.seen.bodies.findIndex((body) => body.includes("Hello."));
    expect(place).toBeGreaterThanOrEqual(before);
    expect(place).toBeLessThanOrEqual(before + 2);
  });

  it("a token's subject has its share of the places, in however many sessions; a key has all of them", async () => {
    await using vendor = await limitedVendor({ limit: 100, answersWithLimit: false, workMs: 300 });
    using keys = new TestKeys();
    await using gateway = await gatewayAt(vendor.url, { upstreamConnections: 8, keysFile: keys.path });
    const most = async (credential: string): Promise<number> => {
      vendor.seen.most = 0;
      const clients = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          TestClient.connect(gateway, `/live/s${index}?format=ulaw_8000&events=none&pace=burst`, {
            headers: { authorization: `Bearer ${credential}` },
          }),
        ),
      );
      for (const client of clients) client.send({ type: "speak", text: "Hello.", voice_id: "v" });
      for (const client of clients) await client.next("utterance.done");
      for (const client of clients) await client[Symbol.asyncDispose]();
      return vendor.seen.most;
    };
    expect(await most(tokenFor(SPEAKER))).toBe(2);
    expect(await most(keys.key)).toBe(8);
  });

  it("the 429 is handed on with its body when patience is over, and where the body can't be sent again", async () => {
    await using vendor = await limitedVendor({ limit: 0, answersWithLimit: false });
    await using impatient = await gatewayAt(vendor.url, { upstreamPatienceMs: 0 });
    const refused = await ask(impatient.url, { text: "Nobody listens" });
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ detail: { code: "concurrent_limit_exceeded" } });
    expect(vendor.seen.turnedAway).toBe(1);
    await using patient = await gatewayAt(vendor.url);
    const upload = new FormData();
    upload.append("audio", new Blob([new Uint8Array(1000)]), "a.wav");
    const streamed = await fetch(`${patient.url}/v1/audio-isolation`, { method: "POST", body: upload });
    expect(streamed.status).toBe(429);
    expect(vendor.seen.turnedAway).toBe(2);
  });

  it("one that gives up while it waits is never asked for again, and holds nobody up", async () => {
    await using vendor = await limitedVendor({ limit: 1, answersWithLimit: true, workMs: 60 });
    await using gateway = await gatewayAt(vendor.url);
    await (await ask(gateway.url, { text: "The limit is known" })).arrayBuffer();
    const first = ask(gateway.url, { text: "First" });
    await until("the first one", () => vendor.seen.open === 1);
    const leaving = new AbortController();
    const second = ask(gateway.url, { text: "Second" }, { signal: leaving.signal });
    const third = ask(gateway.url, { text: "Third" });
    leaving.abort();
    await expect(second).rejects.toThrow();
    expect((await first).status).toBe(200);
    expect((await third).status).toBe(200);
    expect(vendor.seen.bodies.map((body) => (JSON.parse(body) as { text: string }).text)).toEqual([
      "The limit is known",
      "First",
      "Third",
    ]);
  });
});
