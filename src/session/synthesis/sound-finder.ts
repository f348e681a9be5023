/** Where in an upstream's audio the first sound is, looked for as the audio comes in. */
import { SilenceMeter } from "../../audio/analysis/silence.ts";
import { sampledFormatOf } from "../../audio/codecs/samples.ts";

export class SoundFinder {
  readonly #meter: SilenceMeter | null;
  readonly #samplesPerMs: number;

  constructor(format: string) {
    const sampled = sampledFormatOf(format);
    this.#meter = sampled === null ? null : new SilenceMeter(sampled.codec);
    this.#samplesPerMs = (sampled?.sampleRate ?? 8000) / 1000;
  }

  /** Compressed audio is not looked into: its first bytes are taken for sound. */
  get isLooking(): boolean {
    return this.#meter !== null;
  }

  /** More audio; the silence before the first sound, ms, once there is one. */
  push(audio: Uint8Array): number | null {
    if (this.#meter === null) return 0;
    this.#meter.push(audio);
    return this.#meter.hasSound ? Math.round(this.#meter.leadingSamples / this.#samplesPerMs) : null;
  }
}
