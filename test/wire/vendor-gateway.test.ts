/** The vendor's and OpenAI's surfaces on a whole gateway's port, beside everything else that is there. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import WebSocket from "ws";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { ndjsonSpeech } from "../helpers/tone-speech.ts";

let upstream: FakeUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
  gateway = await gatewayAt(upstream.url);
});
afterAll(async () => {
  await gateway?.close();
  await upstream?.close();
});

interface Said {
  readonly audio: string | null;
  readonly isFinal: boolean | null;
}

async function talk(path: string, messages: readonly object[]) {
  const socket = new WebSocket(`${gateway.wsUrl}${path}`);
  const said: Said[] = [];
  socket.on("message", (data) => said.push(JSON.parse(String(data)) as Said));
  await once(socket, "open");
  for (const message of messages) socket.send(JSON.stringify(message));
  const [code] = (await once(socket, "close")) as [number];
  return { code, said, audio: Buffer.concat(said.map(({ audio }) => Buffer.from(audio ?? "", "base64"))) };
}

it("speaks stream-input, with what the client asks for passed on", async () => {
  const locators = [{ pronunciation_dictionary_id: "d1", version_id: "v1" }];
  const { code, said, audio } = await talk(
    "/v1/text-to-speech/tone-a/stream-input?output_format=ulaw_8000&apply_language_text_normalization=true",
    [{ text: " ", pronunciation_dictionary_locators: locators }, { text: "Hello there. " }, { text: "" }],
  );
  expect(code).toBe(1000);
  expect(said.at(-1)).toMatchObject({ isFinal: true });
  const asked = upstream.requests.at(-1);
  expect(asked?.json).toMatchObject({
    pronunciation_dictionary_locators: locators,
    apply_language_text_normalization: true,
  });
  const { text } = (asked?.json ?? {}) as { text: string };
  const spoken = ndjsonSpeech({ text, msPerChar: 20, format: "ulaw_8000" }).audio;
  expect(audio.equals(Buffer.from(spoken))).toBe(true);
});

it("answers /v1/audio/speech itself, and passes the rest of /v1 on", async () => {
  const speech = await fetch(`${gateway.url}/v1/audio/speech`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "tts-1", input: "Hello there.", voice: "tone-a", response_format: "pcm" }),
  });
  expect(speech.status).toBe(200);
  expect((await speech.arrayBuffer()).byteLength).toBeGreaterThan(24_000 * 0.2);
  const voices = await fetch(`${gateway.url}/v1/voices`);
  expect(await voices.json()).toHaveProperty("voices");
});

it("ends its sockets when the gateway closes", async () => {
  const other = await gatewayAt(upstream.url);
  const socket = new WebSocket(`${other.wsUrl}/v1/text-to-speech/tone-a/multi-stream-input`);
  await once(socket, "open");
  const closed = once(socket, "close");
  await other.close();
  expect((await closed)[0]).toBe(1001);
});
