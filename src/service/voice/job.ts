/**
 * One request inside a voice worker: speaks piece by piece and encodes chunk by chunk, one bounded step at a time, so
 * that jobs take turns. Its first chunk leaves from inside the first synthesis, as soon as there is anything to hear.
 */
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { Resampler } from "../../audio/resample/resample.ts";
import type { Locales } from "../text/locale.ts";
import { alignPiece, type PieceTiming } from "./audio/align.ts";
import { breathSamples } from "./audio/breath.ts";
import { NO_TIMING, type PieceOrigin, timingOfChunk } from "./audio/chunk-timing.ts";
import { type ChunkPlan, planChunk, sampleAt } from "./audio/chunker.ts";
import { atLatency } from "./audio/latency.ts";
import { PieceAudio } from "./audio/piece-audio.ts";
import { StitchedAudio } from "./audio/stitched-audio.ts";
import { Timbre } from "./audio/timbre.ts";
import type { Engine } from "./engine/engine.ts";
import { levelFor } from "./engine/variation.ts";
import type { ChunkTiming, JobChunk, JobSpec } from "./messages.ts";
import type { EngineAudio, EnginePiece } from "./neural/speech-engine.ts";
import type { WordFinder } from "./neural/word-finder.ts";
import type { Neighbours } from "./plan/stitched-text.ts";
import { type PlannedPiece, planPieces } from "./plan/utterance-plan.ts";

/** The part of audio/containers/encode.ts that a job uses. */
export interface JobEncoder {
  push(pcm: Int16Array): Uint8Array;
  flush(): Uint8Array;
  close(): void;
}

export interface JobOptions {
  readonly spec: JobSpec;
  readonly engine: Engine;
  readonly locales: Locales;
  readonly encoder: JobEncoder;
  readonly isCancelled: () => boolean;
  readonly emit: (chunk: JobChunk) => void;
  /** Absent: no voice of a model is asked for. */
  readonly neural?: NeuralSource;
}

/** How a job has the neural engine speak. */
export interface NeuralSource {
  /** VoiceJob.receive is called with what it has spoken. */
  readonly ask: (piece: EnginePiece) => void;
  readonly wordFinder: WordFinder;
}

/** Chunk lengths grow: the first is heard soon, later ones cost less. ms, usually and at the highest latency level. */
const CHUNK_TARGETS_MS = [
  { usual: 80, smallest: 20 },
  { usual: 250, smallest: 60 },
] as const;
const STEADY_CHUNK_MS = { usual: 600, smallest: 120 } as const;
/** A chunk ends between words: only one word, or one long pause, makes it longer than the aim. */
const MAX_CHUNK_MS = 3000;
/** With timing a chunk is one line under 128 KiB: 64 KiB of audio are 87,384 characters of base64. */
const MAX_LINE_AUDIO_BYTES = 65_536;
/** ... and 500 characters of both alignments at most 30 KiB. */
const MAX_LINE_CHARACTERS = 500;
/** What a text without anything to hear (only punctuation or tags) sounds like. */
const SILENT_RESPONSE_MS = 100;

interface CurrentPiece {
  readonly plan: PlannedPiece;
  readonly audio: PieceAudio;
  /** Filled once the piece is complete and timing is wanted. */
  timing: PieceTiming | undefined;
  emitted: ChunkPlan;
}

export class VoiceJob {
  readonly #options: JobOptions;
  readonly #pieces: Generator<PlannedPiece>;
  readonly #timbre: Timbre;
  readonly #resampler: Resampler;
  readonly #maxChunkMs: number;
  readonly #latencyLevel: number;
  #current: CurrentPiece | undefined;
  #isWaiting = false;
  #chunks = 0;
  /** Whether any audio has left: until then every 100 ms of the engine is tried at once (an MP3 encoder gathers some). */
  #isHeard = false;
  /** Where the current piece begins in the response. */
  #origin: PieceOrigin = { sample: 0, original: 0, normalized: 0 };
  #synthesizedSamples = 0;

  constructor(options: JobOptions) {
    const format = parseUpstreamFormat(options.spec.format);
    if (format === undefined)
      throw new RangeError(`Cannot encode: "${options.spec.format}" is no output format`);
    this.#options = options;
    this.#latencyLevel = options.spec.latencyLevel ?? 0;
    this.#pieces = planPieces(options.spec, options.locales);
    this.#timbre = new Timbre(
      options.engine.sampleRate,
      options.spec.timbre ?? {},
      levelFor(options.spec.seed),
    );
    this.#resampler = new Resampler({ fromRate: options.engine.sampleRate, toRate: format.sampleRate });
    const bytesPerMs = format.bitrateKbps === null ? format.sampleRate / 500 : (format.bitrateKbps / 8) * 1.3;
    this.#maxChunkMs = Math.min(MAX_CHUNK_MS, MAX_LINE_AUDIO_BYTES / bytesPerMs);
  }

  /** What the engine has made so far, ms. */
  get synthesizedMs(): number {
    return (this.#synthesizedSamples / this.#options.engine.sampleRate) * 1000;
  }

  /** What has left of that, ms. */
  get emittedMs(): number {
    const samples = this.#origin.sample + (this.#current?.emitted.toSample ?? 0);
    return (samples / this.#options.engine.sampleRate) * 1000;
  }

  /** For the neural engine: there is no step until it was received. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Speaks the next piece or encodes the next chunk; false when all is said. */
  step(): boolean {
    if (this.#current === undefined) {
      const next = this.#pieces.next();
      if (next.done === true) return false;
      this.#speak(next.value);
      return true;
    }
    if (this.#emitNext(this.#current)) return true;
    const { plan, audio } = this.#current;
    this.#origin = {
      sample: this.#origin.sample + audio.length,
      original: this.#origin.original + plan.spoken.original.length,
      normalized: this.#origin.normalized + plan.spoken.normalized.length,
    };
    this.#current = undefined;
    if (!plan.isLast) return true;
    this.#finish();
    return false;
  }

  close(): void {
    this.#pieces.return(undefined);
    this.#options.encoder.close();
  }

  #speak(plan: PlannedPiece): void {
    const { spec, engine } = this.#options;
    const audio = new PieceAudio();
    const emitted = { toSample: 0, toOriginal: 0, toNormalized: 0 };
    const current: CurrentPiece = { plan, audio, timing: undefined, emitted };
    this.#current = current;
    if (plan.neural !== null && plan.spoken.isSpeakable) {
      this.#isWaiting = true;
      this.#neural.ask({
        ...plan.neural,
        text: plan.spoken.engineText,
        isRepeatable: spec.seed !== undefined || spec.isRepeatable === true,
      });
      return;
    }
    if (plan.spoken.isSpeakable) {
      // Each piece by itself: other jobs may have spoken since the last one.
      if (spec.seed !== undefined || spec.isRepeatable === true) engine.reset();
      // A clause in which the engine gives no time for the first own word is spoken alone.
      if (!this.#synthesize(current, plan.neighbours)) this.#synthesize(current, { before: "", after: "" });
    }
    this.#complete(current);
  }

  /** What the neural engine has made of the current piece. */
  receive({ samples, sampleRate }: EngineAudio): void {
    const current = this.#current;
    if (current === undefined || !this.#isWaiting)
      throw new RangeError("Cannot receive speech: none was asked for");
    this.#isWaiting = false;
    const { engine, spec } = this.#options;
    const { spoken, language } = current.plan;
    const events =
      spec.wantsTiming && samples.length > 0
        ? this.#neural.wordFinder.find({ text: spoken.engineText, language, samples, sampleRate })
        : [];
    current.audio.append(resampled(samples, { fromRate: sampleRate, toRate: engine.sampleRate }), events);
    this.#synthesizedSamples += current.audio.length;
    this.#complete(current);
  }

  get #neural(): NeuralSource {
    const { neural } = this.#options;
    if (neural === undefined) throw new RangeError("Cannot speak: there is no neural engine");
    return neural;
  }

  /** Behind the words of a piece: its breath, its silence and its times. */
  #complete(current: CurrentPiece): void {
    const { plan, audio } = current;
    const { engine } = this.#options;
    const speechLength = audio.length;
    if (plan.breath !== null) {
      audio.append(breathSamples(plan.breath.name, { ...plan.breath, sampleRate: engine.sampleRate }), []);
    }
    const isSilent = plan.isLast && this.#origin.sample + audio.length === 0;
    const silenceMs = Math.max(plan.breakMs + plan.pauseMs, isSilent ? SILENT_RESPONSE_MS : 0);
    audio.complete(sampleAt(silenceMs, engine.sampleRate));
    if (this.#options.spec.wantsTiming) {
      const hasTail = plan.breath !== null || plan.breakMs > 0;
      const msOf = (samples: number) => (samples / engine.sampleRate) * 1000;
      current.timing = alignPiece(plan.spoken, audio.events, {
        speechMs: msOf(hasTail ? speechLength : audio.length),
        endMs: msOf(audio.length),
      });
    }
  }

  /** False where the piece could not be told from its neighbours: nothing of it is there. */
  #synthesize(current: CurrentPiece, { before, after }: Neighbours): boolean {
    const { engine, isCancelled } = this.#options;
    const { spoken, voice } = current.plan;
    const stitched = new StitchedAudio({
      audio: current.audio,
      sampleRate: engine.sampleRate,
      beforeLength: codePoints(before),
      ownLength: codePoints(spoken.engineText),
      hasAfter: after !== "",
    });
    engine.speak(before + spoken.engineText + after, voice, (samples, events) => {
      if (isCancelled()) return true;
      this.#synthesizedSamples += samples.length;
      const isOver = stitched.push(samples, events);
      this.#emitEarly(current);
      return isOver;
    });
    return stitched.hasBegun || isCancelled();
  }

  /**
   * From inside the synthesis: the response's first chunk. At a latency level the chunks behind it, too, as soon as each is
   * there, and the first one without waiting for the end of its word, whose characters follow.
   */
  #emitEarly(current: CurrentPiece): void {
    if (this.#latencyLevel === 0) {
      if (!this.#isHeard) this.#emitNext(current);
      return;
    }
    const from = current.emitted;
    const toSample = from.toSample + this.#targetSamples();
    if (toSample > current.audio.length) return;
    if (this.#chunks > 0 || !this.#options.spec.wantsTiming) {
      this.#emitNext(current);
      return;
    }
    current.emitted = { ...from, toSample };
    const timing = alignPiece(current.plan.spoken, current.audio.events);
    const audio = this.#encode(current.audio.slice(from.toSample, toSample));
    this.#send(audio, this.#timingOf(current, timing, from));
  }

  /** Encodes and sends the next chunk of the piece; false where nothing is left of it, or nothing certain yet. */
  #emitNext(current: CurrentPiece): boolean {
    return this.#options.spec.wantsTiming ? this.#emitTimed(current) : this.#emitPlain(current);
  }

  #emitPlain(current: CurrentPiece): boolean {
    const from = current.emitted.toSample;
    const toSample = Math.min(current.audio.length, from + this.#targetSamples());
    if (toSample === from) return false;
    current.emitted = { ...current.emitted, toSample };
    this.#send(this.#encode(current.audio.slice(from, toSample)), null);
    return true;
  }

  #emitTimed(current: CurrentPiece): boolean {
    const { sampleRate } = this.#options.engine;
    const timing = current.timing ?? alignPiece(current.plan.spoken, current.audio.events);
    const from = current.emitted;
    const plan = planChunk(timing, sampleRate, {
      from,
      limits: {
        targetSamples: this.#targetSamples(),
        maxSamples: sampleAt(this.#maxChunkMs, sampleRate),
        maxCharacters: MAX_LINE_CHARACTERS,
      },
    });
    // A first word that is not all in the buffer yet.
    if (plan === undefined || plan.toSample > current.audio.length) return false;
    current.emitted = plan;
    const audio = this.#encode(current.audio.slice(from.toSample, plan.toSample));
    this.#send(audio, this.#timingOf(current, timing, from));
    return true;
  }

  #targetSamples(): number {
    const target = CHUNK_TARGETS_MS[this.#chunks] ?? STEADY_CHUNK_MS;
    const targetMs = Math.min(atLatency(this.#latencyLevel, target), this.#maxChunkMs * 0.75);
    return sampleAt(targetMs, this.#options.engine.sampleRate);
  }

  #encode(samples: Int16Array): Uint8Array {
    return this.#options.encoder.push(this.#resampler.push(this.#timbre.push(samples)));
  }

  #finish(): void {
    const { encoder, spec } = this.#options;
    const rest = Uint8Array.from(encoder.push(this.#resampler.flush()));
    const tail = encoder.flush();
    const audio = new Uint8Array(rest.length + tail.length);
    audio.set(rest);
    audio.set(tail, rest.length);
    if (audio.length === 0) return;
    this.#send(audio, spec.wantsTiming ? NO_TIMING : null);
  }

  #send(audio: Uint8Array, timing: ChunkTiming | null): void {
    if (audio.length === 0 && timing === null) return;
    this.#chunks++;
    this.#isHeard ||= audio.length > 0;
    this.#options.emit({ audio: new Uint8Array(audio), timing });
  }

  #timingOf(current: CurrentPiece, timing: PieceTiming, from: ChunkPlan): ChunkTiming {
    const { sampleRate } = this.#options.engine;
    const { wantsTruth } = this.#options.spec;
    const piece = { plan: current.plan, timing, origin: this.#origin, sampleRate };
    return timingOfChunk(piece, { from, to: current.emitted, wantsTruth });
  }
}

function resampled(
  samples: Int16Array,
  rates: { readonly fromRate: number; readonly toRate: number },
): Int16Array {
  const resampler = new Resampler(rates);
  const begun = Int16Array.from(resampler.push(samples));
  const rest = resampler.flush();
  const all = new Int16Array(begun.length + rest.length);
  all.set(begun);
  all.set(rest, begun.length);
  return all;
}

function codePoints(text: string): number {
  return [...text].length;
}
