/**
 * jambonz's own package for speech vendors asks the gateway, with its cache in a real Redis. It sends no `Accept`, so it
 * always gets MP3; what it does with the other formats is seen behind a server that asks for them in its place.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hasProgram, PATIENT, temporaryFolder } from "../cli/program.ts";
import {
  type FakeScript,
  type FakeUpstream,
  ndjsonSpeech,
  speaking,
  startFakeUpstream,
} from "../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { decode, loudness, startClient, VOICE } from "../service/client.ts";
import { areInstalled, IF_INSTALLED, load } from "./installed.ts";

vi.setConfig(PATIENT);

interface Asked {
  readonly vendor: string;
  readonly language: string;
  readonly voice: string;
  readonly text: string;
  readonly account_sid: string;
  readonly credentials: {
    readonly vendor: string;
    readonly auth_token: string;
    readonly custom_tts_url: string;
  };
  readonly disableTtsStreaming: boolean;
  readonly disableTtsCache?: boolean;
}
interface SpeechUtils {
  readonly client: { quit(): Promise<unknown> };
  synthAudio(stats: object, asked: Asked): Promise<{ filePath: string; servedFromCache: boolean }>;
}
type Package = (redis: { readonly path: string }, logger: object) => SpeechUtils;

const TOKEN = "s3cret";
const REDIS = "redis-server";
const STATS = { increment: () => undefined, histogram: () => undefined };
const quiet = () => undefined;
const LOGGER = { info: quiet, debug: quiet, error: quiet, warn: quiet };
const isReady = areInstalled("@jambonz/speech-utils") && hasProgram(REDIS);

/** Passes a request on, asking for `accept`. */
async function asking(accept: string, target: string): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const answer = await fetch(target, {
      method: "POST",
      headers: { accept, authorization: request.headers.authorization ?? "" },
      body: Buffer.concat(parts),
    });
    const type = answer.headers.get("content-type") ?? "";
    response.writeHead(answer.status, { "content-type": type });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Tones, and where MP3 is asked for the same speech for every text: real MP3, made once by the embedded service. */
async function speakingMp3(): Promise<FakeScript> {
  await using service = await startClient();
  const path = `/v1/text-to-speech/${VOICE}/stream?output_format=mp3_44100_64`;
  const { status, body } = await service.post(path, { text: "Hello there from the call." });
  if (status !== 200) throw new Error(`The service answered ${status}`);
  const speak = speaking({ msPerChar: 20 });
  return (request, index) =>
    request.query.get("output_format")?.startsWith("mp3") === true
      ? { headers: { "content-type": "audio/mpeg" }, body: [body] }
      : speak(request, index);
}

describe.skipIf(!isReady)(`@jambonz/speech-utils ${IF_INSTALLED}, with redis-server`, () => {
  const folder = temporaryFolder();
  let redis: ReturnType<typeof spawn>;
  let utils: SpeechUtils;
  let upstream: FakeUpstream;
  let gateway: TestGateway;

  beforeAll(async () => {
    const path = folder.file("redis.sock");
    redis = spawn(REDIS, ["--port", "0", "--unixsocket", path, "--save", "", "--dir", folder.file("")], {
      stdio: "ignore",
    });
    await until("Redis listens", () => existsSync(path), { deadlineMs: 60_000 });
    // Where it keeps what it was given; read once, as it is loaded.
    vi.stubEnv("JAMBONES_TMP_FOLDER", folder.file(""));
    utils = load<Package>("@jambonz/speech-utils")({ path }, LOGGER);
    upstream = await startFakeUpstream(await speakingMp3());
    gateway = await gatewayAt(upstream.url, { carrierToken: TOKEN });
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await utils?.client.quit();
    await gateway?.close();
    await upstream?.close();
    if (redis !== undefined && redis.exitCode === null) {
      redis.kill("SIGTERM");
      await once(redis, "exit");
    }
    folder[Symbol.dispose]();
  });

  interface Asking {
    readonly url?: string;
    readonly token?: string;
    readonly voice?: string;
  }
  function synth(text: string, given: Asking = {}): ReturnType<SpeechUtils["synthAudio"]> {
    const { url = `${gateway.url}/carrier/jambonz/tts`, token = TOKEN, voice = "Tone A" } = given;
    return utils.synthAudio(STATS, {
      vendor: "custom:voicewire",
      language: "en-US",
      voice,
      text,
      account_sid: "a1",
      credentials: { vendor: "custom:voicewire", auth_token: token, custom_tts_url: url },
      disableTtsStreaming: true,
    });
  }
  const spoken = () => upstream.requests.filter(({ method }) => method === "POST");

  it("gets MP3 that is speech", async () => {
    const { filePath } = await synth("Hello there from the call.");
    expect(filePath.startsWith(folder.file(""))).toBe(true);
    expect(filePath).toMatch(/\.mp3$/);
    const samples = decode(readFileSync(filePath), "mp3");
    expect(samples.length / 16_000).toBeGreaterThan(0.8);
    expect(loudness(samples)).toBeGreaterThan(300);
  });

  it("asks once for a text that it has in its cache then", async () => {
    const before = spoken().length;
    const first = await synth("This is said twice.");
    const again = await synth("This is said twice.");
    expect([first.servedFromCache, again.servedFromCache]).toEqual([false, true]);
    expect(spoken()).toHaveLength(before + 1);
    expect(spoken().at(-1)).toMatchObject({
      path: "/v1/text-to-speech/tone-a/stream",
      json: { text: "This is said twice." },
    });
    expect(readFileSync(again.filePath).length).toBeGreaterThan(1000);
  });

  it("its SSML is read, and not read aloud", async () => {
    await synth('<speak>Hello <break time="1s"/>&amp; <emphasis>welcome</emphasis>.</speak>');
    expect(spoken().at(-1)?.json).toMatchObject({ text: 'Hello <break time="1s"/>& welcome.' });
  });

  it("is refused with a status that it knows", async () => {
    await expect(synth("A wrong token.", { token: "other" })).rejects.toMatchObject({ statusCode: 401 });
    await expect(synth("An unknown voice.", { voice: "Nobody" })).rejects.toMatchObject({ statusCode: 404 });
  });

  // FreeSWITCH's mod_sndfile opens .r8 and .r16 as raw 16-bit samples of the machine's byte order: little-endian on
  // every one that it is built for.
  it.each([
    [8000, "r8"],
    [16_000, "r16"],
  ])("keeps L16 at %i Hz as it comes, low byte first, as a .%s file", async (rate, extension) => {
    const target = `${gateway.url}/carrier/jambonz/tts`;
    await using forwarder = await asking(`audio/l16;rate=${rate}`, target);
    const text = `Hello at ${rate}.`;
    const { filePath } = await synth(text, { url: forwarder.url });
    expect(filePath.endsWith(`.${extension}`)).toBe(true);
    const { audio } = ndjsonSpeech({ text, msPerChar: 20, format: `pcm_${rate}` });
    expect(readFileSync(filePath).equals(Buffer.from(audio))).toBe(true);
  });

  it("keeps WAV as a file that is read", async () => {
    await using forwarder = await asking("audio/wav", `${gateway.url}/carrier/jambonz/tts`);
    const { filePath } = await synth("Hello in a file.", { url: forwarder.url });
    expect(filePath.endsWith(".wav")).toBe(true);
    expect(loudness(decode(readFileSync(filePath), "wav"))).toBeGreaterThan(300);
  });
});
