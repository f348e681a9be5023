/** Who may use the vendor's sockets on a gateway with keys, over real sockets. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type ClosableDoor, createDoor } from "../../src/access/door.ts";
import { type Clock, systemClock } from "../../src/kit/clock.ts";
import { AuditLines } from "../helpers/audit-lines.ts";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { DEFAULTS, TEST_WATCH_MS } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { startVendorApp, type VendorApp, VendorClient } from "./vendor-rig.ts";

const SINGLE = "/v1/text-to-speech/v1/stream-input?output_format=pcm_16000";
/** The pattern of its route. */
const PATTERN = "/v1/text-to-speech/:voice/stream-input";
const DIALOGUE = "/v1/text-to-dialogue/stream-input?output_format=pcm_16000";
/** Ten seconds are one. */
const FAST_CLOCK: Clock = {
  nowMs: () => systemClock.nowMs() * 10,
  at: (atMs, action) => systemClock.at(atMs / 10, action),
};
const HELLO = [{ text: " " }, { text: "Hello. " }, { text: "" }];
const SPEECH = { sessions: ["*"], allow: ["speak"] };

const keys = new TestKeys();
let door: ClosableDoor;
let upstream: FakeUpstream;
let app: VendorApp;

beforeAll(async () => {
  door = createDoor({
    ...DEFAULTS,
    keysFile: keys.path,
    log: watchedLog,
    clock: systemClock,
    watchMs: TEST_WATCH_MS,
  });
  upstream = await startFakeUpstream();
  app = await startVendorApp(upstream.url, { door });
});

afterEach(() => until("no socket is left", () => app.sockets.open === 0));

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  door.close();
  keys[Symbol.dispose]();
});

/** What a refused handshake was answered with; 101 where it was not refused. */
async function knock(path: string, headers: Headers = {}, { wsUrl } = app) {
  const socket = new WebSocket(wsUrl + path, { headers });
  socket.on("error", () => undefined);
  const open = once(socket, "open").then(() => ({ status: 101, code: "" }));
  const refused = once(socket, "unexpected-response").then(async ([, answer]) => {
    let text = "";
    for await (const piece of (answer as IncomingMessage).setEncoding("utf8")) text += piece;
    const { detail } = JSON.parse(text) as { detail: { code: string } };
    return { status: (answer as IncomingMessage).statusCode ?? 0, code: detail.code };
  });
  const result = await Promise.race([open, refused]);
  socket.terminate();
  return result;
}

/** The error and the close of a socket that sends these. */
async function endOf(path: string, messages: readonly object[], headers: Headers = {}) {
  await using client = await VendorClient.connect(app, path, headers);
  client.send(...messages);
  const { code } = await client.untilClosed();
  return { code, error: client.heard.at(-1)?.error };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
/** Each is another one. */
const onceOnly = () => tokenFor({ ...SPEECH, once: true, seconds: 3600 }, { claims: { jti: randomUUID() } });

type Headers = Record<string, string>;
/** Query, headers, fields of the first message. */
type Way = () => readonly [query: string, headers: Headers, first: object];
type Wrong = readonly [
  name: string,
  way: () => readonly [query: string, headers: Headers],
  status: number,
  code: string,
];

/** By the keys as they are now. */
function mayUse(voiceId: string): boolean {
  const credential = tokenFor(SPEECH);
  const caller = door.access.identify({ credential, place: "header", origin: "" });
  try {
    caller.mustUse({ voiceIds: [voiceId], modelId: "eleven_multilingual_v2" });
  } catch {
    return false;
  }
  return caller.may("speak") && caller.speechSettings.enable_logging === undefined;
}

const keysAreBack = () => until("the keys are read again", () => mayUse("v1") && mayUse("v2"));

describe("a vendor socket of a gateway with keys", () => {
  it.each<readonly [name: string, way: Way]>([
    ["xi-api-key", () => ["", { "xi-api-key": keys.key }, {}]],
    ["Authorization: Bearer", () => ["", bearer(keys.key), {}]],
    ["Authorization: Token", () => ["", { authorization: `Token ${tokenFor(SPEECH)}` }, {}]],
    ["the query, a single-use token", () => [`&single_use_token=${onceOnly()}`, {}, {}]],
    ["the query as authorization", () => [`&authorization=Bearer%20${onceOnly()}`, {}, {}]],
    ["xi_api_key of the first message", () => ["", {}, { xi_api_key: keys.key }]],
    ["xi-api-key of the first message", () => ["", {}, { "xi-api-key": keys.key }]],
    ["authorization of the first message", () => ["", {}, { authorization: `Bearer ${tokenFor(SPEECH)}` }]],
    ["single_use_token of the first message", () => ["", {}, { single_use_token: onceOnly() }]],
  ])("takes a key in %s", async (_name, way) => {
    const [query, headers, first] = way();
    const before = upstream.requests.length;
    const path = SINGLE + query;
    const messages = [{ ...HELLO[0], ...first }, ...HELLO.slice(1)];
    expect(await endOf(path, messages, headers)).toMatchObject({ code: 1000 });
    expect(upstream.requests.slice(before).map((one) => one.headers["xi-api-key"])).toEqual(["gateway-key"]);
  });

  it.each<Wrong>([
    ["a wrong key", () => ["", { "xi-api-key": "wrong" }], 401, "invalid_api_key"],
    [
      "a token that has expired",
      () => ["", bearer(tokenFor(SPEECH, { lifeSeconds: -90 }))],
      401,
      "invalid_api_key",
    ],
    [
      "a token in the query for more than one use",
      () => [`&single_use_token=${tokenFor(SPEECH)}`, {}],
      401,
      "invalid_api_key",
    ],
    ["a key in the query", () => [`&authorization=${keys.key}`, {}], 401, "invalid_api_key"],
    [
      "two that differ",
      () => ["", { ...bearer(tokenFor(SPEECH)), "xi-api-key": keys.key }],
      400,
      "invalid_input_message",
    ],
    ["a listener's token", () => ["", bearer(tokenFor(LISTENER))], 403, "unauthorized"],
    ["another voice", () => ["", bearer(tokenFor({ ...SPEECH, voices: ["v2"] }))], 403, "unauthorized"],
    [
      "another model",
      () => ["", bearer(tokenFor({ ...SPEECH, models: ["eleven_flash*"] }))],
      403,
      "unauthorized",
    ],
    ["another format", () => ["", bearer(tokenFor({ ...SPEECH, formats: ["mp3*"] }))], 403, "unauthorized"],
  ])("refuses %s before the upgrade", async (_name, way, status, code) => {
    const [query, headers] = way();
    const before = upstream.requests.length;
    expect(await knock(SINGLE + query, headers)).toEqual({ status, code });
    expect(upstream.requests.length).toBe(before);
  });

  it("refuses a first message that shows nothing, or what does not hold, and asks the upstream nothing", async () => {
    const before = upstream.requests.length;
    expect(await endOf(SINGLE, HELLO)).toEqual({ code: 1008, error: "authentication_required" });
    const wrong = { text: "Hello. ", xi_api_key: "wrong" };
    expect(await endOf(SINGLE, [wrong])).toEqual({ code: 1008, error: "invalid_api_key" });
    const listener = { text: "Hello. ", authorization: tokenFor(LISTENER) };
    expect(await endOf(SINGLE, [listener])).toEqual({ code: 1008, error: "unauthorized" });
    const narrow = { text: "Hello. ", xi_api_key: tokenFor({ ...SPEECH, voices: ["v2"] }) };
    expect(await endOf(SINGLE, [narrow])).toEqual({ code: 1008, error: "unauthorized" });
    expect(await endOf(DIALOGUE, [{ voices: ["v"] }])).toEqual({
      code: 1008,
      error: "authentication_required",
    });
    expect(upstream.requests.length).toBe(before);
  });

  it("looks for no key in the first message where the handshake has shown one", async () => {
    const [first, ...rest] = HELLO;
    const messages = [{ ...first, xi_api_key: "wrong" }, ...rest];
    expect(await endOf(SINGLE, messages, { "xi-api-key": keys.key })).toMatchObject({ code: 1000 });
    const narrow = bearer(tokenFor({ ...SPEECH, voices: ["v1"] }));
    const wide = [{ voices: ["v2"], xi_api_key: keys.key }];
    expect(await endOf(DIALOGUE, wide, narrow)).toEqual({ code: 1008, error: "unauthorized" });
  });

  it("does not wait for a client that says nothing", async () => {
    await using hurried = await startVendorApp(upstream.url, { door, sockets: { clock: FAST_CLOCK } });
    await using client = await VendorClient.connect(hurried, SINGLE);
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.map(({ error }) => error)).toEqual(["authentication_required"]);
  });

  it("has a line in the audit log of a client that shows no key, whether it says something or nothing", async () => {
    const audit = new AuditLines();
    // Its own: a door writes no more than ten refusals a second.
    const quiet = createDoor({ ...DEFAULTS, keysFile: keys.path, log: audit.log, clock: systemClock });
    const settings = { door: quiet, sockets: { clock: FAST_CLOCK } };
    await using hurried = await startVendorApp(upstream.url, settings);
    await using speaking = await VendorClient.connect(hurried, SINGLE);
    speaking.send(...HELLO);
    await speaking.untilClosed();
    await using silent = await VendorClient.connect(hurried, SINGLE);
    await silent.untilClosed();
    const line = { audit: "refused", reason: "no_credential", surface: PATTERN, address: "127.0.0.1" };
    expect(audit.refused).toEqual([line, line]);
    quiet.close();
  });

  it("takes a single-use token once, also of two that come at the same time", async () => {
    const path = `${SINGLE}&single_use_token=${onceOnly()}`;
    const results = await Promise.all([knock(path), knock(path)]);
    expect(results.map(({ status }) => status).sort()).toEqual([101, 401]);
    const single_use_token = onceOnly();
    const first = { text: " ", single_use_token };
    const ends = await Promise.all([
      endOf(SINGLE, [first, { text: "" }]),
      endOf(SINGLE, [first, { text: "" }]),
    ]);
    expect(ends.map(({ code }) => code).sort()).toEqual([1000, 1008]);
  });

  it("does not use a token up for a request that can't be", async () => {
    const token = onceOnly();
    const query = `output_format=none&single_use_token=${token}`;
    expect((await knock(`/v1/text-to-speech/v1/stream-input?${query}`)).status).toBe(400);
    expect((await knock(`${SINGLE}&single_use_token=${token}`)).status).toBe(101);
  });

  it("speaks with what the token sets", async () => {
    const speech = {
      voice_id: "pinned",
      model_id: "eleven_flash_v2_5",
      language_code: "de",
      enable_logging: false,
    };
    const token = tokenFor({ ...SPEECH, voices: ["pinned"], speech });
    expect(await endOf(SINGLE, HELLO, bearer(token))).toMatchObject({ code: 1000 });
    const asked = upstream.requests.at(-1);
    expect(asked?.path).toContain("/v1/text-to-speech/pinned/");
    expect(asked?.query.get("enable_logging")).toBe("false");
    expect(asked?.json).toMatchObject({ model_id: "eleven_flash_v2_5", language_code: "de" });
  });

  it("checks and sets the voices of a dialogue", async () => {
    const lines = [
      { voices: ["bad"], inputs: [{ text: "Hello. ", voice_id: "bad" }] },
      { close_socket: true },
    ];
    const narrow = tokenFor({ ...SPEECH, voices: ["good"] });
    expect(await endOf(DIALOGUE, lines, bearer(narrow))).toEqual({ code: 1008, error: "unauthorized" });
    const pinned = tokenFor({ ...SPEECH, voices: ["good"], speech: { voice_id: "good" } });
    expect(await endOf(DIALOGUE, lines, bearer(pinned))).toMatchObject({ code: 1000 });
    expect(upstream.requests.at(-1)?.json).toMatchObject({ inputs: [{ voice_id: "good" }] });
  });

  it("ends with its token's time", async () => {
    await using client = await VendorClient.connect(app, SINGLE, bearer(tokenFor({ ...SPEECH, seconds: 1 })));
    client.send({ text: "Hello. " });
    expect((await client.untilClosed()).code).toBe(1008);
    // What it had taken is said first.
    expect(client.heard.map(({ isFinal, error }) => error ?? isFinal).slice(-2)).toEqual([
      true,
      "invalid_api_key",
    ]);
  });

  it("ends at once when its token is withdrawn", async () => {
    const token = tokenFor(SPEECH, { claims: { jti: "gone" } });
    await using client = await VendorClient.connect(app, SINGLE, bearer(token));
    client.send({ text: " " });
    keys.write({ revoked: { tokens: ["gone"] } });
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.map(({ error }) => error)).toEqual(["invalid_api_key"]);
  });

  it.each<readonly [what: string, entry: object]>([
    ["may not speak any more", { grants: LISTENER }],
    ["may not have the voice any more", { grants: { ...SPEECH, voices: ["v2"] } }],
    ["may not have the model, which nobody named", { grants: { ...SPEECH, models: ["eleven_flash*"] } }],
    ["sets other options", { grants: { ...SPEECH, speech: { enable_logging: false } } }],
  ])("ends at once when its key %s", async (_what, entry) => {
    await using client = await VendorClient.connect(app, SINGLE, bearer(tokenFor(SPEECH)));
    client.send({ text: " " });
    keys.write({ app: entry });
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.map(({ error }) => error)).toEqual(["invalid_api_key"]);
    keys.write({});
    await keysAreBack();
  });

  it("stays when its key is narrowed to what it has, and its dialogue takes no voice that was taken away", async () => {
    await using single = await VendorClient.connect(app, SINGLE, bearer(tokenFor(SPEECH)));
    await using dialogue = await VendorClient.connect(app, DIALOGUE, bearer(tokenFor(SPEECH)));
    const line = { text: "Hello. ", voice_id: "v2" };
    dialogue.send({ voices: ["v2"], inputs: [line], flush: true });
    await dialogue.until("audio", () => dialogue.heard.some(({ audio }) => audio));
    keys.write({ app: { grants: { ...SPEECH, voices: ["v1"] } } });
    await until("the keys are read again", () => !mayUse("v2"));
    single.send(...HELLO);
    expect((await single.untilClosed()).code).toBe(1000);
    dialogue.send({ inputs: [line] });
    expect((await dialogue.untilClosed()).code).toBe(1008);
    expect(dialogue.heard.at(-1)?.error).toBe("unauthorized");
    keys.write({});
    await keysAreBack();
  });

  it("leaves places for those with a key, however many without one connect", async () => {
    await using full = await startVendorApp(upstream.url, { door, sockets: { maxSockets: 1000 } });
    const strangers = await Promise.all(
      Array.from({ length: 256 }, () => VendorClient.connect(full, SINGLE)),
    );
    expect(await knock(SINGLE, {}, full)).toEqual({ status: 429, code: "system_busy" });
    expect((await knock(SINGLE, bearer(keys.key), full)).status).toBe(101);
    strangers[0]?.socket.terminate();
    await until("its place is free", () => full.sockets.open === 255);
    expect((await knock(SINGLE, {}, full)).status).toBe(101);
    for (const { socket } of strangers) socket.terminate();
    await until("no socket is left", () => full.sockets.open === 0);
  });

  it("sends a page the reason, since it sees no status", async () => {
    const headers = { origin: "http://127.0.0.1:3000", "xi-api-key": "wrong" };
    expect(await endOf(SINGLE, [], headers)).toEqual({ code: 1008, error: "invalid_api_key" });
  });

  it("answers 401 at other addresses, and 403 to who may come in", async () => {
    expect(await knock("/v1/nothing")).toEqual({ status: 401, code: "invalid_api_key" });
    expect(await knock("/v1/nothing", { "xi-api-key": keys.key })).toEqual({
      status: 403,
      code: "forbidden",
    });
  });
});
