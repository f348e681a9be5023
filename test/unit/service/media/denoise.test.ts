import { afterEach, describe, expect, it } from "vitest";
import { ApiError } from "../../../../src/service/api-error.ts";
import { decodeUpload } from "../../../../src/service/media/decode-upload.ts";
import { runDenoise } from "../../../../src/service/media/denoise-job.ts";
import { DenoisePool } from "../../../../src/service/media/denoise-pool.ts";
import { createDenoiser } from "../../../../src/service/media/denoiser.ts";
import { mp3InfoFrame } from "../../../../src/service/media/mp3-info.ts";
import { lagOf, levelOf, randomNumbers } from "../../../kit/signals.ts";
import { concatPcm, ffmpegDecode, hasProgram, until } from "../../audio/helpers.ts";
import { fileOf, RATE } from "./helpers.ts";

/** Two seconds like a voice: harmonics that glide behind two resonances, in bursts with pauses. */
function voiceLike(seconds: number): Int16Array {
  let phase = 0;
  return Int16Array.from({ length: seconds * RATE }, (_, at) => {
    const time = at / RATE;
    const isOn = time % 1 < 0.6;
    phase += (130 + 25 * Math.sin(2 * Math.PI * 1.3 * time)) / RATE;
    if (!isOn) return 0;
    let value = 0;
    for (let harmonic = 1; harmonic < 25; harmonic += 1) {
      const hz = 130 * harmonic;
      const gain = 1 / (1 + ((hz - 600) / 300) ** 2) + 0.4 / (1 + ((hz - 1500) / 400) ** 2) + 0.02;
      value += gain * Math.sin(2 * Math.PI * harmonic * phase);
    }
    return Math.round(3500 * value * Math.min(1, (time % 1) / 0.02, (0.6 - (time % 1)) / 0.02));
  });
}

function withNoise(clean: Int16Array, snrDb: number): Int16Array {
  const random = randomNumbers(11);
  const amplitude = levelOf(clean) * 10 ** (-snrDb / 20) * Math.sqrt(3);
  return clean.map((sample) => sample + Math.round((random() * 2 - 1) * amplitude));
}

async function denoise(pcm: Int16Array, pieceSamples = 4096): Promise<Int16Array> {
  const denoiser = await createDenoiser();
  try {
    const outputs: Int16Array[] = [];
    for (let at = 0; at < pcm.length; at += pieceSamples) {
      outputs.push(denoiser.push(pcm.subarray(at, at + pieceSamples)));
    }
    return concatPcm([...outputs, denoiser.flush()]);
  } finally {
    denoiser.close();
  }
}

describe("the denoiser", () => {
  it("gives the number of samples that it was given, however they are cut", async () => {
    const noisy = withNoise(voiceLike(1), 10);
    const whole = await denoise(noisy, noisy.length);
    for (const samples of [1, 479, 480, 481, 960, 1440, 5000]) {
      expect((await denoise(noisy.subarray(0, samples))).length).toBe(samples);
    }
    expect(await denoise(noisy, 333)).toEqual(whole);
  });

  it("leaves speech in its place, to the millisecond", async () => {
    const clean = voiceLike(3);
    const denoised = await denoise(withNoise(clean, 10));
    expect(Math.abs(lagOf(clean.subarray(0, RATE), denoised.subarray(0, RATE), 1200))).toBeLessThanOrEqual(
      RATE / 1000,
    );
  });

  it("takes noise out of pauses", async () => {
    const noisy = withNoise(voiceLike(4), 5);
    const denoised = await denoise(noisy);
    const [from, to] = [2.75 * RATE, 2.95 * RATE];
    expect(20 * Math.log10(levelOf(noisy, from, to) / (levelOf(denoised, from, to) + 1e-3))).toBeGreaterThan(
      12,
    );
  });

  it("gives its memory back", async () => {
    const noisy = withNoise(voiceLike(1), 5).subarray(0, 480);
    for (let round = 0; round < 50; round += 1) (await createDenoiser()).close();
    const before = process.memoryUsage().rss;
    for (let round = 0; round < 2000; round += 1) {
      const denoiser = await createDenoiser();
      denoiser.push(noisy.subarray(0, round % 480));
      denoiser.close();
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(30e6);
  });
});

describe.runIf(hasProgram("ffmpeg"))("the MP3's first frame", () => {
  it("makes what is heard as long as what was encoded, and begin with it", async () => {
    // Through the whole job: a burst after a second, in silence.
    const burst = voiceLike(3).map((sample, at) => (at < RATE ? 0 : sample));
    const parts: Uint8Array[] = [];
    const pcm = new Uint8Array(burst.filter((_, at) => at % 3 === 0).slice().buffer);
    const result = await runDenoise(fileOf(pcm), { fileFormat: "pcm_s16le_16" }, async (bytes) => {
      parts.push(bytes);
    });
    expect(result).toMatchObject({ format: "pcm", samples: 3 * 44_100 });
    const frames = Buffer.concat(parts);
    expect(frames.length).toBe(result.bytes);
    const pieces: Int16Array[] = [];
    const file = fileOf(Buffer.concat([mp3InfoFrame(result), frames]));
    for await (const piece of decodeUpload(file, { fileFormat: "other" })) pieces.push(piece.pcm);
    const known = concatPcm(pieces);
    expect(known.length).toBe(3 * 44_100);
    const unknown = ffmpegDecode(Buffer.concat([mp3InfoFrame(null), frames]), { rate: 44_100 });
    expect(unknown.length).toBeGreaterThanOrEqual(3 * 44_100);
    expect(unknown.length).toBeLessThan(3 * 44_100 + 2 * 1152);
    expect(lagOf(known.subarray(44_100, 2 * 44_100), unknown.subarray(44_100), 1500)).toBe(0);
    const without = ffmpegDecode(frames, { rate: 44_100 });
    expect(lagOf(known.subarray(44_100, 2 * 44_100), without.subarray(44_100), 1500)).toBe(1105);
  });
});

describe("the pool", () => {
  const pools: DenoisePool[] = [];
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.close()));
  });
  const open = (options?: ConstructorParameters<typeof DenoisePool>[0]) => {
    const pool = new DenoisePool(options);
    pools.push(pool);
    return pool;
  };
  const job = (file = fileOf(new Uint8Array(32_000)), signal = new AbortController().signal) => ({
    file,
    spec: { fileFormat: "pcm_s16le_16" as const },
    signal,
  });
  const finish = async (run: AsyncGenerator<Uint8Array, unknown>) => {
    let bytes = 0;
    let next = await run.next();
    for (; next.done !== true; next = await run.next()) bytes += next.value.length;
    return { bytes, result: next.value };
  };

  it("runs jobs one after the other on the same thread", async () => {
    const pool = open({ workers: 1 });
    const first = await finish(pool.run(job()));
    expect(first.result).toMatchObject({ samples: 44_100, format: "pcm", bytes: first.bytes });
    expect(await finish(pool.run(job()))).toEqual(first);
    expect(pool.stats).toEqual({ running: 0, waiting: 0, threads: 1, lost: 0 });
  });

  it("lets a few wait and refuses the rest; those that wait get their turn in order", async () => {
    const pool = open({ workers: 1, maxWaiting: 2 });
    const ends: number[] = [];
    const jobs = [1, 2, 3].map((name) => finish(pool.run(job())).then(() => ends.push(name)));
    await expect(finish(pool.run(job()))).rejects.toMatchObject({ httpStatus: 429 });
    expect(pool.stats).toMatchObject({ running: 1, waiting: 2 });
    await Promise.all(jobs);
    expect(ends).toEqual([1, 2, 3]);
  });

  it("a job given up frees its turn: running, or waiting", async () => {
    const pool = open({ workers: 1 });
    const controllers = [new AbortController(), new AbortController()] as const;
    const reason = new Error("Given up");
    const endless = {
      async *read() {
        while (true) yield new Uint8Array(65_536);
      },
    };
    const running = finish(pool.run(job(endless, controllers[0].signal)));
    const waiting = finish(pool.run(job(undefined, controllers[1].signal)));
    const last = finish(pool.run(job()));
    controllers[1].abort(reason);
    await expect(waiting).rejects.toBe(reason);
    controllers[0].abort(reason);
    await expect(running).rejects.toBe(reason);
    expect((await last).bytes).toBeGreaterThan(10_000);
  });

  it("makes no more than what is taken", async () => {
    const pool = open();
    let given = 0;
    const endless = {
      async *read() {
        while (true) {
          given += 1;
          yield new Uint8Array(8192);
        }
      },
    };
    const run = pool.run(job(endless));
    await run.next();
    let before = -1;
    for (let rounds = 0; rounds < 100 && before !== given; rounds += 1) {
      before = given;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    // Four seconds of MP3 are out, a quarter of a second of PCM is in each piece.
    expect(given).toBeLessThan(40);
    await run.return({ format: "", samples: 0, frames: 0, bytes: 0 });
    expect(pool.stats.running).toBe(0);
  });

  it("hands on what is wrong with the file, and goes on", async () => {
    const pool = open({ workers: 1 });
    const broken = { ...job(fileOf(new Uint8Array(9000).fill(7))), spec: { fileFormat: "other" as const } };
    const thrown = await finish(pool.run(broken)).catch((reason: unknown) => reason);
    expect(thrown).toBeInstanceOf(ApiError);
    expect((thrown as ApiError).body("x").detail).toMatchObject({
      code: "invalid_audio_format",
      param: "audio",
    });
    expect((await finish(pool.run(job()))).bytes).toBeGreaterThan(10_000);
    expect(pool.stats.threads).toBe(1);
  });

  it("ends a thread that nobody needs", async () => {
    const pool = open({ idleMs: 1 });
    await finish(pool.run(job()));
    await until(() => pool.stats.threads === 0);
  });

  it("closing ends what runs and what waits", async () => {
    const pool = open({ workers: 1 });
    const runs = [1, 2].map(() => finish(pool.run(job(fileOf(new Uint8Array(3_200_000))))));
    const outcomes = Promise.allSettled(runs);
    await pool.close();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { code: "draining" } });
    expect(pool.stats.running).toBe(0);
  });
});
