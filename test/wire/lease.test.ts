/** Speech that is under way when its token's time is over, or its key or token is withdrawn or narrowed. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type FakeRequest, type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { type KeyFileContent, SIGNING, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { upgradeStatus } from "../helpers/knock.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";

const SPEAK = { sessions: ["*"], allow: ["speak", "call", "proxy", "listen"] };
/** Ids of two voices, so that nobody asks for a list. */
const GOOD = "JBFqnCBsd6RMkjVDRZzb";
const BAD = "21m00Tcm4TlvDq8ikWAM";
const HALF = Buffer.alloc(3200, 1);
const AUDIO = { headers: { "content-type": "audio/pcm" } };

/** Keys that a test may narrow, each one of its own: no test has to wait until the file is as it was. */
const NARROWED = new Map(Array.from({ length: 12 }, (_, index): [string, object] => [`key-${index}`, {}]));
const revoked: string[] = [];

function keyFile(): KeyFileContent {
  const others = [...NARROWED].map(([id, entry]) => ({ ...SIGNING, id, ...entry }));
  return { keys: others, revoked: { tokens: revoked } };
}

const keys = new TestKeys(keyFile());

function withdraw(tokenId: string): void {
  revoked.push(tokenId);
  keys.write(keyFile());
}

/** A token of a key that no other test has, and what narrows that key. */
function narrowable() {
  const kid = `key-${narrowedKeys}`;
  narrowedKeys += 1;
  const narrow = (grants: object): void => {
    NARROWED.set(kid, { grants: { ...SPEAK, proxy: ["speech"], ...grants } });
    keys.write(keyFile());
  };
  return { token: newToken({}, kid).token, narrow };
}

let narrowedKeys = 0;
/** Lines of the audit log. */
let audit: { readonly audit?: string; readonly reason?: string; readonly surface?: string }[] = [];
let upstream: FakeUpstream;
let gateway: TestGateway;
/** Lets the upstream send the second half of each answer. */
let sendRest = (): void => undefined;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  const keep = (fields: object): void => {
    audit.push(fields);
  };
  const auditLog = { ...watchedLog, info: keep, warn: keep };
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path }, { auditLog });
});

beforeEach(() => {
  audit = [];
  const rest = new Promise<void>((resolve) => {
    sendRest = resolve;
  });
  upstream.use(() => ({ ...AUDIO, body: [HALF, { until: rest }, HALF] }));
});

afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

let lastId = 0;
/** A token of its own id. */
function newToken(grants: object = {}, kid = "app"): { readonly id: string; readonly token: string } {
  lastId += 1;
  const id = `t${lastId}`;
  return { id, token: tokenFor({ ...SPEAK, ...grants }, { kid, claims: { jti: id } }) };
}

interface Surface {
  readonly name: string;
  readonly path: (voiceId: string) => string;
  readonly body: (voiceId: string) => object;
}

const OPENAI: Surface = {
  name: "/v1/audio/speech",
  path: () => "/v1/audio/speech",
  body: (voice) => ({ model: "tts-1", input: "Hello.", voice, response_format: "pcm" }),
};
const PROXY: Surface = {
  name: "the proxy",
  path: (voiceId) => `/v1/text-to-speech/${voiceId}/stream?output_format=pcm_16000`,
  body: () => ({ text: "Hello." }),
};
const JAMBONZ: Surface = {
  name: "jambonz's POST",
  path: () => "/carrier/jambonz/tts",
  body: (voice) => ({ language: "en-US", voice, type: "text", text: "Hello." }),
};

function post({ path, body }: Surface, token: string, voiceId = GOOD): Promise<Response> {
  return fetch(gateway.url + path(voiceId), {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "audio/l16;rate=16000",
    },
    body: JSON.stringify(body(voiceId)),
  });
}

function lastAsked(): FakeRequest {
  const asked = upstream.requests.at(-1);
  if (asked === undefined) throw new Error("The upstream was asked nothing");
  return asked;
}

const ended = (reason: string) =>
  until(`a lease has ${reason}`, () =>
    audit.some((line) => line.audit === "ended" && line.reason === reason),
  );

async function errorOf(answer: Response) {
  const { error } = (await answer.json()) as { error: { code: string } };
  return { status: answer.status, code: error.code };
}

describe.each([OPENAI, PROXY, JAMBONZ])("speech over $name", (surface) => {
  it("is cut when its token is withdrawn, and asked of the upstream no more", async () => {
    const { id, token } = newToken();
    const answer = await post(surface, token);
    expect(answer.status).toBe(200);
    const heard = answer.arrayBuffer();
    withdraw(id);
    await expect(heard).rejects.toThrow();
    await until("the request is over", () => lastAsked().abortedAtMs !== null);
  });

  it("has a status where nothing was heard yet", async () => {
    const before = upstream.requests.length;
    upstream.use(() => "silence");
    const { id, token } = newToken();
    const answer = post(surface, token);
    await until("it is asked for", () => upstream.requests.length > before);
    withdraw(id);
    expect(await errorOf(await answer)).toEqual({ status: 403, code: "token_revoked" });
    await until("the request is over", () => lastAsked().abortedAtMs !== null);
  });

  it("is cut when its key may not have the voice any more, and only then", async () => {
    const { token, narrow } = narrowable();
    const [bad, good] = [await post(surface, token, BAD), await post(surface, token)];
    const cut = bad.arrayBuffer();
    narrow({ voices: [GOOD] });
    await expect(cut).rejects.toThrow();
    sendRest();
    expect((await good.arrayBuffer()).byteLength).toBe(2 * HALF.length);
  });

  it("is not cut when its token's time is over", async () => {
    const answer = await post(surface, newToken({ seconds: 1 }).token);
    await ended("expired");
    sendRest();
    expect((await answer.arrayBuffer()).byteLength).toBe(2 * HALF.length);
  });

  it("names the model to the upstream for who may have some only, and no other one", async () => {
    sendRest();
    const model = "eleven_multilingual_v2";
    await (await post(surface, newToken().token)).arrayBuffer();
    expect(lastAsked().json).not.toHaveProperty("model_id");
    await (await post(surface, newToken({ models: [model] }).token)).arrayBuffer();
    expect(lastAsked().json).toMatchObject({ model_id: model });
    const refused = await post(surface, newToken({ models: ["eleven_flash*"] }).token);
    expect(await errorOf(refused)).toEqual({ status: 403, code: "forbidden" });
  });
});

describe("the proxy", () => {
  it("cuts an answer whose key may not have the model of its body any more", async () => {
    const { token, narrow } = narrowable();
    const speak = (model_id: string) => post({ ...PROXY, body: () => ({ text: "Hello.", model_id }) }, token);
    const [bad, good] = [await speak("eleven_v3"), await speak("eleven_flash_v2_5")];
    const cut = bad.arrayBuffer();
    narrow({ models: ["eleven_flash*"] });
    await expect(cut).rejects.toThrow();
    sendRest();
    expect((await good.arrayBuffer()).byteLength).toBe(2 * HALF.length);
  });

  it("refuses an upload whose token is withdrawn while it comes, and takes no more of it", async () => {
    await using receiving = await startFakeUpstream();
    await using other = await gatewayAt(receiving.url, { keysFile: keys.path });
    const { id, token } = newToken();
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "multipart/form-data; boundary=x",
      "content-length": "1000000",
    };
    const upload = request(`${other.url}/v1/audio-isolation`, { method: "POST", headers });
    // The refusal closes the connection, at times before all of it was read.
    upload.on("error", () => undefined);
    upload.write("--x");
    await until("it goes upstream", () => receiving.connections.open > 0);
    // One that was opened in advance may come beside it.
    const closed = (): number => receiving.connections.opened - receiving.connections.open;
    const closedBefore = closed();
    withdraw(id);
    const [answer] = (await once(upload, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(403);
    answer.resume();
    expect(answer.headers.connection).toBe("close");
    await until("the upstream's is over", () => closed() > closedBefore);
    upload.destroy();
  });
});

describe("audio of a session over HTTP", () => {
  it("is ended when its key may not have the format any more, and captions go on", async () => {
    const { token, narrow } = narrowable();
    const headers = { authorization: `Bearer ${token}` };
    const speaker = new WebSocket(`${gateway.wsUrl}/live/shared?role=speaker`, {
      headers: { authorization: `Bearer ${keys.key}` },
    });
    await once(speaker, "message");
    const open = (name: string) => fetch(`${gateway.url}/live/shared/${name}`, { headers });
    const [audio, captions] = [await open("audio.ulaw"), await open("captions")];
    expect([audio.status, captions.status]).toEqual([200, 200]);
    const cut = audio.arrayBuffer();
    const text = captions.text();
    narrow({ allow: ["listen"], formats: ["opus*"] });
    await expect(cut).rejects.toThrow();
    narrow({ allow: ["speak"] });
    expect(await text).toContain('"code":"token_revoked"');
    speaker.terminate();
  });
});

describe("jambonz's speech of a gateway with keys", () => {
  it("over HTTP is of the voices and formats of its token, with what that sets", async () => {
    sendRest();
    for (const grants of [{ formats: ["mp3*"] }, { voices: [BAD] }]) {
      const refused = await post(JAMBONZ, newToken(grants).token);
      expect(await errorOf(refused)).toEqual({ status: 403, code: "forbidden" });
      expect(audit.at(-1)).toMatchObject({ audit: "refused", surface: "/carrier/jambonz/tts" });
    }
    const speech = { voice_id: "pinned", model_id: "eleven_flash_v2_5", seed: 7, enable_logging: false };
    await (await post(JAMBONZ, newToken({ speech }).token)).arrayBuffer();
    expect(lastAsked().path).toBe("/v1/text-to-speech/pinned/stream");
    expect(lastAsked().query.get("enable_logging")).toBe("false");
    expect(lastAsked().json).toMatchObject({ model_id: "eleven_flash_v2_5", seed: 7 });
    expect(audit.at(-1)).toMatchObject({ audit: "admitted", surface: "/carrier/jambonz/tts", key: "app" });
  });

  it("over HTTP pays with its token's characters", async () => {
    sendRest();
    const { token } = newToken({ characters: 10 });
    expect((await post(JAMBONZ, token)).status).toBe(200);
    expect(await errorOf(await post(JAMBONZ, token))).toMatchObject({ code: "budget_exhausted" });
  });
});

/** jambonz's end of its speech socket. */
class Socket implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly texts: { readonly type: string; readonly error?: string }[] = [];
  audioBytes = 0;
  end: { readonly code: number; readonly reason: string } | null = null;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) this.audioBytes += data.length;
      else this.texts.push(JSON.parse(data.toString()));
    });
    socket.on("close", (code, reason) => {
      this.end = { code, reason: reason.toString() };
    });
  }

  static async dial(token: string, voiceId = GOOD): Promise<Socket> {
    const url = `${gateway.wsUrl}/carrier/jambonz/tts?voice=${voiceId}&language=en-US`;
    const socket = new Socket(new WebSocket(url, { headers: { authorization: `Bearer ${token}` } }));
    await once(socket.#socket, "open");
    return socket;
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  async untilEnded() {
    await until("the close", () => this.end !== null);
    return { ...this.end, error: this.texts.at(-1)?.error };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.terminate();
    await until("the close", () => this.end !== null);
  }
}

describe("jambonz's speech socket of a gateway with keys", () => {
  it("says what it has taken when its token's time is over, takes nothing more, and closes", async () => {
    const before = upstream.requests.length;
    await using socket = await Socket.dial(newToken({ seconds: 1 }).token);
    socket.send({ type: "stream", text: "Hello." });
    await until("audio", () => socket.audioBytes === HALF.length);
    socket.send({ type: "stream", text: "And then" });
    await ended("expired");
    socket.send({ type: "stream", text: "Too late." });
    expect(socket.end).toBeNull();
    sendRest();
    expect(await socket.untilEnded()).toEqual({
      code: 1008,
      reason: "token_expired",
      error: expect.stringMatching(/^token_expired: /),
    });
    expect(socket.audioBytes).toBe(4 * HALF.length);
    const asked = upstream.requests.slice(before);
    expect(asked.map(({ json }) => json)).toMatchObject([{ text: "Hello." }, { text: "And then" }]);
  });

  it("closes at once when its token's time is over and it says nothing", async () => {
    await using socket = await Socket.dial(newToken({ seconds: 1 }).token);
    expect(await socket.untilEnded()).toMatchObject({ code: 1008, reason: "token_expired" });
  });

  it("is ended at once when its token is withdrawn, and so is what it has asked for", async () => {
    const { id, token } = newToken();
    await using socket = await Socket.dial(token);
    socket.send({ type: "stream", text: "Hello." });
    await until("audio", () => socket.audioBytes > 0);
    withdraw(id);
    expect(await socket.untilEnded()).toEqual({
      code: 1008,
      reason: "token_revoked",
      error: expect.stringMatching(/^token_revoked: /),
    });
    await until("the request is over", () => lastAsked().abortedAtMs !== null);
  });

  it.each<readonly [what: string, grants: object]>([
    ["may not bring calls any more", { allow: ["speak"] }],
    ["may not have the voice any more", { voices: [BAD] }],
    ["may not have the format any more", { formats: ["mp3*"] }],
    ["sets other options", { speech: { enable_logging: false } }],
  ])("is ended when its key %s", async (_what, grants) => {
    const { token, narrow } = narrowable();
    await using socket = await Socket.dial(token);
    await until("connect", () => socket.texts.length > 0);
    narrow(grants);
    expect(await socket.untilEnded()).toMatchObject({ code: 1008, reason: "token_revoked" });
  });

  it("speaks with what its token sets, pays with its characters, and stands in the audit log", async () => {
    sendRest();
    const speech = { voice_id: "pinned", model_id: "eleven_flash_v2_5", language_code: "de", seed: 7 };
    await using socket = await Socket.dial(newToken({ speech, characters: 10 }).token);
    expect(audit).toMatchObject([{ audit: "admitted", surface: "/carrier/jambonz/tts", subject: "ann" }]);
    socket.send({ type: "stream", text: "Hello." });
    await until("audio", () => socket.audioBytes > 0);
    expect(lastAsked().path).toBe("/v1/text-to-speech/pinned/stream");
    expect(lastAsked().json).toMatchObject({ model_id: "eleven_flash_v2_5", language_code: "de", seed: 7 });
    socket.send({ type: "stream", text: "Hello again." });
    await until("an error", () => socket.texts.length === 2);
    expect(socket.texts[1]?.error).toMatch(/^budget_exhausted: /);
  });

  it.each<readonly [what: string, grants: object]>([
    ["format", { formats: ["mp3*"] }],
    ["model", { models: ["eleven_flash*"] }],
  ])("is refused before the upgrade where its token has another %s", async (_what, grants) => {
    const headers = { authorization: `Bearer ${newToken(grants).token}` };
    const url = `${gateway.wsUrl}/carrier/jambonz/tts?voice=${GOOD}`;
    expect(await upgradeStatus(url, headers)).toBe(403);
    expect(audit.at(-1)).toMatchObject({ audit: "refused", reason: "forbidden", subject: "ann" });
  });

  it("is refused in the place of `connect` where its token has another voice", async () => {
    await using socket = await Socket.dial(newToken({ voices: [BAD] }).token);
    expect(await socket.untilEnded()).toMatchObject({ code: 1008, reason: "forbidden" });
    expect(audit.at(-1)).toMatchObject({ audit: "refused", reason: "forbidden" });
  });

  it("counts as a connection of its token", async () => {
    const { token } = newToken({ connections: 1 });
    await using first = await Socket.dial(token);
    await using second = await Socket.dial(token);
    expect(await second.untilEnded()).toMatchObject({ code: 1008, reason: "connection_limit" });
    expect(first.end).toBeNull();
  });
});
