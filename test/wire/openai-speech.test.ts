/** `POST /v1/audio/speech` over a real upstream client: formats, events, voices, errors, and clients that go away. */
import { once } from "node:events";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  jsonAnswer,
  refusal,
  speaking,
  speechAnswer,
  speechFor,
  startFakeUpstream,
} from "../helpers/fake-upstream.ts";
import { until } from "../helpers/until.ts";
import { decode, loudness, startClient, VOICE } from "../service/client.ts";
import { startVendorApp, type VendorApp } from "./vendor-rig.ts";

const BODY = { model: "tts-1", input: "Hello there.", voice: VOICE };

const post = (app: VendorApp, body: object | string, signal?: AbortSignal) =>
  fetch(`${app.url}/v1/audio/speech`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer any" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });

interface OpenAiError {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
  };
}

interface SpeechEvent {
  readonly type: string;
  readonly audio?: string;
  readonly usage?: {
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly total_tokens: number;
  };
  readonly error?: OpenAiError["error"];
}

function eventsOf(text: string): SpeechEvent[] {
  const blocks = text.split("\n\n");
  expect(blocks.pop()).toBe("");
  return blocks.map((block) => {
    expect(block.startsWith("data: ")).toBe(true);
    return JSON.parse(block.slice(6)) as SpeechEvent;
  });
}

const audioIn = (events: readonly SpeechEvent[]) =>
  Buffer.concat(events.map(({ audio }) => Buffer.from(audio ?? "", "base64")));

describe("formats, by the embedded service", () => {
  let service: Awaited<ReturnType<typeof startClient>>;
  let app: VendorApp;
  beforeAll(async () => {
    service = await startClient();
    app = await startVendorApp(service.service.url);
  });
  afterAll(async () => {
    await app[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
  });

  it.each([
    ["mp3", "audio/mpeg", /^(\xff[\xf2\xf3\xfa\xfb]|ID3)/],
    ["opus", "audio/opus", /^OggS/],
    ["wav", "audio/wav", /^RIFF....WAVE/s],
    ["flac", "audio/flac", /^fLaC/],
    ["pcm", "audio/pcm", /^/],
  ])("%s is %s and is speech", async (response_format, type, start) => {
    const answer = await post(app, { ...BODY, response_format });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
    const body = Buffer.from(await answer.arrayBuffer());
    expect(body.subarray(0, 16).toString("latin1")).toMatch(start);
    const samples = decode(body, response_format === "pcm" ? "pcm_24000" : response_format);
    expect(samples.length / 16_000).toBeGreaterThan(0.4);
    expect(samples.length / 16_000).toBeLessThan(3);
    expect(loudness(samples)).toBeGreaterThan(300);
  });

  it("without a format it is MP3; speed is passed on", async () => {
    const plain = await (await post(app, BODY)).arrayBuffer();
    const slow = await (await post(app, { ...BODY, speed: 0.7 })).arrayBuffer();
    const lengthOf = (bytes: ArrayBuffer) => decode(Buffer.from(bytes), "mp3").length;
    expect(lengthOf(slow)).toBeGreaterThan(lengthOf(plain) * 1.2);
  });

  it("a speed that the upstream refuses is a 400 that names it", async () => {
    const answer = await post(app, { ...BODY, speed: 3 });
    expect(answer.status).toBe(400);
    expect((await answer.json()) as OpenAiError).toMatchObject({
      error: { type: "invalid_request_error", param: "speed", code: "upstream_invalid" },
    });
  });

  it("the answer names what nothing is done of", async () => {
    const ignored = async (more: object) => {
      const answer = await post(app, { ...BODY, ...more });
      await answer.body?.cancel();
      return answer.headers.get("x-ignored-fields");
    };
    expect(await ignored({ instructions: "Speak slowly.", seed: 3 })).toBe("instructions, seed");
    expect(await ignored({ instructions: "", response_format: "pcm" })).toBeNull();
  });

  it("sse: deltas that are the audio, then done with the usage", async () => {
    const answer = await post(app, { ...BODY, response_format: "pcm", stream_format: "sse" });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    const events = eventsOf(await answer.text());
    expect(events.slice(0, -1).every(({ type }) => type === "speech.audio.delta")).toBe(true);
    const pcm = audioIn(events);
    expect(loudness(decode(pcm, "pcm_24000"))).toBeGreaterThan(300);
    const output = Math.round(pcm.length / 48 / 50);
    expect(events.at(-1)).toEqual({
      type: "speech.audio.done",
      usage: { input_tokens: 3, output_tokens: output, total_tokens: 3 + output },
    });
  });

  it("OpenAI's voices speak with voices of the upstream", async () => {
    for (const voice of ["nova", "onyx", "alloy"]) {
      const answer = await post(app, { ...BODY, voice, response_format: "pcm" });
      expect(answer.status).toBe(200);
      const body = Buffer.from(await answer.arrayBuffer());
      expect(loudness(decode(body, "pcm_24000"))).toBeGreaterThan(300);
    }
  });
});

describe("what is asked of the upstream", () => {
  it("the text, the voice by id, name or OpenAI's name, and a model that is its own", async () => {
    const voices = [
      { voice_id: "v-b", name: "Bob", labels: { gender: "male" } },
      { voice_id: "v-c", name: "Carla", labels: { gender: "female" } },
      { voice_id: "v-a", name: "Anna", labels: { gender: "female" } },
    ];
    const speak = speaking();
    await using upstream = await startFakeUpstream((one, index) =>
      one.path === "/v1/voices" ? jsonAnswer(200, { voices }) : speak(one, index),
    );
    await using app = await startVendorApp(upstream.url, {
      openai: { defaultModel: "eleven_flash_v2_5", voices: { echo: "configured" } },
    });
    const ask = async (more: object): Promise<string> => {
      const answer = await post(app, { ...BODY, response_format: "pcm", ...more });
      expect(answer.status).toBe(200);
      await answer.arrayBuffer();
      return upstream.requests.at(-1)?.path.split("/")[3] ?? "";
    };
    expect(await ask({ voice: "alloy" })).toBe("v-a");
    expect(await ask({ voice: "coral" })).toBe("v-c");
    expect(await ask({ voice: "Marin" })).toBe("v-a");
    expect(await ask({ voice: "onyx" })).toBe("v-b");
    expect(await ask({ voice: "echo" })).toBe("configured");
    expect(await ask({ voice: "carla" })).toBe("v-c");
    expect(await ask({ voice: "v-b" })).toBe("v-b");
    expect(await ask({ voice: { id: "anything" } })).toBe("anything");
    expect(await ask({ voice: VOICE, instructions: "Whisper.", model: "eleven_v3" })).toBe(VOICE);
    // The list was asked for once.
    expect(upstream.requests.filter((one) => one.path === "/v1/voices")).toHaveLength(1);
    const spoken = upstream.requests.filter((one) => one.method === "POST");
    expect(spoken.map((one) => (one.json as { model_id: string }).model_id)).toEqual([
      ...Array.from({ length: 8 }, () => "eleven_flash_v2_5"),
      "eleven_v3",
    ]);
    expect(spoken[0]?.json).toEqual({ text: "Hello there.", model_id: "eleven_flash_v2_5" });
    expect(spoken[0]?.path).toBe("/v1/text-to-speech/v-a/stream");
    expect(spoken[0]?.headers["xi-api-key"]).toBe("gateway-key");
  });

  it("audio tags go only to a model that acts on them: another one would read them aloud", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const textFor = async (body: object): Promise<unknown> => {
      const answer = await post(app, { ...BODY, response_format: "pcm", ...body });
      await answer.arrayBuffer();
      expect(answer.status).toBe(200);
      return upstream.requests.at(-1)?.json;
    };
    const input = "Oh [laughs] you said [1], [sighs] did you?";
    expect(await textFor({ input })).toMatchObject({ text: "Oh you said [1], did you?" });
    expect(await textFor({ input, model: "eleven_flash_v2_5" })).toMatchObject({
      text: "Oh you said [1], did you?",
    });
    expect(await textFor({ input, model: "eleven_v3" })).toMatchObject({ text: input });
    const asked = upstream.requests.length;
    const refused = await post(app, { ...BODY, input: "[laughs]" });
    expect([refused.status, ((await refused.json()) as OpenAiError).error.param]).toEqual([400, "input"]);
    expect(upstream.requests.length).toBe(asked);
  });

  it("what fails before its first audio is asked for again", async () => {
    await using upstream = await startFakeUpstream((one, index) =>
      index === 0 ? "reset" : speechAnswer(speechFor(one), { isTimed: false }),
    );
    await using app = await startVendorApp(upstream.url);
    const answer = await post(app, { ...BODY, response_format: "pcm" });
    expect((await answer.arrayBuffer()).byteLength).toBe(BODY.input.length * 60 * 48);
    expect(upstream.requests).toHaveLength(2);
  });
});

describe("errors", () => {
  it("a body that is wrong is a 400 in OpenAI's shape, and nothing is asked", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const cases: readonly (readonly [object | string, string | null])[] = [
      ["{no json", null],
      [[], null],
      [{ input: "a", voice: "alloy" }, "model"],
      [{ ...BODY, input: 5 }, "input"],
      [{ ...BODY, input: "  " }, "input"],
      [{ ...BODY, input: "x".repeat(4097) }, "input"],
      [{ model: "tts-1", input: "a" }, "voice"],
      [{ ...BODY, response_format: "aac" }, "response_format"],
      [{ ...BODY, response_format: "tape" }, "response_format"],
      [{ ...BODY, speed: 0.1 }, "speed"],
      [{ ...BODY, speed: 4.5 }, "speed"],
      [{ ...BODY, stream_format: "smoke" }, "stream_format"],
    ];
    for (const [body, param] of cases) {
      const answer = await post(app, body);
      const { error } = (await answer.json()) as OpenAiError;
      expect([answer.status, error.type, error.param]).toEqual([400, "invalid_request_error", param]);
      expect(error.message).not.toContain("Hello there");
    }
    expect(upstream.requests).toEqual([]);
    const large = await post(app, { ...BODY, instructions: "x".repeat(70_000) });
    expect(large.status).toBe(413);
  });

  it("an unknown voice is a 404 that names the field; the upstream's faults keep their status", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const unknown = await post(app, { ...BODY, voice: "nobody at all" });
    expect(unknown.status).toBe(404);
    expect((await unknown.json()) as OpenAiError).toMatchObject({
      error: {
        param: "voice",
        code: "unknown_voice",
        message: expect.stringContaining("no name or id that GET /voices lists"),
      },
    });
    upstream.use(() => refusal(401, "quota_exceeded"));
    const refused = await post(app, BODY);
    expect([refused.status, ((await refused.json()) as OpenAiError).error.type]).toEqual([
      502,
      "server_error",
    ]);
    upstream.use(() => ({ headers: { "content-type": "audio/mpeg" } }));
    expect((await post(app, BODY)).status).toBe(502);
  });

  it("what breaks off in the middle cuts the body, or is an event where events were asked for", async () => {
    await using upstream = await startFakeUpstream((one) =>
      speechAnswer(speechFor(one), { isTimed: false, tail: [{ afterMs: 50 }, "reset"] }),
    );
    await using app = await startVendorApp(upstream.url);
    const cut = await post(app, { ...BODY, response_format: "pcm" });
    expect(cut.status).toBe(200);
    await expect(cut.arrayBuffer()).rejects.toThrow();
    const received = await post(app, { ...BODY, response_format: "pcm", stream_format: "sse" });
    const reader = received.body?.getReader();
    let text = "";
    const decoder = new TextDecoder();
    for (;;) {
      const piece = await reader?.read().catch(() => undefined);
      if (piece === undefined || piece.done) break;
      text += decoder.decode(piece.value, { stream: true });
    }
    const events = eventsOf(text);
    expect(events.at(-1)).toMatchObject({ type: "error", error: { type: "server_error" } });
    expect(audioIn(events)).toHaveLength(BODY.input.length * 60 * 48);
  });
});

describe("the client", () => {
  it("that goes away ends the upstream's request, before and after the first audio", async () => {
    await using upstream = await startFakeUpstream(() => "silence");
    await using app = await startVendorApp(upstream.url);
    for (const isSpeaking of [false, true]) {
      if (isSpeaking) {
        upstream.use((one) => speechAnswer(speechFor(one), { isTimed: false, tail: ["stall"] }));
      }
      const before = upstream.requests.length;
      const abort = new AbortController();
      const answer = post(app, { ...BODY, response_format: "pcm" }, abort.signal);
      await until("a request", () => upstream.requests.length === before + 1);
      if (isSpeaking) await answer;
      abort.abort();
      await answer.catch(() => undefined);
      await until("it is over", () => upstream.requests[before]?.abortedAtMs !== null);
    }
  });

  it("that does not read holds the upstream, and gets everything when it reads on", async () => {
    const total = 24 * 1024 * 1024;
    const piece = Buffer.alloc(262_144, 7);
    await using upstream = await startFakeUpstream(() => ({
      headers: { "content-type": "audio/pcm" },
      body: Array.from({ length: total / piece.length }, () => piece),
    }));
    await using app = await startVendorApp(upstream.url);
    const sent = request(`${app.url}/v1/audio/speech`, { method: "POST", agent: false });
    sent.end(JSON.stringify({ ...BODY, response_format: "pcm" }));
    const [response] = (await once(sent, "response")) as [NodeJS.ReadableStream];
    await until("the upstream is held", () => upstream.requests[0]?.isBlocked === true, {
      deadlineMs: 10_000,
    });
    expect(upstream.requests[0]?.bytesWritten).toBeLessThan(total);
    let bytes = 0;
    for await (const chunk of response) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(total);
  });
});
