/** 16-bit samples to floats at the work rate, and back to 16 bits. */
import { RateConverter } from "../../audio/resample/rate-converter.ts";
import { WORK_RATE } from "./pitch-tracker.ts";

const FULL_SCALE = 32_768;

/** Mono samples of rates that may change (of SAMPLE_RATES) in, floats (-1..1) at WORK_RATE out; times stay true. */
export class ToWorkRate {
  readonly #converter = new RateConverter(WORK_RATE);

  push(pcm: Int16Array, sampleRate: number): Float32Array[] {
    return this.#converter.push(pcm, sampleRate).map(toFloats);
  }

  flush(): Float32Array[] {
    return [toFloats(this.#converter.flush())];
  }
}

/** Out of -1..1 is clipped. */
export function toInt16Samples(samples: Float32Array): Int16Array {
  const pcm = new Int16Array(samples.length);
  for (let at = 0; at < samples.length; at += 1) {
    pcm[at] = Math.max(-FULL_SCALE, Math.min(FULL_SCALE - 1, Math.round((samples[at] ?? 0) * FULL_SCALE)));
  }
  return pcm;
}

function toFloats(pcm: Int16Array): Float32Array {
  const samples = new Float32Array(pcm.length);
  for (let at = 0; at < pcm.length; at += 1) samples[at] = (pcm[at] ?? 0) / FULL_SCALE;
  return samples;
}
