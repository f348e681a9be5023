/**
 * Brings the speech of one utterance to a loudness. Its gain is the voice's where that is known; where not, it follows from
 * what has come, and is corrected in the pauses, where nobody hears that. A limiter behind it keeps the peaks.
 */
import { Limiter } from "./limiter.ts";
import { type Loudness, LoudnessMeter, lufsOf } from "./loudness-meter.ts";

/** A voice that was heard so long has a gain that stays as it is for an utterance. */
const KNOWN_SECONDS = 3;
/** So much speech has to be measured before the first of it gets a gain. */
const FIRST_SECONDS = 0.4;
/** More would bring up the noise of a voice that is next to silent. */
const MAX_GAIN_DB = 24;
const MIN_GAIN_DB = -40;
const STEP_SECONDS = 0.01;
/** What is so much quieter than the speech is a pause. */
const PAUSE_LU = 20;
/** How far the gain moves in a step: within a pause, and within speech. */
const PAUSE_STEP_DB = 0.3;
const SPEECH_STEP_DB = 0.005;
const FULL_SCALE = 32_768;

export interface LevellerOptions {
  readonly sampleRate: number;
  readonly targetLufs: number;
  /** What was measured of the voice before; null: it was never heard. */
  readonly known: Loudness | null;
}

export class Leveller {
  /** So much audio behind what is levelled is looked at. */
  readonly aheadSamples: number;
  readonly #options: LevellerOptions;
  #meter: LoudnessMeter;
  readonly #limiter: Limiter;
  readonly #stepSamples: number;
  /** null: nothing was levelled yet. */
  #gainDb: number | null = null;
  #aim: { readonly lufs: number; readonly gainDb: number } | null = null;

  constructor(options: LevellerOptions) {
    const { sampleRate } = options;
    this.#options = options;
    this.#meter = new LoudnessMeter(sampleRate);
    this.#limiter = new Limiter(sampleRate);
    this.#stepSamples = Math.round(sampleRate * STEP_SECONDS);
    this.aheadSamples = Limiter.aheadSamples(sampleRate);
  }

  /** The loudness since the last call; null: no speech. The gain does not follow it any more. */
  takeMeasured(): Loudness | null {
    const { loudness } = this.#meter;
    this.#meter = new LoudnessMeter(this.#options.sampleRate);
    return loudness;
  }

  /** Its gain is known, or enough was measured for a first one. */
  get isReady(): boolean {
    if (this.#gainDb !== null || this.#options.known !== null) return true;
    return (this.#meter.loudness?.seconds ?? 0) >= FIRST_SECONDS;
  }

  /** Audio that has come and is levelled later. */
  measure(samples: Int16Array): void {
    this.#meter.push(samples);
    if (!this.#isKnown) this.#aim = null;
  }

  /** Changes `samples`; `ahead` are those behind them, as far as they are there. */
  level(samples: Int16Array, ahead: Int16Array): void {
    const aim = this.#aimed();
    this.#gainDb ??= aim.gainDb;
    const levelled = new Float32Array(samples.length);
    for (let at = 0; at < samples.length; at += this.#stepSamples) {
      this.#levelStep(samples.subarray(at, at + this.#stepSamples), levelled.subarray(at), aim);
    }
    const factor = factorOf(this.#gainDb) / FULL_SCALE;
    this.#limiter.limit(
      levelled,
      Float32Array.from(ahead, (sample) => sample * factor),
    );
    for (let at = 0; at < samples.length; at += 1) {
      samples[at] = Math.round((levelled[at] ?? 0) * FULL_SCALE);
    }
  }

  #levelStep(samples: Int16Array, into: Float32Array, aim: { lufs: number; gainDb: number }): void {
    const fromDb = this.#gainDb ?? aim.gainDb;
    const isPause = levelDb(samples) < aim.lufs - PAUSE_LU;
    const stepDb = isPause ? PAUSE_STEP_DB : SPEECH_STEP_DB;
    const toDb = fromDb + Math.max(-stepDb, Math.min(stepDb, aim.gainDb - fromDb));
    this.#gainDb = toDb;
    const from = factorOf(fromDb) / FULL_SCALE;
    const rise = (factorOf(toDb) / FULL_SCALE - from) / samples.length;
    for (let at = 0; at < samples.length; at += 1) into[at] = (samples[at] ?? 0) * (from + rise * (at + 1));
  }

  get #isKnown(): boolean {
    return (this.#options.known?.seconds ?? 0) >= KNOWN_SECONDS;
  }

  /** Where the gain goes: of silence alone it is none. */
  #aimed(): { readonly lufs: number; readonly gainDb: number } {
    if (this.#aim !== null) return this.#aim;
    const { known, targetLufs } = this.#options;
    const heard = this.#isKnown ? known : together(known, this.#meter.loudness);
    const lufs = heard === null ? targetLufs : lufsOf(heard.energy);
    this.#aim = { lufs, gainDb: Math.max(MIN_GAIN_DB, Math.min(MAX_GAIN_DB, targetLufs - lufs)) };
    return this.#aim;
  }
}

/** The loudness of both together, each for as long as it is. */
export function together(one: Loudness | null, other: Loudness | null): Loudness | null {
  if (one === null || other === null) return one ?? other;
  const seconds = one.seconds + other.seconds;
  return { energy: (one.energy * one.seconds + other.energy * other.seconds) / seconds, seconds };
}

function factorOf(db: number): number {
  return 10 ** (db / 20);
}

function levelDb(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return 10 * Math.log10(sum / Math.max(1, samples.length) / FULL_SCALE ** 2);
}
