/**
 * Takes noise out of speech: steady tones are subtracted, and the rest is filtered twice by Wiener's gain. The first time the
 * speech's power is told by a first guess, RNNoise's. What comes out is the guess of the second time, with windows twice as
 * long: it parts the harmonics of a voice better, once it is told where they are. Seconds before and after each moment are
 * looked at, so what comes out is late; the memory does not grow with the recording.
 */
import { PairAnalysis, PairSynthesis, type Spectrum, Windows } from "./overlap.ts";
import { createSpeechGuess } from "./rnnoise.ts";
import { withoutTones } from "./tones.ts";
import { gainsOfPilot, type Powers, powersOf, type WienerOptions, wienerGains } from "./wiener.ts";

export { DENOISER_RATE } from "./rnnoise.ts";

/** 43 ms: long enough to part the harmonics of a voice, short enough for its sounds. */
const WINDOWS = new Windows(2048);
/** 85 ms. */
const LONG_WINDOWS = new Windows(4096);
/** 10.7 ms a frame: 4.1 s are filtered in one go, and looked at with 2 s before and 2 s after. */
const BLOCK_FRAMES = 384;
const CONTEXT_FRAMES = 192;
const NOISE: WienerOptions = { bins: WINDOWS.bins, nearFrames: 94, farFrames: 190 };

export interface Denoiser {
  /** Mono samples at 48 kHz; what comes out is later by up to 6.3 s, but in its place. */
  push(pcm: Int16Array): Int16Array;
  /** The rest: all outputs together are as long as all inputs. Nothing can be pushed after it. */
  flush(): Int16Array;
  /** Idempotent. */
  close(): void;
}

/** Rejects where WebAssembly can't be started. */
export async function createDenoiser(): Promise<Denoiser> {
  const guess = await createSpeechGuess();
  const first = new FirstFilter();
  const second = new SecondFilter();
  let samplesIn = 0;
  let samplesOut = 0;
  const run = (pcm: Int16Array): Int16Array => second.push(first.push(pcm, guess.push(pcm)));
  return {
    push: (pcm) => {
      samplesIn += pcm.length;
      const output = run(pcm);
      samplesOut += output.length;
      return output;
    },
    flush: () => {
      // So much silence that the last sample is in whole windows of both filters, whatever is late.
      const rest = run(new Int16Array(2 * (WINDOWS.windowSamples + LONG_WINDOWS.windowSamples)));
      const output = new Int16Array(samplesIn - samplesOut);
      output.set(rest.subarray(0, output.length));
      output.set(
        second.push(first.flush()).subarray(0, Math.max(0, output.length - rest.length)),
        Math.min(rest.length, output.length),
      );
      return output;
    },
    close: () => guess.close(),
  };
}

/** What is filtered for the first time, frame after frame; each has a hop of samples, but for the first three. */
interface Filtered {
  readonly noise: Powers;
  readonly hops: readonly (readonly [pilot: Float64Array, recorded: Float64Array])[];
}

/** Samples of the recording and of the guess in; a better guess of the speech, the pilot, and the noise's power out. */
class FirstFilter {
  readonly #analysis = new PairAnalysis(WINDOWS);
  readonly #synthesis = new PairSynthesis(WINDOWS);
  readonly #frames: Frame[] = [];
  /** So many of the frames are filtered already: they are the next block's context. */
  #filtered = 0;

  push(recorded: Int16Array, guessed: Float32Array): Filtered[] {
    this.#analysis.add(recorded, guessed);
    const blocks: Filtered[] = [];
    while (this.#analysis.hasWindow) {
      const [spectrum, guess] = this.#analysis.next();
      this.#frames.push({ ...spectrum, guess: powersOf([guess]) });
      if (this.#frames.length - this.#filtered === BLOCK_FRAMES + CONTEXT_FRAMES) {
        blocks.push(this.#filter(BLOCK_FRAMES));
      }
    }
    return blocks;
  }

  flush(): Filtered[] {
    return [this.#filter(this.#frames.length - this.#filtered)];
  }

  /** The next so many frames, by all that are kept. */
  #filter(count: number): Filtered {
    const { bins } = WINDOWS;
    const frames = this.#frames;
    const spectra = withoutTones(frames, WINDOWS);
    const guess = new Float32Array(frames.length * bins);
    for (const [index, frame] of frames.entries()) guess.set(frame.guess, index * bins);
    const { gains, noise } = wienerGains(powersOf(spectra), guess, NOISE);
    const [from, to] = [this.#filtered, this.#filtered + count];
    const hops = spectra
      .slice(from, to)
      .map((spectrum, index) =>
        this.#synthesis.next(spectrum, gains.subarray((from + index) * bins, (from + index + 1) * bins)),
      );
    const gone = Math.max(0, to - CONTEXT_FRAMES);
    frames.splice(0, gone);
    this.#filtered = to - gone;
    return { noise: noise.slice(from * bins, to * bins), hops };
  }
}

/** What is filtered once in, filtered samples of the recording out, in order. */
class SecondFilter {
  readonly #analysis = new PairAnalysis(LONG_WINDOWS);
  readonly #synthesis = new PairSynthesis(LONG_WINDOWS);
  /** Noise in the first filter's frames that the second one has not reached. */
  readonly #noise: Powers[] = [];
  #isFirst = true;

  push(blocks: readonly Filtered[]): Int16Array {
    const parts: Float64Array[] = [];
    for (const { noise, hops } of blocks) {
      for (const [index, [pilot, recorded]] of hops.entries()) {
        this.#noise.push(noise.subarray(index * WINDOWS.bins, (index + 1) * WINDOWS.bins));
        this.#analysis.add(recorded, pilot);
        if (this.#analysis.hasWindow) parts.push(this.#next());
      }
    }
    return Int16Array.from(joined(parts), sample16);
  }

  #next(): Float64Array {
    const [recorded, pilot] = this.#analysis.next();
    const gains = gainsOfPilot(powersOf([pilot]), this.#noiseOfNext());
    return this.#synthesis.next(recorded, gains)[0];
  }

  /**
   * Windows are in the middle of every second one of the first filter, from its second one on. Here the noise has twice the
   * power, in bins of half the width.
   */
  #noiseOfNext(): Powers {
    const [even, odd] = this.#noise;
    const noise = this.#isFirst ? even : odd;
    if (!this.#isFirst) this.#noise.splice(0, 2);
    this.#isFirst = false;
    const powers = new Float32Array(LONG_WINDOWS.bins);
    for (let bin = 0; bin < powers.length; bin += 1) {
      powers[bin] = (noise?.[bin >> 1] ?? 0) + (noise?.[(bin + 1) >> 1] ?? 0);
    }
    return powers;
  }
}

/** One window: the recording's spectrum, and the power of the guess. */
interface Frame extends Spectrum {
  readonly guess: Powers;
}

function sample16(value: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(value)));
}

function joined(parts: readonly Float64Array[]): Float64Array {
  const whole = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
