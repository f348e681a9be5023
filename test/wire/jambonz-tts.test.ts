/** A whole gateway as jambonz's custom speech vendor: its requests and its socket, as its interface describes them. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import {
  type FakeUpstream,
  refusal,
  speaking,
  speechAnswer,
  speechFor,
  startFakeUpstream,
} from "../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { ndjsonSpeech } from "../helpers/tone-speech.ts";
import { until } from "../helpers/until.ts";
import { decode, loudness, startClient, VOICE } from "../service/client.ts";

const PATH = "/carrier/jambonz/tts";
const TOKEN = "s3cret";
const BODY = { language: "en-US", voice: "Tone A", type: "text", text: "Hello there." };
const tone = (text: string, format: string) =>
  Buffer.from(ndjsonSpeech({ text, msPerChar: 20, format }).audio);

let upstream: FakeUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
  gateway = await gatewayAt(upstream.url, { carrierToken: TOKEN });
});
afterAll(async () => {
  await gateway?.close();
  await upstream?.close();
});

interface Asking {
  readonly accept?: string;
  readonly token?: string;
  readonly signal?: AbortSignal;
  readonly at?: TestGateway;
}

function post(body: object | string, asking: Asking = {}): Promise<Response> {
  const { accept = "audio/mpeg", token = TOKEN, signal, at = gateway } = asking;
  return fetch(`${at.url}${PATH}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-agent": "jambonz/0.8.5",
      authorization: `Bearer ${token}`,
      accept,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

const codeOf = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { code: string; message: string } };
  expect(error.message).not.toContain("Hello there");
  return [answer.status, error.code];
};

/** jambonz's streaming module, as its documents have it: audio counts from connect on only. */
class Jambonz implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly texts: { readonly type: string; readonly error?: string; readonly data?: object }[] = [];
  readonly frames: Buffer[] = [];
  end: number | null = null;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data: Buffer, isBinary) => {
      if (!isBinary) this.texts.push(JSON.parse(data.toString()));
      else if (this.texts[0]?.type === "connect") this.frames.push(data);
      else throw new Error("Audio before connect");
    });
    socket.on("close", (code) => {
      this.end = code;
    });
  }

  static async dial(at: TestGateway, query: string, token = TOKEN): Promise<Jambonz> {
    const headers = { authorization: `Bearer ${token}` };
    const jambonz = new Jambonz(new WebSocket(`${at.wsUrl}${PATH}?${query}`, { headers }));
    await once(jambonz.socket, "open");
    return jambonz;
  }

  get audio(): Buffer {
    return Buffer.concat(this.frames);
  }

  send(...messages: readonly object[]): void {
    for (const message of messages) this.socket.send(JSON.stringify(message));
  }

  until(what: string, isTrue: () => boolean): Promise<void> {
    return until(what, isTrue, { deadlineMs: 10_000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.terminate();
    await this.until("the close", () => this.end !== null);
  }
}

describe("by POST", () => {
  it("L16 and WAV are asked for by Accept, and hold exactly what the upstream said", async () => {
    const l16 = await post(BODY, { accept: "audio/l16;rate=8000" });
    expect([l16.status, l16.headers.get("content-type"), l16.headers.get("transfer-encoding")]).toEqual([
      200,
      "audio/l16;rate=8000",
      "chunked",
    ]);
    expect(Buffer.from(await l16.arrayBuffer()).equals(tone(BODY.text, "pcm_8000"))).toBe(true);
    const asked = upstream.requests.at(-1);
    expect(asked?.path).toBe("/v1/text-to-speech/tone-a/stream");
    expect(asked?.json).toMatchObject({ text: BODY.text });
    const wav = await post(BODY, { accept: "audio/wav" });
    expect(wav.headers.get("content-type")).toBe("audio/wav");
    const bytes = Buffer.from(await wav.arrayBuffer());
    expect(bytes.subarray(0, 4).toString()).toBe("RIFF");
    expect(bytes.subarray(44).equals(tone(BODY.text, "pcm_16000"))).toBe(true);
  });

  it("SSML is read, and not read aloud", async () => {
    const text = '<speak><prosody rate="slow">Hello</prosody> you <break time="1s"/>&amp; me.</speak>';
    const answer = await post({ ...BODY, type: "ssml", text }, { accept: "audio/l16;rate=16000" });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    expect(upstream.requests.at(-1)?.json).toMatchObject({ text: 'Hello you <break time="1s"/>& me.' });
  });

  it("audio tags, which the gateway's model would read aloud, are left out", async () => {
    const answer = await post({ ...BODY, text: "Oh [laughs] you." }, { accept: "audio/l16;rate=16000" });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    expect(upstream.requests.at(-1)?.json).toMatchObject({ text: "Oh you." });
    expect((await post({ ...BODY, text: "[laughs]" }, {})).status).toBe(400);
  });

  it("MP3 is what it gets otherwise, and it is speech (embedded service)", async () => {
    await using service = await startClient();
    await using other = await gatewayAt(service.service.url);
    for (const accept of ["audio/mpeg", "*/*"]) {
      const answer = await post({ ...BODY, voice: VOICE }, { accept, at: other, token: "" });
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
      const samples = decode(Buffer.from(await answer.arrayBuffer()), "mp3");
      expect(samples.length / 16_000).toBeGreaterThan(0.4);
      expect(loudness(samples)).toBeGreaterThan(300);
    }
  });

  it("whatever is wrong is an error with a status, and nothing is asked of the upstream", async () => {
    const before = upstream.requests.filter(({ method }) => method === "POST").length;
    expect(await codeOf(await post(BODY, { token: "other" }))).toEqual([401, "carrier_unauthorized"]);
    expect(await codeOf(await post("{"))).toEqual([400, "carrier_protocol"]);
    expect(await codeOf(await post({ ...BODY, text: undefined }))).toEqual([400, "carrier_protocol"]);
    expect(await codeOf(await post({ ...BODY, text: " \n" }))).toEqual([400, "invalid_field"]);
    expect(await codeOf(await post({ ...BODY, type: "ssml", text: "<speak> </speak>" }))).toEqual([
      400,
      "invalid_field",
    ]);
    expect(await codeOf(await post({ ...BODY, text: "a".repeat(5001) }))).toEqual([413, "text_too_long"]);
    // Read as markup it would be empty.
    const unread = { ...BODY, type: "ssml", text: `${"<?".repeat(32_000)}?>` };
    expect(await codeOf(await post(unread))).toEqual([413, "text_too_long"]);
    expect(await codeOf(await post({ ...BODY, text: "a".repeat(70_000) }))).toEqual([
      413,
      "message_too_large",
    ]);
    expect(await codeOf(await post({ ...BODY, voice: "Nobody" }))).toEqual([404, "unknown_voice"]);
    expect(await codeOf(await post(BODY, { accept: "audio/l16;rate=1" }))).toEqual([400, "unknown_format"]);
    expect(upstream.requests.filter(({ method }) => method === "POST")).toHaveLength(before);
  });

  it("the upstream's voices are asked for once, whoever names one: jambonz here and on its socket, OpenAI's clients", async () => {
    await using other = await startFakeUpstream(speaking({ msPerChar: 20 }));
    await using fresh = await gatewayAt(other.url);
    expect((await post(BODY, { at: fresh, accept: "audio/wav" })).status).toBe(200);
    await using jambonz = await Jambonz.dial(fresh, "voice=Tone%20A", "");
    await jambonz.until("connect", () => jambonz.texts.length > 0);
    const openAi = await fetch(`${fresh.url}/v1/audio/speech`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "tts-1",
        input: "Hello there.",
        voice: "Tone A",
        response_format: "pcm",
      }),
    });
    expect(openAi.status).toBe(200);
    expect(other.requests.filter(({ path }) => path === "/v1/voices")).toHaveLength(1);
  });

  it("an upstream that refuses is an error, one that breaks off cuts the body", async () => {
    const speak = speaking();
    await using broken = await startFakeUpstream((one, index) =>
      one.method === "GET" ? speak(one, index) : refusal(401, "quota_exceeded"),
    );
    await using other = await gatewayAt(broken.url);
    expect((await post(BODY, { at: other })).status).toBe(502);
    broken.use((one) => speechAnswer(speechFor(one), { isTimed: false, tail: [{ afterMs: 50 }, "reset"] }));
    const cut = await post(BODY, { at: other, accept: "audio/l16;rate=8000" });
    expect(cut.status).toBe(200);
    await expect(cut.arrayBuffer()).rejects.toThrow();
  });

  it("a client that goes away ends the upstream's request", async () => {
    const speak = speaking();
    await using slow = await startFakeUpstream((one, index) =>
      one.method === "GET"
        ? speak(one, index)
        : speechAnswer(speechFor(one), { isTimed: false, tail: ["stall"] }),
    );
    await using other = await gatewayAt(slow.url);
    const abort = new AbortController();
    const answer = await post(BODY, { at: other, accept: "audio/l16;rate=8000", signal: abort.signal });
    expect(answer.status).toBe(200);
    abort.abort();
    await until("it is over", () => slow.requests.at(-1)?.abortedAtMs !== null);
  });
});

describe("by WebSocket", () => {
  it("speaks several utterances on one socket, in order, as L16 in binary messages", async () => {
    await using jambonz = await Jambonz.dial(gateway, "voice=Tone%20A&language=en-US&sampleRate=8000");
    await jambonz.until("connect", () => jambonz.texts.length > 0);
    const connect = { type: "connect", data: { sample_rate: 8000, base64_encoding: false } };
    expect(jambonz.texts).toEqual([connect]);
    jambonz.send(
      { type: "stream", text: "[cheerfully] Hello there." },
      { type: "stream", text: "[laughs]." },
      { type: "stream", text: "How are" },
      { type: "flush" },
    );
    const first = Buffer.concat(["Hello there.", "How are"].map((text) => tone(text, "pcm_8000")));
    await jambonz.until("the first", () => jambonz.audio.length >= first.length);
    jambonz.send({ type: "keepalive" }, { type: "unheard-of" }, { type: "stream", text: "And you?" });
    const all = Buffer.concat([first, tone("And you?", "pcm_8000")]);
    await jambonz.until("the second", () => jambonz.audio.length >= all.length);
    expect(jambonz.audio.equals(all)).toBe(true);
    expect(jambonz.frames.every((frame) => frame.length % 2 === 0)).toBe(true);
    expect(jambonz.texts).toEqual([connect]);
    expect(upstream.requests.at(-1)?.path).toBe("/v1/text-to-speech/tone-a/stream");
    jambonz.send({ type: "stop" });
    await jambonz.until("the close", () => jambonz.end !== null);
    expect(jambonz.end).toBe(1000);
  });

  it.each(["stop", "clear", "close"])("%s ends what is being said", async (how) => {
    const speak = speaking();
    await using slow = await startFakeUpstream((one, index) =>
      one.method === "GET"
        ? speak(one, index)
        : speechAnswer(speechFor(one, { msPerChar: 20 }), { isTimed: false, tail: ["stall"] }),
    );
    await using other = await gatewayAt(slow.url);
    await using jambonz = await Jambonz.dial(other, "voice=Tone%20A&sampleRate=8000", "");
    jambonz.send(
      { type: "stream", text: "One." },
      { type: "stream", text: "Two." },
      { type: "stream", text: "3." },
    );
    const said = tone("One.", "pcm_8000").length;
    await jambonz.until("sound", () => jambonz.audio.length === said);
    if (how === "close") jambonz.socket.close();
    else jambonz.send({ type: how });
    const spoken = () => slow.requests.filter(({ method }) => method === "POST");
    await jambonz.until("no request is open", () =>
      spoken().every(({ abortedAtMs }) => abortedAtMs !== null),
    );
    if (how === "clear") {
      jambonz.send({ type: "stream", text: "Yes?" });
      await jambonz.until("the next", () => jambonz.audio.length > said);
      expect(jambonz.audio.subarray(said).equals(tone("Yes?", "pcm_8000"))).toBe(true);
      expect(jambonz.end).toBeNull();
    } else {
      await jambonz.until("the close", () => jambonz.end !== null);
      expect(jambonz.audio).toHaveLength(said);
    }
  });

  it.each([
    ["voice=Tone%20A", "wrong", 401],
    ["language=en", TOKEN, 400],
    ["voice=Tone%20A&sampleRate=fast", TOKEN, 400],
  ])("%s with token %s is refused before the upgrade: %i", async (query, token, status) => {
    const headers = { authorization: `Bearer ${token}` };
    const socket = new WebSocket(`${gateway.wsUrl}${PATH}?${query}`, { headers });
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
    expect(response.statusCode).toBe(status);
    socket.on("error", () => undefined);
    socket.terminate();
  });

  it("an unknown voice is an error in the place of connect", async () => {
    await using jambonz = await Jambonz.dial(gateway, "voice=Nobody+Here");
    await jambonz.until("the close", () => jambonz.end !== null);
    expect(jambonz.texts).toEqual([{ type: "error", error: expect.stringMatching(/^unknown_voice: /) }]);
    expect(jambonz.end).toBe(1008);
  });

  it("what can't be read is an error and the close", async () => {
    for (const [message, code] of [
      ["{", "carrier_protocol"],
      [Buffer.from([1, 2]), "binary_not_allowed"],
      [JSON.stringify({ type: "stream", text: "a".repeat(70_000) }), "message_too_large"],
    ] as const) {
      await using jambonz = await Jambonz.dial(gateway, "voice=Tone%20A");
      await jambonz.until("connect", () => jambonz.texts.length > 0);
      jambonz.socket.send(message);
      await jambonz.until("the close", () => jambonz.end !== null);
      expect(jambonz.texts.at(-1)).toEqual({ type: "error", error: expect.stringContaining(code) });
      expect(jambonz.end).toBe(1008);
    }
  });

  it("ends when the gateway closes", async () => {
    const other = await gatewayAt(upstream.url);
    await using jambonz = await Jambonz.dial(other, "voice=Tone%20A", "");
    await other.close();
    await jambonz.until("the close", () => jambonz.end !== null);
    expect(jambonz.end).toBe(1001);
  });

  it("the call's own socket is where it was", async () => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const socket = new WebSocket(`${gateway.wsUrl}/carrier/jambonz`, "audio.drachtio.org", { headers });
    await once(socket, "open");
    socket.terminate();
    await once(socket, "close");
  });
});
