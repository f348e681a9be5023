/** Tokens that a gateway makes for its keys: what they may have, and what they open. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Grants } from "../../src/access/grants.ts";
import { newStaticKey } from "../../src/access/keys.ts";
import { AuditLines } from "../helpers/audit-lines.ts";
import { type FakeUpstream, jsonAnswer, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { knock } from "../helpers/knock.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

const NARROW: Grants = {
  sessions: ["support-*"],
  allow: ["open", "speak", "listen"],
  voices: ["good*"],
  connections: 3,
  speech: { model_id: "pinned" },
};
const narrow = newStaticKey("narrow");
const listens = newStaticKey("listens");
const spends = newStaticKey("spends");
const keys = new TestKeys({
  keys: [
    { id: "narrow", hash: narrow.hash, grants: NARROW, tenant: "acme" },
    { id: "listens", hash: listens.hash, grants: LISTENER },
    { id: "spends", hash: spends.hash, grants: { ...SPEAKER, characters: 10 } },
  ],
});
let upstream: FakeUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path });
});

afterAll(async () => {
  await gateway.close();
  await upstream[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

interface Answer {
  readonly status: number;
  readonly token: string;
  readonly expires_at: number;
  readonly error?: { readonly code: string; readonly field?: string; readonly message: string };
}

async function ask(key: string, body: object | string, path = "/tokens"): Promise<Answer> {
  const answer = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: answer.status, ...((await answer.json()) as Omit<Answer, "status">) };
}

function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<
    string,
    unknown
  >;
}

async function joined(path: string, token: string): Promise<TestClient> {
  const client = await TestClient.connect(gateway, path, { headers: { authorization: `Bearer ${token}` } });
  await client.until(() => client.messages.length > 0);
  return client;
}

describe("POST /tokens", () => {
  it("makes a token that opens what it names, for a minute unless the key says how long", async () => {
    const minute = await ask(keys.key, { subject: "ann", grants: SPEAKER });
    expect(minute.status).toBe(201);
    const { sub, exp, iat, iss, vw } = claimsOf(minute.token);
    expect({ sub, iss, vw, exp }).toEqual({ sub: "ann", iss: "server", vw: SPEAKER, exp: minute.expires_at });
    expect([60, 61]).toContain(Number(exp) - Number(iat));
    await using client = await joined("/live/minted?format=none", minute.token);
    expect((await client.next("hello")).settings.role).toBe("both");
    const day = await ask(keys.key, { grants: SPEAKER, expires_in_seconds: 86_400 });
    expect(claimsOf(day.token).sub).toBe("server");
  });

  it("makes tokens that stand below the key that asked", async () => {
    const { token } = await ask(narrow.key, {
      grants: { sessions: ["support-1"], allow: ["open", "speak"] },
    });
    await using client = await joined("/live/support-1?format=none&role=speaker", token);
    client.send({ type: "speak", text: "Hello.", voice_id: "bad" });
    expect((await client.next("error")).code).toBe("forbidden");
  });

  it("makes a token with more characters than the key has, which spends those of the key", async () => {
    const { status, token } = await ask(spends.key, { grants: { ...SPEAKER, characters: 1000 } });
    expect(status).toBe(201);
    await using client = await joined("/live/spent?format=none", token);
    client.send({ type: "speak", text: "Eleven, all." });
    expect((await client.next("error")).code).toBe("budget_exhausted");
  });

  it("gives the connection of a single-use token an hour", async () => {
    const once = { ...LISTENER, once: true };
    expect(claimsOf((await ask(keys.key, { grants: once })).token).vw).toEqual({ ...once, seconds: 3600 });
    const until = { ...once, session_until: 4_000_000_000 };
    expect(claimsOf((await ask(keys.key, { grants: until })).token).vw).toEqual(until);
  });

  it.each<readonly [name: string, grants: object, field: string]>([
    ["an action", { sessions: ["support-1"], allow: ["listen", "call"] }, "grants.allow"],
    ["a session", { sessions: ["sales-1"], allow: ["listen"] }, "grants.sessions"],
    ["a voice", { sessions: ["support-1"], allow: ["listen"], voices: ["bad"] }, "grants.voices"],
    [
      "more connections",
      { sessions: ["support-1"], allow: ["listen"], connections: 4 },
      "grants.connections",
    ],
    [
      "another model",
      { sessions: ["support-1"], allow: ["listen"], speech: { model_id: "m" } },
      "grants.speech",
    ],
    ["another tenant", { sessions: ["support-1"], allow: ["listen"], tenant: "other" }, "grants.tenant"],
  ])("refuses %s that the key does not have", async (_name, grants, field) => {
    expect(await ask(narrow.key, { grants })).toMatchObject({
      status: 403,
      error: { code: "forbidden", field },
    });
  });

  it.each<readonly [name: string, body: object | string, status: number, field: string | undefined]>([
    ["no grants", {}, 400, "grants"],
    ["an unknown grant", { grants: { ...LISTENER, everything: true } }, 400, "grants.everything"],
    ["an unknown field", { grants: LISTENER, ttl: 5 }, 400, "ttl"],
    ["a day and a second", { grants: LISTENER, expires_in_seconds: 86_401 }, 400, "expires_in_seconds"],
    ["no time", { grants: LISTENER, expires_in_seconds: 0 }, 400, "expires_in_seconds"],
    ["a subject with a blank", { grants: LISTENER, subject: "a b" }, 400, "subject"],
    ["a token that is too long", { grants: { ...LISTENER, voices: manyVoices() } }, 400, "grants"],
    [
      "a session_until that has passed",
      { grants: { ...LISTENER, session_until: Math.floor(Date.now() / 1000) - 1 } },
      400,
      "grants.session_until",
    ],
    ["no JSON", "{", 400, undefined],
    ["a body of 20 KB", `"${"x".repeat(20_000)}"`, 413, undefined],
  ])("refuses %s", async (_name, body, status, field) => {
    const answer = await ask(keys.key, body);
    expect(answer).toMatchObject({ status });
    expect(answer.error?.field).toBe(field);
  });

  it("is for keys only", async () => {
    expect((await ask("", { grants: LISTENER })).status).toBe(401);
    const answer = await ask(tokenFor(SPEAKER), { grants: LISTENER });
    expect(answer).toMatchObject({ status: 403, error: { code: "forbidden" } });
  });

  it.each<readonly [name: string, app: object]>([
    ["grants", { grants: LISTENER }],
    ["a tenant", { tenant: "acme" }],
    ["limits", { limits: { connections: 1 } }],
  ])(
    "are not made with a key that has %s, and what it signs stands below no other key",
    async (_name, app) => {
      using own = new TestKeys({ app, server: { grants: { ...SPEAKER, sessions: ["of-server"] } } });
      const audit = new AuditLines();
      await using other = await gatewayAt(upstream.url, { keysFile: own.path }, { auditLog: audit.log });
      const body = JSON.stringify({ grants: { sessions: ["of-server"], allow: ["listen"] } });
      const headers = { "xi-api-key": own.key };
      const answer = await fetch(`${other.url}/tokens`, { method: "POST", headers, body });
      expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining("without tenant")]);
      // As who has its secret may sign it.
      const token = tokenFor(LISTENER, { claims: { iss: "server" } });
      const path = `${other.wsUrl}/live/elsewhere?format=none&role=listener`;
      expect(await knock(path, { headers: { authorization: `Bearer ${token}` } })).toMatchObject({
        status: 101,
      });
      expect(audit.lines.filter((line) => line.audit === "admitted").at(-1)).toMatchObject({ key: "app" });
    },
  );

  it("says what to add where no key makes tokens, and where there are no keys", async () => {
    using own = new TestKeys({ app: { mints: false } });
    await using other = await gatewayAt(upstream.url, { keysFile: own.path });
    const post = (url: string) =>
      fetch(`${url}/tokens`, {
        method: "POST",
        headers: { "xi-api-key": own.key },
        body: JSON.stringify({ grants: LISTENER }),
      });
    const answer = await post(other.url);
    expect(answer.status).toBe(500);
    expect(await answer.text()).toContain('\\"mints\\": true');
    await using open = await gatewayAt(upstream.url);
    expect((await post(open.url)).status).toBe(404);
  });
});

function manyVoices(): string[] {
  return Array.from({ length: 64 }, (_, index) => `voice-of-the-upstream-number-${index}`);
}

describe("POST /v1/single-use-token/tts_websocket", () => {
  const path = "/v1/single-use-token/tts_websocket";

  it("makes the gateway's own token for a vendor socket, and for no session", async () => {
    const before = upstream.requests.length;
    const { status, token } = await ask(keys.key, "", path);
    expect(status).toBe(200);
    expect(upstream.requests.length).toBe(before);
    const { exp, iat, vw } = claimsOf(token);
    expect([900, 901]).toContain(Number(exp) - Number(iat));
    expect(vw).toMatchObject({ allow: ["speak"], once: true, seconds: 3600 });
    await using client = await TestClient.connect(gateway, `/live/x?token=${token}`, {
      headers: { origin: "http://127.0.0.1:3000" },
    });
    expect(await client.untilClosed()).toEqual({ code: 4403, reason: "forbidden" });
  });

  it("is for keys that may speak, and for speech sockets", async () => {
    expect((await ask("", "", path)).status).toBe(401);
    expect((await ask(tokenFor(SPEAKER), "", path)).status).toBe(403);
    expect((await ask(listens.key, "", path)).status).toBe(403);
    expect((await ask(keys.key, "", "/v1/single-use-token/realtime_scribe")).status).toBe(400);
  });

  it("is the upstream's without keys", async () => {
    await using other = await startFakeUpstream(() => jsonAnswer(200, { token: "sutkn_theirs" }));
    await using open = await gatewayAt(other.url);
    const answer = await fetch(`${open.url}${path}`, { method: "POST" });
    expect(await answer.json()).toEqual({ token: "sutkn_theirs" });
  });
});
