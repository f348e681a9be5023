/** Each voice setting is heard in speech and in speech to speech: level, spectrum, movement of the pitch, length. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { encodeWavFile } from "../kit/wav-file.ts";
import { floatsOf, rms, samplesOf, trackPitch } from "../unit/service/convert/measures.ts";
import { type Client, OTHER_VOICE, startClient, VOICE } from "./client.ts";
import { startConvertApp } from "./convert-app.ts";

const TEXT =
  "Please say when the next train leaves for the city, and whether I can still buy a ticket today.";
type Settings = Readonly<Record<string, number | boolean>>;

let folder: string;
let client: Client;
let app: Awaited<ReturnType<typeof startConvertApp>>;
let recording: Int16Array;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  client = await startClient({ dataFolder: join(folder, "speech") });
  app = await startConvertApp(join(folder, "conversion"));
  recording = await speak({});
}, 60_000);
afterAll(async () => {
  await app.close();
  await client[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function speak(voice_settings: Settings): Promise<Int16Array> {
  const body = { text: TEXT, seed: 1, voice_settings };
  const answer = await client.post(`/v1/text-to-speech/${VOICE}?output_format=pcm_24000`, body);
  expect(answer.status).toBe(200);
  return samplesOf(answer.body);
}

function post(settings: Settings): Promise<Response> {
  const form = new FormData();
  form.set("audio", new Blob([encodeWavFile(recording, 24_000) as Uint8Array<ArrayBuffer>]), "said.wav");
  form.set("voice_settings", JSON.stringify(settings));
  const url = `${app.url}/v1/speech-to-speech/${OTHER_VOICE}?output_format=pcm_24000`;
  return fetch(url, { method: "POST", body: form });
}

async function convert(settings: Settings): Promise<Int16Array> {
  const answer = await post(settings);
  expect(answer.status).toBe(200);
  return samplesOf(new Uint8Array(await answer.arrayBuffer()));
}

/** Octaves between the pitches that a tenth of the voiced frames are below and above. */
function pitchSpread(pcm: Int16Array): number {
  const voiced = trackPitch(floatsOf(pcm))
    .filter((hz) => hz > 0)
    .sort((a, b) => a - b);
  const at = (share: number) => voiced[Math.floor(share * voiced.length)] ?? 1;
  return Math.log2(at(0.9) / at(0.1));
}

/** The share of the energy that changes from sample to sample: more where the sound is brighter. */
function brightness(pcm: Int16Array): number {
  const samples = floatsOf(pcm);
  return rms(samples.map((sample, at) => sample - (samples[at - 1] ?? 0))) / rms(samples);
}

const decibels = (pcm: Int16Array) => 20 * Math.log10(rms(floatsOf(pcm)));

describe.each([
  ["speech", speak],
  ["speech to speech", convert],
])("voice settings of %s", { timeout: 90_000 }, (_, say) => {
  it("stability: a low one moves the pitch more", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "voice_settings.stability", "the range of the pitch");
    measures("POST /v1/speech-to-speech/{voice_id}", "voice_settings.stability", "the range of the pitch");
    const [low, high] = [await say({ stability: 0 }), await say({ stability: 1 })];
    expect(pitchSpread(low)).toBeGreaterThan(1.5 * pitchSpread(high));
  });

  it("style: a high one moves the pitch more", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "voice_settings.style", "the range of the pitch");
    measures("POST /v1/speech-to-speech/{voice_id}", "voice_settings.style", "the range of the pitch");
    const [plain, high] = [await say({ style: 0 }), await say({ style: 1 })];
    expect(pitchSpread(high)).toBeGreaterThan(1.15 * pitchSpread(plain));
  });

  it("speed: is the length", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "voice_settings.speed", "the length");
    measures("POST /v1/speech-to-speech/{voice_id}", "voice_settings.speed", "the length");
    const plain = (await say({})).length;
    expect((await say({ speed: 0.7 })).length / plain).toBeGreaterThan(1.3);
    expect((await say({ speed: 1.2 })).length / plain).toBeLessThan(0.9);
  });

  it("similarity_boost: a low one is duller", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "voice_settings.similarity_boost",
      "the energy of high frequencies",
    );
    measures(
      "POST /v1/speech-to-speech/{voice_id}",
      "voice_settings.similarity_boost",
      "the energy of high frequencies",
    );
    const bright = brightness(await say({ similarity_boost: 1 }));
    expect(bright).toBeGreaterThan(1.3 * brightness(await say({ similarity_boost: 0 })));
  });

  it("use_speaker_boost: without it the voice is 4 dB quieter", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "voice_settings.use_speaker_boost", "the level, 4 dB");
    measures("POST /v1/speech-to-speech/{voice_id}", "voice_settings.use_speaker_boost", "the level, 4 dB");
    const louder = decibels(await say({})) - decibels(await say({ use_speaker_boost: false }));
    expect(Math.abs(louder - 4)).toBeLessThan(0.5);
  });
});

describe("settings of a dialogue", { timeout: 60_000 }, () => {
  const converse = async (settings: Settings) => {
    const inputs = [{ text: TEXT, voice_id: VOICE }];
    const path = "/v1/text-to-dialogue?output_format=pcm_24000";
    const answer = await client.post(path, { inputs, seed: 1, settings });
    expect(answer.status).toBe(200);
    return samplesOf(answer.body);
  };

  it("stability: a low one moves the pitch more", async () => {
    measures("POST /v1/text-to-dialogue", "settings.stability", "the range of the pitch");
    const [low, high] = [await converse({ stability: 0 }), await converse({ stability: 1 })];
    expect(pitchSpread(low)).toBeGreaterThan(1.5 * pitchSpread(high));
  });

  it("similarity: a low one is duller", async () => {
    measures("POST /v1/text-to-dialogue", "settings.similarity", "the energy of high frequencies");
    const bright = brightness(await converse({ similarity: 1 }));
    expect(bright).toBeGreaterThan(1.3 * brightness(await converse({ similarity: 0 })));
  });
});

describe("voice settings", { timeout: 60_000 }, () => {
  it("speech to speech: a speed out of range is refused", async () => {
    const answer = await post({ speed: 3 });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      detail: { code: "invalid_voice_settings", param: "voice_settings.speed" },
    });
  });

  it("history: keeps settings, seed, language and normalization as they were sent", async () => {
    const voice_settings = {
      stability: 0.4,
      similarity_boost: 0.6,
      style: 0.2,
      use_speaker_boost: false,
      speed: 0.9,
    };
    const answer = await client.post(`/v1/text-to-speech/${VOICE}`, {
      text: "One.",
      seed: 9,
      language_code: "en",
      apply_text_normalization: "off",
      voice_settings,
    });
    const item = await client.get(`/v1/history/${String(answer.headers["history-item-id"])}`);
    expect(JSON.parse(item.body.toString())).toMatchObject({
      settings: { ...voice_settings, seed: 9, language_code: "en", apply_text_normalization: "off" },
    });
  });
});
