/** A single-use token is used up by what it opens, and not by a request that is refused. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { SIGNING, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";

const EVERYTHING = { sessions: ["*"], allow: ["open", "speak", "listen", "captions", "call", "proxy"] };
const JAMBONZ = { language: "en-US", voice: "Tone A", type: "text", text: "Hello." };
const OPENAI = { model: "tts-1", voice: "alloy", input: "Hello.", response_format: "pcm" };
/** Each signs tokens for one connection at a time. */
const NARROW = ["handshake", "first-message", "jambonz"];

const keys = new TestKeys({ keys: NARROW.map((id) => ({ id, ...SIGNING, limits: { connections: 1 } })) });
let upstream: FakeUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 5 }));
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path, rtpPeers: "127.0.0.0/8" });
});

afterAll(async () => {
  await gateway.close();
  await upstream[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

const onceOnly = (kid = "app") =>
  tokenFor({ ...EVERYTHING, once: true, seconds: 3600 }, { kid, claims: { jti: randomUUID() } });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

interface Asked {
  readonly path: string;
  /** Without one it is a GET. */
  readonly body?: string | object;
}

async function ask(token: string, { path, body }: Asked): Promise<number> {
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const answer = await fetch(gateway.url + path, {
    headers: { ...bearer(token), "content-type": "application/json", accept: "audio/wav" },
    ...(text === undefined ? {} : { method: "POST", body: text }),
  });
  await answer.body?.cancel();
  return answer.status;
}

/** A status that refuses the upgrade; else the code that the socket is closed with, or 101 where it stays. */
async function dial(token: string, path: string, first?: object): Promise<number> {
  const headers = first === undefined ? bearer(token) : {};
  const socket = new WebSocket(gateway.wsUrl + path, { headers });
  socket.on("error", () => undefined);
  if (first !== undefined) socket.on("open", () => socket.send(JSON.stringify(first)));
  const end = await new Promise<number>((resolve) => {
    socket.on("unexpected-response", (_, { statusCode = 0 }) => resolve(statusCode));
    socket.on("close", (code) => resolve(code));
    socket.on("open", () => setTimeout(() => resolve(101), STAYS_MS));
  });
  socket.terminate();
  return end;
}
/** What a socket is refused with comes at once. */
const STAYS_MS = 200;

describe("a single-use token", () => {
  it.each<[string, Asked, number, Asked, number]>([
    [
      "OpenAI's route",
      { path: "/v1/audio/speech", body: "{" },
      400,
      { path: "/v1/audio/speech", body: OPENAI },
      200,
    ],
    [
      "jambonz's POST",
      { path: "/carrier/jambonz/tts", body: { ...JAMBONZ, text: "..." } },
      400,
      { path: "/carrier/jambonz/tts", body: JAMBONZ },
      200,
    ],
    [
      "RTP ports",
      { path: "/carrier/rtp", body: { session: "no name" } },
      400,
      { path: "/carrier/rtp", body: { session: "rtp" } },
      201,
    ],
    ["captions", { path: "/live/nobody/captions.vtt" }, 404, { path: "/v1/models" }, 200],
    ["the proxy", { path: "/v1/unheard-of" }, 404, { path: "/v1/models" }, 200],
  ])("is good after %s has refused the request, once", async (_name, bad, refused, good, accepted) => {
    const token = onceOnly();
    expect([await ask(token, bad), await ask(token, bad)]).toEqual([refused, refused]);
    expect([await ask(token, good), await ask(token, good)]).toEqual([accepted, 401]);
  });

  it.each([
    ["carriers", "/carrier/pigeon", 404, "/carrier/telnyx"],
    ["jambonz's socket", "/carrier/jambonz/tts?language=en", 400, "/carrier/jambonz/tts?voice=Tone%20A"],
    ["native sockets", "/live/nobody?role=listener", 4404, "/live/somebody?format=none"],
  ])("is good after %s have refused the connection, once", async (_name, bad, refused, good) => {
    const token = onceOnly();
    expect([await dial(token, bad), await dial(token, bad)]).toEqual([refused, refused]);
    expect([await dial(token, good), await dial(token, good)]).toEqual([101, 401]);
  });

  it.each(["audio.wav", "audio.mp3", "captions", "captions.vtt"])(
    "is not used up by HEAD of %s, and is by what follows",
    async (file) => {
      const path = `/live/waited-for-${file.replace(".", "-")}/${file}?wait=true`;
      const token = onceOnly();
      const head = () => fetch(gateway.url + path, { method: "HEAD", headers: bearer(token) });
      expect([(await head()).status, (await head()).status]).toEqual([200, 200]);
      expect(await ask(token, { path })).toBe(200);
      expect((await head()).status).toBe(401);
    },
  );

  it.each<[string, string, ((token: string) => object) | undefined]>([
    ["handshake", "/v1/text-to-speech/v/stream-input", undefined],
    ["first-message", "/v1/text-to-speech/v/stream-input", (token) => ({ text: " ", xi_api_key: token })],
    ["jambonz", "/carrier/jambonz/tts?voice=Tone%20A", undefined],
  ])("of the key %s is good after the socket was one too many", async (kid, path, firstOf) => {
    const other = new WebSocket(`${gateway.wsUrl}/live/s?format=none`, {
      headers: bearer(tokenFor(EVERYTHING, { kid })),
    });
    await once(other, "message");
    const token = onceOnly(kid);
    expect(await dial(token, path, firstOf?.(token))).toBe(1008);
    other.close();
    await once(other, "close");
    await expect.poll(() => dial(token, path, firstOf?.(token))).toBe(101);
    expect(await dial(token, path, firstOf?.(token))).toBe(firstOf === undefined ? 401 : 1008);
  });
});
