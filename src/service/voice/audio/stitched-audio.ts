/** Cuts the neighbours' samples off a clause that was spoken with them, at the engine's word events. */
import type { EngineEvent } from "../engine/engine.ts";
import type { PieceAudio } from "./piece-audio.ts";

/** A cut end rises or falls over so many ms: it would click where it is heard alone. */
const FADE_MS = 1;

export interface StitchedAudioOptions {
  readonly audio: PieceAudio;
  /** Hz. */
  readonly sampleRate: number;
  /** Code points of the engine's text that are said before and that are the piece's own. */
  readonly beforeLength: number;
  readonly ownLength: number;
  /** Whether anything is said after. */
  readonly hasAfter: boolean;
}

export class StitchedAudio {
  readonly #options: StitchedAudioOptions;
  /** Samples of the engine so far. */
  #seen = 0;
  /** Where the piece's own begins and ends, ms of the engine's time; null until it is known. */
  #startMs: number | null;
  #endMs: number | null = null;

  constructor(options: StitchedAudioOptions) {
    this.#options = options;
    this.#startMs = options.beforeLength === 0 ? 0 : null;
  }

  /** Whether the place where the piece begins was found. */
  get hasBegun(): boolean {
    return this.#startMs !== null;
  }

  /** Keeps what is the piece's own; returns whether all of it is there. */
  push(samples: Int16Array, events: readonly EngineEvent[]): boolean {
    const { audio, sampleRate, beforeLength, ownLength, hasAfter } = this.#options;
    const own: EngineEvent[] = [];
    for (const event of events) {
      const index = event.textIndex - beforeLength;
      if (event.kind === "word" && index >= 0) this.#startMs ??= event.atMs;
      if (event.kind === "word" && hasAfter && index >= ownLength) this.#endMs ??= event.atMs;
      if (this.#startMs === null || this.#endMs !== null) continue;
      own.push({ ...event, textIndex: index, atMs: event.atMs - this.#startMs });
    }
    const sampleOf = (ms: number) => Math.round((ms / 1000) * sampleRate) - this.#seen;
    const start = this.#startMs === null ? samples.length : Math.max(0, sampleOf(this.#startMs));
    const end = this.#endMs === null ? samples.length : Math.min(samples.length, sampleOf(this.#endMs));
    this.#seen += samples.length;
    if (end > start || own.length > 0) {
      audio.append(this.#faded(samples.subarray(start, Math.max(start, end))), own);
    }
    return this.#endMs !== null;
  }

  /** The same array where nothing fades. */
  #faded(samples: Int16Array): Int16Array {
    const { audio, sampleRate, beforeLength } = this.#options;
    const fade = Math.round((FADE_MS / 1000) * sampleRate);
    const rising = beforeLength === 0 ? 0 : Math.min(samples.length, fade - audio.length);
    const falling = this.#endMs === null ? 0 : Math.min(samples.length, fade);
    if (rising <= 0 && falling === 0) return samples;
    const faded = samples.slice();
    for (let at = 0; at < rising; at++) scale(faded, at, (audio.length + at) / fade);
    for (let at = 1; at <= falling; at++) scale(faded, faded.length - at, (at - 1) / fade);
    return faded;
  }
}

function scale(samples: Int16Array, at: number, gain: number): void {
  samples[at] = Math.round((samples[at] ?? 0) * gain);
}
