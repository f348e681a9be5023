/** Takes noise out of speech by RNNoise in WebAssembly. The one file that touches @shiguredo/rnnoise-wasm. */
import type { Rnnoise } from "@shiguredo/rnnoise-wasm";

/** Hz that RNNoise works at. */
export const DENOISER_RATE = 48_000;
/** Two frames: half of its windows overlap, and it looks one frame ahead (measured by cross-correlation). */
const DELAY_SAMPLES = 960;
/**
 * Part of the untouched sound that is left where there is speech, and none in pauses: speech covers it, and what RNNoise took
 * of the speech comes back. At 10 dB of pink noise speech is otherwise further from the clean one than before (measured).
 */
const DRY_PART = 0.25;
/** From the recording's noise to its speech, dB: with less it is noisy, with more there is nothing to take out. */
const NOISY_DB = 30;
const CLEAN_DB = 44;
/** The quietest frame of about so long is the noise, in frames of 10 ms: speech makes a pause in less. */
const FLOOR_FRAMES = 200;
/** What the loudest frame loses with each further one: 3 dB a second. */
const PEAK_DECAY = 10 ** (-0.3 / 100);

export interface Denoiser {
  /** Mono samples at 48 kHz; what comes out is later by up to three frames, but in its place. */
  push(pcm: Int16Array): Int16Array;
  /** The rest: all outputs together are as long as all inputs. Nothing can be pushed after it. */
  flush(): Int16Array;
  /** Idempotent. */
  close(): void;
}

/**
 * How far a recording has no noise to take out, 0 to 1, by its loudest and its quietest frames: RNNoise would take a part of
 * the speech itself.
 */
class Cleanness {
  #peak = 0;
  /** The quietest frame of the block before, and of the one that is being filled. */
  #before = Number.POSITIVE_INFINITY;
  #quietest = Number.POSITIVE_INFINITY;
  #frames = 0;

  push(frame: Float32Array): number {
    let energy = 1;
    for (const sample of frame) energy += sample * sample;
    this.#peak = Math.max(this.#peak * PEAK_DECAY, energy);
    this.#quietest = Math.min(this.#quietest, energy);
    this.#frames += 1;
    const floor = Math.min(this.#before, this.#quietest);
    if (this.#frames === FLOOR_FRAMES / 2) {
      this.#before = this.#quietest;
      this.#quietest = Number.POSITIVE_INFINITY;
      this.#frames = 0;
    }
    const ratioDb = 10 * Math.log10(this.#peak / floor);
    return Math.max(0, Math.min(1, (ratioDb - NOISY_DB) / (CLEAN_DB - NOISY_DB)));
  }
}

/** A megabyte of weights, read once a thread; it keeps nothing else. */
let loading: Promise<Rnnoise> | undefined;

/** Rejects where WebAssembly can't be started. */
export async function createDenoiser(): Promise<Denoiser> {
  loading ??= load();
  const rnnoise = await loading;
  const state = rnnoise.createDenoiseState();
  const { frameSize } = rnnoise;
  const frame = new Float32Array(frameSize);
  /** The input as late as the output is, then what is not that old yet. */
  const late = new Float32Array(DELAY_SAMPLES + frameSize);
  const cleanness = new Cleanness();
  let dry = 0;
  let filled = 0;
  let toSkip = DELAY_SAMPLES;
  let samplesIn = 0;
  let samplesOut = 0;
  let isClosed = false;
  const run = (pcm: Int16Array): Int16Array => {
    const output = new Int16Array(filled + pcm.length);
    let made = 0;
    for (const sample of pcm) {
      frame[filled] = sample;
      filled += 1;
      if (filled < frame.length) continue;
      late.copyWithin(0, frameSize);
      late.set(frame, DELAY_SAMPLES);
      const kept = DRY_PART + (1 - DRY_PART) * cleanness.push(frame);
      const nextDry = kept * state.processFrame(frame);
      filled = 0;
      for (let at = Math.min(toSkip, frameSize); at < frameSize; at += 1) {
        const part = dry + ((nextDry - dry) * at) / frameSize;
        const value = (frame[at] ?? 0) * (1 - part) + (late[at] ?? 0) * part;
        output[made] = Math.max(-32_768, Math.min(32_767, Math.round(value)));
        made += 1;
      }
      dry = nextDry;
      toSkip = Math.max(0, toSkip - frameSize);
    }
    return output.subarray(0, made);
  };
  return {
    push: (pcm) => {
      samplesIn += pcm.length;
      const output = run(pcm);
      samplesOut += output.length;
      return output;
    },
    flush: () => {
      const rest = run(new Int16Array(DELAY_SAMPLES + frame.length));
      return rest.subarray(0, samplesIn - samplesOut);
    },
    close: () => {
      if (!isClosed) state.destroy();
      isClosed = true;
    },
  };
}

/** The library refuses to start outside a browser's page or worker; what it needs of one, Node has as well. */
async function load(): Promise<Rnnoise> {
  const name = "WorkerGlobalScope";
  const isMissing = !(name in globalThis);
  if (isMissing) Object.defineProperty(globalThis, name, { value: Object, configurable: true });
  try {
    const library = await import("@shiguredo/rnnoise-wasm");
    return await library.Rnnoise.load();
  } finally {
    // Other libraries of this thread should see Node.
    if (isMissing) Reflect.deleteProperty(globalThis, name);
  }
}
