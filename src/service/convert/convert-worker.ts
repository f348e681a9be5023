/** A converter thread: does the one task it was started with on the samples that it is sent. */
import { parentPort, workerData } from "node:worker_threads";
import { createStreamEncoder, type StreamEncoder } from "../../audio/encode.ts";
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { RateConverter } from "../../audio/rate-converter.ts";
import { Resampler } from "../../audio/resample.ts";
import { createDenoiser, DENOISER_RATE } from "../media/denoiser.ts";
import { type ConverterTask, type FromConverter, MAX_UNSENT_BYTES, type ToConverter } from "./messages.ts";
import { WORK_RATE } from "./pitch-tracker.ts";
import { VoiceTransformer } from "./transformer.ts";
import { ProfileMeter, type VoiceProfile } from "./voice-profile.ts";
import { ToWorkRate, toInt16Samples } from "./work-rate.ts";

const port = parentPort;
if (port === null) throw new TypeError("Cannot run convert-worker: it is no worker thread");

interface Work {
  samples(pieces: readonly Float32Array[]): void;
  end(): void;
}

let unsentBytes = 0;
let untoldTakes = 0;

function post(message: FromConverter): void {
  const transfer = message.type === "chunk" ? [message.bytes.buffer] : [];
  port?.postMessage(message, transfer);
}

function tellTaken(): void {
  for (; untoldTakes > 0 && unsentBytes <= MAX_UNSENT_BYTES; untoldTakes -= 1) post({ type: "taken" });
}

function measuring(): Work {
  const meter = new ProfileMeter();
  return {
    samples: (pieces) => {
      for (const piece of pieces) meter.push(piece);
    },
    end: () => {
      meter.finish();
      post({ type: "measured", profile: meter.profile });
    },
  };
}

function converting(target: VoiceProfile, format: string, encoder: StreamEncoder): Work {
  const transformer = new VoiceTransformer(target);
  const toRate = parseUpstreamFormat(format)?.sampleRate ?? WORK_RATE;
  const resampler = new Resampler({ fromRate: WORK_RATE, toRate });
  const send = (bytes: Uint8Array): void => {
    if (bytes.length === 0) return;
    unsentBytes += bytes.length;
    // Its own memory: what an encoder gives may be a view of a larger one.
    post({ type: "chunk", bytes: bytes.slice() });
  };
  const encode = (samples: Float32Array): void => send(encoder.push(resampler.push(toInt16Samples(samples))));
  return {
    samples: (pieces) => {
      for (const piece of pieces) encode(transformer.push(piece));
    },
    end: () => {
      encode(transformer.flush());
      send(encoder.push(resampler.flush()));
      send(encoder.flush());
      encoder.close();
      post({ type: "done" });
    },
  };
}

async function start(task: ConverterTask): Promise<Work> {
  if (task.kind === "measure") return measuring();
  return converting(task.target, task.format, await createStreamEncoder(task.format));
}

function attempt(action: () => void): void {
  try {
    action();
  } catch (thrown) {
    post({ type: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}

/** Samples on their way to the work rate, the noise taken out where that was asked for. */
interface Intake {
  push(pcm: Int16Array, sampleRate: number): Float32Array[];
  flush(): Float32Array[];
}

async function createIntake(removesNoise: boolean): Promise<Intake> {
  const toWork = new ToWorkRate();
  if (!removesNoise) return toWork;
  const denoiser = await createDenoiser();
  const toDenoiser = new RateConverter(DENOISER_RATE);
  const clean = (pcm: Int16Array): Float32Array[] => toWork.push(denoiser.push(pcm), DENOISER_RATE);
  return {
    push: (pcm, sampleRate) => toDenoiser.push(pcm, sampleRate).flatMap(clean),
    flush: () => {
      const last = clean(toDenoiser.flush());
      last.push(...toWork.push(denoiser.flush(), DENOISER_RATE), ...toWork.flush());
      denoiser.close();
      return last;
    },
  };
}

// With nothing on its event loop but WebAssembly that compiles, a thread of Node waits for the background tasks of all
// threads, and where one of these waits for it, for ever (nodejs/node#54918).
port.ref();
const intake = await createIntake((workerData as ConverterTask).removesNoise);
const work = await start(workerData as ConverterTask);
port.on("message", (message: ToConverter) => {
  attempt(() => {
    if (message.type === "ack") unsentBytes -= message.bytes;
    else if (message.type === "samples") {
      work.samples(intake.push(message.pcm, message.sampleRate));
      untoldTakes += 1;
    } else {
      work.samples(intake.flush());
      work.end();
    }
    tellTaken();
  });
});
