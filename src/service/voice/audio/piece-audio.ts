/** One piece's samples and events as the engine makes them; read while it still grows. */
import type { EngineEvent } from "../engine/engine.ts";

const FIRST_CAPACITY = 16_384;

export class PieceAudio {
  readonly events: EngineEvent[] = [];
  #samples = new Int16Array(FIRST_CAPACITY);
  #length = 0;

  /** Samples so far. */
  get length(): number {
    return this.#length;
  }

  append(samples: Int16Array, events: readonly EngineEvent[]): void {
    this.#reserve(samples.length);
    this.#samples.set(samples, this.#length);
    this.#length += samples.length;
    this.events.push(...events);
  }

  /** Ends the piece with so many samples of silence. */
  complete(silentSamples: number): void {
    this.#reserve(silentSamples);
    this.#samples.fill(0, this.#length, this.#length + silentSamples);
    this.#length += silentSamples;
  }

  /** A view: valid until the next append. */
  slice(from: number, to: number): Int16Array {
    return this.#samples.subarray(from, to);
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#samples.length) return;
    const grown = new Int16Array(Math.max(this.#samples.length * 2, this.#length + more));
    grown.set(this.#samples.subarray(0, this.#length));
    this.#samples = grown;
  }
}
