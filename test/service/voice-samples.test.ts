import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { medianPitch } from "../../src/service/convert/pitch-tracker.ts";
import { findStoredVoice } from "../../src/service/convert/stored-voice.ts";
import { sampleRecord } from "../../src/service/http/voices/voice-schema.ts";
import { findVoice } from "../../src/service/voice/engine/voices.ts";
import { measures } from "../helpers/measures.ts";
import { randomNumbers } from "../kit/signals.ts";
import { encodeWavFile } from "../kit/wav-file.ts";
import { floatsOf, samplesOf, trackPitch } from "../unit/service/convert/measures.ts";
import { startConvertApp } from "./convert-app.ts";

/** Highest and lowest of the English voices. */
const HIGH = "EXAVITQu4vr4xnSDxMaL";
const LOW = "pNInz6obpgDQGcFmaJgB";

const STARTER_VOICES = 10;

let folder: string;
let app: Awaited<ReturnType<typeof startConvertApp>>;
let speech: Uint8Array;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  app = await startConvertApp(folder);
  const answer = await fetch(`${app.url}/v1/text-to-speech/${HIGH}?output_format=pcm_24000`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "A sample of somebody who speaks rather high, for a few seconds." }),
  });
  speech = encodeWavFile(samplesOf(new Uint8Array(await answer.arrayBuffer())), 24_000);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true, force: true });
});

function form(
  fields: Readonly<Record<string, string>>,
  files: readonly (readonly [Uint8Array, string, string])[],
) {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  for (const [bytes, name, type] of files) {
    data.append("files", new Blob([bytes as Uint8Array<ArrayBuffer>], { type }), name);
  }
  return data;
}

async function call(method: string, path: string, body?: FormData) {
  const answer = await fetch(app.url + path, { method, ...(body === undefined ? {} : { body }) });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, headers: answer.headers, bytes, json: () => JSON.parse(bytes.toString()) };
}

async function add(fields: Readonly<Record<string, string>> = {}): Promise<string> {
  const files = [
    [speech, "one.wav", "audio/x-wav"],
    [speech.slice(0, 60_044), "two.bin", ""],
  ] as const;
  const added = await call("POST", "/v1/voices/add", form({ name: "Somebody", ...fields }, files));
  expect(added.json()).toEqual({ voice_id: expect.any(String), requires_verification: false });
  return added.json().voice_id;
}

/** A service of the plan that has the fewest voices. */
async function startStarter() {
  const ownFolder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  const { url, context, close } = await startConvertApp(ownFolder, { tier: "starter" });
  return {
    store: context.store,
    add: async () => {
      const body = form({ name: "Somebody" }, [[speech, "one.wav", "audio/wav"]]);
      return (await fetch(`${url}/v1/voices/add`, { method: "POST", body })).status;
    },
    async [Symbol.asyncDispose]() {
      await close();
      await rm(ownFolder, { recursive: true, force: true });
    },
  };
}

describe("voices from samples", { timeout: 90_000 }, () => {
  it("keeps a voice with its labels, and the samples byte for byte", async () => {
    measures("POST /v1/voices/add", "name", "the name of the voice");
    measures("POST /v1/voices/add", "files", "its samples, byte for byte");
    measures("POST /v1/voices/add", "description", "its description");
    measures(
      "GET /v1/voices/{voice_id}/samples/{sample_id}/audio",
      "sample_id",
      "the very bytes of that sample",
    );
    const id = await add({ description: "High.", labels: '{"accent": "none", "language": "en"}' });
    const voice = findStoredVoice(app.context, id);
    expect(voice?.stored).toMatchObject({
      name: "Somebody",
      description: "High.",
      labels: { accent: "none", language: "en" },
    });
    const [first, second] = voice?.stored.samples ?? [];
    expect(first === undefined ? null : sampleRecord(first)).toMatchObject({
      sample_id: first?.id,
      file_name: "one.wav",
      mime_type: "audio/x-wav",
      size_bytes: speech.length,
      hash: first?.media.hash,
      duration_secs: expect.closeTo((speech.length - 44) / 48_000, 6),
    });
    const audio = await call("GET", `/v1/voices/${id}/samples/${first?.id}/audio`);
    expect(audio.headers.get("content-type")).toBe("audio/x-wav");
    expect(audio.bytes.equals(Buffer.from(speech))).toBe(true);
    expect(first === undefined ? null : sampleRecord(first)).toMatchObject({
      remove_background_noise: false,
    });
    // Without a type of audio of its own it has that of its content.
    const other = await call("GET", `/v1/voices/${id}/samples/${second?.id}/audio`);
    expect(other.headers.get("content-type")).toBe("audio/wav");
    expect(other.bytes.length).toBe(60_044);
  });

  it("remove_background_noise: the timbre is measured without the noise", async () => {
    measures(
      "POST /v1/voices/add",
      "remove_background_noise",
      "the timbre that is measured of noisy samples",
    );
    const random = randomNumbers(3);
    const noisy = samplesOf(speech.slice(44)).map(
      (sample) => sample / 2 + Math.round((random() - 0.5) * 3000),
    );
    const envelopeOf = async (recording: Uint8Array, removes: boolean) => {
      const fields = { name: "Somebody", remove_background_noise: String(removes) };
      const added = await call("POST", "/v1/voices/add", form(fields, [[recording, "a.wav", "audio/wav"]]));
      const { voice_id: id } = added.json();
      const envelope = findStoredVoice(app.context, id)?.profile.envelope ?? [];
      expect((await call("DELETE", `/v1/voices/${id}`)).status).toBe(200);
      return envelope;
    };
    const clean = await envelopeOf(speech, false);
    const errorOf = (envelope: readonly number[]) =>
      Math.hypot(...envelope.map((decibels, band) => decibels - (clean[band] ?? 0)));
    const recording = encodeWavFile(noisy, 24_000);
    const [kept, removed] = [await envelopeOf(recording, false), await envelopeOf(recording, true)];
    expect(clean.length).toBeGreaterThan(10);
    expect(errorOf(removed)).toBeLessThan(0.7 * errorOf(kept));
  });

  it("a sample's record: says whether noise was taken out of it", async () => {
    const id = await add({ remove_background_noise: "true" });
    const samples = findStoredVoice(app.context, id)?.stored.samples ?? [];
    expect(samples.map(sampleRecord)).toMatchObject([
      { remove_background_noise: true },
      { remove_background_noise: true },
    ]);
    expect((await call("DELETE", `/v1/voices/${id}`)).status).toBe(200);
  });

  it("measures the samples: the nearest embedded voice speaks, at their pitch", async () => {
    const voice = findStoredVoice(app.context, await add());
    const pitchHz = medianPitch(trackPitch(floatsOf(samplesOf(speech.slice(44))))) ?? 0;
    const profile = await app.pool.profileOf(voice?.base.id ?? "");
    expect(Math.abs((voice?.profile.pitchHz ?? 0) / pitchHz - 1)).toBeLessThan(0.05);
    expect(Math.abs((profile?.pitchHz ?? 0) / pitchHz - 1)).toBeLessThan(0.1);
    expect(Math.abs((voice?.enginePitch ?? 0) - (voice?.base.pitch ?? 0))).toBeLessThan(12);
  });

  it("voices that are being made count for the plan's limit", async () => {
    await using starter = await startStarter();
    const voice = { name: "Mine", description: null, labels: {}, sound: {}, createdAtUnix: 1 };
    for (let count = 1; count < STARTER_VOICES; count += 1) starter.store.voices.add(voice, []);
    const statuses = await Promise.all([starter.add(), starter.add()]);
    expect(statuses.toSorted()).toEqual([200, 400]);
    expect(starter.store.voices.list()).toHaveLength(STARTER_VOICES);
  });

  it("is a target of speech to speech", async () => {
    const id = await add();
    const said = await fetch(`${app.url}/v1/text-to-speech/${LOW}?output_format=pcm_24000`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text: "This was said by somebody else, who speaks very low." }),
    });
    const source = encodeWavFile(samplesOf(new Uint8Array(await said.arrayBuffer())), 24_000);
    const body = new FormData();
    body.set("audio", new Blob([source as Uint8Array<ArrayBuffer>]), "said.wav");
    const made = await call("POST", `/v1/speech-to-speech/${id}?output_format=pcm_24000`, body);
    const pitchHz = medianPitch(trackPitch(floatsOf(samplesOf(made.bytes)))) ?? 0;
    const wanted = findStoredVoice(app.context, id)?.profile.pitchHz ?? 0;
    expect(Math.abs(pitchHz / wanted - 1)).toBeLessThan(0.1);
    const item = (await call("GET", `/v1/history/${made.headers.get("history-item-id")}`)).json();
    expect(item).toMatchObject({ voice_id: id, voice_name: "Somebody", voice_category: "cloned" });
  });

  it("deletes a sample, then the voice, and what is gone is not found", async () => {
    measures("DELETE /v1/voices/{voice_id}/samples/{sample_id}", "sample_id", "the sample is gone");
    measures(
      "GET /v1/voices/{voice_id}/samples/{sample_id}/audio",
      "voice_id",
      "404 once the voice is deleted",
    );
    measures("DELETE /v1/voices/{voice_id}", "voice_id", "the voice is gone");
    const id = await add();
    const [first, second] = findStoredVoice(app.context, id)?.stored.samples ?? [];
    const path = `/v1/voices/${id}/samples/${first?.id}`;
    expect((await call("DELETE", path)).json()).toEqual({ status: "ok" });
    for (const [method, gone] of [
      ["DELETE", path],
      ["GET", `${path}/audio`],
    ] as const) {
      const answer = await call(method, gone);
      expect([answer.status, answer.json().detail.code]).toEqual([404, "sample_not_found"]);
    }
    expect(findStoredVoice(app.context, id)?.stored.samples.length).toBe(1);
    expect((await call("DELETE", `/v1/voices/${id}`)).json()).toEqual({ status: "ok" });
    const answers = [
      await call("DELETE", `/v1/voices/${id}`),
      await call("GET", `/v1/voices/${id}/samples/${second?.id}/audio`),
    ];
    for (const answer of answers) {
      expect([answer.status, answer.json().detail.code]).toEqual([404, "voice_not_found"]);
    }
    expect(findStoredVoice(app.context, id)).toBeUndefined();
  });

  it("finds a sample under its own voice only", async () => {
    measures("DELETE /v1/voices/{voice_id}/samples/{sample_id}", "voice_id", "404 under another voice");
    const [one, other] = [await add(), await add()];
    const [sample] = findStoredVoice(app.context, one)?.stored.samples ?? [];
    const strange = await call("DELETE", `/v1/voices/${other}/samples/${sample?.id}`);
    expect([strange.status, strange.json().detail.code]).toEqual([404, "sample_not_found"]);
    expect(findStoredVoice(app.context, one)?.stored.samples).toHaveLength(2);
    expect((await call("DELETE", `/v1/voices/${one}/samples/${sample?.id}`)).status).toBe(200);
    for (const id of [one, other]) expect((await call("DELETE", `/v1/voices/${id}`)).status).toBe(200);
  });

  it("does not delete an embedded voice, and finds no samples of one", async () => {
    expect((await call("DELETE", `/v1/voices/${HIGH}`)).status).toBe(403);
    const answer = await call("GET", `/v1/voices/${HIGH}/samples/none/audio`);
    expect([answer.status, answer.json().detail.code]).toEqual([404, "sample_not_found"]);
  });

  it("refuses forms that lack something, labels that are no map of texts, and files that nobody speaks in", async () => {
    const missing = await call("POST", "/v1/voices/add", form({}, []));
    expect(missing.status).toBe(422);
    expect(missing.json().detail).toMatchObject([
      { type: "missing", loc: ["body", "name"] },
      { type: "missing", loc: ["body", "files"] },
    ]);
    const file = [speech, "one.wav", "audio/wav"] as const;
    for (const [labels, type] of [
      ["{", "json_invalid"],
      ["[1]", "dict_type"],
      ['{"age": 3}', "string_type"],
    ] as const) {
      const answer = await call("POST", "/v1/voices/add", form({ name: "A", labels }, [file]));
      expect([answer.status, answer.json().detail[0].type]).toEqual([422, type]);
    }
    const count = app.context.store.voices.list().length;
    const silence = encodeWavFile(new Int16Array(48_000), 24_000);
    for (const bytes of [silence, Buffer.from("no audio")]) {
      const answer = await call("POST", "/v1/voices/add", form({ name: "A" }, [[bytes, "b.wav", ""]]));
      expect([answer.status, answer.json().detail.type]).toEqual([400, "validation_error"]);
    }
    expect((await call("POST", "/v1/voices/add", form({ name: " " }, [file]))).status).toBe(400);
    expect(app.context.store.voices.list().length).toBe(count);
    expect(app.pool.load).toEqual({ requests: 0, threads: 0 });
  });

  it("speaks the language of its label in any case, and lists no other", async () => {
    measures("POST /v1/voices/add", "labels", "the language that it speaks and lists");
    const languageOf = async (label: string) => {
      const id = await add({ labels: JSON.stringify({ language: label }) });
      const { verified_languages: languages, labels } = (await call("GET", `/v1/voices/${id}`)).json();
      const base = findStoredVoice(app.context, id)?.stored.sound.base;
      return [languages[0].language, labels.language, findVoice(String(base))?.language];
    };
    expect(await languageOf("FR")).toEqual(["fr", "FR", "fr"]);
  });

  it("speaks the language of its label, also where no embedded voice is at home in it", async () => {
    const id = await add({ labels: '{"language": "sv"}' });
    expect((await call("GET", `/v1/voices/${id}`)).json().verified_languages[0].language).toBe("sv");
    const say = async (language: object) => {
      const answer = await fetch(`${app.url}/v1/text-to-speech/${id}?output_format=pcm_16000`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ text: "Sju sjuka skeppare.", seed: 1, ...language }),
      });
      expect(answer.status).toBe(200);
      return Buffer.from(await answer.arrayBuffer());
    };
    const said = await say({});
    expect(said.equals(await say({ language_code: "sv" }))).toBe(true);
    expect(said.equals(await say({ language_code: "en" }))).toBe(false);
    expect((await call("DELETE", `/v1/voices/${id}`)).status).toBe(200);
  });

  it("speaks with the accent of its label's region", async () => {
    const id = await add({ labels: '{"language": "pt-PT"}' });
    expect((await call("GET", `/v1/voices/${id}`)).json().verified_languages[0].language).toBe("pt");
    for (const language of ["pt", "pt-PT", "PT-pt", "pt-BR"]) {
      const { voices } = (await call("GET", `/v2/voices?page_size=100&language=${language}`)).json();
      const isListed = voices.some((voice: { voice_id: string }) => voice.voice_id === id);
      expect([language, isListed]).toEqual([language, language !== "pt-BR"]);
    }
    const say = async (language: object) => {
      const answer = await fetch(`${app.url}/v1/text-to-speech/${id}?output_format=pcm_16000`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ text: "O bom dia.", seed: 1, ...language }),
      });
      return Buffer.from(await answer.arrayBuffer());
    };
    const said = await say({});
    expect(said.equals(await say({ language_code: "pt-PT" }))).toBe(true);
    expect(said.equals(await say({ language_code: "pt-BR" }))).toBe(false);
    expect((await call("DELETE", `/v1/voices/${id}`)).status).toBe(200);
  });

  it("refuses a label of a language that nothing speaks, and names those that there are", async () => {
    const file = [speech, "one.wav", "audio/wav"] as const;
    const addIn = (language: string) =>
      call("POST", "/v1/voices/add", form({ name: "A", labels: JSON.stringify({ language }) }, [file]));
    for (const language of ["xx", "Klingon", "constructor", "zh-HK", "fil"]) {
      const refused = await addIn(language);
      expect([refused.status, refused.json().detail]).toMatchObject([
        400,
        {
          type: "validation_error",
          code: "invalid_parameters",
          status: "unsupported_language",
          param: "labels",
        },
      ]);
      for (const code of ["af", "en", "zh"]) expect(refused.json().detail.message).toContain(` ${code}`);
    }
    const unlabelled = await addIn("");
    expect(unlabelled.status).toBe(200);
    expect((await call("DELETE", `/v1/voices/${unlabelled.json().voice_id}`)).status).toBe(200);
  });

  it.each(["created_at_unix", "name"])(
    "next_page_token, by %s: pages go on where the voice was deleted",
    async (sort) => {
      const names = ["Page A", "Page B", "Page C", "Page D"];
      for (const name of names) await add({ name });
      const page = async (token: string) => {
        const query = `search=page&page_size=2&sort=${sort}&sort_direction=asc&next_page_token=${token}`;
        return (await call("GET", `/v2/voices?${query}`)).json() as {
          readonly voices: readonly { readonly voice_id: string; readonly name: string }[];
          readonly next_page_token: string | null;
        };
      };
      const first = await page("");
      const left = names.filter((name) => first.voices.every((voice) => voice.name !== name));
      expect(left).toHaveLength(2);
      for (const { voice_id: id } of first.voices) await call("DELETE", `/v1/voices/${id}`);
      const second = await page(first.next_page_token ?? "");
      expect(second.voices.map((voice) => voice.name).toSorted()).toEqual(left);
      expect(second.next_page_token).toBeNull();
      for (const { voice_id: id } of second.voices) await call("DELETE", `/v1/voices/${id}`);
      for (const token of [
        "zzz",
        Buffer.from("[1]").toString("base64url"),
        Buffer.from("[null,3]").toString("base64url"),
      ]) {
        expect((await call("GET", `/v2/voices?next_page_token=${token}`)).status).toBe(400);
      }
    },
  );
});
