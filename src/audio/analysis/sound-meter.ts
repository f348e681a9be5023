/**
 * How loud and how bright an upstream's G.711 or PCM is, ten milliseconds at a time: enough to know vowels, hisses and
 * stops from each other. Compressed audio is not looked into.
 */

import { decodeSamples, sampledFormatOf } from "./silence.ts";
import { WholeSamples } from "./whole-samples.ts";

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
  /** null = compressed. */
  readonly #wholeSamples: WholeSamples | null;
  readonly #frameSamples: number;
  readonly #stepSamples: number;
  /** The last samples of the audio before, as many as a step spans; none behind audio that was skipped. */
  #behind = NO_SAMPLES;
  /** Of the frame that is not complete: samples measured, and sums over them. */
  #count = 0;
  #energy = 0;
  #stepEnergy = 0;

  /** `format`: the upstream's. */
  constructor(format: string) {
    const sampled = sampledFormatOf(format);
    const sampleRate = sampled?.sampleRate ?? STEP_RATE;
    this.#wholeSamples = sampled === null ? null : new WholeSamples(sampled.codec);
    this.#frameSamples = sampleRate * FRAME_SECONDS;
    this.#stepSamples = Math.max(1, Math.round(sampleRate / STEP_RATE));
  }

  /** Audio that nobody asks about. */
  skip(audio: Uint8Array): void {
    if (audio.length === 0) return;
    this.#wholeSamples?.skip(audio);
    this.#behind = NO_SAMPLES;
    this.#startFrame();
  }

  /** The frames that this audio completes, which comes behind all before, however it is split; null = none. */
  push(audio: Uint8Array): SoundFrames | null {
    if (this.#wholeSamples === null) return null;
    const { first: firstSample, bytes } = this.#wholeSamples.push(audio);
    const samples = decodeSamples(this.#wholeSamples.codec, bytes);
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
