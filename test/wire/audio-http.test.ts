/** The live audio over plain HTTP, against a real gateway: what players get, joined at any time, and what it costs. */
import { once } from "node:events";
import { get, type IncomingMessage, request } from "node:http";
import { MPEGDecoder } from "mpg123-decoder";
import { OggOpusDecoder } from "ogg-opus-decoder";
import { describe, expect, it } from "vitest";
import { OpusEncoder } from "../../src/audio/codecs/opus-encoder.ts";
import { OggOpusWriter } from "../../src/audio/containers/ogg.ts";
import type { FakeAnswer } from "../helpers/fake-answer.ts";
import { type FakeUpstream, speaking, speechFor, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { pagesOf } from "../helpers/ogg-pages.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { peakHz, tone } from "../unit/audio/helpers.ts";

const TEXT = "Hello there, general listener.";
const TEXT_MS = TEXT.length * 60;
const FRAMES = TEXT_MS / 20;
/** What an Opus encoder lags behind, which a decoder drops. */
const PRE_SKIP = 312;

/** A player: keeps what it reads, and reads only while it is not paused. */
class Player implements AsyncDisposable {
  readonly response: IncomingMessage;
  readonly #chunks: Buffer[] = [];
  bytes = 0;
  /** How the body went: `whole` has its last chunk, `cut` has not. */
  end: "whole" | "cut" | null = null;

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.bytes += chunk.length;
    });
    response.on("error", () => {
      this.end = "cut";
    });
    response.on("close", () => {
      this.end = response.complete ? "whole" : "cut";
    });
  }

  static async open(url: string): Promise<Player> {
    const [response] = (await once(get(url, { agent: false }), "response")) as [IncomingMessage];
    return new Player(response);
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks);
  }
  get startMs(): number {
    return Number(this.response.headers["voicewire-start-ms"]);
  }

  async has(bytes: number): Promise<void> {
    await until(`${bytes} bytes`, () => this.bytes >= bytes, { deadlineMs: 15_000 });
  }
  async isOver(): Promise<void> {
    await until("the end of the body", () => this.end !== null, { deadlineMs: 15_000 });
  }
  leave(): void {
    this.response.destroy();
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.leave();
    await this.isOver();
  }
}

async function post(url: string, body: object): Promise<number> {
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(body) });
  return answer.status;
}

const say = (url: string, session: string, text = TEXT) =>
  post(`${url}/live/${session}/speak`, { text, voice_id: "v" });

async function decodeOgg(bytes: Uint8Array): Promise<Float32Array> {
  const decoder = new OggOpusDecoder();
  await decoder.ready;
  const { channelData, errors } = await decoder.decodeFile(bytes);
  decoder.free();
  expect(errors).toEqual([]);
  return channelData[0] ?? new Float32Array(0);
}

async function decodeMp3(bytes: Uint8Array) {
  const decoder = new MPEGDecoder();
  await decoder.ready;
  const { channelData, sampleRate, errors } = decoder.decode(bytes);
  decoder.free();
  return { samples: channelData[0] ?? new Float32Array(0), sampleRate, errors };
}

/** What the service answered to its latest request for speech. */
function sentBy(upstream: FakeUpstream): Buffer {
  const last = upstream.requests.findLast((one) => one.method === "POST");
  if (last === undefined) throw new Error("No request came");
  return speechFor(last).audio;
}

/** The body is the service's speech byte for byte, but for the last frame, which the session may fade out. */
function expectSpeech(body: Uint8Array, sent: Buffer, frameBytes: number): void {
  expect(body.length).toBe(sent.length);
  expect(sent.subarray(0, -frameBytes).equals(body.subarray(0, -frameBytes))).toBe(true);
}

/** Plays a session into which an utterance is spoken, to the session's end. */
async function playWhole(path: string): Promise<{ player: Player; sent: Buffer }> {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  const player = await Player.open(`${gateway.url}/live/s/${path}`);
  // With a second format the service is asked for PCM, and Opus is encoded here.
  const isOpus = path.startsWith("audio.ogg");
  await using witness = await TestClient.connect(
    gateway,
    `/live/s?role=listener&pace=burst&format=${isOpus ? "pcm_24000" : "none"}`,
  );
  await witness.next("hello");
  expect(await say(gateway.url, "s")).toBe(202);
  await witness.next("utterance.done");
  await until("every frame", () => gateway.counters.framesSent >= (isOpus ? 2 * FRAMES + 1 : FRAMES));
  await gateway.close();
  await player.isOver();
  return { player, sent: sentBy(upstream) };
}

/** A second of speech as Ogg Opus, in one record with the times of "Hello". */
function opusAnswer(pcm: Int16Array, preSkip: number): FakeAnswer {
  const encoder = new OpusEncoder({ sampleRate: 48_000, bitrateKbps: 64, complexity: 5 });
  const writer = new OggOpusWriter({ preSkip, inputSampleRate: 48_000 });
  const padded = new Int16Array(Math.ceil((pcm.length + preSkip) / 960) * 960);
  padded.set(pcm, preSkip - PRE_SKIP);
  const parts = [writer.header()];
  for (let at = 0; at < padded.length; at += 960) {
    parts.push(writer.push(encoder.encode(padded.subarray(at, at + 960)), 960));
  }
  parts.push(writer.finish());
  encoder.close();
  const characters = [..."Hello"];
  const record = {
    audio_base64: Buffer.concat(parts).toString("base64"),
    alignment: {
      characters,
      character_start_times_seconds: characters.map((_, index) => index / 5),
      character_end_times_seconds: characters.map((_, index) => (index + 1) / 5),
    },
  };
  return { headers: { "content-type": "application/json" }, body: [`${JSON.stringify(record)}\n`] };
}

describe("GET /live/{session}/audio.*", () => {
  it("audio.ogg is Ogg Opus from its headers to its end-of-stream page", async () => {
    const { player } = await playWhole("audio.ogg?wait=true&pace=burst");
    expect(player.end).toBe("whole");
    expect(player.response.statusCode).toBe(200);
    expect(player.response.headers).toMatchObject({
      "content-type": "audio/ogg; codecs=opus",
      "cache-control": "no-store",
      "accept-ranges": "none",
      vary: "Origin",
      "access-control-expose-headers": "voicewire-start-ms",
      "x-content-type-options": "nosniff",
      "voicewire-start-ms": "0",
    });
    const pages = pagesOf(player.body);
    expect(pages.map((page) => page.sequence)).toEqual(pages.map((_, index) => index));
    expect([pages[0]?.flags, pages.at(-1)?.flags]).toEqual([2, 4]);
    const granules = pages.slice(2).map((page) => page.granule);
    for (const [index, granule] of granules.entries()) {
      const stepMs = (granule - (granules[index - 1] ?? 0)) / 48;
      expect(stepMs).toBeLessThanOrEqual(200);
      expect(stepMs).toBeGreaterThan(0);
    }
    const samples = await decodeOgg(player.body);
    // The tone ends at full level: a frame more brings out what the encoder held, and the last page has one of silence.
    expect(samples.length).toBe((FRAMES + 2) * 960 - PRE_SKIP);
    expect(peakHz(samples, 48_000)).toBe(440);
  });

  it("audio.ulaw, audio.wav and audio.pcm are the service's very bytes", async () => {
    const ulaw = await playWhole("audio.ulaw?wait=true&pace=burst");
    // The opening frame of silence, then the speech.
    expect(ulaw.player.body.subarray(0, 160).equals(Buffer.alloc(160, 0xff))).toBe(true);
    expect(ulaw.player.startMs).toBe(-20);
    expectSpeech(ulaw.player.body.subarray(160), ulaw.sent, 160);
    expect(ulaw.player.response.headers["content-type"]).toBe("audio/basic");
    const wav = await playWhole("audio.wav?wait=true&pace=burst&rate=16000");
    const header = wav.player.body.subarray(0, 44);
    expect([20, 22, 34].map((at) => header.readUInt16LE(at))).toEqual([1, 1, 16]);
    expect([24, 40].map((at) => header.readUInt32LE(at))).toEqual([16_000, 0xffffffff]);
    expectSpeech(wav.player.body.subarray(44), wav.sent, 640);
    const pcm = await playWhole("audio.pcm?wait=true&pace=burst");
    expect(pcm.player.response.headers["content-type"]).toBe("audio/pcm; rate=24000; channels=1");
    expectSpeech(pcm.player.body.subarray(-pcm.player.startMs * 48), pcm.sent, 960);
  });

  it("audio.mp3 holds all of the speech", async () => {
    const { player } = await playWhole("audio.mp3?wait=true&pace=burst");
    expect(player.response.headers["content-type"]).toBe("audio/mpeg");
    const { samples, sampleRate, errors } = await decodeMp3(player.body);
    expect([sampleRate, errors]).toEqual([24_000, []]);
    const first = samples.findIndex((sample) => Math.abs(sample) > 0.05);
    const last = samples.findLastIndex((sample) => Math.abs(sample) > 0.05);
    expect(Math.abs((last - first) / 24 - TEXT_MS)).toBeLessThan(60);
    // Where the header says; a codec's edges are not sharp.
    expect(Math.abs(first / 24 + player.startMs)).toBeLessThan(2);
    expect(peakHz(samples.slice(first, last), 24_000)).toBe(440);
  });

  it("a player that comes in the middle of an utterance hears the rest from the playhead on", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, "/live/s?format=pcm_24000&lead_ms=100");
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    await speaker.until(() => speaker.frames.length >= 30);
    await using wav = await Player.open(`${gateway.url}/live/s/audio.wav`);
    await using ogg = await Player.open(`${gateway.url}/live/s/audio.ogg`);
    // Fewer samples in hand than an MP3 encoder gives bytes for.
    await using mp3 = await Player.open(`${gateway.url}/live/s/audio.mp3?lead_ms=0`);
    const done = await speaker.next("utterance.done");
    expect(done.end_ms).toBe(TEXT_MS);
    await gateway.close();
    await wav.isOver();
    await ogg.isOver();
    await mp3.isOver();
    const { samples } = await decodeMp3(mp3.body);
    const last = samples.findLastIndex((sample) => Math.abs(sample) > 0.05);
    expect(Math.abs(mp3.startMs + last / 24 - TEXT_MS)).toBeLessThan(5);
    expect(wav.startMs).toBeGreaterThan(0);
    expect(wav.startMs).toBeLessThanOrEqual(600);
    const sent = sentBy(upstream);
    expectSpeech(wav.body.subarray(44), sent.subarray(wav.startMs * 48), 960);
    expect(ogg.startMs).toBeGreaterThan(0);
    const heard = await decodeOgg(ogg.body);
    // From the first frame to the end, with the one that brings out what the encoder held, and the last page's.
    expect(heard.length).toBe((TEXT_MS + 40 - ogg.startMs) * 48 - PRE_SKIP);
    expect(peakHz(heard, 48_000)).toBe(440);
  });

  it("players of one kind share a rendition that is made once", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const address = `${gateway.url}/live/s/audio.wav?wait=true&pace=burst&rate=16000`;
    const players = [await Player.open(address), await Player.open(address)];
    expect(await say(gateway.url, "s")).toBe(202);
    await until("every frame", () => gateway.counters.framesSent >= 2 * FRAMES);
    await gateway.close();
    for (const player of players) await player.isOver();
    expect(gateway.counters.framesMade).toBe(FRAMES);
    expect(upstream.requests.filter((one) => one.method === "POST")).toHaveLength(1);
    for (const player of players) expectSpeech(player.body.subarray(44), sentBy(upstream), 640);
  });

  it("players of Ogg get the same packets, each in a stream of its own", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const address = `${gateway.url}/live/s/audio.ogg?wait=true&pace=burst`;
    const players = [await Player.open(address), await Player.open(address)];
    await using witness = await TestClient.connect(gateway, "/live/s?format=pcm_24000&pace=burst");
    await witness.next("hello");
    expect(await say(gateway.url, "s")).toBe(202);
    await until("every frame", () => gateway.counters.framesSent >= FRAMES + 2 * (FRAMES + 1));
    await gateway.close();
    for (const player of players) await player.isOver();
    const [one, other] = await Promise.all(players.map((player) => decodeOgg(player.body)));
    expect(one?.length).toBe((FRAMES + 2) * 960 - PRE_SKIP);
    expect(other).toEqual(one);
    const serials = players.map((player) => pagesOf(player.body)[0]?.serial);
    expect(serials[0]).not.toBe(serials[1]);
  });

  it("audio.ogg of the upstream's own packets: what their header lets players skip stays, on the timeline", async () => {
    // As an encoder writes it that asks players to skip 80 ms: 73.5 ms of silence, and its lookahead.
    const preSkip = 3840;
    const pcm = tone({ rate: 48_000, hz: 440, samples: 48_000 });
    await using upstream = await startFakeUpstream((one, index) =>
      one.method === "POST" ? opusAnswer(pcm, preSkip) : speaking()(one, index),
    );
    await using gateway = await gatewayAt(upstream.url);
    await using witness = await TestClient.connect(gateway, "/live/s?format=none&events=words");
    await witness.next("hello");
    const player = await Player.open(`${gateway.url}/live/s/audio.ogg?pace=burst`);
    expect(await say(gateway.url, "s", "Hello")).toBe(202);
    const { source_format } = await witness.next("utterance.started");
    const [word] = (await witness.next("words")).words;
    await witness.next("utterance.done");
    await gateway.close();
    await player.isOver();
    expect(source_format).toMatch(/^opus_48000/);
    expect(word?.start_ms).toBe(preSkip / 48);
    // OpusHead is sent before it is known whose packets follow: its pre-skip is that of packets made here.
    expect(player.body.readUInt16LE(player.body.indexOf("OpusHead") + 10)).toBe(PRE_SKIP);
    const samples = await decodeOgg(player.body);
    const first = samples.findIndex((sample) => Math.abs(sample) > 0.1);
    expect(Math.abs(player.startMs + (PRE_SKIP + first) / 48 - preSkip / 48)).toBeLessThan(3);
  });

  it("a player that goes away is not made audio for any more", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { keepMs: 0 });
    const { counters } = gateway;
    await using speaker = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    await speaker.next("hello");
    for (const name of ["ogg", "wav", "mp3"]) {
      const player = await Player.open(`${gateway.url}/live/s/audio.${name}?silence=true`);
      await until("it has joined", () => counters.connectionsOpened === counters.connectionsClosed + 2);
      player.leave();
      await until("it has left", () => counters.connectionsOpened === counters.connectionsClosed + 1);
    }
    // A rendition may be kept for `keep-ms` of the timeline: the first utterance takes it beyond.
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    await speaker.next("utterance.done");
    const before = counters.framesMade;
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    await speaker.next("utterance.done", 2);
    // The speaker's own mu-law and nothing else.
    expect(counters.framesMade - before).toBe(FRAMES);
  });

  it("silence=true keeps the body flowing while nobody speaks, and the speech is whole in it", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using player = await Player.open(
      `${gateway.url}/live/s/audio.ulaw?wait=true&silence=true&lead_ms=100`,
    );
    await player.has(160 * 20);
    expect(await say(gateway.url, "s")).toBe(202);
    await until("every frame", () => gateway.counters.framesSent >= FRAMES);
    await player.has(player.bytes + 160 * 20);
    const sent = sentBy(upstream);
    const { body } = player;
    const at = body.indexOf(sent.subarray(0, 160));
    expect(at).toBeGreaterThanOrEqual(160 * 20);
    expect(body.subarray(0, at).every((byte) => byte === 0xff)).toBe(true);
    // Up to the last frame, which the session may fade out.
    const sound = (bytes: Uint8Array) => Buffer.from(bytes.filter((byte) => byte !== 0xff));
    const expected = sound(sent.subarray(0, -160));
    expect(sound(body.subarray(at)).subarray(0, expected.length).equals(expected)).toBe(true);
  });

  it("a session that is only waited in has no audio and holds its player until somebody speaks", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { graceMs: 50 });
    await using player = await Player.open(`${gateway.url}/live/s/audio.wav?wait=true`);
    await player.has(44);
    await using speaker = await TestClient.connect(gateway, "/live/s?role=speaker");
    await speaker.next("hello");
    await speaker[Symbol.asyncDispose]();
    // The player counts as a connection: the session outlives its grace period.
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await say(gateway.url, "s")).toBe(202);
    await player.has(44 + 960);
    expect(gateway.counters.sessionsOpened).toBe(1);
  });
});

describe("a player that reads slowly", () => {
  // 48 kHz: more than the buffers of both sockets hold.
  const LONG = "a".repeat(1000);
  const LONG_BYTES = 1000 * 60 * 96;

  it("misses audio under `live`, holds no more than max-outbox-bytes, and nobody else notices", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { maxOutboxBytes: 65_536 });
    const path = `${gateway.url}/live/s/audio.wav?wait=true&rate=48000&pace=burst`;
    await using other = await Player.open(path);
    await using slow = await Player.open(`${path}&policy=live`);
    slow.response.pause();
    expect(await say(gateway.url, "s", LONG)).toBe(202);
    await other.has(44 + LONG_BYTES);
    slow.response.resume();
    const heardOrDropped = () => (slow.bytes - 44) / 1920 + gateway.counters.framesDropped;
    await until("every frame is heard or counted", () => heardOrDropped() >= LONG_BYTES / 1920);
    expect(heardOrDropped()).toBe(LONG_BYTES / 1920);
    expect(gateway.counters.framesDropped).toBeGreaterThan(0);
    expectSpeech(other.body.subarray(44), sentBy(upstream), 1920);
    expect(slow.body.subarray(0, 44 + 960_000).equals(other.body.subarray(0, 44 + 960_000))).toBe(true);
  });

  it("loses nothing under `lossless`: the session waits for it", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { maxOutboxBytes: 65_536 });
    const slow = await Player.open(`${gateway.url}/live/s/audio.wav?wait=true&rate=48000&pace=burst`);
    slow.response.pause();
    expect(await say(gateway.url, "s", LONG)).toBe(202);
    await until("the sockets are full", () => gateway.counters.framesSent > 500);
    slow.response.resume();
    await slow.has(44 + LONG_BYTES);
    await gateway.close();
    await slow.isOver();
    expect(gateway.counters.framesDropped).toBe(0);
    expectSpeech(slow.body.subarray(44), sentBy(upstream), 1920);
  });
});

describe("what is refused", () => {
  it.each([
    ["GET", "nobody/audio.ogg", 404, "unknown_session", "session"],
    ["GET", "not%20a%20name/audio.wav", 400, "invalid_field", "session"],
    ["GET", "s/audio.wav?rate=12345", 400, "invalid_field", "rate"],
    ["GET", "s/audio.ogg?frame_ms=100", 400, "invalid_field", "frame_ms"],
    ["GET", "s/audio.ogg?pace=walk", 400, "invalid_field", "pace"],
    ["GET", "s/audio.ogg?silence=some", 400, "invalid_field", "silence"],
    ["GET", "s/audio.flac", 404, "not_found", undefined],
    ["POST", "s/audio.ogg", 404, "not_found", undefined],
  ])("%s %s: %i %s", async (method, path, status, code, field) => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, "/live/s");
    await speaker.next("hello");
    const answer = await fetch(`${gateway.url}/live/${path}`, { method });
    const { error } = (await answer.json()) as { error: { code: string; field?: string } };
    expect([answer.status, error.code, error.field]).toEqual([status, code, field]);
    expect(answer.headers.get("vary")).toBe("Origin");
    expect(gateway.counters.sessionsOpened).toBe(1);
    expect(gateway.counters.connectionsOpened).toBe(1);
  });

  it("a full session answers 503 before any audio, and MP3 encoders have a limit of their own", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { maxListeners: 9 });
    const players: Player[] = [];
    for (let count = 0; count < 8; count += 1) {
      players.push(await Player.open(`${gateway.url}/live/s/audio.mp3?wait=true`));
    }
    const full = await fetch(`${gateway.url}/live/s/audio.mp3`);
    expect([full.status, await full.json()]).toMatchObject([503, { error: { code: "listener_limit" } }]);
    players.push(await Player.open(`${gateway.url}/live/s/audio.ogg`));
    const refused = await fetch(`${gateway.url}/live/s/audio.ogg`);
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: { code: "listener_limit" } },
    ]);
    for (const player of players) player.leave();
    await until("they have left", () => gateway.counters.connectionsClosed === 9);
    players.push(await Player.open(`${gateway.url}/live/s/audio.mp3?wait=true`));
    expect(players.at(-1)?.response.statusCode).toBe(200);
    players.at(-1)?.leave();
  });

  it("HEAD says what GET would answer and joins nobody; OPTIONS allows other origins", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const head = async (path: string): Promise<IncomingMessage> => {
      const sent = request(`${gateway.url}/live/${path}`, { method: "HEAD" }).end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      response.resume();
      return response;
    };
    expect((await head("s/audio.ogg")).statusCode).toBe(404);
    expect((await head("s/audio.wav?wait=true&rate=7")).statusCode).toBe(400);
    const waiting = await head("s/audio.ogg?wait=true");
    expect([waiting.statusCode, waiting.headers["content-type"]]).toEqual([200, "audio/ogg; codecs=opus"]);
    expect([gateway.counters.sessionsOpened, gateway.counters.connectionsOpened]).toEqual([0, 0]);
    const options = await fetch(`${gateway.url}/live/s/audio.ogg`, { method: "OPTIONS" });
    expect([options.status, options.headers.get("access-control-allow-methods")]).toEqual([
      204,
      "GET, POST, OPTIONS",
    ]);
  });
});
