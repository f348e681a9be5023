/** examples/discord-voice against a whole gateway, with a voice connection that keeps what it is given. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import prism from "prism-media";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PacketPacer, SILENCE_FRAME, type VoiceSink } from "../../examples/discord-voice/packet-pacer.mjs";
import { joinSession } from "../../examples/discord-voice/session-voice.mjs";
import type { Event } from "../../src/protocol/events.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { decodeMonoPackets } from "../kit/mono-packets.ts";

const REHEARSE = join(import.meta.dirname, "../../examples/discord-voice/rehearse.mjs");
const FIVE_OF_SILENCE = Array.from({ length: 5 }, () => SILENCE_FRAME);

/** Each packet, and each change of speaking, in the order in which they came. */
class KeepingSink implements VoiceSink {
  readonly given: (Buffer | boolean)[] = [];
  playOpusPacket(packet: Buffer): void {
    this.given.push(packet);
  }
  setSpeaking(isSpeaking: boolean): void {
    this.given.push(isSpeaking);
  }
  get packets(): Buffer[] {
    return this.given.filter((what) => typeof what !== "boolean");
  }
  get speech(): Buffer[] {
    return this.packets.filter((packet) => !packet.equals(SILENCE_FRAME));
  }
  /** How often speech has ended. */
  get ends(): number {
    return this.given.filter((what) => what === false).length;
  }
}

describe("a session in a voice connection", { timeout: 30_000 }, () => {
  let upstream: FakeUpstream;
  let gateway: TestGateway;
  let other: TestClient;
  const sink = { current: new KeepingSink() };
  const events: Event[] = [];

  beforeEach(async () => {
    upstream = await startFakeUpstream(speaking({ msPerChar: 60 }));
    gateway = await gatewayAt(upstream.url);
    sink.current = new KeepingSink();
    events.length = 0;
  });
  afterEach(async () => {
    await gateway?.close();
    await upstream?.close();
  });

  /** Somebody who listens in PCM has the upstream asked for PCM; `other` hears the same packets as the bot. */
  async function join() {
    const voice = await joinSession({
      gateway: gateway.wsUrl,
      session: "guild",
      sink: sink.current,
      onEvent: (event) => events.push(event),
    });
    await TestClient.connect(gateway, "/live/guild?role=listener&format=pcm_48000&events=none");
    other = await TestClient.connect(gateway, "/live/guild?role=listener&format=opus_48000&events=none");
    return voice;
  }

  it("gets every packet in order, five of silence after the last one, and after each pause", async () => {
    const voice = await join();
    for (const count of [1, 2]) {
      voice.send({ type: "speak", text: "Hello there, general listener." });
      await other.next("utterance.done", count);
      await until("speech has ended", () => isOver(sink.current, other.frames.length), {
        deadlineMs: 10_000,
      });
    }
    const { packets, speech } = sink.current;
    expect(speech.length).toBeGreaterThan(160);
    expect(speech).toEqual(other.frames);
    expect(sink.current.ends).toBeGreaterThanOrEqual(2);
    expectSilenceAtEachEnd(sink.current);
    // The silence that Discord asks for says the same of itself: full band, mono.
    const heard = await decodeMonoPackets(packets);
    expect(Math.max(...heard.slice(-960))).toBeLessThan(0.001);
    voice.close();
    await voice.closed;
  });

  it("interrupted: nothing that waited is handed on, silence follows, and the receipt says what was", async () => {
    const voice = await join();
    voice.send({ type: "speak", text: "This goes on for much longer than anybody cares to listen to it." });
    await until("it is heard", () => sink.current.speech.length >= 40, { deadlineMs: 10_000 });
    voice.send({ type: "interrupt" });
    await until("it is cut", () => events.some((event) => event.type === "interrupted"));
    const handed = sink.current.speech.length;
    await until("speech has ended", () => sink.current.given.at(-1) === false);
    expect(sink.current.speech.length).toBe(handed);
    expectSilenceAtEachEnd(sink.current);
    expect(other.frames.length).toBeGreaterThan(handed);
    const [receipt] = events.filter((event) => event.type === "interrupted");
    // `other` says nothing of what it has played: that is another listener's guess.
    const heard = receipt?.listeners?.find(({ source }) => source === "ack") ?? receipt?.heard;
    expect(heard?.source).toBe("ack");
    // It counts on from the last word of what was played, but never beyond what was sent.
    expect(heard?.ms).toBeLessThanOrEqual(other.frames.length * 20);
    expect(heard?.ms).toBeGreaterThan(0);
    expect(events.filter((event) => event.type === "error")).toEqual([]);

    voice.send({ type: "speak", text: "Once more." });
    await until("it is said", () => events.filter((event) => event.type === "utterance.done").length === 2, {
      deadlineMs: 10_000,
    });
    expect(sink.current.speech.length).toBeGreaterThan(handed);
    expect(events.filter((event) => event.type === "error")).toEqual([]);
    voice.close();
    await voice.closed;
  });

  it("the gateway goes away: what had come is played, silence follows", async () => {
    const voice = await join();
    voice.send({ type: "speak", text: "This goes on for longer than the gateway lives." });
    await until("it is heard", () => sink.current.speech.length >= 10, { deadlineMs: 10_000 });
    await gateway.close();
    expect(await voice.closed).toBe(1001);
    await until("speech has ended", () => sink.current.given.at(-1) === false);
    expectSilenceAtEachEnd(sink.current);
  });

  it("is rehearsed by one command; says what to do where there is no gateway", async () => {
    await using _recorder = await TestClient.connect(
      gateway,
      "/live/example-discord?format=pcm_48000&events=none",
    );
    const said = await rehearse(gateway.wsUrl, "Boats float by.");
    expect(said.text).toMatch(
      /^Boats\s+float\s+by\s+4[5-9] packets of 20 ms \(\d+ bytes\), then \d+ of silence\.\n$/,
    );
    expect(said.code).toBe(0);
    const lost = await rehearse("ws://127.0.0.1:9", "Boats float by.");
    expect(lost.text).toContain("Start one with: npm start");
    expect(lost.code).toBe(1);
  });
});

/** All of so many packets were handed on, and it speaks no more. */
const isOver = (sink: KeepingSink, packets: number): boolean =>
  sink.speech.length === packets && sink.given.at(-1) === false;

/** Wherever it stops to speak, five packets of silence came right before, behind one of speech. */
function expectSilenceAtEachEnd({ given }: KeepingSink): void {
  for (const [at, what] of given.entries()) {
    if (what !== false) continue;
    expect(given.slice(at - 5, at)).toEqual(FIVE_OF_SILENCE);
    expect(given[at - 6]).not.toEqual(SILENCE_FRAME);
  }
}

async function rehearse(url: string, text: string): Promise<{ text: string; code: number }> {
  const env = { ...process.env, VOICEWIRE_URL: url };
  const child = spawn(process.execPath, [REHEARSE, text], { env, stdio: ["ignore", "pipe", "pipe"] });
  const said: string[] = [];
  child.stdout.on("data", (piece: Buffer) => said.push(piece.toString()));
  child.stderr.on("data", (piece: Buffer) => said.push(piece.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, text: said.join("") };
}

describe("PacketPacer", () => {
  const packet = (number: number): Buffer => Buffer.from([0xf8, number]);

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("hands on the first packet at once and one more every 20 ms, then silence, then speaks no more", () => {
    const sink = new KeepingSink();
    const played: number[] = [];
    const pacer = new PacketPacer(sink, (endMs) => played.push(endMs));
    for (const number of [1, 2, 3]) pacer.push(packet(number), number * 20);
    expect(sink.given).toEqual([true, packet(1)]);
    vi.advanceTimersByTime(19);
    expect(sink.packets).toEqual([packet(1)]);
    vi.advanceTimersByTime(1);
    expect(sink.packets).toEqual([packet(1), packet(2)]);
    vi.advanceTimersByTime(20);
    expect(played).toEqual([20, 40, 60]);
    vi.advanceTimersByTime(5 * 20);
    expect(sink.packets).toEqual([packet(1), packet(2), packet(3), ...FIVE_OF_SILENCE]);
    expect(sink.ends).toBe(0);
    vi.advanceTimersByTime(20);
    expect(sink.ends).toBe(1);
    vi.advanceTimersByTime(1000);
    expect(sink.packets).toHaveLength(8);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("goes on with speech that comes while silence is sent, and owes five again", () => {
    const sink = new KeepingSink();
    const pacer = new PacketPacer(sink);
    pacer.push(packet(1), 20);
    vi.advanceTimersByTime(2 * 20);
    pacer.push(packet(2), 40);
    vi.advanceTimersByTime(1000);
    expect(sink.given).toEqual([
      true,
      packet(1),
      ...FIVE_OF_SILENCE.slice(0, 2),
      packet(2),
      ...FIVE_OF_SILENCE,
      false,
    ]);
  });

  it("keeps two seconds at most: the oldest go, and are counted", () => {
    const sink = new KeepingSink();
    const pacer = new PacketPacer(sink);
    for (let number = 0; number < 111; number++) pacer.push(packet(number), number * 20);
    expect(pacer.dropped).toBe(10);
    vi.advanceTimersByTime(20);
    expect(sink.packets).toEqual([packet(0), packet(11)]);
  });

  it("stood still: what is due is not sent all at once", () => {
    const sink = new KeepingSink();
    const pacer = new PacketPacer(sink);
    for (let number = 0; number < 60; number++) pacer.push(packet(number), number * 20);
    // As where the program is held up: the clock goes on, no timer runs.
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 5000);
    vi.advanceTimersByTime(20 + 19);
    expect(sink.packets).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(sink.packets).toHaveLength(3);
    clock.mockRestore();
  });

  it("closed, sends nothing more, of what comes late neither; may be closed again", () => {
    const sink = new KeepingSink();
    const pacer = new PacketPacer(sink);
    pacer.push(packet(1), 20);
    pacer.push(packet(2), 40);
    pacer.close();
    pacer.close();
    pacer.push(packet(3), 60);
    vi.advanceTimersByTime(1000);
    expect(sink.given).toEqual([true, packet(1), false]);
  });
});

/** discord.js hands `StreamType.OggOpus` to prism-media's demuxer. */
describe("audio.ogg for a Discord bot", () => {
  it("is packets of 20 ms that decode on both sides", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, "/live/bot?format=pcm_24000&events=none");
    const leaving = new AbortController();
    const answer = await fetch(`${gateway.url}/live/bot/audio.ogg`, { signal: leaving.signal });
    expect(answer.headers.get("content-type")).toMatch(/^audio\/ogg/);
    const packets: Buffer[] = [];
    const body = Readable.fromWeb(answer.body as ReadableStream<Uint8Array>);
    const demuxer = body.pipe(new prism.opus.OggDemuxer());
    demuxer.on("data", (packet: Buffer) => packets.push(packet));
    body.on("error", () => demuxer.end());
    speaker.send({ type: "speak", text: "Hello there, general listener.", voice_id: "v" });
    await until("a second of packets", () => packets.length >= 50, { deadlineMs: 15_000 });
    leaving.abort();
    const heard = await decodeMonoPackets(packets);
    expect(Math.max(...heard)).toBeGreaterThan(0.01);
  });
});
