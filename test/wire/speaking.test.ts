/** Speech over real sockets from a scripted upstream: exact frames, events in order, many listeners, interruption. */
import { OpusDecoder } from "opus-decoder";
import { describe, expect, it } from "vitest";
import { decodeUlaw } from "../../src/audio/codecs/g711.ts";
import { AUDIO_FORMATS } from "../../src/audio/formats.ts";
import type { AudioFormat } from "../../src/protocol/vocabulary.ts";
import { isTimed, speaking, speechAnswer, speechFor, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { peakHz } from "../unit/audio/helpers.ts";

const AUDIO_FORMAT_NAMES = Object.keys(AUDIO_FORMATS) as AudioFormat[];
const TEXT = "Hello there, general listener.";
const SPEAK = { type: "speak", text: TEXT, voice_id: "v" };

describe("speak", () => {
  it("passes mu-law through bit-exact with what the service sent", async () => {
    await using upstream = await startFakeUpstream();
    // With trimming a tone that ends in the middle of a wave falls to nothing.
    await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    client.send(SPEAK);
    const done = await client.next("utterance.done");
    const request = upstream.requests.find((one) => one.method === "POST");
    if (request === undefined) throw new Error("No request came");
    const sent = speechFor(request);
    expect(request.query.get("output_format")).toBe("ulaw_8000");
    expect(request.headers["xi-api-key"]).toBe("test-key");
    expect(client.audio.subarray(0, sent.audio.length).equals(sent.audio)).toBe(true);
    expect(client.audio.length % 160).toBe(0);
    expect(client.audio.subarray(sent.audio.length).every((byte) => byte === 0xff)).toBe(true);
    expect(done).toMatchObject({ outcome: "done", start_ms: 0, end_ms: sent.durationMs, timing: "exact" });
    expect(done.end_ms + done.pad_ms).toBe((client.audio.length / 160) * 20);
  });

  it("gives the same bytes and events however the upstream splits its body", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const runs: { audio: Buffer; words: unknown }[] = [];
    for (const splitBytes of [0, 1000, 37]) {
      upstream.use((request) => ({
        ...speechAnswer(speechFor(request), { isTimed: isTimed(request) }),
        splitBytes,
      }));
      await using client = await TestClient.connect(
        gateway,
        `/live/split-${splitBytes}?format=pcm_16000&pace=burst`,
      );
      client.send(SPEAK);
      await client.next("utterance.done");
      runs.push({ audio: client.audio, words: client.eventsOf("words").flatMap((event) => event.words) });
    }
    expect(runs[1]).toEqual(runs[0]);
    expect(runs[2]).toEqual(runs[0]);
  });

  it("paces real-time listeners: never more than the lead ahead, and done when it was played", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&lead_ms=200");
    const arrivals: number[] = [];
    client.socket.on("message", (_data, isBinary) => {
      if (isBinary) arrivals.push(performance.now());
    });
    // Speech begins later than that, and a frame is seen later than it left: a busy machine makes neither look early.
    const startMs = performance.now();
    client.send(SPEAK);
    const done = await client.next("utterance.done");
    const early = arrivals.map((atMs, index) => index * 20 - (atMs - startMs));
    // 20 ms a frame, 200 ms lead, and what a timer may be off by.
    expect(Math.max(...early)).toBeLessThanOrEqual(205);
    expect(arrivals).toHaveLength((TEXT.length * 60) / 20);
    expect(done.end_ms).toBe(TEXT.length * 60);
  });

  it("asks the plain endpoint when nobody wants timing", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst&events=none");
    client.send(SPEAK);
    await client.next("utterance.done");
    expect(upstream.requests.filter((one) => one.method === "POST").map((one) => one.path)).toEqual([
      "/v1/text-to-speech/v/stream",
    ]);
    expect(client.frames.length).toBe(Math.ceil((TEXT.length * 60) / 20));
  });

  it("frames are wrapped in RTP with rising sequence numbers and timestamps", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using raw = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    await using rtp = await TestClient.connect(
      gateway,
      "/live/s?role=listener&format=ulaw_8000&framing=rtp&pace=burst",
    );
    raw.send(SPEAK);
    await Promise.all([raw.next("utterance.done"), rtp.next("utterance.done")]);
    const packets = rtp.frames;
    expect(packets.length).toBe(raw.frames.length);
    packets.forEach((packet, index) => {
      expect(packet[0]).toBe(0x80);
      expect((packet[1] ?? 0) & 0x7f).toBe(0);
      expect((packet[1] ?? 0) >> 7).toBe(index === 0 ? 1 : 0);
      expect(packet.readUInt16BE(2)).toBe(((packets[0]?.readUInt16BE(2) ?? 0) + index) & 0xffff);
      expect(packet.readUInt32BE(4)).toBe(((packets[0]?.readUInt32BE(4) ?? 0) + index * 160) % 2 ** 32);
      expect(packet.subarray(12).equals(raw.frames[index] ?? Buffer.alloc(0))).toBe(true);
    });
  });
});

describe("many listeners", () => {
  it("every format comes from one request, all the same speech", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, "/live/s?role=speaker&events=none&pace=burst");
    await speaker.next("hello");
    const listeners = new Map<AudioFormat, TestClient>();
    for (const format of AUDIO_FORMAT_NAMES) {
      const path = `/live/s?role=listener&format=${format}&pace=burst`;
      listeners.set(format, await TestClient.connect(gateway, path));
    }
    const all = [...listeners.values()];
    await Promise.all(all.map((listener) => listener.next("hello")));
    speaker.send(SPEAK);
    await Promise.all(all.map((listener) => listener.next("utterance.done")));
    expect(upstream.requests.filter((one) => one.method === "POST")).toHaveLength(1);
    const frames = Math.ceil((TEXT.length * 60) / 20);
    const sizes: Partial<Record<AudioFormat, readonly number[]>> = {};
    for (const [format, listener] of listeners) {
      const frameBytes = listener.eventsOf("hello")[0]?.audio?.frame_bytes;
      // Opus decoders give out what they get 6.5 ms late: a tone that ends at full level takes a frame more.
      const expected = format === "opus_48000" ? frames + 1 : frames;
      await listener.until(() => listener.frames.length >= expected);
      expect(listener.frames.length, format).toBe(expected);
      expect(peakHz(await pcmOf(format, listener.frames), rateOf(format)), format).toBe(440);
      if (format === "opus_48000") expect(frameBytes).toBe(null);
      else
        expect(new Set(listener.frames.map((frame) => frame.length)), format).toEqual(new Set([frameBytes]));
      sizes[format] = [...new Set(listener.frames.map((frame) => frame.length))];
    }
    expect(sizes).toMatchObject({ ulaw_8000: [160], alaw_8000: [160], pcm_22050: [882], pcm_48000: [1920] });
    const words = all.map((listener) => JSON.stringify(listener.eventsOf("words")));
    expect(new Set(words).size).toBe(1);
    await Promise.all(all.map((listener) => listener[Symbol.asyncDispose]()));
  });

  it("a listener that goes away mid-speech changes nothing for the others", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using stays = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&lead_ms=100");
    const goes = await TestClient.connect(gateway, "/live/s?role=listener&format=pcm_8000&lead_ms=100");
    await goes.next("hello");
    stays.send(SPEAK);
    await goes.until(() => goes.frames.length > 10);
    goes.socket.terminate();
    const done = await stays.next("utterance.done");
    expect(done.outcome).toBe("done");
    expect(stays.frames.length).toBe(Math.ceil((TEXT.length * 60) / 20));
  });
});

describe("interrupt", () => {
  it("stops the frames, aborts the upstream and says what was heard", async () => {
    await using upstream = await startFakeUpstream((request) => ({
      ...speechAnswer(speechFor(request), { isTimed: isTimed(request), tail: ["stall"] }),
    }));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&lead_ms=100");
    client.send(SPEAK);
    await client.until(() => client.frames.length > 30);
    client.send({ type: "interrupt" });
    const cut = await client.next("interrupted");
    const frames = client.frames.length;
    expect(cut.heard.text).toBe(TEXT.slice(0, cut.heard.end));
    expect(cut.heard.text + cut.unheard_text).toBe(TEXT);
    // Whole words: what of the next one was heard is in the milliseconds alone.
    const next = /^\W*\w+/.exec(cut.unheard_text)?.[0].length ?? 0;
    expect(cut.heard.end * 60).toBeLessThanOrEqual(cut.heard.ms + 60);
    expect((cut.heard.end + next) * 60).toBeGreaterThanOrEqual(cut.heard.ms - 60);
    expect((await client.next("utterance.done")).outcome).toBe("interrupted");
    await until("the upstream sees the abort", () =>
      upstream.requests.some((one) => one.abortedAtMs !== null),
    );
    client.send({ ...SPEAK, text: "Again." });
    const started = await client.next("utterance.started", 2);
    expect(started.start_ms).toBe(cut.next_ms);
    expect(cut.next_ms).toBe(frames * 20);
  });

  it("works over HTTP, and the answer is the receipt", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using listener = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&lead_ms=100");
    await listener.next("hello");
    const post = (path: string, body: object) =>
      fetch(`${gateway.url}/live/${path}`, { method: "POST", body: JSON.stringify(body) });
    const spoken = await post("s/speak", { text: TEXT, voice_id: "v", utterance_id: "u" });
    expect([spoken.status, await spoken.json()]).toEqual([
      202,
      { session: "s", utterance_id: "u", ahead: 0 },
    ]);
    await listener.until(() => listener.frames.length > 20);
    const cut = await post("s/interrupt", {});
    const answer = (await cut.json()) as { interrupted: { heard: { text: string }; unheard_text: string }[] };
    expect(cut.status).toBe(200);
    expect(`${answer.interrupted[0]?.heard.text}${answer.interrupted[0]?.unheard_text}`).toBe(TEXT);
    const nowhere = await post("nowhere/speak", { text: "x" });
    expect([nowhere.status, await nowhere.json()]).toMatchObject([
      404,
      { error: { code: "unknown_session", retryable: true } },
    ]);
    const broken = await fetch(`${gateway.url}/live/s/speak`, { method: "POST", body: "{" });
    expect([broken.status, await broken.json()]).toMatchObject([400, { error: { code: "malformed_json" } }]);
  });
});

describe("dialogue", () => {
  it("gives each voice's span in order with the audio", async () => {
    await using upstream = await startFakeUpstream(speaking());
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    const inputs = [
      { text: "Who is there?", voice_id: "a" },
      { text: "It is me.", voice_id: "b" },
      { text: "Come in!", voice_id: "a" },
    ];
    client.send({ type: "dialogue", inputs });
    await client.next("utterance.done");
    const whole = inputs.map((input) => input.text).join("");
    const segments = client.eventsOf("segment");
    expect(
      segments.map((one) => [one.voice_id, one.dialogue_input_index, whole.slice(one.start, one.end)]),
    ).toEqual([
      ["a", 0, "Who is there?"],
      ["b", 1, "It is me."],
      ["a", 2, "Come in!"],
    ]);
    expect(segments.map((one) => one.start_ms)).toEqual([0, segments[0]?.end_ms, segments[1]?.end_ms]);
    const words = client.eventsOf("words").flatMap((event) => event.words.map((word) => word.text));
    expect(words).toEqual(["Who", "is", "there", "It", "is", "me", "Come", "in"]);
  });
});

function rateOf(format: AudioFormat): number {
  return Number(format.split("_")[1]);
}

/** Each codec by another decoder than ours, but for mu-law, whose table another test holds. */
async function pcmOf(format: AudioFormat, frames: readonly Buffer[]): Promise<Int16Array> {
  const bytes = Buffer.concat(frames);
  if (format.startsWith("ulaw_")) return decodeUlaw(bytes);
  if (format.startsWith("alaw_")) return Int16Array.from(bytes, (byte) => alawReference(byte));
  if (format.startsWith("pcm_"))
    return Int16Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readInt16LE(index * 2));
  if (format !== "opus_48000") throw new Error(`Can't decode ${format}: add somebody else's decoder here`);
  const decoder = new OpusDecoder({ channels: 1 });
  await decoder.ready;
  const decoded = decoder.decodeFrames(frames.map((frame) => new Uint8Array(frame)));
  decoder.free();
  expect(decoded.errors).toEqual([]);
  expect(decoded.samplesDecoded).toBe(frames.length * 960);
  return Int16Array.from(decoded.channelData[0] ?? [], (sample) => Math.round(sample * 32_767));
}

/** ITU-T G.711 A-law, by its definition. */
function alawReference(byte: number): number {
  const code = byte ^ 0x55;
  const exponent = (code >> 4) & 7;
  const mantissa = ((code & 15) << 4) + 8;
  const magnitude = exponent === 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
  return code & 0x80 ? magnitude : -magnitude;
}
