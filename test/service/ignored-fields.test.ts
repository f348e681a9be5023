/** A field that an endpoint does not have is ignored, as by the vendor, and the answer names it: nobody is led to believe otherwise. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, startClient, VOICE } from "./client.ts";

const HEADER = "x-ignored-fields";
let client: Client;

beforeAll(async () => {
  client = await startClient();
});
afterAll(() => client[Symbol.asyncDispose]());

async function namedBy(path: string, body?: unknown): Promise<string | undefined> {
  const answer = body === undefined ? await client.get(path) : await client.post(path, body);
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.headers[HEADER]?.toString();
}

describe("x-ignored-fields", () => {
  it("is absent where every field counts", async () => {
    const body = { text: "x", seed: 1, voice_settings: { speed: 1 }, language_code: null };
    expect(await namedBy(`/v1/text-to-speech/${VOICE}?output_format=pcm_16000`, body)).toBeUndefined();
    expect(await namedBy("/v1/voices")).toBeUndefined();
  });

  it("names those of the query, the body and the objects in it, of speech and dialogues", async () => {
    const speech = `/v1/text-to-speech/${VOICE}/stream?output_format=pcm_16000&sample_rate=8000`;
    const body = { text: "x", future_text: "y", voice_settings: { speed: 1, volume: 2 } };
    expect(await namedBy(speech, body)).toBe("sample_rate, future_text, voice_settings.volume");
    const dialogue = "/v1/text-to-dialogue?output_format=pcm_16000&optimize_streaming_latency=3";
    const inputs = [{ text: "x", voice_id: VOICE, speed: 1.2 }];
    expect(await namedBy(dialogue, { inputs, settings: { style: 1 }, next_text: "y" })).toBe(
      "optimize_streaming_latency, next_text, inputs.0.speed, settings.style",
    );
  });

  it("names those of a sound effect and of lists, and those beside what is refused", async () => {
    expect(await namedBy("/v1/sound-generation?output_format=pcm_16000", { text: "beep", seed: 1 })).toBe(
      "seed",
    );
    expect(await namedBy("/v1/history?page=2&voice_id=x")).toBe("page");
    const refused = await client.post(`/v1/text-to-speech/${VOICE}`, { text: 1, txt: "x" });
    expect([refused.status, refused.headers[HEADER]]).toEqual([422, "txt"]);
  });

  it("names those of a form, texts and files", async () => {
    const form = new FormData();
    form.set("audio", new Blob([new Uint8Array(3200)]), "a.pcm");
    form.set("file_format", "pcm_s16le_16");
    form.set("voice_settings", '{"pitch": 3}');
    form.set("language_code", "de");
    form.set("reference", new Blob([new Uint8Array(10)]), "b.wav");
    const url = `${client.service.url}/v1/speech-to-speech/${VOICE}`;
    const answer = await fetch(url, { method: "POST", body: form });
    await answer.arrayBuffer();
    expect([answer.status, answer.headers.get(HEADER)]).toEqual([
      200,
      "language_code, reference, voice_settings.pitch",
    ]);
  });

  it("has at most 16 names of 64 characters, percent-encoded", async () => {
    const path = `/v1/text-to-speech/${VOICE}?output_format=pcm_16000`;
    expect(await namedBy(path, { text: "x", "a, b\n": 1, é: 2, "\ud800": 3 })).toBe(
      "a%2C%20b%0A, %C3%A9, %EF%BF%BD",
    );
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`${at}`.padEnd(100, "x"), at]));
    const names = (await namedBy(path, { text: "x", ...many }))?.split(", ") ?? [];
    expect(names.map((name) => name.length)).toEqual(new Array(16).fill(64));
  });

  it("can be read by pages that may use the service", async () => {
    const answer = await client.get("/v1/voices?x=1", { origin: "http://localhost:3000" });
    expect(answer.headers["access-control-expose-headers"]).toContain(HEADER);
  });
});
