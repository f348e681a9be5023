/** A converter thread: does one task after the other, on the samples that it is sent. */
import { createStreamEncoder, type StreamEncoder } from "../../audio/containers/encode.ts";
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { RateConverter } from "../../audio/resample/rate-converter.ts";
import { Resampler } from "../../audio/resample/resample.ts";
import { serveJobs } from "../../kit/serve-jobs.ts";
import { createDenoiser, DENOISER_RATE } from "../media/denoiser.ts";
import { Timbre } from "../voice/audio/timbre.ts";
import { levelFor } from "../voice/engine/variation.ts";
import { type ConverterTask, type FromConverter, MAX_UNSENT_BYTES, type ToConverter } from "./messages.ts";
import { WORK_RATE } from "./pitch-tracker.ts";
import { Tempo } from "./tempo.ts";
import { VoiceTransformer } from "./transformer.ts";
import { ProfileMeter } from "./voice-profile.ts";
import { ToWorkRate, toInt16Samples } from "./work-rate.ts";

type Reply = (message: FromConverter) => void;

interface Work {
  samples(pieces: readonly Float32Array[]): void;
  end(): void;
}

function measuring(reply: Reply): Work {
  const meter = new ProfileMeter();
  return {
    samples: (pieces) => {
      for (const piece of pieces) meter.push(piece);
    },
    end: () => {
      meter.finish();
      reply({ type: "measured", profile: meter.profile });
    },
  };
}

function converting(
  { target, format, manner, latencyLevel, seed }: ConverterTask & { readonly kind: "convert" },
  encoder: StreamEncoder,
  reply: Reply,
): Work {
  const transformer = new VoiceTransformer(target, {
    melody: manner?.melody ?? 1,
    latencyLevel: latencyLevel ?? 0,
  });
  const tempo = new Tempo(manner?.speed ?? 1);
  const timbre = new Timbre(WORK_RATE, manner?.timbre ?? {}, levelFor(seed));
  const toRate = parseUpstreamFormat(format)?.sampleRate ?? WORK_RATE;
  const resampler = new Resampler({ fromRate: WORK_RATE, toRate });
  const send = (bytes: Uint8Array): void => {
    if (bytes.length === 0) return;
    // Its own memory: what an encoder gives may be a view of a larger one.
    reply({ type: "chunk", bytes: bytes.slice() });
  };
  const encode = (samples: Float32Array): void =>
    send(encoder.push(resampler.push(timbre.push(toInt16Samples(samples)))));
  return {
    samples: (pieces) => {
      for (const piece of pieces) encode(transformer.push(tempo.push(piece)));
    },
    end: () => {
      encode(transformer.flush());
      send(encoder.push(resampler.flush()));
      send(encoder.flush());
      encoder.close();
      reply({ type: "done" });
    },
  };
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

class Conversion {
  readonly #intake: Intake;
  readonly #work: Work;
  readonly #reply: Reply;
  #unsentBytes = 0;
  #untoldTakes = 0;

  private constructor(intake: Intake, reply: Reply, start: (reply: Reply) => Work) {
    this.#intake = intake;
    this.#reply = reply;
    this.#work = start((message) => {
      if (message.type === "chunk") this.#unsentBytes += message.bytes.length;
      reply(message);
    });
  }

  static async create(task: ConverterTask, reply: Reply): Promise<Conversion> {
    const intake = await createIntake(task.removesNoise);
    if (task.kind === "measure") return new Conversion(intake, reply, measuring);
    const encoder = await createStreamEncoder(task.format, { serial: task.seed });
    return new Conversion(intake, reply, (counted) => converting(task, encoder, counted));
  }

  take(message: Exclude<ToConverter, { readonly type: "open" }>): void {
    if (message.type === "ack") this.#unsentBytes -= message.bytes;
    else if (message.type === "samples") {
      this.#work.samples(this.#intake.push(message.pcm, message.sampleRate));
      this.#untoldTakes += 1;
    } else {
      this.#work.samples(this.#intake.flush());
      this.#work.end();
    }
    for (; this.#untoldTakes > 0 && this.#unsentBytes <= MAX_UNSENT_BYTES; this.#untoldTakes -= 1) {
      this.#reply({ type: "taken" });
    }
  }
}

await serveJobs<ToConverter, FromConverter>(async (send) => {
  let current: Promise<Conversion | null> = Promise.resolve(null);
  return (job, message) => {
    const reply = (answer: FromConverter): void =>
      send(job, answer, answer.type === "chunk" ? [answer.bytes.buffer] : []);
    const step = async (): Promise<Conversion | null> => {
      if (message.type === "open") return Conversion.create(message.task, reply);
      const conversion = await current;
      conversion?.take(message);
      return conversion;
    };
    current = step().catch((thrown: unknown) => {
      reply({ type: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) });
      return null;
    });
  };
});
