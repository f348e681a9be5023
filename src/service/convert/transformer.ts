/**
 * Speech in another voice: the recording itself, its pitch moved to the other voice's and its formants to the other's
 * vocal tract. A transformation of the recording, not a re-synthesis: words, timing, accent, intonation, breath and noise
 * stay the speaker's, so the result is somebody of the target's pitch and size, not the target.
 */
import { atLatency } from "../voice/audio/latency.ts";
import { formantRatio } from "./envelope.ts";
import { EpochMarker, LOOK_AHEAD } from "./epochs.ts";
import { GRAIN_REACH, GrainSynthesis, type Ratios } from "./grains.ts";
import { Leveller } from "./leveller.ts";
import { PitchTracker, WORK_RATE } from "./pitch-tracker.ts";
import { SampleWindow } from "./sample-window.ts";
import { ProfileMeter, type VoiceProfile } from "./voice-profile.ts";

/** Voiced sound that is heard before it is settled how far to move the pitch, s: less at a latency level, and less sure. */
const ENOUGH_VOICED_SECONDS = { usual: 3, smallest: 0.75 } as const;
/** What is waited for it at the most: the output begins this late, s. */
const MAX_WAIT_SECONDS = 12;
const MAX_PITCH_RATIO = 4;
/** Samples that are worked on in one go: bounds how far the output grows at once. */
const BLOCK_SAMPLES = 2400;
const NO_SAMPLES = new Float32Array(0);

/** Mono samples at WORK_RATE in and out, as many out as in. */
export class VoiceTransformer {
  readonly #target: VoiceProfile;
  readonly #melody: number;
  readonly #enoughVoicedSeconds: number;
  readonly #meter = new ProfileMeter();
  #waiting: Float32Array[] = [];
  #waitingSamples = 0;
  #stream: ShiftStream | null = null;

  /** `melody` as in Manner; `latencyLevel` 0-4, see voice/latency.ts. */
  constructor(
    target: VoiceProfile,
    { melody = 1, latencyLevel = 0 }: { readonly melody?: number; readonly latencyLevel?: number } = {},
  ) {
    this.#target = target;
    this.#melody = melody;
    this.#enoughVoicedSeconds = atLatency(latencyLevel, ENOUGH_VOICED_SECONDS);
  }

  push(samples: Float32Array): Float32Array {
    if (this.#stream !== null) return this.#stream.push(samples);
    this.#meter.push(samples);
    this.#waiting.push(samples);
    this.#waitingSamples += samples.length;
    const isEnough =
      this.#meter.voicedSeconds >= this.#enoughVoicedSeconds ||
      this.#waitingSamples >= MAX_WAIT_SECONDS * WORK_RATE;
    return isEnough ? this.#begin() : NO_SAMPLES;
  }

  /** The rest. Nothing can be pushed after it. */
  flush(): Float32Array {
    if (this.#stream !== null) return this.#stream.flush();
    this.#meter.finish();
    const first = this.#begin();
    return joined([first, this.#stream === null ? NO_SAMPLES : (this.#stream as ShiftStream).flush()]);
  }

  #begin(): Float32Array {
    const stream = new ShiftStream(ratiosOf(this.#meter.profile, this.#target, this.#melody));
    this.#stream = stream;
    const made = this.#waiting.map((samples) => stream.push(samples));
    this.#waiting = [];
    return joined(made);
  }
}

/** What nobody speaks in stays as it is. */
export function ratiosOf(source: VoiceProfile | null, target: VoiceProfile, melody = 1): Ratios {
  if (source === null) return { pitch: 1, formants: 1 };
  const pitch = target.pitchHz / source.pitchHz;
  return {
    pitch: Math.min(MAX_PITCH_RATIO, Math.max(1 / MAX_PITCH_RATIO, pitch)),
    formants: formantRatio(source, target),
    ...(melody === 1 ? {} : { melody: { size: melody, middle: WORK_RATE / source.pitchHz } }),
  };
}

/** Moves pitch and formants of a stream by fixed ratios; about 0.3 s late. */
export class ShiftStream {
  readonly #input = new SampleWindow();
  readonly #laid = new SampleWindow();
  readonly #tracker = new PitchTracker();
  readonly #marker: EpochMarker;
  readonly #grains: GrainSynthesis;
  readonly #leveller: Leveller;

  constructor(ratios: Ratios) {
    this.#marker = new EpochMarker(this.#input);
    this.#grains = new GrainSynthesis(this.#input, this.#laid, ratios);
    this.#leveller = new Leveller(this.#input, this.#laid);
  }

  push(samples: Float32Array): Float32Array {
    const made: Float32Array[] = [];
    for (let at = 0; at < samples.length; at += BLOCK_SAMPLES) {
      const block = samples.subarray(at, at + BLOCK_SAMPLES);
      this.#input.push(block);
      this.#grains.push(this.#marker.push(this.#tracker.push(block)));
      made.push(this.#leveller.take(this.#grains.settled));
      this.#forget();
    }
    return joined(made);
  }

  flush(): Float32Array {
    const { end } = this.#input;
    // Silence behind the end, so that the last sounds have marks on either side, too.
    this.#input.growTo(end + 2 * LOOK_AHEAD);
    this.#grains.push(this.#marker.push(this.#tracker.flush(), true));
    this.#laid.growTo(end);
    return this.#leveller.take(end, true);
  }

  #forget(): void {
    const needed = Math.min(this.#grains.needed, this.#leveller.needed);
    this.#input.dropBefore(needed - GRAIN_REACH);
    this.#laid.dropBefore(this.#leveller.needed);
  }
}

function joined(pieces: readonly Float32Array[]): Float32Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const whole = new Float32Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
