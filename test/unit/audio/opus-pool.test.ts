import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it, vi } from "vitest";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import type { OpusReply } from "../../../src/audio/codecs/opus-messages.ts";
import {
  createOpusPool,
  MAX_FRAMES_IN_FLIGHT,
  type OpusPool,
  type OpusPoolOptions,
  type OpusStream,
  type OpusStreamOptions,
} from "../../../src/audio/codecs/opus-pool.ts";
import type { GatewayError } from "../../../src/errors.ts";
import { tone, until } from "./helpers.ts";

const pools: OpusPool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

async function start(options: Partial<OpusPoolOptions> = {}): Promise<OpusPool> {
  const pool = await createOpusPool({
    workers: 1,
    encodersPerWorker: 2,
    bitrateKbps: 64,
    complexity: 0,
    ...options,
  });
  pools.push(pool);
  return pool;
}

interface Recorded {
  readonly stream: OpusStream;
  readonly packets: Uint8Array[];
  readonly errors: GatewayError[];
  calls: number;
}

function acquire(pool: OpusPool, options: Partial<OpusStreamOptions> = {}): Recorded {
  const packets: Uint8Array[] = [];
  const errors: GatewayError[] = [];
  const stream = pool.acquire(
    { sampleRate: 24_000, frameSamples: 480, ...options },
    {
      packets: (made) => {
        recorded.calls += 1;
        packets.push(...made);
      },
      error: (error) => errors.push(error),
    },
  );
  const recorded: Recorded = { stream, packets, errors, calls: 0 };
  return recorded;
}

/** The packets that an encoder of this thread makes of the same samples: Opus is deterministic. */
function reference(pcm: Int16Array, sampleRate: 24_000 | 48_000, frameSamples: number): Uint8Array[] {
  const encoder = new OpusEncoder({ sampleRate, bitrateKbps: 64, complexity: 0 });
  const packets: Uint8Array[] = [];
  for (let at = 0; at < pcm.length; at += frameSamples)
    packets.push(encoder.encode(pcm.subarray(at, at + frameSamples)));
  encoder.close();
  return packets;
}

const SECOND = tone({ hz: 440, rate: 24_000, samples: 24_000 });
const OTHER = tone({ hz: 1000, rate: 24_000, samples: 24_000 });

describe("OpusPool", () => {
  it("push() gives the packets of one encoder, in order, later and several a call", async () => {
    const { stream, packets, ...rest } = acquire(await start());
    for (let at = 0; at < 10; at += 1) stream.push(SECOND.subarray(at * 480, (at + 1) * 480));
    stream.push(SECOND.subarray(4800));
    expect(packets).toEqual([]);
    expect(stream.framesInFlight).toBe(50);
    await until(() => stream.framesInFlight === 0);
    expect(packets).toEqual(reference(SECOND, 24_000, 480));
    expect(rest.errors).toEqual([]);
  });

  it("push() copies: the samples may be overwritten at once", async () => {
    const { stream, packets } = acquire(await start());
    const reused = SECOND.slice();
    stream.push(reused);
    reused.fill(0);
    await until(() => stream.framesInFlight === 0);
    expect(packets).toEqual(reference(SECOND, 24_000, 480));
  });

  it("streams of any rate and frame length share a thread without touching one another", async () => {
    const pool = await start({ encodersPerWorker: 60 });
    const shapes = [
      { sampleRate: 24_000, frameSamples: 480 },
      { sampleRate: 48_000, frameSamples: 960 },
      { sampleRate: 48_000, frameSamples: 2880 },
      { sampleRate: 24_000, frameSamples: 240 },
    ] as const;
    const inputs = shapes.map(({ sampleRate }, at) =>
      tone({ hz: 200 + 90 * at, rate: sampleRate, samples: 17_280 }),
    );
    const all = Array.from({ length: 60 }, (_, at) => ({ ...acquire(pool, shapes[at % 4]), kind: at % 4 }));
    for (const { stream, kind } of all) stream.push(inputs[kind] ?? SECOND);
    await until(() => all.every(({ stream }) => stream.framesInFlight === 0));
    const expected = shapes.map((shape, kind) =>
      reference(inputs[kind] ?? SECOND, shape.sampleRate, shape.frameSamples),
    );
    for (const { packets, kind } of all) expect(packets).toEqual(expected[kind]);
  });

  it("acquire() refuses when all are taken; release() gives one back as new, at any rate", async () => {
    const pool = await start({ encodersPerWorker: 2, workers: 1 });
    const first = acquire(pool);
    acquire(pool);
    expect(() => acquire(pool)).toThrow(expect.objectContaining({ code: "encoder_failed" }));
    first.stream.push(OTHER);
    first.stream.release();
    first.stream.release();
    expect(() => first.stream.push(SECOND)).toThrow(expect.objectContaining({ code: "encoder_failed" }));
    const next = acquire(pool, { sampleRate: 48_000, frameSamples: 960 });
    const input = tone({ hz: 440, rate: 48_000, samples: 9600 });
    next.stream.push(input);
    await until(() => next.stream.framesInFlight === 0);
    expect(next.packets).toEqual(reference(input, 48_000, 960));
    expect(first.packets).toEqual([]);
  });

  it("release() discards what is in flight: nothing of it surfaces, and the next stream starts afresh", async () => {
    const pool = await start({ encodersPerWorker: 1 });
    for (let round = 0; round < 5; round += 1) {
      const { stream, packets } = acquire(pool);
      stream.push(OTHER);
      // Now and then some of it is already on its way back.
      if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      stream.release();
      expect(stream.framesInFlight).toBe(0);
      packets.length = 0;
      const next = acquire(pool);
      next.stream.push(SECOND);
      await until(() => next.stream.framesInFlight === 0);
      expect(next.packets).toEqual(reference(SECOND, 24_000, 480));
      expect(packets).toEqual([]);
      next.stream.release();
    }
  });

  it("release() stops the encoding of what nobody waits for", async () => {
    const pool = await start({ encodersPerWorker: 2 });
    const emit = vi.spyOn(Worker.prototype, "emit");
    try {
      const given = acquire(pool);
      const next = acquire(pool);
      given.stream.push(new Int16Array(480 * MAX_FRAMES_IN_FLIGHT));
      given.stream.release();
      next.stream.push(SECOND.subarray(0, 480));
      await until(() => next.stream.framesInFlight === 0);
      const replies = emit.mock.calls.flatMap(([name, reply]) =>
        name === "message" ? [reply as OpusReply] : [],
      );
      // One packet of one slot: what was given back takes no turn.
      expect(replies.flatMap((reply) => (reply.kind === "packets" ? [reply.heads.length] : []))).toEqual([3]);
    } finally {
      emit.mockRestore();
    }
  });

  it("push() refuses parts of frames and more than its bound", async () => {
    const { stream } = acquire(await start(), { frameSamples: 240 });
    expect(() => stream.push(new Int16Array(241))).toThrow(RangeError);
    stream.push(new Int16Array(240 * MAX_FRAMES_IN_FLIGHT));
    expect(() => stream.push(new Int16Array(240))).toThrow(
      expect.objectContaining({ code: "encoder_failed" }),
    );
    await until(() => stream.framesInFlight < MAX_FRAMES_IN_FLIGHT);
    expect(() => stream.push(new Int16Array(240))).not.toThrow();
  });

  it("a thread that dies reports to its streams and is replaced; other threads go on", async () => {
    const pool = await start({ workers: 2, encodersPerWorker: 1 });
    // No frame of Opus has 481 samples: the encoder throws, and a throw ends the thread.
    const bad = acquire(pool, { frameSamples: 481 });
    const good = acquire(pool);
    bad.stream.push(new Int16Array(481));
    good.stream.push(SECOND);
    await until(() => bad.errors.length > 0);
    expect(bad.errors.map((error) => error.code)).toEqual(["encoder_failed"]);
    expect(bad.packets).toEqual([]);
    expect(() => bad.stream.push(new Int16Array(481))).toThrow(
      expect.objectContaining({ code: "encoder_failed" }),
    );
    bad.stream.release();
    const next = acquire(pool);
    next.stream.push(SECOND);
    await until(() => next.stream.framesInFlight === 0 && good.stream.framesInFlight === 0);
    expect(next.packets).toEqual(reference(SECOND, 24_000, 480));
    expect(good.packets).toEqual(next.packets);
    expect(good.errors).toEqual([]);
  });

  it("close() reports to the streams, delivers nothing more and may be called again", async () => {
    const pool = await start();
    const { stream, packets, errors } = acquire(pool);
    stream.push(SECOND);
    await Promise.all([pool.close(), pool.close()]);
    expect(errors.map((error) => error.code)).toEqual(["encoder_failed"]);
    expect(packets).toEqual([]);
    stream.release();
    expect(() => acquire(pool)).toThrow(expect.objectContaining({ code: "encoder_failed" }));
  });

  it("a long push delays nobody else: streams take turns", async () => {
    const pool = await start();
    const long = acquire(pool);
    const short = acquire(pool);
    for (let at = 0; at < 60; at += 1) long.stream.push(SECOND);
    short.stream.push(SECOND.subarray(0, 480));
    await until(() => short.stream.framesInFlight === 0);
    expect(long.stream.framesInFlight).toBeGreaterThan(1500);
    long.stream.release();
    short.stream.push(SECOND.subarray(480, 960));
    await until(() => short.stream.framesInFlight === 0);
    expect(short.packets).toEqual(reference(SECOND.subarray(0, 960), 24_000, 480));
  });

  it("createOpusPool() says why a thread cannot start", async () => {
    await expect(start({ bitrateKbps: 0 })).rejects.toMatchObject({
      code: "encoder_failed",
      message: expect.stringContaining("CTL"),
    });
  });

  it("createOpusPool() refuses more encoders than a thread can hold", async () => {
    for (const encodersPerWorker of [0, 61, 1.5]) {
      await expect(start({ encodersPerWorker })).rejects.toThrow(RangeError);
    }
  });
});
