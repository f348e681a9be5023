import { OpusDecoder } from "opus-decoder";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import { concealmentPacket, opusPacketSamples48k } from "../../../src/audio/codecs/opus-packet.ts";
import { createOpusPool, type OpusPool } from "../../../src/audio/codecs/opus-pool.ts";
import { createFrameMaker, type FrameMaker } from "../../../src/audio/framing/frame-maker.ts";
import type { GatewayError } from "../../../src/errors.ts";
import { fitTone, largestStep, tone, until } from "./helpers.ts";

let pool: OpusPool;
beforeAll(async () => {
  pool = await createOpusPool({ workers: 1, encodersPerWorker: 3, bitrateKbps: 64, complexity: 0 });
});
afterAll(() => pool.close());

interface Made {
  readonly maker: FrameMaker;
  readonly frames: Uint8Array[];
  readonly errors: GatewayError[];
  settled(): Promise<void>;
}

const open: FrameMaker[] = [];
afterEach(() => {
  for (const maker of open.splice(0)) maker.close();
});

function make(frameMs = 20, opusPool = pool): Made {
  const frames: Uint8Array[] = [];
  const errors: GatewayError[] = [];
  const maker = createFrameMaker(
    { format: "opus_48000", frameMs, opusPool },
    { frames: (bytes) => frames.push(bytes), error: (error) => errors.push(error) },
  );
  open.push(maker);
  return { maker, frames, errors, settled: () => until(() => frames.length === maker.framesPromised) };
}

async function decode(frames: Uint8Array[]): Promise<Float32Array> {
  const decoder = new OpusDecoder({ channels: 1 });
  await decoder.ready;
  const decoded = decoder.decodeFrames(frames).channelData[0] ?? new Float32Array(0);
  decoder.free();
  return decoded;
}

function packetsOf(samples: number, hz: number): Uint8Array[] {
  const encoder = new OpusEncoder({ sampleRate: 48_000, bitrateKbps: 64, complexity: 0 });
  const pcm = tone({ hz, rate: 48_000, samples });
  const packets: Uint8Array[] = [];
  for (let at = 0; at < samples; at += 960) packets.push(encoder.encode(pcm.subarray(at, at + 960)));
  encoder.close();
  return packets;
}

describe("createFrameMaker() for Opus", () => {
  it.each([
    [8000, 20],
    [22_050, 20],
    [24_000, 10],
    [44_100, 40],
    [48_000, 60],
  ])(
    "pushPcm() at %i Hz promises frames of %i ms at once and makes them of the tone",
    async (rate, frameMs) => {
      const { maker, frames, errors, settled } = make(frameMs);
      const pcm = tone({ hz: 440, rate, samples: (rate * 12) / 10 });
      for (let at = 0; at < pcm.length; at += 777) maker.pushPcm(pcm.subarray(at, at + 777), rate);
      expect(frames).toEqual([]);
      expect(maker.framesPromised).toBeGreaterThanOrEqual(Math.floor(1150 / frameMs));
      maker.flush();
      await settled();
      expect(errors).toEqual([]);
      expect(frames.every((frame) => opusPacketSamples48k(frame) === frameMs * 48)).toBe(true);
      const decoded = await decode(frames);
      const heard = decoded.subarray(0, 1.2 * 48_000);
      expect(fitTone(heard, 440, 48_000).snrDb).toBeGreaterThan(20);
      // A click would be a step that a tone of 440 Hz cannot make.
      expect(largestStep(heard, 2000, 55_000)).toBeLessThan(
        (12_000 / 32_768) * ((2 * Math.PI * 440) / 48_000) * 1.5,
      );
    },
  );

  it("flush() pads the last frame; sound that the encoder still holds gets a frame more, silence does not", async () => {
    const quiet = make();
    quiet.maker.pushPcm(tone({ hz: 440, rate: 24_000, samples: 480 }), 24_000);
    quiet.maker.pushPcm(new Int16Array(400), 24_000);
    expect(quiet.maker.flush()).toBe(2 * 80);
    expect(quiet.maker.framesPromised).toBe(2);
    expect(quiet.maker.flush()).toBe(0);
    const loud = make();
    loud.maker.pushPcm(new Int16Array(960).fill(9000), 24_000);
    expect(loud.maker.flush()).toBe(960);
    expect(loud.maker.framesPromised).toBe(3);
    const padded = make();
    padded.maker.pushPcm(new Int16Array(481).fill(9000), 24_000);
    expect(padded.maker.flush()).toBe(479 * 2);
    expect(padded.maker.framesPromised).toBe(2);
    expect(make().maker.flush()).toBe(0);
    await Promise.all([quiet.settled(), loud.settled(), padded.settled()]);
  });

  it("flush() gives the encoder back: makers that take turns need no encoder each, and each starts afresh", async () => {
    const pcm = tone({ hz: 440, rate: 24_000, samples: 4800 });
    const all: Made[] = [];
    for (let at = 0; at < 8; at += 1) {
      const made = make();
      made.maker.pushPcm(pcm, 24_000);
      made.maker.flush();
      await made.settled();
      all.push(made);
    }
    for (const { frames, errors } of all) {
      expect(errors).toEqual([]);
      expect(frames).toEqual(all[0]?.frames);
    }
    const [again] = all;
    again?.maker.pushPcm(pcm, 24_000);
    await again?.settled();
    expect(again?.frames.slice(-10)).toEqual(again?.frames.slice(0, 10));
  });

  it("keeps packets that are passed through in their place behind samples that are still encoded", async () => {
    const { maker, frames, settled } = make();
    const passed = packetsOf(960 * 5, 880);
    maker.pushPcm(new Int16Array(480 * 3), 24_000);
    for (const packet of passed) maker.pushPassThrough(packet);
    maker.pushPcm(new Int16Array(480 * 2), 24_000);
    expect(maker.framesPromised).toBe(10);
    expect(frames).toEqual([]);
    await settled();
    expect(frames.slice(3, 8)).toEqual(passed);
    maker.pushPassThrough(passed[0] ?? new Uint8Array(0));
    expect(frames.at(-1)).toBe(passed[0]);
  });

  it("pushPassThrough() needs no encoder, fills up a frame that is half made, and refuses another duration", async () => {
    const { maker, frames, errors, settled } = make();
    maker.pushSilence(100);
    maker.pushPassThrough(packetsOf(960, 440)[0] ?? new Uint8Array(0));
    expect(maker.framesPromised).toBe(2);
    maker.pushPassThrough(concealmentPacket(10));
    expect(errors.map((error) => error.code)).toEqual(["upstream_protocol"]);
    await settled();
    expect(frames).toHaveLength(2);
  });

  it("pushSilence() counts at 48 kHz, exactly over many calls", async () => {
    const { maker, settled } = make();
    for (let at = 0; at < 320; at += 1) maker.pushSilence(3);
    expect(maker.framesPromised).toBe(1);
    expect(maker.flush()).toBe(0);
    maker.pushPcm(new Int16Array(480), 48_000);
    maker.pushSilence(480);
    expect(maker.framesPromised).toBe(2);
    await settled();
  });

  it("goes over to 48 kHz with the first source that has more than 24 kHz, without losing a sample or a place", async () => {
    const { maker, frames, settled } = make();
    const low = tone({ hz: 440, rate: 24_000, samples: 12_100 });
    const high = tone({ hz: 440, rate: 48_000, samples: 48_000 }).subarray(24_200);
    maker.pushPcm(low, 24_000);
    maker.pushPcm(high, 48_000);
    maker.flush();
    await settled();
    expect(maker.framesPromised).toBe(51);
    const decoded = await decode(frames);
    // The fit covers both parts: a place that moved by a sample would break the tone's phase.
    expect(fitTone(decoded.subarray(0, 48_000), 440, 48_000).amplitude * 32_768).toBeGreaterThan(11_500);
    expect(fitTone(decoded.subarray(30_000, 48_000), 440, 48_000).snrDb).toBeGreaterThan(20);
  });

  it("reset() drops what is in flight: promised falls back, nothing late surfaces, the next frames are as new", async () => {
    const { maker, frames, settled } = make();
    maker.pushPcm(tone({ hz: 440, rate: 24_000, samples: 60 * 24_000 + 100 }), 24_000);
    await until(() => frames.length > 0);
    const emitted = frames.length;
    expect(maker.framesPromised).toBe(3000);
    expect(emitted).toBeLessThan(3000);
    maker.reset();
    expect(maker.framesPromised).toBe(emitted);
    const pcm = tone({ hz: 1000, rate: 24_000, samples: 4800 });
    maker.pushPcm(pcm, 24_000);
    await settled();
    const fresh = make();
    fresh.maker.pushPcm(pcm, 24_000);
    await fresh.settled();
    expect(frames.slice(emitted)).toEqual(fresh.frames);
  });

  it("reset() keeps the asked number of packets in flight, of any encoder, and frees the encoders", async () => {
    const whole = make();
    const first = tone({ hz: 440, rate: 24_000, samples: 480 * 200 });
    const second = tone({ hz: 880, rate: 24_000, samples: 480 * 200 });
    /** Two utterances in a row: an encoder for each. */
    const push = ({ maker }: Made): void => {
      maker.pushPcm(first, 24_000);
      maker.flush();
      maker.pushPcm(second, 24_000);
    };
    push(whole);
    await whole.settled();
    whole.maker.close();
    const pcm = tone({ hz: 1000, rate: 24_000, samples: 4800 });
    for (const kept of [0, 1, 150, 201, 230, 1000]) {
      const made = make();
      push(made);
      await until(() => made.frames.length > 0);
      const emitted = made.frames.length;
      const end = Math.min(401, emitted + kept);
      made.maker.reset(kept);
      expect(made.maker.framesPromised).toBe(end);
      made.maker.pushPcm(pcm, 24_000);
      made.maker.flush();
      await made.settled();
      const fresh = make();
      fresh.maker.pushPcm(pcm, 24_000);
      fresh.maker.flush();
      await fresh.settled();
      expect(made.frames).toEqual([...whole.frames.slice(0, end), ...fresh.frames]);
      // Of three.
      const others = [make(), make(), make()];
      for (const { maker } of others) maker.pushPcm(pcm, 24_000);
      await Promise.all(others.map(({ settled }) => settled()));
      for (const { errors, maker } of others) {
        expect(errors).toEqual([]);
        maker.close();
      }
    }
  });

  it("without a free encoder it says so once, and time goes on with packets that decoders conceal", async () => {
    const taken = [make(), make(), make()];
    for (const { maker } of taken) maker.pushPcm(new Int16Array(480), 24_000);
    const { maker, frames, errors, settled } = make(60);
    maker.pushPcm(new Int16Array(1440 * 2), 24_000);
    maker.pushPcm(new Int16Array(1440), 24_000);
    expect(errors.map((error) => error.code)).toEqual(["encoder_failed"]);
    expect(frames).toEqual(Array.from({ length: 3 }, () => concealmentPacket(60)));
    expect(await decode(frames)).toHaveLength(3 * 2880);
    taken[0]?.maker.close();
    maker.pushPcm(tone({ hz: 440, rate: 24_000, samples: 1440 }), 24_000);
    await settled();
    expect(frames).toHaveLength(4);
    expect(frames[3]?.length).toBeGreaterThan(50);
  });

  it("when the pool dies, promised frames still come, and close() is quiet", async () => {
    const own = await createOpusPool({ workers: 1, encodersPerWorker: 1, bitrateKbps: 64 });
    const { maker, frames, errors } = make(20, own);
    maker.pushPcm(new Int16Array(480 * 10), 24_000);
    await own.close();
    expect(frames).toEqual(Array.from({ length: 10 }, () => concealmentPacket(20)));
    expect(maker.framesPromised).toBe(10);
    expect(errors).toHaveLength(1);
    maker.close();
    maker.close();
    maker.pushPcm(new Int16Array(480), 24_000);
    maker.pushSilence(960);
    expect([maker.flush(), frames.length, errors.length]).toEqual([0, 10, 1]);
  });
});
