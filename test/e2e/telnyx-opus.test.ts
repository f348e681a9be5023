/** A Telnyx call that asks for Opus (stream_bidirectional_codec OPUS): the scripted peer decodes every packet and plays it. */
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/kit/clock.ts";
import { startService } from "../../src/service/service.ts";
import { useSpeakingGateway } from "../helpers/speaking-gateway.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { FakeCarrier, fakeCall, fakePeer, fakePlayer } from "../kit/carriers/fake-carrier.ts";
import { opusToc } from "../kit/opus-toc.ts";

const RATE = 48_000;
const FRAME_SAMPLES = RATE / 50;
const MS_PER_CHARACTER = 60;
const TONE_HZ = 440;
const TONE_RMS = 8000 / Math.SQRT2;
/** What libopus looks ahead at 48 kHz: the sound comes so much later out of a decoder. */
const LOOKAHEAD_SAMPLES = 312;
const PACKET = { frameSamples: FRAME_SAMPLES, isStereo: false, isOneFrame: true };
const LONG = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike";

const stand = useSpeakingGateway({ msPerChar: MS_PER_CHARACTER });

const dial = (session: string, at = stand.gateway): Promise<FakeCarrier> =>
  FakeCarrier.dial({
    carrier: "telnyx",
    url: `${at.wsUrl}/carrier/telnyx?codec=OPUS`,
    call: { format: "opus_48000", parameters: { session } },
  });

/** Somebody else who listens in PCM: the upstream is asked for PCM, and Opus is made here. */
const record = (session: string): Promise<TestClient> =>
  TestClient.connect(stand.gateway, `/live/${session}?role=listener&format=pcm_48000&events=none`);

/** The payloads of `media`, as Telnyx would put each into an RTP packet. */
function packetsOf(carrier: FakeCarrier): Buffer[] {
  return carrier.received.flatMap((message) => {
    const { event, media } = JSON.parse(String(message)) as { event: string; media?: { payload: string } };
    return event === "media" ? [Buffer.from(media?.payload ?? "", "base64")] : [];
  });
}

const samplesOf = (text: string): number =>
  Math.ceil((Array.from(text).length * MS_PER_CHARACTER) / 20) * FRAME_SAMPLES;

/** How strong the tone of the speech is in 50 ms of sound, as a share of all that is there; and its level. */
function toneIn(pcm: Int16Array): { share: number; rms: number } {
  let sine = 0;
  let cosine = 0;
  let energy = 0;
  pcm.forEach((sample, index) => {
    const phase = (2 * Math.PI * TONE_HZ * index) / RATE;
    sine += sample * Math.sin(phase);
    cosine += sample * Math.cos(phase);
    energy += sample * sample;
  });
  const tone = (2 * (sine * sine + cosine * cosine)) / pcm.length;
  return { share: tone / energy, rms: Math.sqrt(energy / pcm.length) };
}

describe("a Telnyx call in Opus", { timeout: 60_000 }, () => {
  it("gets packets of 20 ms, one a message, that decode to all of the speech at its level", async () => {
    const text = "one two three four five";
    await using controller = await TestClient.connect(stand.gateway, "/live/opus?role=speaker&events=call");
    await using _recorder = await record("opus");
    const carrier = await dial("opus");
    expect(await controller.next("call")).toMatchObject({ state: "started", caller_format: "ulaw_8000" });
    controller.send({ type: "speak", text });
    await until("all is played", () => carrier.playedSamples >= samplesOf(text), { deadlineMs: 15_000 });
    await controller.next("utterance.done");
    await until("the player is empty", () => carrier.player.queuedSamples === 0);
    const packets = packetsOf(carrier);
    expect(packets.map(opusToc)).toEqual(packets.map(() => PACKET));
    expect(carrier.playedSamples).toBe(packets.length * FRAME_SAMPLES);
    // What the encoder holds back takes one packet more at the most.
    expect(carrier.playedSamples - samplesOf(text)).toBeLessThanOrEqual(FRAME_SAMPLES);
    const heard = Buffer.from(carrier.heard());
    const pcm = new Int16Array(heard.buffer, heard.byteOffset, heard.length / 2);
    const piece = RATE / 20;
    for (let at = LOOKAHEAD_SAMPLES + FRAME_SAMPLES; at + piece < samplesOf(text); at += piece) {
      const { share, rms } = toneIn(pcm.subarray(at, at + piece));
      expect(share).toBeGreaterThan(0.98);
      expect(rms / TONE_RMS).toBeGreaterThan(0.85);
      expect(rms / TONE_RMS).toBeLessThan(1.15);
    }
    expect(carrier.violations).toEqual([]);
    expect(await carrier.hangUp()).toBe(1000);
  });

  it("is cut with a receipt by its marks, heard, spoken to again, and hung up", async () => {
    await using controller = await TestClient.connect(
      stand.gateway,
      "/live/cut?role=speaker&events=words,call,dtmf&caller=ulaw_8000",
    );
    await using _recorder = await record("cut");
    const carrier = await dial("cut");
    await controller.next("call");
    controller.send({ type: "speak", text: LONG });
    await until("it is played", () => carrier.playedSamples > RATE, { deadlineMs: 10_000 });
    controller.send({ type: "interrupt" });
    const { heard } = await controller.next("interrupted");
    expect(heard.source).toBe("mark");
    expect(LONG.startsWith(heard.text)).toBe(true);
    expect(heard.text.length).toBeGreaterThan(0);
    await until("the player is empty", () => carrier.player.queuedSamples === 0);
    expect(carrier.received).toContain('{"event":"clear"}');
    const before = carrier.playedSamples;
    expect(before).toBeLessThan(samplesOf(LONG));

    carrier.say(new Uint8Array(160).fill(0x2a));
    carrier.press("7");
    await controller.until(() => controller.frames.length > 0 && controller.eventsOf("dtmf").length === 1);
    expect(controller.frames[0]).toEqual(Buffer.alloc(160, 0x2a));

    controller.send({ type: "speak", text: "again" });
    await until("it is said", () => carrier.playedSamples - before >= samplesOf("again"), {
      deadlineMs: 10_000,
    });
    controller.send({ type: "hangup" });
    expect(await carrier.closed).toBe(1000);
    expect(carrier.violations).toEqual([]);
  });

  it("alone in its session gets the upstream's own packets, and all of them decode", async () => {
    const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, key: "gateway-key" });
    try {
      await using own = await gatewayAt(service.url, { voice: "" }, { upstreamKey: "gateway-key" });
      await using controller = await TestClient.connect(own, "/live/alone?role=speaker&events=call");
      const carrier = await dial("alone", own);
      await controller.next("call");
      controller.send({ type: "speak", text: "Your parcel is on its way." });
      const started = await controller.next("utterance.started");
      expect(started.source_format).toMatch(/^opus_48000/);
      const { start_ms = 0, end_ms = 0, pad_ms = 0 } = await controller.next("utterance.done");
      const samples = Math.round((end_ms - start_ms + pad_ms) * (RATE / 1000));
      await until("all is played", () => carrier.playedSamples >= samples);
      const packets = packetsOf(carrier);
      expect(packets.map(opusToc)).toEqual(packets.map(() => PACKET));
      const heard = Buffer.from(carrier.heard());
      const pcm = new Int16Array(heard.buffer, heard.byteOffset, heard.length / 2);
      expect(Math.max(...pcm)).toBeGreaterThan(3000);
      expect(carrier.violations).toEqual([]);
      await carrier.hangUp();
    } finally {
      await service.close();
    }
  });
});

it("the scripted peer refuses what is no packet of Opus, and one that is too short", () => {
  const call = fakeCall("telnyx", { format: "opus_48000" });
  const violations: string[] = [];
  const player = fakePlayer("telnyx", call.format, systemClock);
  const peer = fakePeer("telnyx", {
    call,
    player,
    send: () => undefined,
    violate: (what) => violations.push(what),
  });
  const media = (bytes: number[]): string =>
    JSON.stringify({ event: "media", media: { payload: Buffer.from(bytes).toString("base64") } });
  try {
    peer.take(media([0xf8, 0xff, 0xfe]));
    expect(violations).toEqual([]);
    // Code 3 with a count of 0 frames; then CELT of 10 ms.
    peer.take(media([0xfb, 0x00]));
    peer.take(media([0xf0, 0xff, 0xfe]));
    expect(violations).toEqual([
      expect.stringContaining("no Opus packet"),
      "10 ms in a message, expected 20 ms to 30 s",
    ]);
    expect(player.endSamples).toBe(FRAME_SAMPLES);
  } finally {
    peer.close();
  }
});
