/** A tone, a ring or noise, as the answer of an upstream that comes as it is taken: nothing of it waits in memory. */
import { encodeSamples, sampledFormatOf } from "../audio/codecs/samples.ts";
import { bytesPerMs } from "../audio/formats.ts";
import { type GeneratedSound, generatedSamples } from "../audio/generated-sound.ts";
import type { SynthesisChunk } from "../upstream/types.ts";
import type { StagedSegment } from "./playback/segment-queue.ts";
import type { Attempt } from "./synthesis/attempt.ts";

/** What is taken at once, and ahead: what is said next waits so long for a sound that gives way to it, ms. */
const CHUNK_MS = 100;
/** It rises and falls in this, so that nothing clicks. */
const FADE_MS = 10;

export interface Generated {
  readonly sound: GeneratedSound;
  /** At most. */
  readonly ms: number;
  /** It ends when what is said behind it has come. */
  readonly isUntilSpeech: boolean;
}

export class GeneratedAttempt implements Attempt {
  readonly isComplete = true;
  readonly error = null;
  readonly requestId = null;
  readonly wantsTiming = false;
  readonly timing = "exact";
  readonly isLevelled = true;
  readonly mostAheadMs = CHUNK_MS;
  readonly segment: StagedSegment;
  readonly sourceFormat: string;
  readonly #what: Generated;
  readonly #rate: number;
  #samples: number;
  #taken = 0;

  /** `sourceFormat`: of samples. */
  constructor(segment: StagedSegment, sourceFormat: string, what: Generated) {
    this.segment = segment;
    this.sourceFormat = sourceFormat;
    this.#what = what;
    this.#rate = sampledFormatOf(sourceFormat)?.sampleRate ?? 0;
    this.#samples = this.#samplesOf(what.ms);
  }

  /** The same once more, from its beginning. */
  again(): GeneratedAttempt {
    return new GeneratedAttempt(this.segment, this.sourceFormat, this.#what);
  }

  get hasChunk(): boolean {
    return this.#taken < this.#samples;
  }

  /** One that gives way holds up nothing that is asked for behind it. */
  get waitingBytes(): number {
    if (this.#what.isUntilSpeech) return 0;
    return ((this.#samples - this.#taken) / this.#rate) * 1000 * bytesPerMs(this.sourceFormat);
  }

  take(): SynthesisChunk | undefined {
    if (!this.hasChunk) return undefined;
    const from = this.#taken;
    const count = Math.min(this.#samplesOf(CHUNK_MS), this.#samples - from);
    this.#taken += count;
    const values = generatedSamples(this.#what.sound, { from, count, rate: this.#rate });
    const codec = sampledFormatOf(this.sourceFormat)?.codec ?? "pcm";
    const pcm = Int16Array.from(values, (value, at) => Math.round(value * this.#fadeAt(from + at) * 32_767));
    const audio = encodeSamples(codec, pcm);
    return { audio, alignment: null, normalizedAlignment: null, voiceSegments: [] };
  }

  /** What is said next is there. */
  giveWay(): void {
    if (!this.#what.isUntilSpeech) return;
    this.#samples = Math.min(this.#samples, this.#taken + this.#samplesOf(FADE_MS));
  }

  abort(): void {
    this.#samples = this.#taken;
  }

  #fadeAt(place: number): number {
    const fade = this.#samplesOf(FADE_MS);
    return Math.min(1, (place + 1) / fade, (this.#samples - place) / fade);
  }

  #samplesOf(ms: number): number {
    return Math.round((ms * this.#rate) / 1000);
  }
}
