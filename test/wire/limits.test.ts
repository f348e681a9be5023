/** What the door counts of addresses, keys and tokens, over real sockets and requests. Loopback is limited here as others are. */
import { once } from "node:events";
import { type ClientRequest, createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { ACTIONS } from "../../src/access/grants.ts";
import { createFileLog } from "../../src/cli/log.ts";
import type { Config } from "../../src/config.ts";
import { type Clock, systemClock } from "../../src/kit/clock.ts";
import { type FakeUpstream, jsonAnswer, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { type KeyFileContent, SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { FakeCarrier } from "../kit/carriers/fake-carrier.ts";

const PATH = "/live/s?role=speaker&format=none&events=none";

let upstream: FakeUpstream;

beforeAll(async () => {
  upstream = await startFakeUpstream();
});

afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

function limited(settings: Partial<Config>): Promise<TestGateway> {
  return gatewayAt(upstream.url, { addressLimits: "all", ...settings });
}

interface KeyedGateway extends TestGateway {
  readonly key: string;
}

async function keyed(content: KeyFileContent, settings: Partial<Config> = {}): Promise<KeyedGateway> {
  const keys = new TestKeys(content);
  const gateway = await gatewayAt(upstream.url, { keysFile: keys.path, ...settings });
  return {
    ...gateway,
    key: keys.key,
    [Symbol.asyncDispose]: async () => {
      await gateway.close();
      keys[Symbol.dispose]();
    },
  };
}

/** Status, error code and headers of an upgrade; the socket stays open where it is let in. */
async function knock(gateway: TestGateway, headers: Record<string, string> = {}, path = PATH) {
  const socket = new WebSocket(`${gateway.wsUrl}${path}`, { headers });
  socket.on("error", () => undefined);
  const open = once(socket, "open").then(() => ({ status: 101, code: "", headers: {}, socket }));
  const refused = once(socket, "unexpected-response").then(async ([, answer]) => {
    const { statusCode = 0, headers: answered } = answer as IncomingMessage;
    let text = "";
    for await (const piece of (answer as IncomingMessage).setEncoding("utf8")) text += piece;
    const { error } = JSON.parse(text) as { error: { code: string } };
    return { status: statusCode, code: error.code, headers: answered, socket };
  });
  return await Promise.race([open, refused]);
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

function joinWith(gateway: TestGateway, token: string, path = PATH): Promise<TestClient> {
  return TestClient.connect(gateway, path, { headers: bearer(token) });
}

async function metricsOf(gateway: TestGateway, headers: Record<string, string> = {}): Promise<string> {
  return await (await fetch(`${gateway.opsUrl}/metrics`, { headers })).text();
}

/** The system's clock, which a test puts ahead. */
function leapingClock(): Clock & { leap(ms: number): void } {
  let aheadMs = 0;
  return {
    nowMs: () => systemClock.nowMs() + aheadMs,
    at: (atMs, action) => systemClock.at(atMs - aheadMs, action),
    leap: (ms) => {
      aheadMs += ms;
    },
  };
}

describe("an address", () => {
  it("has no connection beyond its limit until one closes; the refusal says when to come back", async () => {
    await using gateway = await limited({ connectionsPerAddress: 2 });
    const first = await knock(gateway);
    const second = await knock(gateway);
    const third = await knock(gateway);
    expect([first.status, second.status]).toEqual([101, 101]);
    expect(third).toMatchObject({ status: 429, code: "connection_limit" });
    expect(third.headers).toMatchObject({
      "retry-after": "5",
      "ratelimit-limit": "2",
      "ratelimit-remaining": "0",
      "ratelimit-reset": "5",
    });
    first.socket.close();
    await expect.poll(async () => (await knock(gateway)).status).toBe(101);
    expect(await metricsOf(gateway)).toMatch(/voicewire_refused_total\{reason="connection_limit"\} [1-9]/);
  });

  it("that is refused by its session gives its connection back", async () => {
    await using gateway = await limited({ connectionsPerAddress: 1, maxSessions: 1, opensPerSecond: 0 });
    for (const _ of [1, 2, 3]) {
      await using client = await TestClient.connect(gateway, "/live/nobody?role=listener");
      expect(await client.untilClosed()).toEqual({ code: 4404, reason: "unknown_session" });
    }
  });

  it("opens no connection beyond its rate, also where each has closed before", async () => {
    await using gateway = await limited({ opensPerSecond: 1, connectionsPerAddress: 0 });
    const statuses: string[] = [];
    for (let count = 0; count < 10; count += 1) {
      const { code, socket } = await knock(gateway);
      statuses.push(code);
      socket.terminate();
    }
    expect(statuses.slice(0, 5)).toEqual(["", "", "", "", ""]);
    expect(statuses).toContain("rate_limited");
  });

  it("opens no session beyond its limit until one has ended", async () => {
    await using gateway = await limited({ sessionsPerAddress: 1, graceMs: 0 });
    const first = await TestClient.connect(gateway, PATH);
    await first.until(() => first.messages.length > 0);
    await using again = await TestClient.connect(gateway, PATH);
    await again.next("hello");
    await using other = await TestClient.connect(gateway, PATH.replace("/s?", "/other?"));
    expect(await other.untilClosed()).toEqual({ code: 4429, reason: "session_limit" });
    expect(other.eventsOf("error")).toMatchObject([{ code: "session_limit", retry_after_ms: 5000 }]);
    await again[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    const joins = async (): Promise<boolean> => {
      await using next = await TestClient.connect(gateway, PATH.replace("/s?", "/next?"));
      await next.until(() => next.messages.length > 0);
      return next.eventsOf("hello").length > 0;
    };
    await expect.poll(joins).toBe(true);
  });

  it("is refused once it has tried too many keys, whatever it shows then, over HTTP as well", async () => {
    await using gateway = await keyed({}, { addressLimits: "all", failuresPerMinute: 2 });
    expect(await knock(gateway, bearer("letmein"))).toMatchObject({ status: 401 });
    const wrong = { "xi-api-key": `vwk_server_${"A".repeat(43)}` };
    expect((await fetch(`${gateway.url}/asyncapi.json`, { headers: wrong })).status).toBe(401);
    const right = bearer(gateway.key);
    expect(await knock(gateway, right)).toMatchObject({ status: 429, code: "rate_limited" });
    const answer = await fetch(`${gateway.url}/asyncapi.json`, { headers: right });
    expect(answer.status).toBe(429);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("is refused so in a connection that stands, too", async () => {
    await using gateway = await keyed({}, { addressLimits: "all", failuresPerMinute: 2 });
    await using client = await joinWith(gateway, tokenFor(SPEAKER));
    for (const token of ["one", "two", tokenFor(SPEAKER)]) client.send({ type: "refresh", token });
    await client.next("error", 3);
    const codes = client.eventsOf("error").map(({ code }) => code);
    expect(codes).toEqual(["unauthorized", "unauthorized", "rate_limited"]);
  });

  it("may show tokens that have expired, or nothing, as often as it likes", async () => {
    await using gateway = await keyed({}, { addressLimits: "all", failuresPerMinute: 1, opensPerSecond: 0 });
    const expired = tokenFor(SPEAKER, { lifeSeconds: -70 });
    for (const headers of [{}, bearer(expired), bearer(expired), {}]) {
      expect((await knock(gateway, headers)).status).toBe(401);
    }
    expect((await knock(gateway, bearer(gateway.key))).status).toBe(101);
  });

  it("is what a trusted proxy says, and not what anybody else says", async () => {
    const from = (client: string) => ({ "x-forwarded-for": client });
    const settings = { connectionsPerAddress: 1 };
    await using behind = await limited({ ...settings, trustedProxies: "127.0.0.1" });
    expect((await knock(behind, from("198.51.100.1"))).status).toBe(101);
    expect((await knock(behind, from("198.51.100.2"))).status).toBe(101);
    expect((await knock(behind, from("198.51.100.1"))).status).toBe(429);
    await using direct = await limited(settings);
    expect((await knock(direct, from("198.51.100.1"))).status).toBe(101);
    expect((await knock(direct, from("198.51.100.2"))).status).toBe(429);
  });

  it("loopback has no limits by default", async () => {
    await using gateway = await gatewayAt(upstream.url, { connectionsPerAddress: 1, opensPerSecond: 1 });
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await knock(gateway)).status));
    expect(new Set(statuses)).toEqual(new Set([101]));
  });
});

describe("a connection", () => {
  it("hears which messages come too fast, stays, and is closed where it goes on", async () => {
    const clock = leapingClock();
    const settings = { addressLimits: "all", messagesPerSecond: 1 } as const;
    await using gateway = await gatewayAt(upstream.url, settings, { clock });
    await using client = await TestClient.connect(gateway, PATH);
    for (let count = 0; count < 60; count += 1) client.send({ type: "ping" });
    await client.next("error");
    expect(client.eventsOf("pong").length).toBeGreaterThanOrEqual(25);
    expect(client.eventsOf("error")[0]).toMatchObject({ code: "rate_limited", retryable: true });
    expect(client.closed).toBeNull();
    clock.leap(5000);
    for (let count = 0; count < 60; count += 1) client.send({ type: "ping" });
    expect(await client.untilClosed()).toEqual({ code: 4429, reason: "rate_limited" });
    expect(gateway.counters.connectionsFlooding).toBe(1);
  });

  it("hears which of its messages bring too many bytes", async () => {
    await using gateway = await limited({ bytesPerSecond: 10 });
    await using client = await TestClient.connect(gateway, PATH);
    client.send({ type: "ping", id: "a".repeat(60) });
    await client.next("pong");
    client.send({ type: "ping", id: "b".repeat(120) });
    expect(await client.next("error")).toMatchObject({ code: "rate_limited" });
    expect(client.closed).toBeNull();
  });
});

describe("a key", () => {
  it("has no connection or utterance beyond its limit; a refused command leaves the socket open", async () => {
    const limits = { connections: 1, utterances: 1 };
    await using gateway = await keyed({ server: { limits } });
    await using client = await joinWith(gateway, gateway.key);
    expect(await knock(gateway, bearer(gateway.key))).toMatchObject({
      status: 429,
      code: "connection_limit",
    });
    client.send({ type: "speak", text: "One.", utterance_id: "one" });
    client.send({ type: "speak", text: "Two.", utterance_id: "two" });
    expect(await client.next("error")).toMatchObject({
      code: "rate_limited",
      utterance_id: "two",
      retry_after_ms: 1000,
    });
    client.send({ type: "cancel", utterance_id: "one" });
    client.send({ type: "text", text: "Three", utterance_id: "three" });
    await client.next("utterance.queued", 2);
    expect(client.eventsOf("utterance.queued").map((event) => event.utterance_id)).toEqual(["one", "three"]);
  });

  it("has its place back when an utterance was played, and when its session has ended", async () => {
    const limits = { utterances: 1 };
    await using gateway = await keyed({ server: { limits } }, { graceMs: 0 });
    await using client = await joinWith(gateway, gateway.key, "/live/heard?format=ulaw_8000&pace=burst");
    client.send({ type: "speak", text: "One." });
    await client.next("utterance.done");
    client.send({ type: "speak", text: "Two." });
    await client.next("utterance.done", 2);
    const leaver = await joinWith(gateway, gateway.key);
    leaver.send({ type: "speak", text: "Nobody hears it." });
    await leaver.next("utterance.queued");
    await leaver[Symbol.asyncDispose]();
    const speaks = async (): Promise<boolean> => {
      await using next = await joinWith(gateway, gateway.key, PATH.replace("/s?", "/next?"));
      next.send({ type: "speak", text: "Three." });
      await next.until(() => next.eventsOf("error").length + next.eventsOf("utterance.queued").length > 0);
      return next.eventsOf("error").length === 0;
    };
    await expect.poll(speaks).toBe(true);
  });

  it("says over HTTP how many characters it has left in the minute, and when it has none", async () => {
    const limits = { characters_per_minute: 30, utterances: 9 };
    await using gateway = await keyed({
      server: { limits, grants: { ...SPEAKER, utterances_per_minute: 7 } },
    });
    await using client = await joinWith(gateway, gateway.key);
    await client.next("hello");
    const speak = (text: string) =>
      fetch(`${gateway.url}/live/s/speak`, {
        method: "POST",
        headers: { ...bearer(gateway.key), "content-type": "application/json" },
        body: JSON.stringify({ text }),
      });
    const first = await speak("A text of twenty-six signs");
    expect(first.status).toBe(202);
    expect(first.headers.get("ratelimit-limit")).toBe("30");
    expect(Number(first.headers.get("ratelimit-remaining"))).toBeLessThan(6);
    const second = await speak("And ten more.");
    expect(second.status).toBe(429);
    expect(second.headers.get("ratelimit-limit")).toBe("30");
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("hears of its limits on the vendor's and OpenAI's routes in their words", async () => {
    const server = {
      limits: { characters_per_minute: 500, utterances: 9 },
      grants: { sessions: ["*"], allow: ["proxy", "speak"], utterances_per_minute: 7 },
    };
    await using gateway = await keyed({ server });
    upstream.use(() => ({
      ...jsonAnswer(200, {}),
      headers: { "maximum-concurrent-requests": "5", "content-type": "application/json" },
    }));
    const post = (path: string, body: object) =>
      fetch(`${gateway.url}${path}`, {
        method: "POST",
        headers: { ...bearer(gateway.key), "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const vendor = await post("/v1/text-to-speech/voice", { text: "Hello." });
    upstream.use(speaking());
    expect(vendor.headers.get("maximum-concurrent-requests")).toBe("9");
    expect(vendor.headers.get("current-concurrent-requests")).toBe("0");
    const openAi = await post("/v1/audio/speech", { model: "tts-1", voice: "nobody", input: "" });
    expect(openAi.headers.get("x-ratelimit-limit-requests")).toBe("7");
    expect(openAi.headers.get("x-ratelimit-remaining-requests")).toBe("6");
    // The vendor's answer named no cost: it has that of its text.
    expect(openAi.headers.get("x-ratelimit-remaining-tokens")).toBe("494");
    expect(openAi.headers.get("x-ratelimit-reset-requests")).toMatch(/^[1-9]\d*s$/);
  });
});

describe("a token", () => {
  it("speaks as many characters as it has, by speak, text, dialogue and HTTP, and gets an error when there are no more", async () => {
    await using gateway = await keyed({});
    const token = tokenFor({ ...SPEAKER, characters: 30 });
    await using client = await joinWith(gateway, token);
    client.send({ type: "speak", text: "1234567890", utterance_id: "a" });
    client.send({ type: "text", text: "12345", utterance_id: "b" });
    client.send({ type: "text", text: "12345", utterance_id: "b" });
    client.send({ type: "dialogue", inputs: [{ text: "12345678", voice_id: "v" }], utterance_id: "c" });
    await client.next("utterance.queued", 3);
    client.send({ type: "speak", text: "123", utterance_id: "d", replace: "all" });
    client.send({ type: "text", text: "123", utterance_id: "b" });
    client.send({ type: "dialogue", inputs: [{ text: "123", voice_id: "v" }] });
    await client.next("error", 3);
    expect(client.eventsOf("error").map(({ code }) => code)).toEqual(Array(3).fill("budget_exhausted"));
    expect(client.eventsOf("utterance.done")).toEqual([]);
    const answer = await fetch(`${gateway.url}/live/s/speak`, {
      method: "POST",
      headers: { ...bearer(token), "content-type": "application/json" },
      body: JSON.stringify({ text: "123" }),
    });
    expect(answer.status).toBe(402);
    client.send({ type: "speak", text: "12" });
    await client.next("utterance.queued", 4);
  });

  it("pays for its characters on OpenAI's route, at the proxy and on the vendor's sockets too", async () => {
    await using gateway = await keyed({ server: { grants: { sessions: ["*"], allow: ["admin"] } } });
    const grants = { sessions: ["*"], allow: ["speak", "proxy"], characters: 10 };
    const post = async (path: string, body: object, token: string) => {
      const headers = { ...bearer(token), "content-type": "application/json" };
      const answer = await fetch(`${gateway.url}${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const tokenOf = (jti: string) => tokenFor(grants, { claims: { jti } });
    const spoken = { model: "tts-1", voice: "nova", input: "Eight...", response_format: "pcm" };
    expect(await post("/v1/audio/speech", spoken, tokenOf("openai"))).toBe(200);
    expect(await post("/v1/audio/speech", spoken, tokenOf("openai"))).toBe(402);
    upstream.use(() => jsonAnswer(200, {}, { "character-cost": "10" }));
    const path = "/v1/text-to-speech/voice";
    expect(await post(path, { text: "Ten......." }, tokenOf("proxy"))).toBe(200);
    expect(await post(path, { text: "Ten......." }, tokenOf("proxy"))).toBe(402);
    upstream.use(speaking());
    const socket = new WebSocket(
      `${gateway.wsUrl}/v1/text-to-speech/voice/stream-input?output_format=pcm_16000`,
      {
        headers: bearer(tokenOf("socket")),
      },
    );
    await once(socket, "open");
    const closed = once(socket, "close");
    for (const text of [" ", "More than ten characters. ", ""]) socket.send(JSON.stringify({ text }));
    const [, reason] = (await closed) as [number, Buffer];
    expect(reason.toString()).toContain("characters left of 10");
    // Whatever words each of the three has for it.
    expect(await metricsOf(gateway, bearer(gateway.key))).toMatch(
      /^voicewire_refused_total\{reason="budget_exhausted"\} 3$/m,
    );
  });

  it("has what proxied requests may cost reserved while they run, and gets back what they did not", async () => {
    await using gateway = await keyed({});
    const grants = { sessions: ["*"], allow: ["speak", "proxy"] as const, characters: 25 };
    const token = tokenFor(grants, { claims: { jti: "reserves" } });
    const post = async (body: string | ReadableStream, headers: object = {}) => {
      const answer = await fetch(`${gateway.url}/v1/text-to-speech/voice`, {
        method: "POST",
        headers: { ...bearer(token), "content-type": "application/json", ...headers },
        body,
        duplex: "half",
      } as RequestInit);
      await answer.arrayBuffer();
      return answer.status;
    };
    const ten = JSON.stringify({ text: "Ten......." });
    const answers: (() => void)[] = [];
    const held = (status: number, cost: string) => async () => {
      await new Promise<void>((resolve) => answers.push(resolve));
      return jsonAnswer(status, {}, { "character-cost": cost });
    };
    upstream.use(held(200, "4"));
    const running = [post(ten), post(ten)];
    await until("both run", () => answers.length === 2);
    // Beside 20 that may be spent, five are left.
    expect(await post(ten)).toBe(402);
    for (const answer of answers.splice(0)) answer();
    expect(await Promise.all(running)).toEqual([200, 200]);
    // They have cost eight, so 17 are left. What fails costs nothing.
    upstream.use(() => jsonAnswer(422, {}));
    expect(await post(JSON.stringify({ text: "x".repeat(17) }))).toBe(422);
    // What can't be counted is not passed on.
    const stream = new Blob([ten]).stream();
    expect(await post(stream)).toBe(403);
    upstream.use(() => jsonAnswer(200, {}));
    expect(await post(JSON.stringify({ text: "x".repeat(18) }))).toBe(402);
    expect(await post(JSON.stringify({ text: "x".repeat(17) }))).toBe(200);
    expect(await post(ten)).toBe(402);
    upstream.use(speaking());
  });

  it("has what a sound effect costs reserved, and runs uploads of unknown cost one by one where it has little", async () => {
    await using gateway = await keyed({});
    const grants = { sessions: ["*"], allow: ["speak", "proxy"] as const, characters: 250 };
    const token = tokenFor(grants, { claims: { jti: "sounds" } });
    const post = async (path: string, init: RequestInit) => {
      const headers = { ...bearer(token), ...init.headers };
      const answer = await fetch(`${gateway.url}/v1/${path}`, { ...init, method: "POST", headers });
      const body = (await answer.json()) as { error?: { code: string } };
      return `${answer.status} ${body.error?.code ?? ""}`.trim();
    };
    const sound = (seconds?: number | string) =>
      post("sound-generation", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          text: "rain",
          ...(seconds === undefined ? {} : { duration_seconds: seconds }),
        }),
      });
    const upload = (bytes: number) => {
      const data = new FormData();
      data.set("audio", new Blob([new Uint8Array(bytes)]));
      return post("audio-isolation", { body: data });
    };
    const answers: (() => void)[] = [];
    let cost = "100";
    upstream.use(async () => {
      await new Promise<void>((resolve) => answers.push(resolve));
      return jsonAnswer(200, {}, { "character-cost": cost });
    });
    const sounds = [sound(), sound("5")];
    await until("both sounds run", () => answers.length === 2);
    expect(await sound(2.6)).toBe("402 budget_exhausted");
    for (const answer of answers.splice(0)) answer();
    expect(await Promise.all(sounds)).toEqual(["200", "200"]);
    // 50 are left: a minute of the least that speech takes is 45 kB, and costs 1000.
    cost = "20";
    const first = upload(9000);
    await until("an upload runs", () => answers.length === 1);
    expect(await upload(500)).toBe("429 rate_limited");
    for (const answer of answers.splice(0)) answer();
    expect(await first).toBe("200");
    // 30 are left, and have room for one of 500 bytes and what a form takes beside them.
    const second = upload(500);
    await until("another upload runs", () => answers.length === 1);
    for (const answer of answers.splice(0)) answer();
    expect(await second).toBe("200");
    upstream.use(speaking());
  });

  it("pays nothing for a text that is refused for another reason", async () => {
    await using gateway = await keyed({}, { maxQueuedUtterances: 1 });
    await using client = await joinWith(gateway, tokenFor({ ...SPEAKER, characters: 10 }));
    for (const utterance_id of ["a", "b", "c"]) client.send({ type: "speak", text: "123", utterance_id });
    expect(await client.next("error")).toMatchObject({ code: "queue_full" });
    client.send({ type: "cancel", utterance_id: "b" });
    client.send({ type: "speak", text: "1234" });
    await client.next("utterance.queued", 3);
  });

  it("that is refused a connection has not been used up by it", async () => {
    await using gateway = await keyed({ app: { limits: { connections: 1 } } });
    const first = await knock(gateway, bearer(tokenFor(SPEAKER)));
    const once = tokenFor({ ...SPEAKER, once: true });
    expect((await knock(gateway, bearer(once))).status).toBe(429);
    first.socket.close();
    await expect.poll(async () => (await knock(gateway, bearer(once))).status).toBe(101);
  });
});

it("the metrics say what is counted, and that the file of keys is broken", async () => {
  using keys = new TestKeys({
    server: { limits: { connections: 5 }, grants: { ...SPEAKER, allow: ["admin", "speak"] } },
  });
  await using gateway = await gatewayAt(upstream.url, { keysFile: keys.path, addressLimits: "all" });
  await knock(gateway, bearer(keys.key));
  await knock(gateway, bearer("letmein"));
  const metrics = await metricsOf(gateway, bearer(keys.key));
  expect(metrics).toContain("voicewire_limits_callers 1");
  expect(metrics).toContain("voicewire_limits_addresses 1");
  expect(metrics).toContain('voicewire_refused_total{reason="malformed"} 1');
  expect(metrics).toContain("voicewire_keys_broken 0");
  keys.writeText("{");
  await expect
    .poll(() => metricsOf(gateway, bearer(keys.key)), { timeout: 5000 })
    .toContain("voicewire_keys_broken 1");
});

it("the metrics count lines of the audit log that could not be written", async () => {
  using keys = new TestKeys({ server: { grants: { ...SPEAKER, allow: ["admin", "speak"] } } });
  const auditLog = createFileLog("/dev/full", watchedLog);
  await using gateway = await gatewayAt(upstream.url, { keysFile: keys.path }, { auditLog });
  expect(await metricsOf(gateway, bearer(keys.key))).toContain("voicewire_audit_lines_lost_total 1\n");
  await knock(gateway, bearer("letmein"));
  expect(await metricsOf(gateway, bearer(keys.key))).toContain("voicewire_audit_lines_lost_total 3\n");
});

const OPERATOR = { sessions: ["*"], allow: [...ACTIONS] };

describe("what one client has at once", () => {
  it("are so many requests that are passed upstream, until they are answered or the client has gone", async () => {
    await using silent = await startFakeUpstream(() => "silence");
    await using gateway = await gatewayAt(silent.url, { addressLimits: "all", proxiedPerClient: 2 });
    const leaving = new AbortController();
    const waiting = [1, 2].map(() => fetch(`${gateway.url}/v1/models`, { signal: leaving.signal }));
    await expect.poll(() => silent.requests.length).toBe(2);
    const third = await fetch(`${gateway.url}/v1/models`);
    expect([third.status, third.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await third.json()).toMatchObject({ error: { code: "rate_limited" } });
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="rate_limited"} 1');
    leaving.abort();
    await Promise.allSettled(waiting);
    silent.use(() => jsonAnswer(200, []));
    const statuses = [];
    for (let count = 0; count < 4; count += 1)
      statuses.push((await fetch(`${gateway.url}/v1/models`)).status);
    expect(statuses).toEqual([200, 200, 200, 200]);
  });

  it("are so many passed requests of a subject of tokens too, and others have theirs", async () => {
    await using silent = await startFakeUpstream(() => "silence");
    using keys = new TestKeys();
    await using gateway = await gatewayAt(silent.url, { keysFile: keys.path, proxiedPerClient: 1 });
    const leaving = new AbortController();
    const ask = (subject: string): Promise<Response> => {
      const token = tokenFor({ sessions: ["*"], allow: ["proxy"] }, { claims: { sub: subject } });
      return fetch(`${gateway.url}/v1/models`, { headers: bearer(token), signal: leaving.signal });
    };
    const waiting = [ask("anna")];
    await expect.poll(() => silent.requests.length).toBe(1);
    expect((await ask("anna")).status).toBe(429);
    waiting.push(ask("bert"));
    await expect.poll(() => silent.requests.length).toBe(2);
    leaving.abort();
    await Promise.allSettled(waiting);
  });

  it("are so many MP3 streams of an address where there are no keys", async () => {
    await using gateway = await limited({ mp3PerClient: 1 });
    await using speaker = await TestClient.connect(gateway, PATH);
    await speaker.next("hello");
    const leaving = new AbortController();
    const play = () => fetch(`${gateway.url}/live/s/audio.mp3?silence=true`, { signal: leaving.signal });
    const [first, second] = [await play(), await play()];
    expect([first.status, second.status]).toEqual([200, 503]);
    expect(await second.json()).toMatchObject({ error: { code: "listener_limit" } });
    leaving.abort();
  });

  it("are so many MP3 streams of a subject of tokens; a key names its own number", async () => {
    await using gateway = await keyed(
      { server: { grants: OPERATOR, limits: { mp3_streams: 3 } } },
      { mp3PerClient: 1 },
    );
    await using speaker = await joinWith(gateway, gateway.key, "/live/s?role=speaker&format=none");
    await speaker.next("hello");
    const leaving = new AbortController();
    // One that is forgotten is cancelled.
    const playing: Response[] = [];
    const play = async (token: string): Promise<number> => {
      const init = { headers: bearer(token), signal: leaving.signal };
      const answer = await fetch(`${gateway.url}/live/s/audio.mp3?silence=true`, init);
      playing.push(answer);
      return answer.status;
    };
    const listener = tokenFor({ sessions: ["*"], allow: ["listen"] });
    expect([await play(listener), await play(listener)]).toEqual([200, 503]);
    expect([await play(gateway.key), await play(gateway.key)]).toEqual([200, 200]);
    expect([await play(gateway.key), await play(gateway.key)]).toEqual([200, 503]);
    expect(await metricsOf(gateway, bearer(gateway.key))).toContain(
      'voicewire_refused_total{reason="listener_limit"} 2',
    );
    expect(playing).toHaveLength(6);
    leaving.abort();
  });

  it("are so many Opus renditions of an address without keys, however many connections hear each", async () => {
    await using gateway = await limited({ opusPerClient: 1 });
    const listen = (session: string, query = "format=opus_48000") =>
      TestClient.connect(gateway, `/live/${session}?${query}`);
    await using first = await listen("s");
    await using second = await listen("s");
    await using plain = await listen("s", "format=ulaw_8000");
    for (const client of [first, second, plain]) await client.next("hello");
    for (const query of ["format=opus_48000&frame_ms=40", "format=opus_48000&framing=rtp"]) {
      await using other = await listen("s", query);
      expect(await other.untilClosed()).toEqual({ code: 4429, reason: "listener_limit" });
    }
    await using elsewhere = await listen("other");
    expect(await elsewhere.untilClosed()).toEqual({ code: 4429, reason: "listener_limit" });
    plain.send({ type: "configure", format: "opus_48000", frame_ms: 40 });
    expect((await plain.next("error")).code).toBe("listener_limit");
    const answer = await fetch(`${gateway.url}/live/s/audio.ogg?frame_ms=60`);
    expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code: "listener_limit" } }]);
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="listener_limit"} 5');
    plain.send({ type: "configure", format: "opus_48000" });
    await plain.next("configured");
    for (const client of [first, second, plain]) await client[Symbol.asyncDispose]();
    const joins = async (): Promise<boolean> => {
      await using next = await listen("other", "format=opus_48000&frame_ms=10");
      await next.until(() => next.messages.length > 0);
      return next.eventsOf("hello").length > 0;
    };
    await expect.poll(joins).toBe(true);
  });

  it("are so many Opus renditions of a subject of tokens, and not of its address; a key names its own number", async () => {
    await using gateway = await keyed(
      { server: { limits: { opus_renditions: 2 } } },
      { opusPerClient: 1, addressLimits: "all" },
    );
    const tokenOf = (sub: string) => tokenFor(SPEAKER, { claims: { sub } });
    const listen = async (token: string, frameMs: number): Promise<string> => {
      const client = await joinWith(gateway, token, `/live/s?format=opus_48000&frame_ms=${frameMs}`);
      clients.push(client);
      await client.until(() => client.messages.length > 0);
      return client.eventsOf("error")[0]?.code ?? "";
    };
    const clients: TestClient[] = [];
    expect([await listen(tokenOf("ann"), 20), await listen(tokenOf("bob"), 20)]).toEqual(["", ""]);
    expect([await listen(tokenOf("ann"), 20), await listen(tokenOf("ann"), 40)]).toEqual([
      "",
      "listener_limit",
    ]);
    expect([await listen(gateway.key, 20), await listen(gateway.key, 40)]).toEqual(["", ""]);
    expect(await listen(gateway.key, 60)).toBe("listener_limit");
    for (const client of clients) await client[Symbol.asyncDispose]();
  });

  it("are so many RTP ports of a key, until they are closed", async () => {
    await using gateway = await keyed(
      { server: { grants: OPERATOR } },
      { maxRtpPorts: 1, carriers: "rtp", rtpPeers: "127.0.0.0/8" },
    );
    const headers = bearer(gateway.key);
    const body = JSON.stringify({ session: "s" });
    const open = async () => {
      const answer = await fetch(`${gateway.url}/carrier/rtp`, { method: "POST", headers, body });
      return { status: answer.status, ...((await answer.json()) as { call_id: string }) };
    };
    const first = await open();
    expect(first).toMatchObject({ status: 201 });
    expect(await open()).toMatchObject({ status: 503, error: { code: "listener_limit" } });
    expect(await metricsOf(gateway, headers)).toContain('voicewire_refused_total{reason="listener_limit"} 1');
    await fetch(`${gateway.url}/carrier/rtp/${first.call_id}`, { method: "DELETE", headers });
    await expect.poll(async () => (await open()).status).toBe(201);
  });
});

describe("what the whole gateway has a bound of", () => {
  it("is MP3 streams, whoever plays them; a refusal is counted", async () => {
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, PATH);
    await speaker.next("hello");
    const leaving = new AbortController();
    const playing: Response[] = [];
    for (let count = 0; count < 9; count += 1) {
      playing.push(await fetch(`${gateway.url}/live/s/audio.mp3?silence=true`, { signal: leaving.signal }));
    }
    expect(playing.map(({ status }) => status)).toEqual([...Array(8).fill(200), 503]);
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="listener_limit"} 1');
    leaving.abort();
  });

  it("is RTP ports and carriers' connections; a refusal is counted", async () => {
    await using gateway = await gatewayAt(upstream.url, { maxCalls: 1, rtpPeers: "127.0.0.0/8" });
    const body = JSON.stringify({ session: "s" });
    const open = async () =>
      (await fetch(`${gateway.url}/carrier/rtp`, { method: "POST", headers: {}, body })).status;
    expect([await open(), await open()]).toEqual([201, 503]);
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="listener_limit"} 1');
    const call = await knock(gateway, {}, "/carrier/twilio");
    expect([call.code, (await knock(gateway, {}, "/carrier/twilio")).code]).toEqual(["", "listener_limit"]);
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="listener_limit"} 2');
    call.socket.terminate();
  });

  it("is requests that wait for the upstream; one that may not wait is counted", async () => {
    await using silent = await startFakeUpstream(() => "silence");
    await using gateway = await gatewayAt(silent.url, { upstreamConnections: 1, upstreamQueue: 0 });
    const leaving = new AbortController();
    const ask = () => fetch(`${gateway.url}/v1/models`, { signal: leaving.signal });
    const first = ask();
    await expect.poll(() => metricsOf(gateway)).toContain("voicewire_upstream_open 1");
    const before = await refusedBusy(gateway);
    expect(await (await ask()).json()).toMatchObject({ error: { code: "upstream_busy" } });
    expect(await refusedBusy(gateway)).toBe(before + 1);
    leaving.abort();
    await expect(first).rejects.toThrow();
  });
});

async function refusedBusy(gateway: TestGateway): Promise<number> {
  const line = /voicewire_refused_total\{reason="upstream_busy"\} (\d+)/.exec(await metricsOf(gateway));
  return Number(line?.[1] ?? 0);
}

describe("a connection that is as old as it may be", () => {
  const settings = { maxConnectionMinutes: 10, textIdleMs: 3_600_000 };
  const PLAYING = "/live/s?role=both&format=ulaw_8000&events=none";

  it("is closed with 1001 in the last tenth of that age, and comes back to the text that it left open", async () => {
    const clock = leapingClock();
    await using gateway = await gatewayAt(upstream.url, settings, { clock });
    await using client = await TestClient.connect(gateway, PLAYING);
    const { resume_token, limits } = await client.next("hello");
    expect(limits).toMatchObject({ connection_minutes: 10 });
    client.send({ type: "text", text: "To be contin", utterance_id: "long" });
    await client.next("utterance.queued");
    clock.leap(8 * 60_000);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(client.closed).toBeNull();
    clock.leap(2 * 60_000);
    expect(await client.untilClosed()).toEqual({ code: 1001, reason: "connection_age" });
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="connection_age"} 1');
    await using again = await TestClient.connect(gateway, `${PLAYING}&resume=${resume_token}`);
    await again.next("hello");
    again.send({ type: "text", text: "ued.", utterance_id: "long" });
    again.send({ type: "end", utterance_id: "long" });
    expect(await again.next("utterance.done")).toMatchObject({ utterance_id: "long", outcome: "done" });
    expect(again.eventsOf("error")).toEqual([]);
  });

  it("ends over HTTP, too: audio is a whole file, and captions are a stream that was closed", async () => {
    const clock = leapingClock();
    await using gateway = await gatewayAt(upstream.url, settings, { clock });
    await using speaker = await TestClient.connect(gateway, PATH);
    await speaker.next("hello");
    const audio = await fetch(`${gateway.url}/live/s/audio.wav?silence=true`);
    const captions = await fetch(`${gateway.url}/live/s/captions`);
    clock.leap(10 * 60_000);
    expect((await audio.arrayBuffer()).byteLength).toBeGreaterThan(44);
    expect(await captions.text()).toMatch(/event: closed\ndata: .*connection_age/);
  });
});

describe("bodies of requests", () => {
  const LONG = JSON.stringify({ text: "x".repeat(900_000) });
  const JSON_TYPE = { "content-type": "application/json" };
  const PROXIED = "/v1/text-to-speech/v/stream?output_format=ulaw_8000";

  it("are so much in memory of all clients, until they are answered or the client has gone; so are uploads", async () => {
    await using silent = await startFakeUpstream(() => "silence");
    await using gateway = await gatewayAt(silent.url, { receivedMb: 1, upstreamTimeoutMs: 60_000 });
    const leaving = new AbortController();
    const post = (path: string, body: string, headers: Record<string, string> = JSON_TYPE) =>
      fetch(gateway.url + path, { method: "POST", body, headers, signal: leaving.signal });
    const first = post(PROXIED, LONG);
    await expect.poll(() => metricsOf(gateway)).toContain(`voicewire_received_bytes ${LONG.length}`);
    const second = await fetch(gateway.url + PROXIED, { method: "POST", body: LONG, headers: JSON_TYPE });
    expect(second.status).toBe(503);
    expect(second.headers.get("retry-after")).toBe("1");
    expect(await second.json()).toMatchObject({ error: { code: "memory_limit" } });
    const form = new FormData();
    form.append("audio", new Blob([new Uint8Array(100)]), "a.wav");
    const upload = await fetch(`${gateway.url}/v1/audio-isolation`, { method: "POST", body: form });
    expect(upload.status).toBe(503);
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="memory_limit"} 2');
    leaving.abort();
    await expect(first).rejects.toThrow();
    await expect.poll(() => metricsOf(gateway)).toContain("voicewire_received_bytes 0");
  });

  it("count in the bytes that an address may send, where they are kept whole", async () => {
    await using gateway = await limited({ bytesPerSecond: 10_000 });
    const statuses: number[] = [];
    for (let count = 0; count < 2; count += 1) {
      const body = JSON.stringify({ text: "Hello.", junk: "x".repeat(200_000) });
      const answer = await fetch(gateway.url + PROXIED, { method: "POST", body, headers: JSON_TYPE });
      await answer.arrayBuffer();
      statuses.push(answer.status);
    }
    expect(statuses).toEqual([200, 429]);
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="rate_limited"} 1');
  });

  it("that stream are slowed down to the bytes that their client may send, and come whole", async () => {
    const vendor = createServer(async (req, res) => {
      let came = 0;
      for await (const piece of req) came += (piece as Buffer).length;
      res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ came }));
    });
    await once(vendor.listen(0, "127.0.0.1"), "listening");
    const vendorUrl = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
    const slowed = async (gateway: TestGateway): Promise<number> =>
      Number(/voicewire_uploads_slowed_total (\d+)/.exec(await metricsOf(gateway))?.[1]);
    const begin = ({ url }: TestGateway) => {
      const headers = { "content-type": "multipart/form-data; boundary=x" };
      const upload = request(`${url}/v1/audio-isolation`, { method: "POST", headers });
      upload.write(new Uint8Array(850_000));
      return upload;
    };
    const cameOf = async (upload: ClientRequest): Promise<unknown> => {
      upload.end(new Uint8Array(1000));
      const [answer] = (await once(upload, "response")) as [IncomingMessage];
      return JSON.parse(Buffer.concat(await answer.toArray()).toString());
    };
    await using gateway = await gatewayAt(vendorUrl, { addressLimits: "all", bytesPerSecond: 50_000 });
    const upload = begin(gateway);
    await expect.poll(() => slowed(gateway)).toBeGreaterThan(0);
    expect(await cameOf(upload)).toEqual({ came: 851_000 });
    await using free = await gatewayAt(vendorUrl, { bytesPerSecond: 50_000 });
    expect(await cameOf(begin(free))).toEqual({ came: 851_000 });
    expect(await slowed(free)).toBe(0);
    vendor.closeAllConnections();
    await once(vendor.close(), "close");
  });

  it("count in the bytes of a key where its entry names a number, and not otherwise", async () => {
    const post = async ({ url, key }: KeyedGateway) => {
      const body = JSON.stringify({ text: "x".repeat(50_000) });
      return (await fetch(`${url}/live/none/speak`, { method: "POST", body, headers: bearer(key) })).status;
    };
    await using bounded = await keyed({ server: { limits: { bytes_per_second: 2000 } } });
    expect([await post(bounded), await post(bounded)]).toEqual([404, 429]);
    await using free = await keyed({});
    expect([await post(free), await post(free)]).toEqual([404, 404]);
  });

  it("count for the key that a route finds itself, and not for the address alone", async () => {
    const post = async ({ url, key }: KeyedGateway) => {
      const body = JSON.stringify({
        language: "en-US",
        voice: "Tone A",
        type: "text",
        text: "x".repeat(60_000),
      });
      const headers = { ...JSON_TYPE, ...bearer(key) };
      const answer = await fetch(`${url}/carrier/jambonz/tts`, { method: "POST", body, headers });
      return [answer.status, answer.headers.get("ratelimit-limit")];
    };
    const limits = { bytes_per_second: 3000, characters_per_minute: 700 };
    await using bounded = await keyed({ server: { limits } });
    expect([await post(bounded), await post(bounded)]).toEqual([
      [413, "700"],
      [429, "48000"],
    ]);
    // A static key is a server's, whose address does not count.
    await using free = await keyed({}, { addressLimits: "all", bytesPerSecond: 3000 });
    expect([await post(free), await post(free)]).toEqual([
      [413, null],
      [413, null],
    ]);
  });
});

describe("the texts that wait in all sessions", () => {
  it("are so much, whoever said them and how; what is said or cut makes room", async () => {
    const settings = { queuedTextMb: 1, maxTextChars: 400_000, maxMessageBytes: 1_000_000 };
    await using gateway = await gatewayAt(upstream.url, settings);
    const join = (session: string) => TestClient.connect(gateway, PATH.replace("/s?", `/${session}?`));
    await using first = await join("first");
    await using second = await join("second");
    const text = "Ten chars. ".repeat(18_000);
    first.send({ type: "speak", text, utterance_id: "a" });
    await first.next("utterance.queued");
    second.send({ type: "text", text, utterance_id: "b" });
    await second.next("utterance.queued");
    expect(await metricsOf(gateway)).toContain(`voicewire_queued_text_bytes ${4 * text.length}`);
    second.send({ type: "text", text, utterance_id: "b" });
    expect(await second.next("error")).toMatchObject({ code: "queue_full", retry_after_ms: 1000 });
    const body = JSON.stringify({ text });
    const posted = await fetch(`${gateway.url}/live/second/speak`, { method: "POST", body });
    expect([posted.status, await posted.json()]).toMatchObject([429, { error: { code: "queue_full" } }]);
    expect(await metricsOf(gateway)).toContain('voicewire_refused_total{reason="queue_full"} 2');
    first.send({ type: "cancel", utterance_id: "a" });
    await first.next("utterance.done");
    expect((await fetch(`${gateway.url}/live/second/speak`, { method: "POST", body })).status).toBe(202);
    second.send({ type: "cancel" });
    await second.next("utterance.done", 2);
    expect(await metricsOf(gateway)).toContain("voicewire_queued_text_bytes 0");
  });
});

describe("the texts that wait on other surfaces", () => {
  const LATE = "Two thousand characters and more. ".repeat(60);
  const JAMBONZ = "/carrier/jambonz/tts";
  const VENDOR = "/v1/text-to-speech/v/stream-input?output_format=pcm_16000";

  /** A gateway in which one session's text leaves room for less than LATE, on an upstream that never answers. */
  async function filled() {
    const silent = await startFakeUpstream(() => "silence");
    const settings = { queuedTextMb: 1, maxTextChars: 522_500, maxMessageBytes: 1_000_000 };
    const gateway = await gatewayAt(silent.url, settings);
    const client = await TestClient.connect(gateway, PATH);
    client.send({ type: "speak", text: "x".repeat(522_500), utterance_id: "long" });
    await client.next("utterance.queued");
    const refused = async () =>
      Number(/refused_total\{reason="queue_full"\} (\d+)/.exec(await metricsOf(gateway))?.[1] ?? 0);
    const waiting = async () => Number(/queued_text_bytes (\d+)/.exec(await metricsOf(gateway))?.[1] ?? 0);
    const makeRoom = async () => {
      client.send({ type: "cancel", utterance_id: "long" });
      await client.next("utterance.done");
    };
    return {
      gateway,
      refused,
      waiting,
      makeRoom,
      [Symbol.asyncDispose]: async () => {
        await client[Symbol.asyncDispose]();
        await gateway.close();
        await silent[Symbol.asyncDispose]();
      },
    };
  }

  it.each([
    ["jambonz's socket", `${JAMBONZ}?voice=Tone%20A`, [{ type: "stream", text: LATE }], "queue_full"],
    ["a vendor's socket", VENDOR, [{ text: " " }, { text: LATE }], "system_busy"],
  ])("count on %s; one too many closes it", async (_name, path, messages, word) => {
    await using stand = await filled();
    const open = async () => {
      const socket = new WebSocket(`${stand.gateway.wsUrl}${path}`);
      const heard: string[] = [];
      socket.on("message", (data: Buffer) => heard.push(data.toString()));
      await once(socket, "open");
      for (const message of messages) socket.send(JSON.stringify(message));
      return { socket, heard };
    };
    const refused = await open();
    expect((await once(refused.socket, "close"))[0]).toBe(1008);
    expect(refused.heard.at(-1)).toContain(word);
    expect(await stand.refused()).toBe(1);
    await stand.makeRoom();
    const { socket } = await open();
    await expect.poll(stand.waiting).toBeGreaterThan(2);
    socket.terminate();
    await expect.poll(stand.waiting).toBe(0);
  });

  it.each([
    ["jambonz's POST", JAMBONZ, { language: "en", voice: "21m00Tcm4TlvDq8ikWAM", type: "text", text: LATE }],
    ["OpenAI's route", "/v1/audio/speech", { model: "tts-1", voice: "21m00Tcm4TlvDq8ikWAM", input: LATE }],
  ])("count on %s, until the answer is over", async (_name, path, body) => {
    await using stand = await filled();
    const leaving = new AbortController();
    const headers = { "content-type": "application/json", accept: "audio/wav" };
    const init = { method: "POST", body: JSON.stringify(body), headers, signal: leaving.signal };
    expect((await fetch(stand.gateway.url + path, init)).status).toBe(429);
    expect(await stand.refused()).toBe(1);
    await stand.makeRoom();
    const second = fetch(stand.gateway.url + path, init);
    await expect.poll(stand.waiting).toBeGreaterThan(2000);
    leaving.abort();
    await expect(second).rejects.toThrow();
    await expect.poll(stand.waiting).toBe(0);
  });

  it("count as greetings of calls, which go on without", async () => {
    await using stand = await filled();
    const dial = (text: string) =>
      FakeCarrier.dial({
        carrier: "telnyx",
        url: `${stand.gateway.wsUrl}/carrier/telnyx`,
        call: { parameters: { session: "phoned", text } },
      });
    const call = await dial(LATE);
    await expect.poll(stand.refused).toBe(1);
    const before = await stand.waiting();
    const other = await dial("Hello.");
    await expect.poll(stand.waiting).toBe(before + 2 * "Hello.".length);
    await call.hangUp();
    await other.hangUp();
  });
});

describe("audio and captions over HTTP", () => {
  it("are connections of their caller, until the client goes away", async () => {
    await using gateway = await keyed({ server: { limits: { connections: 2 } } });
    await using speaker = await joinWith(gateway, gateway.key);
    await speaker.next("hello");
    const headers = bearer(gateway.key);
    for (const path of ["/live/s/captions", "/live/s/audio.ulaw", "/live/s/captions.vtt?live=true"]) {
      const gone = new AbortController();
      const listen = async (): Promise<number> => {
        const { signal } = gone;
        return (await fetch(`${gateway.url}${path}`, { headers, signal })).status;
      };
      await expect.poll(listen, { timeout: 5000 }).toBe(200);
      expect((await fetch(`${gateway.url}/live/s/captions`, { headers })).status).toBe(429);
      gone.abort();
    }
  });

  it("open no session without the grant to, and so many sessions with it", async () => {
    await using gateway = await keyed({}, { sessionsPerSubject: 1 });
    const wait = async (session: string, token: string): Promise<number> => {
      const gone = new AbortController();
      const { status } = await fetch(`${gateway.url}/live/${session}/captions?wait=true`, {
        headers: bearer(token),
        signal: gone.signal,
      });
      gone.abort();
      return status;
    };
    expect(await wait("one", tokenFor({ sessions: ["*"], allow: ["captions"] }))).toBe(404);
    const opener = tokenFor({ sessions: ["*"], allow: ["captions", "open"] });
    expect(await wait("one", opener)).toBe(200);
    expect(await wait("two", opener)).toBe(503);
  });
});
