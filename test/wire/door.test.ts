/** Who may join and do what on a gateway with keys, over real sockets and requests. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, SIGNING, SPEAKER, signingPair, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { knock as knockAt, type Offer } from "../helpers/knock.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { FakeCarrier } from "../kit/carriers/fake-carrier.ts";

const web = signingPair("web", "ES256");
const app = signingPair("games", "EdDSA");
/** Takes longer to say than the tokens of these tests hold. */
const LONG_TEXT = "It takes a while to say all of this, which is why it is longer than other texts. ".repeat(
  2,
);
const OTHER_SECRET = Buffer.alloc(32, "o").toString("base64url");

const keys = new TestKeys({
  keys: [
    web.entry,
    app.entry,
    { id: "old", algorithm: "HS256", secret: OTHER_SECRET, expires: "2020-01-01T00:00:00Z" },
    { id: "narrow", hash: `sha256:${"0".repeat(64)}`, grants: LISTENER },
  ],
  revoked: { tokens: ["withdrawn"], subjects: { mallory: 4_000_000_000 } },
});
let upstream: FakeUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 25 }));
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path });
});

afterAll(async () => {
  await gateway.close();
  await upstream[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

/** Status and error code of a refused upgrade, or 101. */
const knock = (path: string, offer?: Offer) => knockAt(`${gateway.wsUrl}${path}`, offer);

function bearer(token: string): Offer {
  return { headers: { authorization: `Bearer ${token}` } };
}

async function join(path: string, token: string): Promise<TestClient> {
  const client = await TestClient.connect(gateway, path, { headers: { authorization: `Bearer ${token}` } });
  await client.until(() => client.messages.length > 0);
  return client;
}

const now = Math.floor(Date.now() / 1000);

describe("a credential", () => {
  it.each([
    ["a static key in Authorization", () => bearer(keys.key)],
    ["a static key in xi-api-key", () => ({ headers: { "xi-api-key": keys.key } })],
    ["a token that a secret has signed", () => bearer(tokenFor(SPEAKER))],
    ["one that an ES256 key has signed", () => bearer(web.sign(claims()))],
    ["one that an Ed25519 key has signed", () => bearer(app.sign(claims()))],
    [
      "a token in a subprotocol",
      () => ({ protocols: ["voicewire.v1", `voicewire.token.${tokenFor(SPEAKER)}`] }),
    ],
    ["one whose clock is 50 s ahead", () => bearer(tokenFor(SPEAKER, { claims: { nbf: now + 50 } }))],
    [
      "one that expired 50 s ago, whose connection lasts longer",
      () => bearer(tokenFor({ ...SPEAKER, seconds: 60 }, { lifeSeconds: -50 })),
    ],
    [
      "the same token in two places",
      () => {
        const token = tokenFor(SPEAKER);
        return { ...bearer(token), protocols: ["voicewire.v1", `voicewire.token.${token}`] };
      },
    ],
  ])("%s opens", async (_name, offer: () => Offer) => {
    expect(await knock("/live/s?format=none", offer())).toEqual({ status: 101, code: "" });
  });

  it.each([
    ["none", () => ({}), 401, "unauthorized"],
    ["a word", () => bearer("letmein"), 401, "unauthorized"],
    ["a static key with another secret", () => bearer(`vwk_server_${"A".repeat(43)}`), 401, "unauthorized"],
    ["an unknown key's token", () => bearer(tokenFor(SPEAKER, { kid: "nobody" })), 401, "unauthorized"],
    ["a key that has expired", () => bearer(tokenFor(SPEAKER, { kid: "old" })), 401, "unauthorized"],
    [
      "a token for another audience",
      () => bearer(tokenFor(SPEAKER, { claims: { aud: "other" } })),
      401,
      "unauthorized",
    ],
    ["one that says alg: none", () => bearer(unsigned("none")), 401, "unauthorized"],
    ["one that says another algorithm", () => bearer(unsigned("ES256")), 401, "unauthorized"],
    [
      "one whose signature was changed",
      () => bearer(`${tokenFor(SPEAKER).slice(0, -3)}AAA`),
      401,
      "unauthorized",
    ],
    ["one that has expired", () => bearer(tokenFor(SPEAKER, { lifeSeconds: -70 })), 401, "token_expired"],
    [
      "one whose connection would have ended with it",
      () => bearer(tokenFor(SPEAKER, { lifeSeconds: -50 })),
      401,
      "token_expired",
    ],
    [
      "one whose session_until is over",
      () => bearer(tokenFor({ ...SPEAKER, session_until: now - 1 })),
      401,
      "token_expired",
    ],
    [
      "one that is not valid yet",
      () => bearer(tokenFor(SPEAKER, { claims: { nbf: now + 90 } })),
      401,
      "unauthorized",
    ],
    [
      "one that was issued in the future",
      () => bearer(tokenFor(SPEAKER, { claims: { iat: now + 90 } })),
      401,
      "unauthorized",
    ],
    [
      "one that lives for two days",
      () => bearer(tokenFor(SPEAKER, { lifeSeconds: 172_800 })),
      401,
      "unauthorized",
    ],
    [
      "one without an end",
      () => bearer(tokenFor(SPEAKER, { claims: { exp: undefined } })),
      401,
      "unauthorized",
    ],
    ["an unknown grant", () => bearer(tokenFor({ ...SPEAKER, everything: true })), 401, "unauthorized"],
    [
      "a withdrawn token",
      () => bearer(tokenFor(SPEAKER, { claims: { jti: "withdrawn" } })),
      401,
      "unauthorized",
    ],
    [
      "a withdrawn subject",
      () => bearer(tokenFor(SPEAKER, { claims: { sub: "mallory" } })),
      401,
      "unauthorized",
    ],
    [
      "a token in the URL that is not single-use",
      () => ({}),
      401,
      "unauthorized",
      () => `&token=${tokenFor(SPEAKER)}`,
    ],
    [
      "two that differ",
      () => ({
        ...bearer(tokenFor(SPEAKER)),
        headers: { ...bearer(tokenFor(SPEAKER)).headers, "xi-api-key": keys.key },
      }),
      400,
      "invalid_field",
    ],
    [
      "a token for another session",
      () => bearer(tokenFor({ ...SPEAKER, sessions: ["other", "s2*"] })),
      403,
      "forbidden",
    ],
    [
      "a token for pages of another origin",
      () => bearer(tokenFor({ ...SPEAKER, origin: ["https://app.example"] })),
      101,
      "",
    ],
  ] as const)("%s", async (_name, offer: () => Offer, status, code, query: () => string = () => "") => {
    expect(await knock(`/live/s?format=none${query()}`, offer())).toEqual({ status, code });
  });

  it("that is single-use opens once, and once of two that come at the same time", async () => {
    const token = tokenFor({ ...SPEAKER, once: true });
    const path = `/live/s?format=none&token=${token}`;
    const results = await Promise.all([knock(path), knock(path)]);
    expect(results.map(({ status }) => status).sort()).toEqual([101, 401]);
    expect(await knock(path)).toEqual({ status: 401, code: "token_expired" });
  });

  it("that is single-use opens once in whichever spelling its signature comes", async () => {
    const token = tokenFor({ ...SPEAKER, once: true }, { claims: { sub: "carol" } });
    // The last letter of 32 bytes stands for four bits: two more of its six say nothing (RFC 4648 section 3.5).
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const same = `${token.slice(0, -1)}${letters.charAt(letters.indexOf(token.slice(-1)) ^ 1)}`;
    expect(await knock("/live/s?format=none", bearer(token))).toEqual({ status: 101, code: "" });
    expect(await knock("/live/s?format=none", bearer(same))).toEqual({ status: 401, code: "token_expired" });
  });

  it("a token of one key does not use up another key's token of the same id", async () => {
    const claims = { jti: "same-id", sub: "dora" };
    const one = tokenFor({ ...SPEAKER, once: true }, { claims });
    const other = web.sign({ aud: "voicewire", exp: now + 60, vw: { ...SPEAKER, once: true }, ...claims });
    for (const token of [one, other]) {
      expect(await knock("/live/s?format=none", bearer(token))).toEqual({ status: 101, code: "" });
    }
  });

  it("never comes back in an answer: the subprotocol of the protocol does", async () => {
    const protocols = [`voicewire.token.${tokenFor(SPEAKER)}`, "voicewire.v1"];
    const socket = new WebSocket(`${gateway.wsUrl}/live/s?format=none`, protocols);
    await once(socket, "open");
    expect(socket.protocol).toBe("voicewire.v1");
    socket.terminate();
  });

  it("that fails in a browser gets the reason over the socket, since a page sees no status", async () => {
    const headers = { origin: "http://127.0.0.1:3000" };
    const path = "/live/s?format=none";
    await using client = await TestClient.connect(gateway, path, { headers });
    expect(await client.untilClosed()).toEqual({ code: 4401, reason: "unauthorized" });
    expect(client.events).toMatchObject([{ type: "error", code: "unauthorized", retryable: false }]);
  });
});

function claims() {
  return { aud: "voicewire", sub: "ann", exp: now + 60, vw: SPEAKER };
}

function unsigned(alg: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg, kid: "app" })}.${part(claims())}.`;
}

describe("a listener's token", () => {
  it("joins as a listener, and may not speak, interrupt, or come as a speaker", async () => {
    await using speaker = await join("/live/talk?format=none", tokenFor(SPEAKER));
    await using listener = await join("/live/talk?format=ulaw_8000", tokenFor(LISTENER));
    expect((await listener.next("hello")).settings.role).toBe("listener");
    listener.send({ type: "speak", text: "Hello." });
    listener.send({ type: "interrupt" });
    await listener.next("error", 2);
    expect(listener.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden"]);
    await using second = await join("/live/talk?role=both", tokenFor(LISTENER));
    expect(await second.untilClosed()).toEqual({ code: 4403, reason: "forbidden" });
    expect(speaker.closed).toBeNull();
  });

  it("opens no session", async () => {
    await using listener = await join("/live/nobody?wait=true", tokenFor(LISTENER));
    expect(await listener.untilClosed()).toEqual({ code: 4404, reason: "unknown_session" });
  });

  it("with captions only gets words and no sound", async () => {
    const token = tokenFor({ sessions: ["*"], allow: ["captions"] });
    await using speaker = await join("/live/text?format=none", tokenFor(SPEAKER));
    await using reader = await join("/live/text?format=none&events=words", token);
    await using hearer = await join("/live/text?format=ulaw_8000", token);
    expect((await reader.next("hello")).settings.format).toBe("none");
    expect(await hearer.untilClosed()).toEqual({ code: 4403, reason: "forbidden" });
    expect(speaker.closed).toBeNull();
  });

  it("can't have by `configure` what it could not join with", async () => {
    const captions = tokenFor({ sessions: ["*"], allow: ["captions"] });
    const formats = tokenFor({ ...LISTENER, formats: ["ulaw_8000"] });
    await using speaker = await join("/live/change?format=none", tokenFor(SPEAKER));
    await using reader = await join("/live/change?format=none&events=words", captions);
    reader.send({ type: "configure", format: "pcm_24000" });
    reader.send({ type: "configure", events: ["call", "dtmf"] });
    reader.send({ type: "configure", events: ["segments"] });
    expect((await reader.next("configured")).settings).toMatchObject({
      format: "none",
      events: ["segments"],
    });
    expect(reader.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden"]);
    await using hearer = await join("/live/change?format=ulaw_8000", formats);
    hearer.send({ type: "configure", format: "pcm_24000" });
    expect((await hearer.next("error")).code).toBe("forbidden");
    expect(speaker.closed).toBeNull();
  });

  it("with a format, a voice and a setting gets these", async () => {
    const grants = {
      ...SPEAKER,
      voices: ["good*"],
      formats: ["ulaw_8000"],
      connection: { pace: "burst" },
      speech: { model_id: "pinned" },
    };
    await using client = await join("/live/pin?format=ulaw_8000&pace=realtime", tokenFor(grants));
    expect((await client.next("hello")).settings.pace).toBe("burst");
    client.send({ type: "speak", text: "Hello.", voice_id: "bad" });
    client.send({ type: "speak", text: "Hello.", voice_id: "good-1", model_id: "mine", priority: 5 });
    client.send({ type: "configure", pace: "realtime" });
    await client.next("error", 3);
    expect(client.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden", "forbidden"]);
    client.send({ type: "speak", text: "Hello.", voice_id: "good-1", model_id: "mine" });
    expect((await client.next("utterance.started")).model_id).toBe("pinned");
    await using other = await join("/live/pin?format=pcm_24000", tokenFor(grants));
    expect(await other.untilClosed()).toEqual({ code: 4403, reason: "forbidden" });
  });

  it("with voices or models has to name one, for each new utterance", async () => {
    const grants = { ...SPEAKER, voices: ["good*"], models: ["flash"] };
    await using client = await join("/live/named?format=none", tokenFor(grants));
    client.send({ type: "speak", text: "Hello.", model_id: "flash" });
    client.send({ type: "text", text: "Hello", voice_id: "good-1" });
    client.send({ type: "dialogue", inputs: [{ text: "Hello.", voice_id: "good-1" }] });
    await client.next("error", 3);
    expect(client.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden", "forbidden"]);
    client.send({ type: "text", text: "Hello ", voice_id: "good-1", model_id: "flash" });
    client.send({ type: "text", text: "there." });
    client.send({ type: "end" });
    expect((await client.next("utterance.done")).outcome).toBe("done");
  });

  it("prepares with the voices, models and settings that it may have, and plays", async () => {
    const grants = { ...SPEAKER, voices: ["good*"], speech: { model_id: "pinned" } };
    await using client = await join("/live/prepared?format=ulaw_8000&pace=burst", tokenFor(grants));
    client.send({ type: "prepare", text: "Hello." });
    client.send({ type: "prepare", text: "Hello.", voice_id: "bad" });
    client.send({ type: "play", audio: "AAAA", format: "ulaw_8000", priority: 5 });
    await client.next("error", 3);
    expect(client.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden", "forbidden"]);
    client.send({ type: "prepare", text: "Hello.", voice_id: "good-1", model_id: "m", prepared_id: "p" });
    await client.next("prepared");
    client.send({ type: "play", prepared_id: "p" });
    expect((await client.next("utterance.started")).model_id).toBe("pinned");
    const listens = tokenFor({ ...SPEAKER, allow: ["listen"] });
    await using listener = await join("/live/prepared?format=none&events=words&role=listener", listens);
    for (const type of ["play", "prepare"]) {
      listener.send({ type, audio: "AAAA", format: "ulaw_8000" });
    }
    await listener.next("error", 2);
    expect(listener.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden"]);
  });

  it("counts the characters of what is prepared, once", async () => {
    await using client = await join(
      "/live/costs?format=ulaw_8000&pace=burst",
      tokenFor({ ...SPEAKER, characters: 15 }),
    );
    client.send({ type: "prepare", text: "Ten chars.", voice_id: "v", prepared_id: "p" });
    await client.next("prepared");
    client.send({ type: "play", prepared_id: "p" });
    client.send({ type: "play", prepared_id: "p" });
    expect((await client.next("utterance.done", 2)).outcome).toBe("done");
    client.send({ type: "prepare", text: "Ten chars.", voice_id: "v", prepared_id: "q" });
    expect(await client.next("error")).toMatchObject({ code: "budget_exhausted", prepared_id: "q" });
  });

  it("without `interrupt` replaces nothing that others say", async () => {
    const token = tokenFor({ ...SPEAKER, allow: ["speak"] });
    await using speaker = await join("/live/replace?format=none", tokenFor(SPEAKER));
    await using rude = await join("/live/replace?format=none", token);
    speaker.send({ type: "speak", text: LONG_TEXT, utterance_id: "long" });
    await speaker.next("utterance.started");
    for (const replace of ["all", "queued"]) rude.send({ type: "speak", text: "Stop.", replace });
    await rude.next("error", 2);
    expect(rude.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden"]);
    expect(speaker.eventsOf("utterance.done")).toEqual([]);
  });

  it("adds nothing to another's open text and does not end it, unless it may interrupt", async () => {
    const path = "/live/open?format=none";
    const adding = { type: "text", text: "and more ", utterance_id: "u" };
    const tokenOf = (sub: string, allow: string[]) =>
      tokenFor({ ...SPEAKER, allow: ["open", "speak", "listen", ...allow] }, { claims: { sub } });
    await using speaker = await join(path, tokenOf("ann", []));
    await using rude = await join(path, tokenOf("bob", []));
    await using host = await join(path, tokenOf("host", ["interrupt"]));
    await using second = await join(path, tokenOf("ann", []));
    speaker.send({ type: "text", text: "Some words ", utterance_id: "u" });
    await speaker.next("utterance.queued");
    for (const type of ["flush", "end"]) rude.send({ type, utterance_id: "u" });
    rude.send(adding);
    await rude.next("error", 3);
    expect(rude.eventsOf("error")).toMatchObject(Array(3).fill({ code: "forbidden", field: "utterance_id" }));
    rude.send({ type: "text", text: "Mine. ", utterance_id: "mine" });
    rude.send({ type: "end", utterance_id: "mine" });
    second.send(adding);
    host.send(adding);
    host.send({ type: "end", utterance_id: "u" });
    const done = await speaker.next("utterance.done");
    expect(done).toMatchObject({ utterance_id: "u", outcome: "done", characters_spoken: 29 });
    expect([...second.eventsOf("error"), ...host.eventsOf("error")]).toEqual([]);
    await speaker.next("utterance.done", 2);
  });

  it("comes back as nobody else's connection, though it knows its resume_token", async () => {
    await using speaker = await join("/live/resume?format=none", tokenFor(SPEAKER));
    const { resume_token: resume } = await speaker.next("hello");
    const path = `/live/resume?format=none&resume=${resume}`;
    await using other = await join(path, tokenFor(SPEAKER, { claims: { sub: "bob" } }));
    expect((await other.next("hello")).resumed).toBe(false);
    await using same = await join(path, tokenFor(SPEAKER));
    expect((await same.next("hello")).resumed).toBe(true);
  });
});

describe("the end of a token", () => {
  const soon = () => Math.floor(Date.now() / 1000) + 2;

  it("closes a listener, and lets a speaker say what was begun", async () => {
    const path = "/live/end?format=ulaw_8000";
    await using speaker = await join(path, tokenFor({ ...SPEAKER, session_until: soon() }));
    await using listener = await join(path, tokenFor({ ...LISTENER, session_until: soon() }));
    const [warning] = (await speaker.next("warning")) && speaker.eventsOf("warning");
    expect(warning).toMatchObject({ code: "token_expiring" });
    expect(warning?.expires_in_ms).toBeLessThanOrEqual(2000);
    speaker.send({ type: "speak", utterance_id: "long", text: LONG_TEXT });
    speaker.send({ type: "text", utterance_id: "open", text: "and more of it" });
    expect(await listener.untilClosed()).toEqual({ code: 4401, reason: "token_expired" });
    speaker.send({ type: "speak", text: "Too late." });
    expect((await speaker.next("error")).code).toBe("token_expired");
    expect(speaker.eventsOf("utterance.done")).toEqual([]);
    expect(await speaker.untilClosed()).toEqual({ code: 4401, reason: "token_expired" });
    const done = speaker
      .eventsOf("utterance.done")
      .map(({ utterance_id, outcome }) => [utterance_id, outcome]);
    expect(done).toEqual([
      ["long", "done"],
      ["open", "done"],
    ]);
  });

  it("hangs a phone call up when what was accepted has been played", async () => {
    const text = "A call is not cut in the middle of this, however long its caller has to listen to it.";
    const token = tokenFor({ sessions: ["*"], allow: ["call", "speak"], seconds: 1 });
    const call = await FakeCarrier.dial({
      carrier: "telnyx",
      url: `${gateway.wsUrl}/carrier/telnyx`,
      headers: { authorization: `Bearer ${token}` },
      call: { parameters: { session: "phoned", text } },
    });
    expect(await call.closed).toBe(4401);
    expect(call.playedSamples).toBe(Math.ceil((text.length * 25) / 20) * 160);
    expect(call.violations).toEqual([]);
  });

  it("moves with a new token of the same subject that allows no more", async () => {
    const token = (vw: object, claims = {}) => tokenFor(vw, { claims });
    await using client = await join(
      "/live/more?format=none",
      token({ ...SPEAKER, session_until: soon() + 58 }),
    );
    const refused = [
      token({ ...SPEAKER, allow: [...SPEAKER.allow, "call"] }),
      token(SPEAKER, { sub: "bob" }),
      token(LISTENER),
      "nonsense",
    ];
    for (const next of refused) client.send({ type: "refresh", token: next });
    await client.next("error", refused.length);
    expect(client.eventsOf("error").map(({ code }) => code)).toEqual([
      ...["forbidden", "forbidden", "forbidden"],
      "unauthorized",
    ]);
    client.send({ type: "refresh", token: token({ ...SPEAKER, session_until: soon() + 600 }) });
    expect((await client.next("refreshed")).expires_in_ms).toBeGreaterThan(500_000);
    expect(client.closed).toBeNull();
  });
});

describe("a token of another key", () => {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const claims = { aud: "voicewire", sub: "ann", iat: nowSeconds, exp: nowSeconds + 300, vw: SPEAKER };
  const wider = signingPair("wider", "EdDSA");
  const other = signingPair("other", "EdDSA");
  const OWN = { sessions: ["*"], allow: [...SPEAKER.allow, "captions"] };
  const own = new TestKeys({
    app: { grants: OWN },
    keys: [{ ...web.entry, grants: OWN }, wider.entry, { ...other.entry, tenant: "acme", grants: OWN }],
  });
  let rotating: TestGateway;
  beforeAll(async () => {
    rotating = await gatewayAt(upstream.url, { keysFile: own.path });
  });
  afterAll(async () => {
    await rotating.close();
    own[Symbol.dispose]();
  });
  const joined = async (query: string, token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const client = await TestClient.connect(rotating, `/live/keys?format=none${query}`, { headers });
    return { client, hello: await client.next("hello") };
  };

  it("takes the place of the first one, unless its key is another tenant's or allows more", async () => {
    const { client } = await joined("", tokenFor(SPEAKER));
    await using _closed = client;
    client.send({ type: "refresh", token: wider.sign(claims) });
    client.send({ type: "refresh", token: other.sign(claims) });
    await client.next("error", 2);
    expect(client.eventsOf("error").map(({ code }) => code)).toEqual(["forbidden", "forbidden"]);
    client.send({ type: "refresh", token: web.sign(claims) });
    await client.next("refreshed");
  });

  it("comes back as the connection of the same subject, unless its key is another tenant's", async () => {
    const { client, hello } = await joined("", tokenFor(SPEAKER));
    await using _closed = client;
    const query = `&resume=${hello.resume_token}`;
    const stranger = await joined(query, other.sign(claims));
    await using _stranger = stranger.client;
    expect(stranger.hello.resumed).toBe(false);
    const same = await joined(query, web.sign(claims));
    await using _same = same.client;
    expect(same.hello.resumed).toBe(true);
  });
});

describe("the file of keys", () => {
  it("is read again while sessions speak: who came with a key that is gone has to go, others stay", async () => {
    using own = new TestKeys();
    await using changing = await gatewayAt(upstream.url, { keysFile: own.path });
    const joined = async (session: string, token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const client = await TestClient.connect(changing, `/live/${session}?format=none`, { headers });
      await client.next("hello");
      return client;
    };
    await using server = await joined("a", own.key);
    await using token = await joined("b", tokenFor(SPEAKER));
    own.writeText("{ not json");
    await expectStatus(changing, own.key, 200);
    own.write({ app: { secret: OTHER_SECRET } });
    expect(await token.untilClosed()).toEqual({ code: 4403, reason: "token_revoked" });
    server.send({ type: "ping" });
    await server.next("pong");
    await expectStatus(changing, own.key, 200);
    await expectStatus(changing, tokenFor(SPEAKER), 401);
  });

  it("ends in the middle of speech whose token, subject or key it withdraws, one after the other, and nobody else", async () => {
    const other = { id: "other", algorithm: "HS256", secret: OTHER_SECRET };
    using own = new TestKeys({ keys: [other] });
    await using changing = await gatewayAt(upstream.url, { keysFile: own.path });
    const speaking = async (session: string, token: string) => {
      const client = await TestClient.connect(changing, `/live/${session}?format=pcm_8000`, bearer(token));
      await client.next("hello");
      client.send({ type: "speak", text: LONG_TEXT.repeat(4) });
      await client.next("utterance.started");
      return client;
    };
    await using stays = await speaking("a", tokenFor(SPEAKER, { claims: { sub: "bob", jti: "t1" } }));
    await using ofToken = await speaking("b", tokenFor(SPEAKER, { claims: { sub: "bob", jti: "t2" } }));
    await using ofSubject = await speaking("c", tokenFor(SPEAKER, { claims: { sub: "eve" } }));
    await using ofKey = await speaking("d", own.key);
    const revoked = { tokens: ["t2"], subjects: {} };
    own.write({ keys: [other], revoked });
    expect(await ofToken.untilClosed()).toEqual({ code: 4403, reason: "token_revoked" });
    expect([ofSubject.closed, ofKey.closed]).toEqual([null, null]);
    own.write({ keys: [other], revoked: { ...revoked, subjects: { eve: now + 60 } } });
    expect(await ofSubject.untilClosed()).toEqual({ code: 4403, reason: "token_revoked" });
    expect(ofKey.closed).toBeNull();
    own.writeText(JSON.stringify({ keys: [{ id: "app", ...SIGNING }] }));
    expect(await ofKey.untilClosed()).toEqual({ code: 4403, reason: "token_revoked" });
    for (const { events } of [ofToken, ofSubject, ofKey]) {
      expect(events.some(({ type }) => type === "utterance.done")).toBe(false);
    }
    expect(stays.closed).toBeNull();
    stays.send({ type: "ping" });
    await stays.next("pong");
  });
});

async function expectStatus({ url }: TestGateway, token: string, status: number): Promise<void> {
  const answer = await fetch(`${url}/asyncapi.json`, { headers: { authorization: `Bearer ${token}` } });
  await answer.arrayBuffer();
  expect(answer.status).toBe(status);
}

describe("a key that allows less than before", () => {
  it("closes its connections that do more, and no others", async () => {
    using own = new TestKeys();
    await using changing = await gatewayAt(upstream.url, { keysFile: own.path });
    const joined = async (query: string) => {
      const headers = { authorization: `Bearer ${own.key}` };
      const client = await TestClient.connect(changing, `/live/s?${query}`, { headers });
      await client.next("hello");
      return client;
    };
    await using speaker = await joined("role=speaker&format=none");
    await using listener = await joined("role=listener&format=ulaw_8000");
    own.write({ server: { grants: { sessions: ["*"], allow: ["open", "speak"] } } });
    expect(await listener.untilClosed()).toEqual({ code: 4403, reason: "token_revoked" });
    expect(speaker.closed).toBeNull();
  });
});

describe("HTTP requests", () => {
  const post = (path: string, token: string) =>
    fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ text: "Hello." }),
    });

  it("speak with a grant, and not without", async () => {
    await using client = await join("/live/http?format=none", tokenFor(SPEAKER));
    expect((await post("/live/http/speak", tokenFor(LISTENER))).status).toBe(403);
    expect((await post("/live/http/speak", tokenFor({ ...SPEAKER, sessions: ["x"] }))).status).toBe(403);
    expect((await post("/live/http/speak", tokenFor(SPEAKER))).status).toBe(202);
    expect(client.closed).toBeNull();
  });

  const get = (path: string, token: string, at: TestGateway = gateway) =>
    fetch(`${at.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  const STREAMS = ["audio.ulaw?silence=true", "captions", "captions.vtt"];

  it.concurrent.each(STREAMS)("for %s end with their token", async (stream) => {
    await using speaker = await join("/live/streams?format=none", tokenFor(SPEAKER));
    const grants = { ...LISTENER, session_until: Math.floor(Date.now() / 1000) + 2 };
    const answer = await get(`/live/streams/${stream}`, tokenFor(grants));
    expect(answer.status).toBe(200);
    await isOver(answer);
    expect(speaker.closed).toBeNull();
  });

  it.each(STREAMS)("for %s end when their token is withdrawn", async (stream) => {
    using own = new TestKeys();
    await using changing = await gatewayAt(upstream.url, { keysFile: own.path });
    await using speaker = await TestClient.connect(changing, "/live/streams?format=none", bearer(own.key));
    await speaker.next("hello");
    const answer = await get(`/live/streams/${stream}`, tokenFor(LISTENER), changing);
    expect(answer.status).toBe(200);
    own.write({ revoked: { subjects: { ann: 4_000_000_000 } } });
    await isOver(answer);
    expect(speaker.closed).toBeNull();
  });

  it("hear no other format than a socket with their token, and open no session", async () => {
    const formats = tokenFor({ ...LISTENER, formats: ["ulaw_8000"] });
    const set = tokenFor({ ...LISTENER, connection: { format: "ulaw_8000" } });
    await using speaker = await join("/live/heard?format=none", tokenFor(SPEAKER));
    for (const token of [formats, set]) {
      expect((await get("/live/heard/audio.wav", token)).status).toBe(403);
      const heard = await get("/live/heard/audio.ulaw", token);
      expect(heard.status).toBe(200);
      await heard.body?.cancel();
    }
    const surfaces = ["audio.ulaw", "captions", "captions.vtt"];
    for (const surface of surfaces) {
      expect((await get(`/live/unopened/${surface}?wait=true`, tokenFor(LISTENER))).status).toBe(404);
    }
    expect(speaker.closed).toBeNull();
  });
});

/** The body ends, well or cut: `fetch` rejects where it is cut. */
async function isOver(answer: Response): Promise<void> {
  await answer.arrayBuffer().catch(() => undefined);
}
