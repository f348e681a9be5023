import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { medianPitch } from "../../src/service/convert/pitch-tracker.ts";
import { measures } from "../helpers/measures.ts";
import { encodeWavFile } from "../kit/wav-file.ts";
import {
  correlationOf,
  floatsOf,
  loudnessOf,
  rms,
  samplesOf,
  trackPitch,
} from "../unit/service/convert/measures.ts";
import { startConvertApp } from "./convert-app.ts";
import { WorkerCrash } from "./worker-crash.ts";

const MALE = "pNInz6obpgDQGcFmaJgB";
const FEMALE = "21m00Tcm4TlvDq8ikWAM";
const TEXT =
  "Please tell me when the next train leaves for the city, and whether I can still buy a ticket today.";

let folder: string;
let app: Awaited<ReturnType<typeof startConvertApp>>;
const spoken = new Map<string, Int16Array>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  // One test sends more at once than one client may.
  app = await startConvertApp(folder, { uploadLimits: { maxUploadsPerClient: 22 } });
  for (const voice of [MALE, FEMALE]) spoken.set(voice, await say(voice));
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true, force: true });
});

async function say(voice: string): Promise<Int16Array> {
  const answer = await fetch(`${app.url}/v1/text-to-speech/${voice}?output_format=pcm_24000`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: TEXT }),
  });
  return samplesOf(new Uint8Array(await answer.arrayBuffer()));
}

function speechOf(voice: string): Int16Array {
  return spoken.get(voice) ?? new Int16Array(0);
}

function wavFile(pcm: Int16Array): Blob {
  return new Blob([encodeWavFile(pcm, 24_000) as Uint8Array<ArrayBuffer>], { type: "audio/wav" });
}

function form(audio: Blob | null, fields: Readonly<Record<string, string>> = {}): FormData {
  const data = new FormData();
  if (audio !== null) data.set("audio", audio, "said.wav");
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  return data;
}

function post(path: string, body: FormData, init: RequestInit = {}): Promise<Response> {
  return fetch(`${app.url}/v1/speech-to-speech/${path}`, { method: "POST", body, ...init });
}

async function bytesOf(answer: Response): Promise<Uint8Array> {
  return new Uint8Array(await answer.arrayBuffer());
}

interface Refused {
  readonly detail: { readonly code: string; readonly status: string } & readonly {
    readonly type: string;
    readonly loc: unknown;
  }[];
}

async function refused(answer: Response): Promise<Refused["detail"]> {
  return ((await answer.json()) as Refused).detail;
}

describe("speech to speech", { timeout: 90_000 }, () => {
  it.each([
    [MALE, FEMALE],
    [FEMALE, MALE],
  ])("moves %s to the pitch of %s, and keeps length, loudness and words", async (from, to) => {
    measures("POST /v1/speech-to-speech/{voice_id}", "voice_id", "the pitch");
    measures("POST /v1/speech-to-speech/{voice_id}", "audio", "length, loudness and words of the recording");
    const source = speechOf(from);
    const answer = await post(`${to}?output_format=pcm_24000`, form(wavFile(source)));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("audio/pcm");
    const pcm = samplesOf(await bytesOf(answer));
    expect(pcm.length).toBe(source.length);
    const target = medianPitch(trackPitch(floatsOf(speechOf(to)))) ?? 0;
    const made = medianPitch(trackPitch(floatsOf(pcm))) ?? 0;
    expect(Math.abs(made / target - 1)).toBeLessThan(0.1);
    expect(correlationOf(loudnessOf(floatsOf(source)), loudnessOf(floatsOf(pcm)))).toBeGreaterThan(0.9);
    expect(Math.abs(20 * Math.log10(rms(floatsOf(pcm)) / rms(floatsOf(source))))).toBeLessThan(2);
  });

  it("streams the very samples of the whole answer, before all of them are made", async () => {
    const body = () => form(wavFile(speechOf(MALE)));
    const whole = await post(`${FEMALE}?output_format=pcm_24000`, body());
    const streamed = await post(`${FEMALE}/stream?output_format=pcm_24000`, body());
    expect(whole.headers.get("content-length")).not.toBeNull();
    expect(streamed.headers.get("content-length")).toBeNull();
    const reader = streamed.body?.getReader();
    const pieces: Uint8Array[] = [];
    for (;;) {
      const piece = await reader?.read();
      if (piece === undefined || piece.done) break;
      pieces.push(piece.value);
    }
    expect(pieces.length).toBeGreaterThan(1);
    expect(Buffer.concat(pieces).equals(Buffer.from(await bytesOf(whole)))).toBe(true);
  });

  it("answers as MP3 by default and as a WAV file with its length, and not the latter as a stream", async () => {
    measures("POST /v1/speech-to-speech/{voice_id}", "output_format", "codec, rate and length of the audio");
    const mp3 = await post(FEMALE, form(wavFile(speechOf(MALE))));
    expect(mp3.headers.get("content-type")).toBe("audio/mpeg");
    expect((await bytesOf(mp3))[0]).toBe(0xff);
    const wav = await bytesOf(await post(`${FEMALE}?output_format=wav_16000`, form(wavFile(speechOf(MALE)))));
    expect(Buffer.from(wav).readUInt32LE(40)).toBe(wav.length - 44);
    expect(wav.length - 44).toBe(2 * Math.round((speechOf(MALE).length * 2) / 3));
    const refusal = await post(`${FEMALE}/stream?output_format=wav_16000`, form(wavFile(speechOf(MALE))));
    expect(refusal.status).toBe(400);
    expect((await refused(refusal)).code).toBe("invalid_output_format");
  });

  it("bills a thousand characters a minute and is in the history with its audio, unless that is turned off", async () => {
    measures("POST /v1/speech-to-speech/{voice_id}", "enable_logging", "nothing in the history");
    const source = speechOf(MALE);
    const settings = JSON.stringify({ stability: 0.3 });
    const fields = { voice_settings: settings, remove_background_noise: "true", seed: "7" };
    const answer = await post(`${FEMALE}?optimize_streaming_latency=2`, form(wavFile(source), fields));
    const cost = Math.ceil((source.length / 24_000 / 60) * 1000);
    expect(answer.headers.get("character-cost")).toBe(String(cost));
    const audio = await bytesOf(answer);
    const id = answer.headers.get("history-item-id");
    const item = await (await fetch(`${app.url}/v1/history/${id}`)).json();
    expect(item).toMatchObject({
      request_id: answer.headers.get("request-id"),
      source: "STS",
      voice_id: FEMALE,
      model_id: "eleven_english_sts_v2",
      text: null,
      settings: { stability: 0.3, seed: 7, remove_background_noise: true, optimize_streaming_latency: 2 },
      alignments: null,
    });
    const kept = await bytesOf(await fetch(`${app.url}/v1/history/${id}/audio`));
    expect(Buffer.from(kept).equals(Buffer.from(audio))).toBe(true);
    const unkept = await post(`${FEMALE}?enable_logging=false`, form(wavFile(source)));
    expect(unkept.headers.get("history-item-id")).toBeNull();
    await unkept.arrayBuffer();
    const list = (await (await fetch(`${app.url}/v1/history?source=STS`)).json()) as { history: object[] };
    expect(
      list.history.filter(
        (one) => "request_id" in one && one.request_id === unkept.headers.get("request-id"),
      ),
    ).toEqual([]);
  });

  it("takes raw PCM as file_format says, and takes noise out where asked to", async () => {
    measures(
      "POST /v1/speech-to-speech/{voice_id}",
      "file_format",
      "raw samples are taken, and their length kept",
    );
    measures(
      "POST /v1/speech-to-speech/{voice_id}",
      "remove_background_noise",
      "the level of noise behind the speech",
    );
    const source = speechOf(MALE);
    const third = source.filter((_, at) => at % 3 !== 2);
    const raw = new Blob([third.buffer as ArrayBuffer]);
    const answer = await post(
      `${FEMALE}?output_format=pcm_16000`,
      form(raw, { file_format: "pcm_s16le_16" }),
    );
    expect((await bytesOf(answer)).length).toBe(third.length * 2);
    const item = await fetch(`${app.url}/v1/history/${answer.headers.get("history-item-id")}`);
    expect(await item.json()).toMatchObject({ settings: { file_format: "pcm_s16le_16" } });
    const odd = new Blob([new Uint8Array(third.buffer).subarray(1) as Uint8Array<ArrayBuffer>]);
    const half = await post(FEMALE, form(odd, { file_format: "pcm_s16le_16" }));
    expect([half.status, await refused(half)]).toMatchObject([400, { code: "invalid_audio" }]);
    const noise = new Int16Array(48_000).map((_, at) => Math.sin(at * at * 1.7) * 1200);
    const noisy = new Int16Array(source.length + noise.length);
    noisy.set(source);
    noisy.set(noise, source.length);
    const tail = async (fields: Record<string, string>) => {
      const made = await post(`${FEMALE}?output_format=pcm_24000`, form(wavFile(noisy), fields));
      const pcm = samplesOf(await bytesOf(made));
      expect(pcm.length).toBe(noisy.length);
      return rms(floatsOf(pcm.subarray(source.length + 24_000)));
    };
    expect(await tail({ remove_background_noise: "true" })).toBeLessThan(0.25 * (await tail({})));
  });

  it("has the fault that a header asks for", async () => {
    measures("POST /v1/speech-to-speech/{voice_id}", "x-voicewire-fault", "the fault that it names");
    const ask = (headers: Record<string, string>) => post(FEMALE, form(wavFile(speechOf(MALE))), { headers });
    expect((await ask({})).status).toBe(200);
    expect((await ask({ "x-voicewire-fault": "status status=503" })).status).toBe(503);
  });

  it.each([
    ["voice_settings", "string_type"],
    ["remove_background_noise", "bool_type"],
    ["seed", "int_type"],
  ])("refuses a file where %s is expected: it would change nothing", async (field, type) => {
    const body = form(wavFile(speechOf(MALE)));
    // As browsers send a Blob: with a file name.
    body.set(field, new Blob(['{"speed":0.7}']));
    const answer = await post(FEMALE, body);
    expect(answer.status).toBe(422);
    expect(await refused(answer)).toMatchObject([{ type, loc: ["body", field] }]);
  });

  it("names the fault of the form before it looks at anything else", async () => {
    const missing = await post("nobody", form(null));
    expect(missing.status).toBe(422);
    expect(await refused(missing)).toMatchObject([{ type: "missing", loc: ["body", "audio"] }]);
    const audio = wavFile(speechOf(MALE));
    const broken = await post(FEMALE, form(audio, { voice_settings: "{stability: 1}" }));
    expect(broken.status).toBe(422);
    expect(await refused(broken)).toMatchObject([{ type: "json_invalid", loc: ["body", "voice_settings"] }]);
    const wrong = await post(
      FEMALE,
      form(audio, { voice_settings: '{"stability": 2}', seed: "x", file_format: "mp3" }),
    );
    expect((await refused(wrong)).map(({ loc }) => loc)).toEqual([
      ["body", "voice_settings", "stability"],
      ["body", "seed"],
      ["body", "file_format"],
    ]);
  });

  it("refuses unknown voices and models, models that only speak, and what is no audio", async () => {
    const audio = wavFile(speechOf(MALE));
    const voice = await post("nobody", form(audio));
    expect(voice.status).toBe(404);
    expect((await refused(voice)).code).toBe("voice_not_found");
    const model = await post(FEMALE, form(audio, { model_id: "nothing" }));
    expect([model.status, (await refused(model)).status]).toEqual([400, "model_not_found"]);
    const speaks = await post(FEMALE, form(audio, { model_id: "eleven_flash_v2_5" }));
    expect((await refused(speaks)).status).toBe("model_can_not_do_voice_conversion");
    for (const variant of ["", "/stream"]) {
      const garbage = await post(FEMALE + variant, form(new Blob(["this is no audio at all"])));
      expect([garbage.status, (await refused(garbage)).code]).toEqual([400, "invalid_audio_format"]);
      const empty = await post(FEMALE + variant, form(new Blob([])));
      expect([empty.status, (await refused(empty)).code]).toEqual([400, "invalid_audio"]);
    }
  });

  it("leaves silence and noise without a voice as they are in length", async () => {
    const answer = await post(`${FEMALE}?output_format=pcm_24000`, form(wavFile(new Int16Array(24_000))));
    const pcm = samplesOf(await bytesOf(answer));
    expect(pcm.length).toBe(24_000);
    expect(pcm.every((sample) => Math.abs(sample) <= 1)).toBe(true);
  });

  it("ends a conversion whose client has gone: no thread, no place in the line and no history item is left", async () => {
    const speech = speechOf(MALE);
    const long = new Int16Array(speech.length * 20);
    for (let at = 0; at < long.length; at += speech.length) long.set(speech, at);
    const controller = new AbortController();
    const answer = await post(`${FEMALE}/stream?output_format=pcm_48000`, form(wavFile(long)), {
      signal: controller.signal,
    });
    const id = answer.headers.get("history-item-id");
    await answer.body?.getReader().read();
    expect(app.pool.load).toEqual({ requests: 1, threads: 1 });
    controller.abort();
    await expect.poll(() => app.pool.load).toEqual({ requests: 0, threads: 0 });
    expect((await fetch(`${app.url}/v1/history/${id}`)).status).toBe(404);
  });

  it("gives its temporary bytes back when the thread that converts crashes", async () => {
    using crash = new WorkerCrash();
    const answering = post(`${FEMALE}?output_format=pcm_48000`, form(wavFile(speechOf(MALE))));
    await expect.poll(() => crash.started).toBeGreaterThan(0);
    expect(app.context.temporaryFiles.bytes).toBeGreaterThan(speechOf(MALE).byteLength);
    await crash.now();
    expect((await answering).status).toBe(500);
    await expect.poll(() => app.context.temporaryFiles.bytes).toBe(0);
  });

  it("works for two at a time, lets sixteen wait and refuses more", async () => {
    const audio = wavFile(speechOf(MALE).subarray(0, 24_000).slice());
    const answers = await Promise.all(
      Array.from({ length: 22 }, async () => {
        const answer = await post(`${FEMALE}?output_format=pcm_8000&enable_logging=false`, form(audio));
        return answer.ok ? { status: answer.status, bytes: (await bytesOf(answer)).length } : answer;
      }),
    );
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(18);
    const busy = answers.filter((answer) => answer instanceof Response);
    expect(busy.length).toBeGreaterThan(0);
    for (const answer of busy)
      expect([answer.status, (await refused(answer)).code]).toEqual([429, "system_busy"]);
    await expect.poll(() => app.pool.load).toEqual({ requests: 0, threads: 0 });
  });
});
