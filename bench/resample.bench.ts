/** Our resampler against the two libraries it was chosen over: time for a minute of 24 kHz speech-like noise to 8 kHz. */
import { createRequire } from "node:module";
import { Resampler } from "../src/audio/resample/resample.ts";
import { runBench } from "./kit/bench.ts";

const FROM_RATE = 24_000;
const TO_RATE = 8000;
const FRAME_SAMPLES = FROM_RATE / 50;

/** What is used of the libraries, which come without typings that suit. */
interface Speex {
  processChunk(chunk: Buffer): Buffer;
}
interface SpeexModule {
  readonly default: {
    new (channels: number, from: number, to: number, quality: number): Speex;
    initPromise: Promise<void>;
  };
}
interface LibSampleRate {
  simple(input: Float32Array): Float32Array;
  destroy(): void;
}
interface LibSampleRateModule {
  create(
    channels: number,
    from: number,
    to: number,
    options: { converterType: number },
  ): Promise<LibSampleRate>;
  readonly ConverterType: { readonly SRC_SINC_FASTEST: number };
}

runBench(async (bench) => {
  const rounds = bench.pick(5, 1);
  bench.method(
    `${bench.pick(60, 5)} s of audio in frames of 20 ms, ${FROM_RATE} to ${TO_RATE} Hz, best of ${rounds}, one process.`,
  );
  const require = createRequire(import.meta.url);
  const speexModule = require("speex-resampler") as SpeexModule;
  await speexModule.default.initPromise;
  const sampleRateModule = require("@alexanderolsen/libsamplerate-js") as LibSampleRateModule;
  const frames = noise(bench.pick(60, 5));
  const ours = best(rounds, () => {
    const resampler = new Resampler({ fromRate: FROM_RATE, toRate: TO_RATE });
    return frames.reduce((samples, frame) => samples + resampler.push(frame).length, 0);
  });
  const speex = best(rounds, () => {
    const resampler = new speexModule.default(1, FROM_RATE, TO_RATE, 7);
    const bytes = (frame: Int16Array): Buffer =>
      Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
    return frames.reduce((samples, frame) => samples + resampler.processChunk(bytes(frame)).length / 2, 0);
  });
  const converter = await sampleRateModule.create(1, FROM_RATE, TO_RATE, {
    converterType: sampleRateModule.ConverterType.SRC_SINC_FASTEST,
  });
  const sampleRate = best(rounds, () =>
    frames.reduce((samples, frame) => samples + converter.simple(Float32Array.from(frame)).length, 0),
  );
  converter.destroy();
  for (const [library, ms] of [
    ["speex-resampler, quality 7", speex],
    ["libsamplerate-js, fastest sinc", sampleRate],
  ] as const) {
    bench.row({
      figure: `resampling 24 to 8 kHz, against ${library}`,
      measured: `${ours.toFixed(0)} ms`,
      baseline: `${ms.toFixed(0)} ms`,
      ratio: (ours / ms).toFixed(2),
      target: "",
      isOk: null,
    });
  }
});

function noise(seconds: number): Int16Array[] {
  let state = 1;
  return Array.from({ length: seconds * 50 }, () =>
    Int16Array.from({ length: FRAME_SAMPLES }, () => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return (state >> 16) - 16_384;
    }),
  );
}

/** Least milliseconds of `rounds` runs; `work` returns how much it made, so that it can't be left out. */
function best(rounds: number, work: () => number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    const startMs = performance.now();
    if (work() === 0) throw new Error("The resampler made nothing");
    least = Math.min(least, performance.now() - startMs);
  }
  return least;
}
