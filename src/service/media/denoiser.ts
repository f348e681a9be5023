/**
 * Takes noise out of speech: steady tones are subtracted, and the rest is filtered by Wiener's gain over a first guess by
 * RNNoise. Seconds before and after each moment are looked at, so what comes out is late; the memory does not grow with the
 * recording.
 */
import { Fourier } from "../../audio/analysis/fourier.ts";
import { createSpeechGuess } from "./rnnoise.ts";
import { type Spectrum, withoutTones } from "./tones.ts";
import { type WienerOptions, wienerGains } from "./wiener.ts";

export { DENOISER_RATE } from "./rnnoise.ts";

/** 43 ms: long enough to part the harmonics of a voice, short enough for its sounds. */
const WINDOW_SAMPLES = 2048;
/** A window begins every quarter of one. */
const HOP_SAMPLES = WINDOW_SAMPLES / 4;
const BINS = WINDOW_SAMPLES / 2 + 1;
/** Squared windows that overlap add up to this. */
const WINDOW_SUM = 2;
/** 10.7 ms a frame: 4.1 s are filtered in one go, and looked at with 2 s before and 2 s after. */
const BLOCK_FRAMES = 384;
const CONTEXT_FRAMES = 192;
const NOISE: WienerOptions = { bins: BINS, nearFrames: 94, farFrames: 190 };

export interface Denoiser {
  /** Mono samples at 48 kHz; what comes out is later by up to 6.2 s, but in its place. */
  push(pcm: Int16Array): Int16Array;
  /** The rest: all outputs together are as long as all inputs. Nothing can be pushed after it. */
  flush(): Int16Array;
  /** Idempotent. */
  close(): void;
}

/** Rejects where WebAssembly can't be started. */
export async function createDenoiser(): Promise<Denoiser> {
  const guess = await createSpeechGuess();
  const filter = new SpeechFilter();
  let samplesIn = 0;
  let samplesOut = 0;
  const run = (pcm: Int16Array): Int16Array => filter.push(pcm, guess.push(pcm));
  return {
    push: (pcm) => {
      samplesIn += pcm.length;
      const output = run(pcm);
      samplesOut += output.length;
      return output;
    },
    flush: () => {
      // So much silence that the last sample is in a whole window, whatever is late.
      const rest = run(new Int16Array(2 * WINDOW_SAMPLES));
      const output = new Int16Array(samplesIn - samplesOut);
      output.set(rest);
      output.set(filter.flush().subarray(0, output.length - rest.length), rest.length);
      return output;
    },
    close: () => guess.close(),
  };
}

/** Samples of the recording and of the guess in, filtered samples of the recording out, in order. */
class SpeechFilter {
  readonly #fourier = new Fourier(WINDOW_SAMPLES);
  readonly #window = Float64Array.from({ length: WINDOW_SAMPLES }, (_, at) =>
    Math.sin((Math.PI * at) / WINDOW_SAMPLES),
  );
  /** The last window of both, of which the first frame sees silence but for its last quarter. */
  readonly #recorded = new Waiting();
  readonly #guessed = new Waiting();
  readonly #frames: Frame[] = [];
  /** So many of the frames are filtered already: they are the next block's context. */
  #filtered = 0;
  /** Sums of windows that are not complete. */
  readonly #sums = new Float64Array(WINDOW_SAMPLES);
  /** Before the first sample. */
  #toSkip = WINDOW_SAMPLES - HOP_SAMPLES;

  push(recorded: Int16Array, guessed: Float32Array): Int16Array {
    this.#recorded.add(recorded);
    this.#guessed.add(guessed);
    const parts: Int16Array[] = [];
    while (this.#recorded.hasHop && this.#guessed.hasHop) {
      this.#frames.push(this.#analyse(this.#recorded.next(), this.#guessed.next()));
      if (this.#frames.length - this.#filtered === BLOCK_FRAMES + CONTEXT_FRAMES) {
        parts.push(this.#filter(BLOCK_FRAMES));
      }
    }
    return joined(parts);
  }

  flush(): Int16Array {
    return this.#filter(this.#frames.length - this.#filtered);
  }

  /** Two real signals are the parts of one complex one. */
  #analyse(recorded: Float64Array, guessed: Float64Array): Frame {
    const real = recorded.map((sample, at) => sample * (this.#window[at] as number));
    const imaginary = guessed.map((sample, at) => sample * (this.#window[at] as number));
    this.#fourier.transform(real, imaginary);
    const frame: Frame = {
      real: new Float32Array(BINS),
      imaginary: new Float32Array(BINS),
      guess: new Float32Array(BINS),
    };
    for (let bin = 0; bin < BINS; bin += 1) {
      const mirrored = (WINDOW_SAMPLES - bin) % WINDOW_SAMPLES;
      const [a, b] = [real[bin] as number, imaginary[bin] as number];
      const [c, d] = [real[mirrored] as number, imaginary[mirrored] as number];
      frame.real[bin] = (a + c) / 2;
      frame.imaginary[bin] = (b - d) / 2;
      frame.guess[bin] = ((b + d) / 2) ** 2 + ((a - c) / 2) ** 2;
    }
    return frame;
  }

  /** The next so many frames, by all that are kept. */
  #filter(count: number): Int16Array {
    const frames = this.#frames;
    const spectra = withoutTones(frames, {
      fourier: this.#fourier,
      window: this.#window,
      hopSamples: HOP_SAMPLES,
    });
    const power = new Float32Array(frames.length * BINS);
    const guess = new Float32Array(frames.length * BINS);
    for (const [index, { real, imaginary }] of spectra.entries()) {
      const from = index * BINS;
      for (let bin = 0; bin < BINS; bin += 1) {
        power[from + bin] = (real[bin] as number) ** 2 + (imaginary[bin] as number) ** 2;
      }
    }
    for (const [index, frame] of frames.entries()) guess.set(frame.guess, index * BINS);
    const gains = wienerGains(power, guess, NOISE);
    const output = new Int16Array(count * HOP_SAMPLES);
    for (let index = 0; index < count; index += 1) {
      const at = this.#filtered + index;
      this.#synthesise(spectra[at] as Spectrum, gains.subarray(at * BINS, (at + 1) * BINS));
      output.set(this.#sums.subarray(0, HOP_SAMPLES).map(sample16), index * HOP_SAMPLES);
      this.#sums.copyWithin(0, HOP_SAMPLES).fill(0, WINDOW_SAMPLES - HOP_SAMPLES);
    }
    const gone = Math.max(0, this.#filtered + count - CONTEXT_FRAMES);
    frames.splice(0, gone);
    this.#filtered += count - gone;
    const skipped = Math.min(this.#toSkip, output.length);
    this.#toSkip -= skipped;
    return output.subarray(skipped);
  }

  /** Adds the frame to the sums. */
  #synthesise({ real, imaginary }: Spectrum, gains: Float32Array): void {
    const first = new Float64Array(WINDOW_SAMPLES);
    const second = new Float64Array(WINDOW_SAMPLES);
    for (let bin = 0; bin < BINS; bin += 1) {
      const mirrored = (WINDOW_SAMPLES - bin) % WINDOW_SAMPLES;
      const gain = (gains[bin] as number) / (WINDOW_SAMPLES * WINDOW_SUM);
      first[bin] = (real[bin] as number) * gain;
      first[mirrored] = first[bin] as number;
      second[bin] = (imaginary[bin] as number) * gain;
      if (mirrored !== bin) second[mirrored] = -(second[bin] as number);
    }
    this.#fourier.transform(second, first);
    for (const [at, value] of first.entries()) {
      this.#sums[at] = (this.#sums[at] as number) + value * (this.#window[at] as number);
    }
  }
}

/** One window: the recording's spectrum, and the power of the guess. */
interface Frame extends Spectrum {
  readonly guess: Float32Array;
}

/** Samples that wait for their window. */
class Waiting {
  #samples = new Float64Array(WINDOW_SAMPLES - HOP_SAMPLES);

  add(more: ArrayLike<number>): void {
    const joint = new Float64Array(this.#samples.length + more.length);
    joint.set(this.#samples);
    joint.set(more, this.#samples.length);
    this.#samples = joint;
  }

  get hasHop(): boolean {
    return this.#samples.length >= WINDOW_SAMPLES;
  }

  next(): Float64Array {
    const window = this.#samples.subarray(0, WINDOW_SAMPLES);
    this.#samples = this.#samples.subarray(HOP_SAMPLES);
    return window;
  }
}

function sample16(value: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(value)));
}

function joined(parts: readonly Int16Array[]): Int16Array {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const whole = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
