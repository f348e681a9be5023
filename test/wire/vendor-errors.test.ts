/** Everything that can be wrong on the vendor's sockets: what is said, and with which code they close. */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { refusal, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { until } from "../helpers/until.ts";
import { startVendorApp, type VendorApp, VendorClient } from "./vendor-rig.ts";

const SINGLE = "/v1/text-to-speech/v1/stream-input?output_format=pcm_16000";
const MULTI = "/v1/text-to-speech/v1/multi-stream-input?output_format=pcm_16000";

/** What the handshake was answered with. */
async function handshake(app: VendorApp, path: string): Promise<{ status: number; body: unknown }> {
  const socket = new WebSocket(app.wsUrl + path);
  socket.on("error", () => undefined);
  const [, response] = (await once(socket, "unexpected-response")) as [
    unknown,
    NodeJS.ReadableStream & { statusCode: number },
  ];
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, body: JSON.parse(Buffer.concat(parts).toString()) };
}

async function fails(path: string, messages: readonly (object | string | Buffer)[], app: VendorApp) {
  await using client = await VendorClient.connect(app, path);
  for (const message of messages) {
    if (Buffer.isBuffer(message)) client.socket.send(message);
    else client.send(message);
  }
  const { code, reason } = await client.untilClosed();
  const said = client.heard.at(-1);
  expect(client.heard.filter((one) => one.error !== undefined)).toEqual([said]);
  expect(code).toBe(said?.code);
  expect(said?.message?.startsWith(reason)).toBe(true);
  expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(123);
  return { error: said?.error, code, contextId: said?.contextId };
}

const INVALID = { error: "invalid_input_message", code: 1008, contextId: undefined };

describe("messages that are wrong", () => {
  it("are an error message and a close with 1008", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const wrong: readonly (object | string | Buffer)[] = [
      "{not json",
      "[1]",
      '"text"',
      "null",
      Buffer.from('{"text":" "}'),
      {},
      { text: 5 },
      { text: null },
      { text: "a", voice_settings: { stability: 2 } },
      { text: "a", voice_settings: "calm" },
      { text: "a", generation_config: { chunk_length_schedule: ["x"] } },
      { text: "a", flush: "yes" },
      { text: "a", pronunciation_dictionary_locators: [{ version_id: "v" }] },
      { text: "x".repeat(70_000) },
    ];
    for (const message of wrong) expect(await fails(SINGLE, [message], app)).toEqual(INVALID);
    for (const message of [{}, { context_id: "a" }, { text: "a", context_id: 7 }]) {
      expect(await fails(MULTI, [message], app)).toEqual(INVALID);
    }
    await until("no socket is left", () => app.sockets.open === 0);
    expect(upstream.requests).toEqual([]);
  });

  it("text that nobody can speak in time is bounded", async () => {
    await using upstream = await startFakeUpstream(() => "silence");
    await using app = await startVendorApp(upstream.url, { sockets: { limits: { maxTextChars: 10_000 } } });
    const messages = Array.from({ length: 5 }, () => ({
      text: "word ".repeat(800),
      context_id: "a",
      flush: true,
    }));
    expect(await fails(MULTI, messages, app)).toEqual({
      error: "max_character_limit_exceeded",
      code: 1008,
      contextId: "a",
    });
    await until("nothing is asked any more", () => app.upstream.stats().open === 0);
  });
});

describe("what the upstream refuses", () => {
  it.each([
    [404, "voice_not_found", "voice_id_does_not_exist"],
    [400, "voice_does_not_exist", "voice_id_does_not_exist"],
    [401, "invalid_api_key", "invalid_api_key"],
    [401, "quota_exceeded", "quota_exceeded"],
    [402, "insufficient_credits", "quota_exceeded"],
    [403, "detected_unusual_activity", "detected_unusual_activity"],
    [403, "subscription_required", "unauthorized"],
    [400, "invalid_voice_settings", "invalid_input_message"],
    [422, "missing", "invalid_input_message"],
  ])("%i %s -> %s, 1008", async (status, code, error) => {
    await using upstream = await startFakeUpstream(() => refusal(status, code));
    await using app = await startVendorApp(upstream.url);
    expect(await fails(MULTI, [{ text: "Hello. ", flush: true, context_id: "a" }], app)).toEqual({
      error,
      code: 1008,
      contextId: "a",
    });
    expect(upstream.requests).toHaveLength(1);
  });

  it("names the unknown voice", async () => {
    await using upstream = await startFakeUpstream(() => refusal(404, "voice_not_found"));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: "Hello. ", flush: true });
    expect((await client.untilClosed()).reason).toBe("A voice with voice_id v1 does not exist.");
  });

  it("names the voices of a dialogue, of which there is not one", async () => {
    await using upstream = await startFakeUpstream(() => refusal(404, "voice_not_found"));
    await using app = await startVendorApp(upstream.url);
    const reasonFor = async (voices: readonly string[]): Promise<string> => {
      const path = "/v1/text-to-dialogue/multi-stream-input?model_id=eleven_v3&output_format=pcm_16000";
      await using client = await VendorClient.connect(app, path);
      const inputs = [{ text: "Hello. ", voice_id: voices[0] }];
      client.send({ context_id: "a", voices, inputs, flush: true });
      return (await client.untilClosed()).reason;
    };
    expect(await reasonFor(["v1"])).toBe("A voice with voice_id v1 does not exist.");
    expect(await reasonFor(["v1", "v2"])).toBe("One of these voices does not exist: v1, v2");
  });

  it("an answer that is no audio of the format is an internal error", async () => {
    await using upstream = await startFakeUpstream(() => ({
      headers: { "content-type": "application/json" },
      body: [
        `${JSON.stringify({ audio_base64: Buffer.from("no Ogg").toString("base64"), alignment: null })}\n`,
      ],
    }));
    await using app = await startVendorApp(upstream.url);
    const path = "/v1/text-to-speech/v1/stream-input?output_format=opus_48000_64";
    expect((await fails(path, [{ text: "Hello. " }, { text: "" }], app)).error).toBe("internal_error");
  });
});

describe("the handshake", () => {
  it("is refused with 400 for a model or a parameter that can't be, 403 for a path that is not", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const tts = "/v1/text-to-speech/v1/multi-stream-input";
    const dialogue = "/v1/text-to-dialogue/multi-stream-input";
    const cases: readonly (readonly [string, number, string])[] = [
      [`${tts}?model_id=eleven_v3`, 400, "unsupported_model"],
      [`${dialogue}?model_id=eleven_flash_v2_5`, 400, "unsupported_model"],
      [`${tts}?output_format=wav_44100`, 400, "invalid_output_format"],
      [`${tts}?sync_alignment=maybe`, 400, "invalid_parameters"],
      [`${tts}?seed=-1`, 400, "invalid_parameters"],
      [`${tts}?inactivity_timeout=soon`, 400, "invalid_parameters"],
      [`${tts}?apply_text_normalization=always`, 400, "invalid_parameters"],
      ["/v1/text-to-speech/v1/other-input", 403, "forbidden"],
      ["/v1/nothing", 403, "forbidden"],
    ];
    for (const [path, status, code] of cases) {
      expect(await handshake(app, path)).toMatchObject({ status, body: { detail: { code } } });
    }
  });

  it("is refused with 429 while as many sockets are open as may be, and when the gateway closes", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url, { sockets: { maxSockets: 1 } });
    await using client = await VendorClient.connect(app, SINGLE);
    expect(await handshake(app, SINGLE)).toMatchObject({
      status: 429,
      body: { detail: { code: "system_busy" } },
    });
    client.socket.close();
    await until("it is gone", () => app.sockets.open === 0);
    await using second = await VendorClient.connect(app, SINGLE);
    second.send({ text: "Hello " });
    app.sockets.close();
    expect((await second.untilClosed()).code).toBe(1001);
    expect((await handshake(app, SINGLE)).status).toBe(429);
  });

  it("a request that is no WebSocket goes on to the proxy", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    expect(await (await fetch(`${app.url}/v1/voices`)).json()).toMatchObject({ voices: [{}, {}] });
  });
});
