/** Calls of a gateway with keys: who brings one shows a key or a token that allows it, for the session that it comes into. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDoor } from "../../src/access/door.ts";
import { ERRORS } from "../../src/errors.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { CARRIERS } from "../../src/protocol/carrier/carrier.ts";
import { twilioSignature } from "../../src/protocol/carrier/twilio-signature.ts";
import { LISTENER, SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { knock as knockAt } from "../helpers/knock.ts";
import { DEFAULTS, TEST_WATCH_MS, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { FakeCarrier, type FakeCarrierOptions } from "../kit/carriers/fake-carrier.ts";
import { RtpPhone } from "../kit/rtp-phone.ts";
import {
  type CarrierEdge,
  type CarrierServerOptions,
  startCarrierEdge,
} from "../unit/telephony/carrier-edge.ts";

const CALLER = { sessions: ["call-17"], allow: ["call"] };

interface Stand extends AsyncDisposable {
  readonly keys: TestKeys;
  readonly edge: CarrierEdge;
  /** Why requests were refused, and how many. */
  readonly refusals: ReadonlyMap<string, number>;
}

async function startStand(options: CarrierServerOptions = {}): Promise<Stand> {
  const keys = new TestKeys();
  const door = createDoor({
    ...DEFAULTS,
    keysFile: keys.path,
    log: watchedLog,
    clock: systemClock,
    watchMs: TEST_WATCH_MS,
  });
  const edge = await startCarrierEdge({ ...options, door });
  return {
    keys,
    edge,
    refusals: door.audit.refusals,
    async [Symbol.asyncDispose]() {
      await edge[Symbol.asyncDispose]();
      door.close();
      keys[Symbol.dispose]();
    },
  };
}

let stand: Stand;
beforeAll(async () => {
  stand = await startStand();
});
afterAll(() => stand[Symbol.asyncDispose]());

const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });

/** Status and error code of a refused upgrade, or 101. */
const knock = (path: string, headers: Record<string, string> = {}, { edge }: Stand = stand) =>
  knockAt(`${edge.wsUrl}${path}`, { headers });

function dial(session: string, options: Partial<FakeCarrierOptions> = {}): Promise<FakeCarrier> {
  const carrier = options.carrier ?? "telnyx";
  return FakeCarrier.dial({
    carrier,
    url: `${stand.edge.wsUrl}/carrier/${carrier}${carrier === "asterisk" ? `?session=${session}` : ""}`,
    call: { parameters: { session } },
    ...options,
  });
}

function ask(method: string, path: string, { token, body }: { token?: string; body?: object } = {}) {
  return fetch(`${stand.edge.url}${path}`, {
    method,
    headers: token === undefined ? {} : bearer(token),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const codeOf = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { code: string } };
  return [answer.status, error.code];
};

describe("who brings a call", () => {
  it.each([...CARRIERS, "pigeon"])("of %s and shows nothing is refused before the upgrade", async (name) => {
    const before = stand.refusals.get("no_credential") ?? 0;
    expect(await knock(`/carrier/${name}`)).toEqual({ status: 401, code: "unauthorized" });
    expect(stand.refusals.get("no_credential")).toBe(before + 1);
  });

  it("at the common address and shows nothing is refused, too, however it is signed", async () => {
    expect(await knock("/carrier")).toEqual({ status: 401, code: "unauthorized" });
    const headers = { "x-twilio-signature": twilioSignature("", "wss://example.com/carrier") };
    expect(await knock("/carrier", headers)).toEqual({ status: 401, code: "unauthorized" });
  });

  it("shows a key in any way that carriers can be set up for", async () => {
    const { key } = stand.keys;
    const password = `Basic ${Buffer.from(`anyone:${key}`).toString("base64")}`;
    for (const headers of [
      bearer(key),
      { authorization: password },
      { "x-telnyx-streaming-auth-token": key },
    ]) {
      expect(await knock("/carrier/telnyx", headers)).toMatchObject({ status: 101 });
    }
    expect(await knock("/carrier/pigeon", bearer(key))).toEqual({ status: 404, code: "not_found" });
  });

  it("may have a token in the URL, which is good for one call", async () => {
    expect(await knock(`/carrier/telnyx?token=${tokenFor(CALLER)}`)).toEqual({
      status: 401,
      code: "unauthorized",
    });
    const once = tokenFor({ ...CALLER, once: true });
    expect(await knock(`/carrier/telnyx?token=${once}`)).toMatchObject({ status: 101 });
    expect(await knock(`/carrier/telnyx?token=${once}`)).toEqual({ status: 401, code: "token_expired" });
  });

  it.each([LISTENER, SPEAKER])("needs the grant `call`", async (grants) => {
    const headers = bearer(tokenFor(grants));
    expect(await knock("/carrier/telnyx", headers)).toEqual({ status: 403, code: "forbidden" });
    expect(await knock("/carrier", headers)).toEqual({ status: 403, code: "forbidden" });
  });

  it.each(CARRIERS)(
    "of %s may bring it into the session that the token names, and no other",
    async (carrier) => {
      const headers = bearer(tokenFor(CALLER));
      const before = stand.refusals.get("forbidden") ?? 0;
      const stranger = await dial("call-18", { carrier, headers });
      expect(await stranger.closed).toBe(4403);
      expect(stand.refusals.get("forbidden")).toBe(before + 1);
      expect(() => stand.edge.sessions.get("call-18")).toThrow("call-18");
      const call = await dial("call-17", { carrier, headers });
      await until("the call has begun", () => stand.edge.calls.stats.of(carrier).started === 1);
      await call.hangUp();
      expect(call.violations).toEqual([]);
    },
  );

  it("loses the call when the token is withdrawn", async () => {
    await using own = await startStand();
    const token = tokenFor({ ...CALLER, sessions: ["*"] }, { claims: { jti: "t-1" } });
    const url = `${own.edge.wsUrl}/carrier/telnyx`;
    const call = await FakeCarrier.dial({ carrier: "telnyx", url, headers: bearer(token) });
    await until("the call has begun", () => own.edge.calls.stats.of("telnyx").started === 1);
    own.keys.write({ revoked: { tokens: ["t-1"] } });
    expect(await call.closed).toBe(ERRORS.token_revoked.closeCode);
  });
});

describe("a carrier with a check of its own", () => {
  it("needs no key, and no key is good for it", async () => {
    await using own = await startStand({
      twilioAuthToken: "12345",
      publicUrl: "wss://example.com",
      carrierToken: "telnyx=abc",
    });
    const signature = twilioSignature("12345", "wss://example.com/carrier/twilio");
    const other = twilioSignature("12345", "wss://other.example/carrier/twilio");
    const key = bearer(own.keys.key);
    expect(await knock("/carrier/twilio", { "x-twilio-signature": signature }, own)).toMatchObject({
      status: 101,
    });
    for (const headers of [{}, { "x-twilio-signature": other, host: "other.example" }, key]) {
      const { status } = await knock("/carrier/twilio", headers, own);
      expect([403, 421]).toContain(status);
    }
    expect(await knock("/carrier/telnyx", bearer("abc"), own)).toMatchObject({ status: 101 });
    expect(await knock("/carrier/telnyx", key, own)).toEqual({ status: 401, code: "carrier_unauthorized" });
    // The others ask for a key.
    expect(await knock("/carrier/signalwire", { "x-twilio-signature": signature }, own)).toMatchObject({
      status: 401,
    });
    expect(await knock("/carrier/signalwire", key, own)).toMatchObject({ status: 101 });
  });
});

it("a key is good for no carrier that the setting carriers leaves out", async () => {
  await using own = await startStand({ carriers: "telnyx" });
  const key = bearer(own.keys.key);
  expect(await knock("/carrier/telnyx", key, own)).toMatchObject({ status: 101 });
  expect(await knock("/carrier/vonage", key, own)).toEqual({ status: 403, code: "forbidden" });
  for (const path of ["/carrier/rtp", "/carrier/audiosocket"]) {
    const body = JSON.stringify({ session: "s" });
    const answer = await fetch(`${own.edge.url}${path}`, { method: "POST", headers: key, body });
    expect(await codeOf(answer)).toEqual([403, "forbidden"]);
  }
});

describe("a stranger in a call's session", () => {
  it("gets neither the caller's voice nor keys without the grant `call`, and can't hang up", async () => {
    const { edge, keys } = stand;
    const session = "bank";
    const call = await dial(session, { headers: bearer(keys.key) });
    const gateway = { wsUrl: edge.wsUrl };
    const join = (query: string, grants: object) =>
      TestClient.connect(gateway, `/live/${session}?${query}`, { headers: bearer(tokenFor(grants)) });
    for (const query of [
      "role=speaker&caller=pcm_16000",
      "role=speaker&events=call",
      "role=both&events=words,dtmf",
    ]) {
      await using refused = await join(query, SPEAKER);
      await refused.until(() => refused.closed !== null);
      expect(refused.closed?.code, query).toBe(4403);
    }
    await using speaker = await join("role=speaker&events=words", SPEAKER);
    await speaker.next("hello");
    speaker.send({ type: "hangup" });
    expect(await speaker.next("error")).toMatchObject({ code: "forbidden" });
    await using application = await join("role=speaker&events=call,dtmf&caller=pcm_16000", {
      ...SPEAKER,
      allow: [...SPEAKER.allow, "call"],
    });
    await application.next("call");
    call.press("4");
    for (let frame = 0; frame < 5; frame += 1) call.say(new Uint8Array(160).fill(7));
    expect(await application.next("dtmf")).toMatchObject({ digit: "4" });
    await application.until(() => application.frames.length > 0);
    expect(speaker.frames).toEqual([]);
    expect(speaker.events.some(({ type }) => type === "call" || type === "dtmf")).toBe(false);
    application.send({ type: "hangup" });
    await call.closed;
  });

  it("may not connect to it without a key", async () => {
    await using own = await startStand({ carrierToken: "telnyx=abc" });
    expect(await knock("/live/call-17?role=speaker&events=call,dtmf&caller=pcm_16000", {}, own)).toEqual({
      status: 401,
      code: "unauthorized",
    });
  });
});

describe("an RTP port", () => {
  it("is taken and given back by who may bring calls into its session", async () => {
    const body = { session: "call-17" };
    const token = tokenFor(CALLER);
    const elsewhere = tokenFor({ sessions: ["call-18"], allow: ["call"] });
    expect(await codeOf(await ask("POST", "/carrier/rtp", { body }))).toEqual([401, "unauthorized"]);
    expect(await codeOf(await ask("POST", "/carrier/rtp", { body, token: elsewhere }))).toEqual([
      403,
      "forbidden",
    ]);
    // Who may not speak may not greet.
    const greeting = { ...body, text: "Hello." };
    expect(await codeOf(await ask("POST", "/carrier/rtp", { body: greeting, token }))).toEqual([
      403,
      "forbidden",
    ]);
    expect(stand.edge.rtpPorts.count).toBe(0);
    const taken = await ask("POST", "/carrier/rtp", { body, token });
    expect(taken.status).toBe(201);
    const { call_id } = (await taken.json()) as { call_id: string };
    const path = `/carrier/rtp/${call_id}`;
    expect(await codeOf(await ask("DELETE", path))).toEqual([401, "unauthorized"]);
    expect(await codeOf(await ask("DELETE", path, { token: elsewhere }))).toEqual([403, "forbidden"]);
    expect(stand.edge.rtpPorts.count).toBe(1);
    expect((await ask("DELETE", path, { token })).status).toBe(200);
    expect(stand.edge.rtpPorts.count).toBe(0);
  });
});

it("an RTP call ends with the token that has taken its port", async () => {
  await using own = await startStand();
  await using phone = await RtpPhone.open();
  const token = tokenFor(CALLER, { claims: { jti: "t-1" } });
  const body = JSON.stringify({ session: "call-17", remote: phone.address });
  const taken = await fetch(`${own.edge.url}/carrier/rtp`, { method: "POST", headers: bearer(token), body });
  expect(taken.status).toBe(201);
  expect(own.edge.calls.stats.of("rtp").started).toBe(1);
  own.keys.write({ revoked: { tokens: ["t-1"] } });
  await until("the port is given back", () => own.edge.rtpPorts.count === 0);
});

describe("an AudioSocket call", () => {
  it("is announced by who may bring it into its session, and no more than may wait are", async () => {
    const body = { session: "call-17" };
    const path = "/carrier/audiosocket";
    const token = tokenFor(CALLER);
    expect(await codeOf(await ask("POST", path, { body }))).toEqual([401, "unauthorized"]);
    const elsewhere = tokenFor({ sessions: ["call-18"], allow: ["call"] });
    expect(await codeOf(await ask("POST", path, { body, token: elsewhere }))).toEqual([403, "forbidden"]);
    expect(await codeOf(await ask("POST", path, { body: {}, token }))).toEqual([400, "invalid_field"]);
    const answer = await ask("POST", path, { body, token });
    expect([answer.status, await answer.json()]).toEqual([
      201,
      {
        uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        session: "call-17",
        host: "127.0.0.1",
        port: 9092,
        expires_in_ms: 60_000,
      },
    ]);
    expect((await ask("POST", path, { body, token })).status).toBe(201);
    expect(await codeOf(await ask("POST", path, { body, token }))).toEqual([503, "listener_limit"]);
  });
});

describe("jambonz's speech", () => {
  it("is for who may bring calls and speak", async () => {
    const path = "/carrier/jambonz/tts";
    const body = { language: "en", voice: "a", type: "text", text: "Hello." };
    expect(await codeOf(await ask("POST", path, { body }))).toEqual([401, "unauthorized"]);
    for (const grants of [CALLER, SPEAKER]) {
      const token = tokenFor(grants);
      expect(await codeOf(await ask("POST", path, { body, token }))).toEqual([403, "forbidden"]);
      expect(await knock(`${path}?voice=a`, bearer(token))).toEqual({ status: 403, code: "forbidden" });
    }
    expect(await knock(`${path}?voice=a`, bearer(stand.keys.key))).toMatchObject({ status: 101 });
  });
});
