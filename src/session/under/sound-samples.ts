/** Samples of a sound at any rate and from any place on: what goes on is read on, what jumps begins there. */
import { bytesPerSample, decodeSamples, sampledFormatOf } from "../../audio/codecs/samples.ts";
import { type GeneratedSound, generatedSamples } from "../../audio/generated-sound.ts";
import { Resampler } from "../../audio/resample/resample.ts";
import { ticksPerSample } from "../../timing/ticks.ts";
import type { Sound } from "../sound.ts";

/** Read of a sound at once, samples. */
const PIECE_SAMPLES = 480;

export interface SoundSamples {
  /** Once from beginning to end. */
  readonly lengthTicks: number;
  /** 1 is full scale. Behind its end there is nothing, unless it repeats. */
  read(fromTicks: number, count: number, rate: number): Float64Array;
}

export function madeSamples(sound: GeneratedSound, lengthTicks: number): SoundSamples {
  return {
    lengthTicks,
    read: (fromTicks, count, rate) =>
      generatedSamples(sound, { from: Math.round(fromTicks / ticksPerSample(rate)), count, rate }),
  };
}

export class StoredSamples implements SoundSamples {
  readonly #sound: Sound;
  readonly #codec;
  readonly #rate: number;
  readonly #samples: number;
  readonly #repeats: boolean;
  #toRate = 0;
  #resampler: Resampler | null = null;
  /** Next of the sound's own samples to be read. */
  #at = 0;
  /** Where what is read next stands in the sound. */
  #nextTicks = -1;
  /** Converted, and not read yet. */
  #left: Int16Array = new Int16Array(0);

  constructor(sound: Sound, repeats: boolean) {
    const { codec, sampleRate } = sampledFormatOf(sound.format) ?? { codec: "pcm", sampleRate: 8000 };
    this.#sound = sound;
    this.#codec = codec;
    this.#rate = sampleRate;
    this.#samples = sound.audio.length / bytesPerSample(codec);
    this.#repeats = repeats;
  }

  get lengthTicks(): number {
    return this.#samples * ticksPerSample(this.#rate);
  }

  read(fromTicks: number, count: number, rate: number): Float64Array {
    const sampleTicks = ticksPerSample(rate);
    if (rate !== this.#toRate || Math.abs(fromTicks - this.#nextTicks) > sampleTicks)
      this.#seek(fromTicks, rate);
    const values = new Float64Array(count);
    for (let done = 0; done < count; ) {
      if (this.#left.length === 0) this.#left = this.#more();
      const piece = this.#left.subarray(0, count - done);
      for (const [index, sample] of piece.entries()) values[done + index] = sample / 32_768;
      this.#left = this.#left.subarray(piece.length);
      done += piece.length;
    }
    this.#nextTicks = fromTicks + count * sampleTicks;
    return values;
  }

  #seek(ticks: number, rate: number): void {
    this.#toRate = rate;
    this.#resampler = rate === this.#rate ? null : new Resampler({ fromRate: this.#rate, toRate: rate });
    this.#left = new Int16Array(0);
    const at = Math.round(ticks / ticksPerSample(this.#rate));
    this.#at = this.#repeats ? at % this.#samples : at;
  }

  /** At least a sample; silence behind the end. */
  #more(): Int16Array {
    for (;;) {
      const pcm = this.#piece();
      const converted = this.#resampler?.push(pcm) ?? pcm;
      if (converted.length > 0) return converted;
    }
  }

  #piece(): Int16Array {
    if (this.#at >= this.#samples) {
      if (!this.#repeats) return new Int16Array(PIECE_SAMPLES);
      this.#at = 0;
    }
    const width = bytesPerSample(this.#codec);
    const end = Math.min(this.#samples, this.#at + PIECE_SAMPLES);
    const bytes = this.#sound.audio.subarray(this.#at * width, end * width);
    this.#at = end;
    return decodeSamples(this.#codec, bytes);
  }
}
