/**
 * How loud and how bright an upstream's G.711 or PCM is, ten milliseconds at a time: enough to tell vowels, hisses and
 * stops apart. Compressed audio is not looked into.
 */
import { bytesPerSample, decodeSamples, type SampleCodec, sampledFormatOf } from "./silence.ts";

/** Frames in a row. Energies are means of squared 16-bit samples. */
export interface SoundFrames {
  readonly frameSeconds: number;
  /** Number of the first one: it begins `first * frameSeconds` behind the start of the audio. */
  readonly first: number;
  readonly energies: readonly number[];
  /** Of the steps between samples 1/8000 s apart: next to nothing of a hum, up to four times the energy of a hiss. */
  readonly stepEnergies: readonly number[];
}

const FRAME_SECONDS = 0.01;
/** A step is as long at every sample rate, so that the same sound is as bright. */
const STEP_RATE = 8000;
const NO_SAMPLES = new Int16Array(0);

export class SoundMeter {
  readonly #codec: SampleCodec | null;
  readonly #width: number;
  readonly #frameSamples: number;
  readonly #stepSamples: number;
  /** The last samples of the audio before, as many as a step spans; none behind audio that was skipped. */
  #behind = NO_SAMPLES;
  #bytes = 0;
  /** Of the frame that is not complete: samples measured, and sums over them. */
  #count = 0;
  #energy = 0;
  #stepEnergy = 0;

  /** `format`: the upstream's. */
  constructor(format: string) {
    const { codec, sampleRate } = sampledFormatOf(format) ?? { codec: null, sampleRate: STEP_RATE };
    this.#codec = codec;
    this.#width = codec === null ? 1 : bytesPerSample(codec);
    this.#frameSamples = sampleRate * FRAME_SECONDS;
    this.#stepSamples = Math.max(1, Math.round(sampleRate / STEP_RATE));
  }

  /** Audio that nobody asks about. */
  skip(audio: Uint8Array): void {
    this.#bytes += audio.length;
    this.#behind = NO_SAMPLES;
    this.#startFrame();
  }

  /** The frames that this audio completes, which comes behind all before; null = none. */
  push(audio: Uint8Array): SoundFrames | null {
    const codec = this.#codec;
    const from = this.#bytes;
    this.#bytes += audio.length;
    if (codec === null) return null;
    // A sample that was cut in two is not looked at.
    const start = (this.#width - (from % this.#width)) % this.#width;
    const samples = decodeSamples(codec, audio.subarray(Math.min(start, audio.length)));
    const firstSample = (from + start) / this.#width;
    const first = Math.floor(firstSample / this.#frameSamples);
    const [energies, stepEnergies]: [number[], number[]] = [[], []];
    for (let at = 0, frame = first; at < samples.length; frame += 1) {
      const end = Math.ceil((frame + 1) * this.#frameSamples) - firstSample;
      this.#measure(samples, at, Math.min(end, samples.length));
      at = end;
      if (end > samples.length) break;
      energies.push(this.#energy / this.#count);
      stepEnergies.push(this.#stepEnergy / this.#count);
      this.#startFrame();
    }
    this.#behind = Int16Array.of(...this.#behind, ...samples.subarray(-this.#stepSamples)).slice(
      -this.#stepSamples,
    );
    return energies.length === 0 ? null : { frameSeconds: FRAME_SECONDS, first, energies, stepEnergies };
  }

  #startFrame(): void {
    this.#count = 0;
    this.#energy = 0;
    this.#stepEnergy = 0;
  }

  #measure(samples: Int16Array, from: number, to: number): void {
    const [stepSamples, behind] = [this.#stepSamples, this.#behind];
    for (let at = from; at < to; at += 1) {
      const sample = samples[at] ?? 0;
      const earlier = at - stepSamples;
      const step = sample - ((earlier < 0 ? behind[behind.length + earlier] : samples[earlier]) ?? sample);
      this.#energy += sample * sample;
      this.#stepEnergy += step * step;
    }
    this.#count += to - from;
  }
}
