/** What is measured of a voice: how high it speaks and how long its vocal tract is. */
import { ENVELOPE_HOP, ENVELOPE_SAMPLES, EnvelopeMeter } from "./envelope.ts";
import { FRAME_SAMPLES, medianPitch, PitchTracker, WORK_RATE } from "./pitch-tracker.ts";
import { SampleWindow } from "./sample-window.ts";

export interface VoiceProfile {
  /** Median of the voiced frames. */
  readonly pitchHz: number;
  /** See EnvelopeMeter. */
  readonly envelope: readonly number[];
}

/** More than this adds nothing. */
const ENOUGH_FRAMES = (60 * WORK_RATE) / FRAME_SAMPLES;
/** Fewer voiced frames than this (0.1 s) are no voice. */
const FEWEST_FRAMES = 20;

/** Measures speech piece by piece, from its first minute of voiced sound. */
export class ProfileMeter {
  readonly #tracker = new PitchTracker();
  readonly #samples = new SampleWindow();
  readonly #envelope = new EnvelopeMeter();
  readonly #voiced: number[] = [];
  #frames = 0;

  /** `samples` at WORK_RATE. */
  push(samples: Float32Array): void {
    if (this.isEnough) return;
    this.#samples.push(samples);
    this.#take(this.#tracker.push(samples));
  }

  /** Nothing can be pushed after it. */
  finish(): void {
    if (!this.isEnough) this.#take(this.#tracker.flush());
  }

  get isEnough(): boolean {
    return this.#voiced.length >= ENOUGH_FRAMES;
  }

  /** So far. */
  get voicedSeconds(): number {
    return (this.#voiced.length * FRAME_SAMPLES) / WORK_RATE;
  }

  /** The profile of what was measured so far; null where nothing of it is a voice. */
  get profile(): VoiceProfile | null {
    const pitchHz = medianPitch(this.#voiced);
    const { envelope } = this.#envelope;
    if (pitchHz === null || envelope === null || this.#voiced.length < FEWEST_FRAMES) return null;
    return { pitchHz, envelope };
  }

  #take(frames: readonly number[]): void {
    for (const hz of frames) {
      const centre = this.#frames * FRAME_SAMPLES;
      this.#frames += 1;
      if (hz === 0) continue;
      this.#voiced.push(hz);
      if (centre % ENVELOPE_HOP !== 0) continue;
      const half = ENVELOPE_SAMPLES / 2;
      this.#envelope.add(this.#samples.slice(centre - half, centre + half));
    }
    this.#samples.dropBefore(this.#frames * FRAME_SAMPLES - ENVELOPE_SAMPLES);
  }
}
