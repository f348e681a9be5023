/** What web pages of other origins get from the gateway's port: src/access/origin-rules.ts, on every kind of route. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { upgradeStatus } from "../helpers/knock.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const SOCKETS = [
  "/live/s",
  "/carrier/twilio",
  "/carrier/jambonz",
  "/v1/text-to-speech/v/stream-input",
  "/v1/text-to-speech/v/multi-stream-input",
  "/v1/nowhere",
];

const REQUESTS = [
  ["GET", "/"],
  ["GET", "/healthz"],
  ["GET", "/readyz"],
  ["GET", "/metrics"],
  ["GET", "/openapi.json"],
  ["GET", "/asyncapi.json"],
  ["GET", "/live/s/audio.wav?wait=true"],
  ["HEAD", "/live/s/audio.wav?wait=true"],
  ["GET", "/live/s/captions?wait=true"],
  ["GET", "/live/s/captions.vtt?wait=true"],
  ["POST", "/live/s/speak"],
  ["POST", "/live/s/interrupt"],
  ["POST", "/carrier/rtp"],
  ["DELETE", "/carrier/rtp/c"],
  ["POST", "/carrier/jambonz/tts"],
  ["POST", "/v1/audio/speech"],
  ["GET", "/v1/voices"],
  ["POST", "/v1/text-to-speech/v"],
  ["DELETE", "/v1/history/h"],
  ["GET", "/v2/voices"],
  ["OPTIONS", "/live/s/speak"],
  ["GET", "/nowhere"],
] as const;

/** A browser that opens the answer runs nothing, guesses no type, and tells nobody its address. */
const INERT = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'",
  "referrer-policy": "no-referrer",
};

const REFUSED = [
  ["a page of another origin", { origin: "https://evil.example" }, 403],
  ["a page without an origin", { origin: "null" }, 403],
  [
    "what a page of another site embeds",
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
    403,
  ],
  ["a name that was bound to this address", { host: "evil.example" }, 421],
] as const;

async function ask(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ status: number; headers: IncomingMessage["headers"]; text: string }> {
  const sent = request(url, { method, headers }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) text += piece;
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}

describe.each(REFUSED)("%s", (_name, headers, expected) => {
  it("is refused on every route before anything happens, and reads nothing", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    for (const [method, path] of REQUESTS) {
      const answer = await ask(`${gateway.url}${path}`, method, headers);
      expect([path, answer.status]).toEqual([path, expected]);
      expect(answer.headers["access-control-allow-origin"], path).toBeUndefined();
      expect(answer.headers, path).toMatchObject(INERT);
    }
    for (const path of SOCKETS) {
      expect([path, await upgradeStatus(`${gateway.wsUrl}${path}`, headers)]).toEqual([path, expected]);
    }
    const ops = await ask(`${gateway.opsUrl}/metrics`, "GET", headers);
    expect(ops.status).toBe(expected);
    expect([gateway.counters.sessionsOpened, gateway.counters.connectionsOpened]).toEqual([0, 0]);
  });
});

it("a listed origin opens sockets and reads answers, which name it and no other", async () => {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url, { allowedOrigins: "https://*.example.com" });
  const origin = "https://app.example.com";
  expect(await upgradeStatus(`${gateway.wsUrl}/live/s`, { origin })).toBe(101);
  const answer = await ask(`${gateway.url}/healthz`, "GET", { origin });
  expect(answer.headers).toMatchObject({ "access-control-allow-origin": origin, vary: "Origin" });
  const preflight = await ask(`${gateway.url}/live/s/speak`, "OPTIONS", { origin });
  expect([preflight.status, preflight.headers["access-control-allow-origin"]]).toEqual([204, origin]);
  expect(preflight.headers["access-control-allow-methods"]).toContain("POST");
});

it("a listed origin reads why its key or token is refused, and no other origin does", async () => {
  using keys = new TestKeys();
  await using upstream = await startFakeUpstream();
  const origin = "https://app.example.com";
  await using gateway = await gatewayAt(upstream.url, { allowedOrigins: origin, keysFile: keys.path });
  for (const [method, path] of [
    ["GET", "/v1/voices"],
    ["POST", "/live/s/speak"],
    ["POST", "/v1/audio/speech"],
  ] as const) {
    const answer = await ask(`${gateway.url}${path}`, method, { origin });
    expect([path, answer.status, answer.headers["access-control-allow-origin"]]).toEqual([path, 401, origin]);
    const foreign = await ask(`${gateway.url}${path}`, method, { origin: "https://evil.example" });
    expect([foreign.status, foreign.headers["access-control-allow-origin"]]).toEqual([403, undefined]);
  }
});

it("a program that is no browser needs no origin", async () => {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  await using client = await TestClient.connect(gateway, "/live/s");
  await client.next("hello");
  const answer = await ask(`${gateway.url}/healthz`, "GET", {});
  expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([200, undefined]);
});

it("what is no page runs nothing in a browser, and the page talks to its own gateway only", async () => {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  for (const path of ["/healthz", "/asyncapi.json", "/v1/voices", "/nowhere", "/live/s/captions.vtt"]) {
    expect((await ask(`${gateway.url}${path}`, "GET", {})).headers, path).toMatchObject(INERT);
  }
  const { headers } = await ask(`${gateway.url}/`, "GET", {});
  expect(headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "permissions-policy": expect.stringContaining("microphone=()"),
  });
  const policy = String(headers["content-security-policy"]);
  expect(policy).toMatch(/connect-src 'self';.*frame-ancestors 'none'/);
  expect(policy).not.toContain("sandbox");
});

it("a refusal says which setting lets the page in", async () => {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  const ofOrigin = await ask(`${gateway.url}/`, "GET", { origin: "https://evil.example" });
  expect(JSON.parse(ofOrigin.text)).toMatchObject({
    error: { code: "origin_not_allowed", field: "origin", message: expect.stringContaining("allow-origin") },
  });
  const ofHost = await ask(`${gateway.url}/`, "GET", { host: "evil.example" });
  expect(JSON.parse(ofHost.text)).toMatchObject({
    error: { code: "host_not_allowed", field: "host", message: expect.stringContaining("allowed-hosts") },
  });
});
