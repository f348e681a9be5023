/** RNNoise in WebAssembly: a first guess of the speech in a recording. The one file that touches @shiguredo/rnnoise-wasm. */
import type { Rnnoise } from "@shiguredo/rnnoise-wasm";

/** Hz that RNNoise works at. */
export const DENOISER_RATE = 48_000;
/** Two frames: half of its windows overlap, and it looks one frame ahead (measured by cross-correlation). */
const DELAY_SAMPLES = 960;

export interface SpeechGuess {
  /** The speech that it hears in mono samples at 48 kHz, from the first one on; later by up to three frames of 10 ms. */
  push(pcm: Int16Array): Float32Array;
  /** Idempotent. */
  close(): void;
}

/** A megabyte of weights, read once a thread; it keeps nothing else. */
let loading: Promise<Rnnoise> | undefined;

/** Rejects where WebAssembly can't be started. */
export async function createSpeechGuess(): Promise<SpeechGuess> {
  loading ??= load();
  const rnnoise = await loading;
  const state = rnnoise.createDenoiseState();
  const frame = new Float32Array(rnnoise.frameSize);
  let filled = 0;
  let toSkip = DELAY_SAMPLES;
  let isClosed = false;
  return {
    push: (pcm) => {
      const output = new Float32Array(filled + pcm.length);
      let made = 0;
      for (const sample of pcm) {
        frame[filled] = sample;
        filled += 1;
        if (filled < frame.length) continue;
        state.processFrame(frame);
        filled = 0;
        if (toSkip > 0) toSkip -= frame.length;
        else {
          output.set(frame, made);
          made += frame.length;
        }
      }
      return output.subarray(0, made);
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
