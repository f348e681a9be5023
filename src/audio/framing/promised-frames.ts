/** Frames whose bytes come later and from several encoders, given out in the order in which they were promised. */

/** A frame that was promised; null until its bytes have come. */
export interface Promised {
  bytes: Uint8Array | null;
  isDropped: boolean;
}

export class PromisedFrames {
  readonly #emit: (bytes: Uint8Array) => void;
  /** Oldest first; bounded by what the pool lets wait. */
  readonly #waiting: Promised[] = [];
  #emitted = 0;

  constructor(emit: (bytes: Uint8Array) => void) {
    this.#emit = emit;
  }

  /** Frames emitted and those still to come. */
  get total(): number {
    return this.#emitted + this.#waiting.length;
  }

  add(count: number): Promised[] {
    const added = Array.from({ length: count }, (): Promised => ({ bytes: null, isDropped: false }));
    this.#waiting.push(...added);
    return added;
  }

  /** Emits from the oldest frame up to the first one whose bytes have not come. */
  emitReady(): void {
    for (let bytes = this.#waiting[0]?.bytes; bytes; bytes = this.#waiting[0]?.bytes) {
      this.#waiting.shift();
      this.#emitted += 1;
      this.#emit(bytes);
    }
  }

  /** Drops the frames that were not emitted, but for the oldest `keptFrames` of them. */
  cut(keptFrames: number): void {
    for (const dropped of this.#waiting.splice(keptFrames)) dropped.isDropped = true;
  }
}
