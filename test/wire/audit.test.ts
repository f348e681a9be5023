/** Which lines the audit log gets of who may not come in or send a command, over real sockets and requests. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuditLines } from "../helpers/audit-lines.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, SIGNING, SPEAKER, signingPair, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { knock, type Offer, upgradeStatus } from "../helpers/knock.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

const web = signingPair("web", "ES256");
const keys = new TestKeys({
  server: { grants: { sessions: ["*"], allow: ["open", "listen", "admin"] } },
  keys: [web.entry, { id: "old", ...SIGNING, expires: "2020-01-01T00:00:00Z" }],
  revoked: { tokens: ["withdrawn"] },
});
let upstream: FakeUpstream;
let audit: AuditLines;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 5 }));
});

afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

// One for each test: a gateway writes no more than ten refusals a second.
beforeEach(async () => {
  audit = new AuditLines();
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path, opsPort: 0 }, { auditLog: audit.log });
});

afterEach(() => gateway.close());

function bearer(token: string) {
  return { authorization: `Bearer ${token}` };
}

async function join(path: string, grants: object): Promise<TestClient> {
  const token = tokenFor(grants, { claims: { jti: "id-1" } });
  const client = await TestClient.connect(gateway, path, { headers: bearer(token) });
  await client.until(() => client.messages.length > 0);
  return client;
}

const now = Math.floor(Date.now() / 1000);

function unsigned(alg: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg, kid: "app" })}.${part({ aud: "voicewire", sub: "ann", exp: now + 60, vw: SPEAKER })}.`;
}

const withToken = (token: string): Offer => ({ headers: bearer(token) });
const knockWith = (offer: Offer, query = "") => knock(`${gateway.wsUrl}/live/s?format=none${query}`, offer);

/** All that comes back for a request as it is written here, until the gateway closes. */
async function answerTo(request: string): Promise<string> {
  const { port, hostname } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.write(request);
  await once(socket, "close");
  return Buffer.concat(parts).toString();
}

describe("a credential that does not hold is refused before the upgrade, with one line", () => {
  const claimed = (claims: object) => withToken(tokenFor(SPEAKER, { claims: { ...claims } }));

  it.each<[string, () => Offer, number, string, string]>([
    ["none", () => ({}), 401, "unauthorized", "no_credential"],
    ["a word", () => withToken("letmein"), 401, "unauthorized", "malformed"],
    [
      "a key with another secret",
      () => withToken(`vwk_server_${"A".repeat(43)}`),
      401,
      "unauthorized",
      "unknown_key",
    ],
    ["expired", () => withToken(tokenFor(SPEAKER, { lifeSeconds: -70 })), 401, "token_expired", "expired"],
    ["not valid yet", () => claimed({ nbf: now + 90 }), 401, "unauthorized", "not_yet_valid"],
    ["of a clock that is ahead", () => claimed({ iat: now + 90 }), 401, "unauthorized", "not_yet_valid"],
    ["for another audience", () => claimed({ aud: "other" }), 401, "unauthorized", "wrong_audience"],
    ["of another algorithm", () => withToken(unsigned("ES256")), 401, "unauthorized", "wrong_algorithm"],
    ["of the algorithm none", () => withToken(unsigned("none")), 401, "unauthorized", "wrong_algorithm"],
    [
      "of an unknown key",
      () => withToken(tokenFor(SPEAKER, { kid: "nobody" })),
      401,
      "unauthorized",
      "unknown_key",
    ],
    [
      "of a key that is over",
      () => withToken(tokenFor(SPEAKER, { kid: "old" })),
      401,
      "unauthorized",
      "key_expired",
    ],
    [
      "with another's signature",
      () => withToken(tokenFor(SPEAKER, { kid: "web" })),
      401,
      "unauthorized",
      "wrong_algorithm",
    ],
    ["withdrawn", () => claimed({ jti: "withdrawn" }), 401, "unauthorized", "revoked"],
    [
      "with an unknown grant",
      () => withToken(tokenFor({ ...SPEAKER, all: true })),
      401,
      "unauthorized",
      "unknown_grant",
    ],
    ["longer than 2 KB", () => withToken("a".repeat(3000)), 401, "unauthorized", "token_too_long"],
    [
      "for another session",
      () => withToken(tokenFor({ ...SPEAKER, sessions: ["x"] })),
      403,
      "forbidden",
      "forbidden",
    ],
    [
      "without a grant to join",
      () => withToken(tokenFor({ sessions: ["*"], allow: ["proxy"] })),
      403,
      "forbidden",
      "forbidden",
    ],
    [
      "one of two that differ",
      () => ({ headers: { ...bearer(tokenFor(SPEAKER)), "xi-api-key": keys.key } }),
      400,
      "invalid_field",
      "two_places",
    ],
  ])("%s", async (_name, offer, status, code, reason) => {
    expect(await knockWith(offer())).toEqual({ status, code });
    expect(audit.lines).toEqual([
      expect.objectContaining({ audit: "refused", reason, surface: "/live/:session", address: "127.0.0.1" }),
    ]);
  });

  it.each<[reason: string, token: () => string, facts: object]>([
    ["expired", () => tokenFor(SPEAKER, { lifeSeconds: -70, claims: { jti: "late" } }), { token: "late" }],
    ["revoked", () => tokenFor(SPEAKER, { claims: { jti: "withdrawn" } }), { token: "withdrawn" }],
    ["not_yet_valid", () => tokenFor(SPEAKER, { claims: { nbf: now + 90, jti: "soon" } }), { token: "soon" }],
    ["wrong_origin", () => tokenFor({ ...SPEAKER, origin: ["https://app.example"] }), {}],
    ["bad_claims", () => tokenFor(SPEAKER, { claims: { exp: "never" } }), { claim: "exp" }],
    ["unknown_grant", () => tokenFor({ ...SPEAKER, all: true }), { claim: "vw.all" }],
    ["unknown_grant", () => tokenFor({ ...SPEAKER, allow: ["listen", "sing"] }), { claim: "vw.allow.1" }],
  ])(
    "%s: the line names the key and the subject of a token that a key has signed",
    async (reason, token, facts) => {
      const headers = { ...bearer(token()), origin: "http://127.0.0.1:3000" };
      await knockWith({ headers });
      expect(audit.lines).toEqual([
        expect.objectContaining({ reason, key: "app", subject: "ann", ...facts }),
      ]);
    },
  );

  it("the line of a token that the gateway made names the key that asked for it", async () => {
    const claims = { iss: "server", sub: "bob" };
    await knockWith(withToken(tokenFor(SPEAKER, { lifeSeconds: -70, claims })));
    expect(audit.refused).toMatchObject([{ reason: "expired", key: "server", subject: "bob" }]);
  });

  it("the line of a token that no key has signed names nobody", async () => {
    await knockWith(withToken(unsigned("none")));
    expect(audit.refused).toHaveLength(1);
    for (const name of ["key", "subject", "token"]) expect(audit.refused[0]).not.toHaveProperty(name);
  });

  it("in the URL and not single-use", async () => {
    const token = tokenFor(SPEAKER);
    expect(await knockWith({}, `&token=${token}`)).toEqual({ status: 401, code: "unauthorized" });
    expect(audit.lines).toMatchObject([{ audit: "refused", reason: "not_single_use" }]);
    expect(JSON.stringify(audit.lines)).not.toContain(token);
  });

  it("single-use, the second and third time; of two sockets at once one is let in", async () => {
    const offer = withToken(tokenFor({ ...SPEAKER, once: true }, { claims: { jti: "once-1" } }));
    const both = await Promise.all([knockWith(offer), knockWith(offer)]);
    expect(both.map(({ status }) => status).sort()).toEqual([101, 401]);
    expect(await knockWith(offer)).toEqual({ status: 401, code: "token_expired" });
    expect(audit.lines.map(({ audit, reason }) => [audit, reason])).toEqual([
      ["admitted", undefined],
      ["refused", "used"],
      ["refused", "used"],
    ]);
  });

  it("a credential of 100 KB is refused by the server library for its size, before there is anybody to name", async () => {
    const headers = bearer("a".repeat(100_000));
    expect(await upgradeStatus(`${gateway.wsUrl}/live/s`, headers)).toBe(431);
    expect(audit.lines).toEqual([]);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  });

  it("while the key file is broken: the keys before it stay", async () => {
    using own = new TestKeys();
    const log = new AuditLines();
    await using running = await gatewayAt(upstream.url, { keysFile: own.path }, { log: log.log });
    own.writeText("{ broken");
    await until("the line that says so", () => JSON.stringify(log.lines).includes("keys-file"));
    const path = `${running.wsUrl}/live/s?format=none`;
    expect((await knock(path, withToken(own.key))).status).toBe(101);
    expect((await knock(path, withToken("letmein"))).status).toBe(401);
    expect(log.refused).toMatchObject([{ reason: "malformed" }]);
  });
});

describe("a request's Host and Origin", () => {
  const known = () => bearer(tokenFor(SPEAKER));

  it.each([
    ["a port", { host: "localhost:1234" }],
    ["a trailing dot", { host: "localhost.:80" }],
    ["an IPv6 address", { host: "[::1]:8080" }],
    ["upper case", { host: "LOCALHOST", origin: "HTTP://LOCALHOST:3000" }],
  ])("with %s are let in where they are this machine's", async (_name, headers) => {
    expect((await knockWith({ headers: { ...known(), ...headers } })).status).toBe(101);
    expect(audit.refused).toEqual([]);
  });

  it("are let in with an upper-case scheme of Authorization", async () => {
    expect((await knockWith({ headers: { authorization: `BEARER ${tokenFor(SPEAKER)}` } })).status).toBe(101);
    expect(audit.refused).toEqual([]);
  });

  it.each([
    ["another host", { host: "evil.example" }, 421, "host_not_allowed"],
    ["with a port", { host: "evil.example:8080" }, 421, "host_not_allowed"],
    ["with a trailing dot", { host: "evil.example." }, 421, "host_not_allowed"],
    ["of IPv6", { host: "[2001:db8::1]:8080" }, 421, "host_not_allowed"],
    ["that begins like this machine", { host: "127.0.0.1.evil.example" }, 421, "host_not_allowed"],
    ["another origin", { origin: "https://evil.example" }, 403, "origin_not_allowed"],
    ["in upper case", { origin: "HTTPS://EVIL.EXAMPLE" }, 403, "origin_not_allowed"],
  ])("%s: refused before the upgrade, with one line", async (_name, headers, status, code) => {
    expect(await knockWith({ headers: { ...known(), ...headers } })).toEqual({ status, code });
    expect(audit.lines).toEqual([
      { audit: "refused", reason: code, surface: "/live/:session", address: "127.0.0.1" },
    ]);
  });
});

describe("a header that may come once", () => {
  it.each(["authorization: Bearer letmein", "xi-api-key: letmein", "host: evil.example"])(
    "twice, as %s beside another: refused before the upgrade, with one line that shows neither",
    async (second) => {
      const [name = ""] = second.split(":");
      const token = tokenFor(SPEAKER);
      const first = { authorization: `Bearer ${token}`, "xi-api-key": token, host: "localhost" }[name] ?? "";
      const host = name === "host" ? "" : "host: localhost\r\n";
      const lines = `${host}${name}: ${first}\r\n${second}\r\n`;
      const upgrade = `connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${"A".repeat(22)}==\r\n`;
      const answer = await answerTo(`GET /live/s HTTP/1.1\r\n${upgrade}${lines}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400\b/);
      expect(audit.lines).toEqual([
        { audit: "refused", reason: "header_twice", surface: "/live/:session", address: "127.0.0.1" },
      ]);
    },
  );
});

/** Of a command over a socket. */
const refusal = {
  audit: "refused",
  reason: "forbidden",
  surface: "/live/:session",
  address: "127.0.0.1",
  session: expect.stringMatching(/^[\w-]{16}$/) as unknown,
  key: "app",
  subject: "ann",
  token: "id-1",
};

describe("a command that its sender may not send", () => {
  it.each([
    ["of a listener that would speak", LISTENER, { type: "speak", text: "Private words." }],
    ["of a listener that would interrupt", LISTENER, { type: "interrupt" }],
    ["with a foreign voice", { ...SPEAKER, voices: ["mine"] }, { type: "speak", text: "Hi.", voice_id: "b" }],
    ["with a foreign model", { ...SPEAKER, models: ["mine"] }, { type: "speak", text: "Hi.", model_id: "b" }],
    ["with a foreign format", { ...SPEAKER, formats: ["none"] }, { type: "configure", format: "pcm_24000" }],
  ])("%s is one line, with the command and without its text", async (_name, grants, command) => {
    await using speaker = await join("/live/talk?format=none", SPEAKER);
    await using client = await join(
      `/live/talk?format=${grants === LISTENER ? "ulaw_8000" : "none"}`,
      grants,
    );
    client.send(command);
    expect((await client.next("error")).code).toBe("forbidden");
    expect(audit.refused).toEqual([{ ...refusal, command: command.type }]);
    expect(JSON.stringify(audit.lines)).not.toMatch(/Private|talk/);
    expect(speaker.closed).toBeNull();
  });

  it("that comes again and again is one line, and one more at the end of the connection", async () => {
    await using speaker = await join("/live/again?format=none", SPEAKER);
    const client = await join("/live/again?format=ulaw_8000", LISTENER);
    for (let count = 0; count < 5; count += 1) client.send({ type: "speak", text: "Hi." });
    client.send({ type: "interrupt" });
    await client.next("error", 6);
    const lines = [
      { ...refusal, command: "speak" },
      { ...refusal, command: "interrupt" },
    ];
    expect(audit.refused).toEqual(lines);
    await client[Symbol.asyncDispose]();
    await until("the line at its end", () => audit.refused.length > 2);
    expect(audit.refused).toEqual([...lines, { ...refusal, command: "speak", again: 4 }]);
    expect(speaker.closed).toBeNull();
  });

  it("is counted each time in the figures of what was refused", async () => {
    await using client = await join("/live/s?format=none", { ...SPEAKER, voices: ["mine"] });
    for (let count = 0; count < 5; count += 1) client.send({ type: "speak", text: "Hi.", voice_id: "b" });
    await client.next("error", 5);
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`, { headers: bearer(keys.key) })).text();
    expect(metrics).toContain('voicewire_refused_total{reason="forbidden"} 5');
  });

  it.each([
    ["a format", "?format=ulaw_8000&role=both", { ...SPEAKER, formats: ["pcm_24000"] }, "forbidden"],
    ["a role", "?format=ulaw_8000&role=both", LISTENER, "forbidden"],
  ])("by joining with %s that it may not have is one line", async (_name, query, grants, code) => {
    await using client = await join(`/live/joining${query}`, grants);
    expect(await client.untilClosed()).toMatchObject({ reason: code });
    expect(audit.refused).toEqual([{ ...refusal, reason: code }]);
  });

  it.each([
    ["speaks without the grant", LISTENER, {}],
    ["has a foreign voice", { ...SPEAKER, voices: ["mine"] }, { voice_id: "b" }],
    ["has a foreign model", { ...SPEAKER, models: ["mine"] }, { model_id: "b" }],
    ["is for another session", { ...SPEAKER, sessions: ["other"] }, {}],
  ])("by POST that %s is one line", async (_name, grants, fields) => {
    await using speaker = await join("/live/http?format=none", SPEAKER);
    const answer = await fetch(`${gateway.url}/live/http/speak`, {
      method: "POST",
      headers: {
        ...bearer(tokenFor(grants, { claims: { jti: "id-1" } })),
        "content-type": "application/json",
      },
      body: JSON.stringify({ text: "Private words.", ...fields }),
    });
    expect(answer.status).toBe(403);
    expect(audit.refused).toEqual([{ ...refusal, surface: "/live/:session/speak" }]);
    expect(JSON.stringify(audit.lines)).not.toContain("Private");
    expect(speaker.closed).toBeNull();
  });

  it.each(["audio.wav", "audio.mp3"])(
    "by a player of %s whose format it may not have is one line",
    async (file) => {
      await using speaker = await join("/live/played?format=none", SPEAKER);
      const token = tokenFor({ ...LISTENER, formats: ["opus"] }, { claims: { jti: "id-1" } });
      const answer = await fetch(`${gateway.url}/live/played/${file}`, { headers: bearer(token) });
      expect(answer.status).toBe(403);
      expect(audit.refused).toEqual([{ ...refusal, surface: `/live/:session/${file}` }]);
      expect(speaker.closed).toBeNull();
    },
  );

  it.each(["captions", "captions.vtt", "audio.wav"])(
    "by one connection too many for %s is one line",
    async (file) => {
      await using speaker = await join("/live/full?format=none", { ...SPEAKER, connections: 1 });
      const token = tokenFor({ ...LISTENER, connections: 1 }, { claims: { jti: "id-1" } });
      const answer = await fetch(`${gateway.url}/live/full/${file}`, { headers: bearer(token) });
      expect(answer.status).toBe(429);
      const surface = `/live/:session/${file}`;
      expect(audit.refused).toEqual([{ ...refusal, surface, reason: "connection_limit" }]);
      expect(speaker.closed).toBeNull();
    },
  );
});

describe("a token that may not be made", () => {
  const refused = { audit: "refused", reason: "forbidden", address: "127.0.0.1", key: "server" };
  const post = (path: string, credential: string) =>
    fetch(gateway.url + path, {
      method: "POST",
      headers: bearer(credential),
      body: JSON.stringify({ grants: SPEAKER }),
    });

  it.each([
    ["/tokens", "/tokens"],
    ["/v1/single-use-token/tts_websocket", "/v1/single-use-token/:type"],
  ])("at %s by a key that may not have as much is one line", async (path, surface) => {
    expect((await post(path, keys.key)).status).toBe(403);
    expect(audit.refused).toEqual([{ ...refused, surface }]);
  });

  it("by a token is one line", async () => {
    expect((await post("/tokens", tokenFor(SPEAKER, { claims: { jti: "id-1" } }))).status).toBe(403);
    const by = { key: "app", subject: "ann", token: "id-1" };
    expect(audit.refused).toEqual([{ ...refused, ...by, surface: "/tokens" }]);
  });
});
