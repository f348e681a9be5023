/** What a client of the vendor's sockets sends and nothing is done of is named: in the handshake's answer, and in the next message. */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { startVendorApp, type VendorApp, VendorClient } from "./vendor-rig.ts";

const SPEECH = "/v1/text-to-speech/v1/stream-input?output_format=pcm_16000";
const MULTI = "/v1/text-to-speech/v1/multi-stream-input?output_format=pcm_16000";
const DIALOGUE = "/v1/text-to-dialogue/stream-input?output_format=pcm_16000";

/** The header of the handshake's answer. */
async function namedBy(app: VendorApp, path: string): Promise<string | undefined> {
  const socket = new WebSocket(app.wsUrl + path);
  const [answer] = (await once(socket, "upgrade")) as [
    { headers: Record<string, string>; statusCode: number },
  ];
  socket.terminate();
  expect(answer.statusCode).toBe(101);
  return answer.headers["x-ignored-fields"];
}

/** Names by message, of those messages that have any. */
async function namedIn(app: VendorApp, path: string, messages: readonly object[]): Promise<unknown[]> {
  await using client = await VendorClient.connect(app, path);
  client.send(...messages);
  await client.untilClosed();
  const heard = client.heard as readonly { ignoredFields?: unknown; ignored_fields?: unknown }[];
  return heard
    .flatMap(({ ignoredFields, ignored_fields }) => [ignoredFields, ignored_fields])
    .filter(Boolean);
}

describe("parameters of the address", () => {
  const all =
    "&model_id=eleven_v4&language_code=en&seed=1&enable_logging=true&sync_alignment=true&apply_text_normalization=off" +
    "&single_use_token=a&authorization=a";
  const ofSpeech =
    "&inactivity_timeout=9&auto_mode=true&enable_ssml_parsing=true&apply_language_text_normalization=false";

  it("are named where nothing is done of them, by the kind of socket", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    expect(await namedBy(app, `${SPEECH}${all}${ofSpeech}`)).toBeUndefined();
    expect(await namedBy(app, `${DIALOGUE}${all}`)).toBeUndefined();
    expect(await namedBy(app, `${SPEECH}&optimize_streaming_latency=3&a%2Cb=1`)).toBe(
      "optimize_streaming_latency, a%2Cb",
    );
    expect(await namedBy(app, `${DIALOGUE}${ofSpeech}`)).toBe(
      "inactivity_timeout, auto_mode, enable_ssml_parsing, apply_language_text_normalization",
    );
  });
});

describe("fields of messages", () => {
  it("of speech are named once, in the next message", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const first = { text: " ", voice_settings: { stability: 0.5, volume: 1 }, generation_config: { x: 1 } };
    const messages = [first, { text: "One. ", seed: 1, context_id: "a" }, { text: "Two. ", seed: 1 }];
    expect(await namedIn(app, SPEECH, [...messages, { text: "" }])).toEqual([
      ["voice_settings.volume", "generation_config.x", "seed", "context_id"],
    ]);
    const used = { context_id: "a", xi_api_key: "k", voice_settings: {}, try_trigger_generation: true };
    expect(await namedIn(app, MULTI, [{ text: "One. ", ...used }, { close_socket: true }])).toEqual([]);
  });

  it("of a dialogue are named, in its spelling", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const first = { voices: ["v1"], voice_settings: { stability: 0.5, style: 1 } };
    const lines = { inputs: [{ text: "Hello. ", voice_id: "v1", speed: 2 }], flush: true };
    expect(
      await namedIn(app, DIALOGUE, [first, lines, { close_context: true }, { close_socket: true }]),
    ).toEqual([["voice_settings.style", "inputs.0.speed", "close_context"]]);
  });

  it("are named beside an error, at most 16 and 64 characters each", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`${at}`.padEnd(100, "x"), at]));
    const [names] = (await namedIn(app, SPEECH, [{ text: " ", ...many }, { text: 5 }])) as [string[]];
    expect(names.map((name) => name.length)).toEqual(new Array(16).fill(64));
  });
});
