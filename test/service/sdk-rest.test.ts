/** Conformance of the sections behind speech and history: the official client against all that the service has. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { ElevenLabs } from "@elevenlabs/elevenlabs-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { registerWebhooks } from "../../src/service/http/account/webhooks.ts";
import { Webhooks } from "../../src/service/webhooks/webhooks.ts";
import { measures } from "../helpers/measures.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { OTHER_VOICE, VOICE } from "./client.ts";
import { mount } from "./mounted.ts";
import { bytesOf, errorOf, heardSeconds, type Sdk, sdkFor, startSdk } from "./sdk-client.ts";

const KEY = "the-only-key";
const TEXT = "One two three four five six seven.";
const EVENTS = ["voice_library_removal_notice", "speech_to_text", "agent_qa", "flows"] as const;

let started: Sdk;
/** A recording of TEXT. */
let speech: Buffer;
let speechSeconds: number;
beforeAll(async () => {
  started = await startSdk({ key: KEY, faults: true });
  speech = await bytesOf(
    await started.sdk.textToSpeech.convert(VOICE, { text: TEXT, outputFormat: "wav_16000" }),
  );
  speechSeconds = heardSeconds(speech, "wav_16000");
  expect(speechSeconds).toBeGreaterThan(1.5);
});
afterAll(() => started[Symbol.asyncDispose]());

const recording = (filename = "speech.wav") => ({ data: speech, filename, contentType: "audio/wav" });

describe("user, tokens and voice settings", () => {
  it("user.get and user.subscription.get count what is said", async () => {
    const { sdk } = started;
    const before = await sdk.user.subscription.get();
    expect(before).toMatchObject({ tier: "enterprise", status: "active", hasOpenInvoices: false });
    await bytesOf(await sdk.textToSpeech.convert(VOICE, { text: "Ten signs." }));
    const after = await sdk.user.subscription.get();
    expect(after.characterCount - before.characterCount).toBe(10);
    const user = await sdk.user.get();
    expect(user.subscription.characterCount).toBe(after.characterCount);
    expect(user.seatType).toBe("workspace_admin");
  });

  it("tokens.singleUse.create: a token for speech, and none for transcription", async () => {
    const { singleUse } = started.sdk.tokens;
    expect((await singleUse.create("tts_websocket")).token).toMatch(/^sutkn_/);
    for (const type of ["realtime_scribe", "batch_scribe"] as const) {
      expect((await errorOf(singleUse.create(type))).statusCode).toBe(403);
    }
    const wrong = sdkFor(started.http.service.url, "wrong").tokens.singleUse.create("tts_websocket");
    expect((await errorOf(wrong)).statusCode).toBe(401);
  });

  it("voices.settings: the defaults", async () => {
    const { settings } = started.sdk.voices;
    const defaults = { stability: 0.5, similarityBoost: 0.75, style: 0, useSpeakerBoost: true, speed: 1 };
    expect(await settings.getDefault()).toEqual(defaults);
    expect(await settings.get(VOICE)).toEqual(defaults);
    expect((await errorOf(settings.get("nobody"))).statusCode).toBe(404);
  });
});

describe("textToSoundEffects", () => {
  it("convert: as long as asked for, and not kept", async () => {
    const { sdk } = started;
    const kept = await sdk.history.list();
    const { data, rawResponse } = await sdk.textToSoundEffects
      .convert({
        text: "heavy rain",
        durationSeconds: 2,
        promptInfluence: 0.8,
        loop: true,
        modelId: "eleven_text_to_sound_v2",
        outputFormat: "pcm_16000",
      })
      .withRawResponse();
    expect(heardSeconds(await bytesOf(data), "pcm_16000")).toBeCloseTo(2, 2);
    expect(Number(rawResponse.headers.get("character-cost"))).toBeGreaterThan(0);
    const plain = await bytesOf(await sdk.textToSoundEffects.convert({ text: "a church bell" }));
    expect(heardSeconds(plain, "mp3_44100_128")).toBeGreaterThan(0.4);
    expect(await sdk.history.list()).toEqual(kept);
  });

  it("refuses a duration out of range", async () => {
    const refused = await errorOf(
      started.sdk.textToSoundEffects.convert({ text: "wind", durationSeconds: 99 }),
    );
    expect(refused).toBeInstanceOf(ElevenLabs.UnprocessableEntityError);
    expect(refused.body).toMatchObject({ detail: [{ loc: ["body", "duration_seconds"] }] });
  });
});

describe("audioIsolation", () => {
  it("convert and stream: MPEG as long as what was sent; listed, found, deleted", async () => {
    const { audioIsolation } = started.sdk;
    const whole = await bytesOf(
      await audioIsolation.convert({ audio: recording("alpha.wav"), fileFormat: "other" }),
    );
    const streamed = await bytesOf(await audioIsolation.stream({ audio: recording("beta.wav") }));
    for (const bytes of [whole, streamed]) {
      expect(Math.abs(heardSeconds(bytes, "mp3_44100_128") - speechSeconds)).toBeLessThan(0.15);
    }
    const { items, hasMore } = await audioIsolation.list({ pageSize: 10 });
    expect(hasMore).toBe(false);
    expect(items).toHaveLength(2);
    for (const item of items) {
      expect(item.processing).toBe(false);
      expect(Math.abs((item.durationSeconds ?? 0) - speechSeconds)).toBeLessThan(0.15);
    }
    const [found, ...others] = (await audioIsolation.list({ search: "alpha", page: 1 })).items;
    expect(others).toEqual([]);
    expect(found?.title).toContain("alpha");
    await audioIsolation.delete(found?.id ?? "");
    expect((await audioIsolation.list({ search: "alpha" })).items).toEqual([]);
    expect((await audioIsolation.list()).items).toHaveLength(1);
    expect((await errorOf(audioIsolation.delete(found?.id ?? ""))).statusCode).toBe(404);
  });

  it("takes raw PCM as pcm_s16le_16, and refuses what is no audio", async () => {
    const { audioIsolation } = started.sdk;
    const pcm = speech.subarray(44);
    const isolated = await audioIsolation.convert({ audio: pcm, fileFormat: "pcm_s16le_16" });
    expect(Math.abs(heardSeconds(await bytesOf(isolated), "mp3_44100_128") - speechSeconds)).toBeLessThan(
      0.15,
    );
    const refused = await errorOf(
      audioIsolation.convert({ audio: Buffer.from("This is a letter, not a sound.") }),
    );
    expect(refused.statusCode).toBe(400);
    expect(await errorOf(audioIsolation.list({ pageSize: 0 }))).toBeInstanceOf(
      ElevenLabs.UnprocessableEntityError,
    );
  });
});

describe("speechToSpeech", () => {
  it("convert and stream: the same length in another voice, kept as STS", async () => {
    measures("POST /v1/speech-to-speech/{voice_id}", "model_id", "the model in the history");
    const { sdk } = started;
    const request = {
      audio: recording(),
      outputFormat: "pcm_16000",
      modelId: "eleven_multilingual_sts_v2",
      voiceSettings: JSON.stringify({ stability: 0.5, similarity_boost: 0.8 }),
      seed: 3,
      removeBackgroundNoise: false,
      fileFormat: "other",
    } as const;
    const { data, rawResponse } = await sdk.speechToSpeech.convert(OTHER_VOICE, request).withRawResponse();
    const whole = await bytesOf(data);
    const streamed = await bytesOf(await sdk.speechToSpeech.stream(OTHER_VOICE, request));
    for (const bytes of [whole, streamed]) {
      expect(Math.abs(heardSeconds(bytes, "pcm_16000") - speechSeconds)).toBeLessThan(0.05);
      expect(bytes.equals(speech.subarray(44))).toBe(false);
    }
    const id = rawResponse.headers.get("history-item-id") ?? "";
    const item = await sdk.history.get(id);
    expect(item).toMatchObject({
      source: "STS",
      voiceId: OTHER_VOICE,
      modelId: "eleven_multilingual_sts_v2",
    });
    expect((await bytesOf(await sdk.history.download({ historyItemIds: [id] }))).equals(whole)).toBe(true);
    expect((await sdk.history.list({ source: "STS" })).history).toHaveLength(2);
  });

  it("refuses unknown voices, broken settings and models that only speak", async () => {
    const { speechToSpeech } = started.sdk;
    const audio = recording();
    expect((await errorOf(speechToSpeech.convert("nobody", { audio }))).statusCode).toBe(404);
    const broken = await errorOf(speechToSpeech.convert(VOICE, { audio, voiceSettings: "{" }));
    expect(broken).toBeInstanceOf(ElevenLabs.UnprocessableEntityError);
    const speaks = await errorOf(speechToSpeech.stream(VOICE, { audio, modelId: "eleven_flash_v2_5" }));
    expect(speaks.statusCode).toBe(400);
  });
});

describe("added voices and their samples", () => {
  it("are made, listed, spoken with, and deleted", async () => {
    const { voices, samples, textToSpeech, user } = started.sdk;
    const { voiceId, requiresVerification } = await voices.ivc.create({
      name: "Mine",
      files: [recording("first.wav"), recording("second.wav")],
      description: "From two recordings",
      labels: { accent: "none" },
      removeBackgroundNoise: false,
    });
    expect(requiresVerification).toBe(false);
    const voice = await voices.get(voiceId);
    expect(voice).toMatchObject({ name: "Mine", category: "cloned", labels: { accent: "none" } });
    expect(voice.samples?.map((sample) => sample.fileName)).toEqual(["first.wav", "second.wav"]);
    expect((await voices.getAll()).voices.map((one) => one.voiceId)).toContain(voiceId);
    expect((await voices.search({ search: "mine", category: "cloned" })).voices).toHaveLength(1);
    expect((await user.subscription.get()).voiceSlotsUsed).toBe(1);
    const said = await bytesOf(
      await textToSpeech.convert(voiceId, { text: TEXT, outputFormat: "pcm_16000" }),
    );
    expect(heardSeconds(said, "pcm_16000")).toBeGreaterThan(1);

    const [first, second] = voice.samples?.map((sample) => sample.sampleId ?? "") ?? [];
    const audio = await bytesOf(await voices.samples.audio.get(voiceId, first ?? ""));
    expect(sha256(audio)).toBe(sha256(speech));
    expect(await samples.delete(voiceId, first ?? "")).toEqual({ status: "ok" });
    expect((await errorOf(samples.delete(voiceId, first ?? ""))).statusCode).toBe(404);
    expect((await errorOf(voices.samples.audio.get(voiceId, first ?? ""))).statusCode).toBe(404);
    expect((await voices.get(voiceId)).samples?.map((sample) => sample.sampleId)).toEqual([second]);

    expect(await voices.delete(voiceId)).toEqual({ status: "ok" });
    expect((await errorOf(voices.get(voiceId))).statusCode).toBe(404);
    expect((await errorOf(voices.delete(VOICE))).statusCode).toBe(403);
  });
});

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

describe("webhooks", () => {
  it("create, list, update, delete", async () => {
    const { webhooks } = started.sdk;
    const { webhookId, webhookSecret } = await webhooks.create({
      settings: {
        authType: "hmac",
        name: "Mine",
        webhookUrl: "https://hooks.example.com/in",
        requestHeaders: { "x-team": "voice" },
      },
    });
    expect(webhookSecret).toMatch(/^wsec_/);
    const update = { isDisabled: true, name: "Ours", retryEnabled: true, events: [...EVENTS] };
    expect(await webhooks.update(webhookId, update)).toEqual({ status: "ok" });
    const [record] = (await webhooks.list({ includeUsages: true })).webhooks;
    expect(record).toMatchObject({
      webhookId,
      name: "Ours",
      webhookUrl: "https://hooks.example.com/in",
      authType: "hmac",
      isDisabled: true,
      isAutoDisabled: false,
    });
    expect(record?.events?.toSorted()).toEqual(EVENTS.toSorted());
    expect(record?.usage).toHaveLength(EVENTS.length);
    expect(JSON.stringify(record)).not.toContain(webhookSecret);
    expect(await webhooks.delete(webhookId)).toEqual({ status: "ok" });
    expect((await webhooks.list()).webhooks).toEqual([]);
    expect((await errorOf(webhooks.delete(webhookId))).statusCode).toBe(404);
    const insecure = { authType: "hmac", name: "Mine", webhookUrl: "https://127.0.0.1/in" } as const;
    expect((await errorOf(webhooks.create({ settings: insecure }))).statusCode).toBe(400);
  });

  it("constructEvent takes what is delivered, and nothing that was changed on its way", async () => {
    const received: { readonly body: string; readonly headers: IncomingHttpHeaders }[] = [];
    const receiver = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      received.push({ body: Buffer.concat(parts).toString(), headers: request.headers });
      response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const { port } = receiver.address() as AddressInfo;
    let webhooks: Webhooks | undefined;
    const mounted = await mount({ key: KEY }, (section, context) => {
      webhooks = new Webhooks(context.store.database, { log: watchedLog, allowPrivate: true });
      registerWebhooks(section, { ...context, webhooks });
      webhooks.start();
    });
    try {
      const sdk = sdkFor(mounted.url, KEY);
      const settings = { authType: "hmac", name: "Mine", webhookUrl: `http://127.0.0.1:${port}/in` } as const;
      const { webhookId, webhookSecret = "" } = await sdk.webhooks.create({
        settings: { ...settings, requestHeaders: { "x-team": "voice" } },
      });
      await sdk.webhooks.update(webhookId, { isDisabled: false, name: "Mine", events: ["speech_to_text"] });
      const answer = await fetch(`${mounted.url}/service/webhooks/trigger`, {
        method: "POST",
        headers: { "content-type": "application/json", "xi-api-key": KEY },
        body: JSON.stringify({ event: "speech_to_text", data: { request_id: "ü1" } }),
      });
      expect(answer.status).toBe(200);
      await until("a delivery came", () => received.length > 0);
      const { body, headers } = received[0] ?? { body: "", headers: {} };
      expect(headers["x-team"]).toBe("voice");
      const signature = String(headers["elevenlabs-signature"]);
      expect(await sdk.webhooks.constructEvent(body, signature, webhookSecret)).toMatchObject({
        type: "speech_to_text_transcription",
        event_timestamp: expect.any(Number),
        data: { request_id: "ü1" },
      });
      for (const [given, by, secret] of [
        [`${body} `, signature, webhookSecret],
        [body, signature.replace(/^t=\d+/, "t=2000000000"), webhookSecret],
        [body, signature, "wsec_other"],
      ] as const) {
        const refused = await errorOf(sdk.webhooks.constructEvent(given, by, secret));
        expect(refused.statusCode).toBe(400);
        expect(refused.message).toContain("Signature hash does not match");
      }
    } finally {
      await webhooks?.close();
      await mounted[Symbol.asyncDispose]();
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    }
  });
});

describe("the endpoints", () => {
  const page = readFileSync(new URL("../../docs/endpoints.md", import.meta.url), "utf8");
  const sections = page
    .split("\n## ")
    .map((text) => ({
      title: text.split("\n", 1)[0] ?? "",
      rows: [...text.matchAll(/^\| (GET|POST|PUT|PATCH|DELETE) \| `([^`]+)` \|/gm)].map(
        ([, method = "", path = ""]) => ({ method, path }),
      ),
      tests: /^Tests: (.+)$/m.exec(text)?.[1]?.match(/[\w./-]+\.test\.ts/g) ?? [],
    }))
    .filter(({ rows }) => rows.length > 0);

  it("has the service's own counters, without a key", async () => {
    const answer = await fetch(`${started.http.service.url}/service/stats`);
    expect(await answer.json()).toMatchObject({ jobs_active: 0, workers: 1 });
  });

  it("endpoints of docs/endpoints.md are there, and so are their tests", async () => {
    for (const { title, tests } of sections) {
      expect(tests.length, title).toBeGreaterThan(0);
      for (const file of tests)
        expect(existsSync(new URL(file, import.meta.url)), `${title}: ${file}`).toBe(true);
    }
    const rows = sections.flatMap((section) => section.rows);
    expect(rows.length).toBeGreaterThan(35);
    for (const { method, path } of rows) {
      const url = started.http.service.url + path.replace(/\{\w+\}/g, "nothing");
      const answer = await fetch(url, { method, headers: { "xi-api-key": "wrong" } });
      await answer.arrayBuffer();
      // With a wrong key only a path or a method that there is not gives these.
      expect([404, 405], `${method} ${path}`).not.toContain(answer.status);
    }
  });
});
