/** Voices of models in the built-in service, spoken by the real sherpa-onnx. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TINY_RATE, TINY_TEXT, tinySpeech, tinyWords, writeTinyVoice } from "../kit/tiny-voice.ts";
import { type Client, startClient, type TimedLine, VOICE } from "../service/client.ts";
import { areInstalled, IF_INSTALLED } from "./installed.ts";

const isInstalled = areInstalled("sherpa-onnx-node");
const folders: string[] = [];
const words = isInstalled ? await tinyWords() : [];

/** With the package in it, as a user may install it. */
function modelFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-models-"));
  folders.push(folder);
  symlinkSync(fileURLToPath(new URL("./node_modules", import.meta.url)), join(folder, "node_modules"));
  return folder;
}

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe.skipIf(!isInstalled)(`sherpa-onnx-node ${IF_INSTALLED}`, () => {
  let client: Client;
  const folder = isInstalled ? modelFolder() : "";

  beforeAll(async () => {
    writeTinyVoice(folder, "tiny", words, { speakers: 2 });
    client = await startClient({ voiceModels: folder, warmsUp: true });
  });
  afterAll(() => client[Symbol.asyncDispose]());

  const say = (voice: string, query: string, body: object = {}) =>
    client.post(`/v1/text-to-speech/${voice}${query}`, { text: TINY_TEXT, ...body });

  it("lists the voices of a model beside the built-in ones, with their language", async () => {
    const { voices } = JSON.parse((await client.get("/v1/voices")).body.toString());
    const ids = voices.map((voice: { voice_id: string }) => voice.voice_id);
    expect(ids).toEqual(expect.arrayContaining([VOICE, "tiny.0", "tiny.1"]));
    const one = voices.find((voice: { voice_id: string }) => voice.voice_id === "tiny.1");
    expect(one).toMatchObject({
      name: "1 (tiny)",
      category: "premade",
      labels: { language: "en", model: "tiny" },
    });
  });

  it("speaks with it in any format, and the second speaker at half the level", async () => {
    const [first, second] = await Promise.all(
      ["tiny.0", "tiny.1"].map((voice) => say(voice, "?output_format=pcm_22050", { seed: 1 })),
    );
    const seconds = (first?.body.length ?? 0) / 2 / TINY_RATE;
    // The stop and a space behind it are silent.
    expect(seconds).toBeCloseTo(tinySpeech(words).length / TINY_RATE, 0);
    const level = (bytes: Buffer) => {
      let highest = 0;
      for (let at = 0; at < bytes.length; at += 2) highest = Math.max(highest, bytes.readInt16LE(at));
      return highest;
    };
    expect(level(second?.body ?? Buffer.alloc(2)) / level(first?.body ?? Buffer.alloc(2))).toBeCloseTo(
      0.5,
      1,
    );
    const mp3 = await say("tiny.0", "?output_format=mp3_44100_128");
    expect(mp3.headers["content-type"]).toBe("audio/mpeg");
  });

  it("gives each word's beginning within a tenth of a second", async () => {
    const answer = await say("tiny.0", "/stream/with-timestamps?output_format=pcm_22050");
    const lines = answer.body
      .toString()
      .trim()
      .split("\n")
      .map((line): TimedLine => JSON.parse(line));
    const characters = lines.flatMap(({ alignment }) => alignment?.characters ?? []);
    const starts = lines.flatMap(({ alignment }) => alignment?.character_start_times_seconds ?? []);
    expect(characters.join("")).toBe(TINY_TEXT);
    let at = 0;
    for (const { word, startSeconds } of words) {
      at = TINY_TEXT.toLowerCase().indexOf(word, at);
      expect(Math.abs((starts[at] ?? 0) - startSeconds), word).toBeLessThan(0.1);
    }
    expect(answer.headers["x-voicewire-timing"]).toBe("estimated");
  });

  it("gives the same bytes for the same seed, and other noise without one", async () => {
    const path = "?output_format=pcm_22050";
    const steady = await Promise.all([1, 2].map(() => say("tiny.0", path, { seed: 7 })));
    expect(new Set(steady.map(({ body }) => hashOf(body))).size).toBe(1);
    const lively = await Promise.all([1, 2].map(() => say("tiny.0", path)));
    expect(new Set(lively.map(({ body }) => hashOf(body))).size).toBe(2);
  });

  it("speaks slower and faster", async () => {
    const lengths = await Promise.all(
      [0.8, 1, 1.2].map(async (speed) => {
        const { body } = await say("tiny.0", "?output_format=pcm_22050", { voice_settings: { speed } });
        return body.length;
      }),
    );
    expect((lengths[0] ?? 0) / (lengths[1] ?? 1)).toBeCloseTo(1 / 0.8, 1);
    expect((lengths[2] ?? 0) / (lengths[1] ?? 1)).toBeCloseTo(1 / 1.2, 1);
  });

  it("says nothing of a text that the model has no tokens for, and goes on", async () => {
    const unknown = await client.post("/v1/text-to-speech/tiny.0?output_format=pcm_22050", { text: "xyzzy" });
    expect(unknown.status).toBe(200);
    expect(new Set(unknown.body)).toEqual(new Set([0]));
    expect((await say("tiny.0", "")).status).toBe(200);
    expect(client.service.stats().engine_restarts).toBe(0);
  });

  it("refuses another language, as the target of a conversion, and to be deleted", async () => {
    const german = await say("tiny.0", "", { language_code: "de" });
    expect(german.status).toBe(400);
    expect(german.body.toString()).toContain("speaks 'en' only");
    expect((await say("tiny.0", "", { language_code: "en" })).status).toBe(200);
    const deleted = await fetch(`${client.service.url}/v1/voices/tiny.0`, { method: "DELETE" });
    expect(deleted.status).toBe(403);
    const body = new FormData();
    body.append("audio", new Blob([new Uint8Array(10)]), "a.wav");
    const converted = await fetch(`${client.service.url}/v1/speech-to-speech/tiny.0`, {
      method: "POST",
      body,
    });
    expect(converted.status).toBe(400);
    expect(await converted.text()).toContain("speaks texts only");
  });

  it("refuses to start with a model that the runtime can't load, and says why", async () => {
    const broken = modelFolder();
    writeTinyVoice(broken, "odd", words);
    // Its file is whole, and asks for what the runtime can't do: the package ends its process.
    const model = join(broken, "odd", "model.onnx");
    writeFileSync(model, readFileSync(model, "latin1").replaceAll("Resize", "Resizf"), "latin1");
    await expect(startClient({ voiceModels: broken, warmsUp: true })).rejects.toMatchObject({
      code: "voice_model_broken",
      field: "voice-models",
      message: expect.stringMatching(/Resizf/),
    });
    writeTinyVoice(broken, "odd", words);
    truncateSync(join(broken, "odd", "model.onnx"), 40_000);
    await expect(startClient({ voiceModels: broken })).rejects.toMatchObject({ code: "voice_model_broken" });
  });

  it("refuses the voice of a model that is found broken when it is spoken with, and others work", async () => {
    const mixed = modelFolder();
    for (const name of ["good", "odd"]) writeTinyVoice(mixed, name, words);
    const model = join(mixed, "odd", "model.onnx");
    writeFileSync(model, readFileSync(model, "latin1").replaceAll("Resize", "Resizf"), "latin1");
    // Without warming up no model is loaded at the start.
    await using other = await startClient({ voiceModels: mixed });
    const refused = await other.post("/v1/text-to-speech/odd", { text: TINY_TEXT });
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.body.toString()).detail).toMatchObject({
      code: "voice_model_broken",
      message: expect.stringMatching(/Resizf.*unpack/),
      param: "voice_id",
    });
    expect((await other.post("/v1/text-to-speech/good", { text: TINY_TEXT })).status).toBe(200);
  });
});
