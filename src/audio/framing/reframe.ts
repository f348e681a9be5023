/** Cuts a stream of bytes into frames of one exact size, whatever the sizes it comes in. */

export interface ReframerOptions {
  /** Size of each frame. */
  readonly frameBytes: number;
  /** Fills up the last frame: the codec's silence. */
  readonly padByte: number;
}

export class Reframer {
  readonly #frameBytes: number;
  readonly #padByte: number;
  /** The start of a frame whose rest has not come; a fresh one a frame, since receivers may keep what they get. */
  #partial: Uint8Array | null = null;
  #filled = 0;

  constructor(options: ReframerOptions) {
    if (!Number.isInteger(options.frameBytes) || options.frameBytes < 1) {
      throw new RangeError(`Cannot cut frames: frameBytes is ${options.frameBytes}, expected 1 or more`);
    }
    this.#frameBytes = options.frameBytes;
    this.#padByte = options.padByte;
  }

  get pendingBytes(): number {
    return this.#filled;
  }

  /** Emits what is complete, whole frames in a row: a view of `chunk` where they lie inside it, otherwise a copy. */
  push(chunk: Uint8Array, emit: (frames: Uint8Array) => void): void {
    let at = 0;
    if (this.#filled > 0) {
      at = this.#fill(chunk, 0);
      if (this.#filled === this.#frameBytes) this.#emitPartial(emit);
    }
    const end = chunk.length - ((chunk.length - at) % this.#frameBytes);
    if (end > at) emit(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
    if (end < chunk.length) this.#fill(chunk, end);
  }

  /** Pads and emits the last frame; returns how many bytes of it are padding, 0 if nothing was pending. */
  flush(emit: (frames: Uint8Array) => void): number {
    if (this.#partial === null) return 0;
    const padded = this.#frameBytes - this.#filled;
    this.#partial.fill(this.#padByte, this.#filled);
    this.#emitPartial(emit);
    return padded;
  }

  /** Forgets the frame that is half made. */
  reset(): void {
    this.#partial = null;
    this.#filled = 0;
  }

  /** Copies from `chunk` at `at` into the partial frame; returns the place behind what was taken. */
  #fill(chunk: Uint8Array, at: number): number {
    this.#partial ??= new Uint8Array(this.#frameBytes);
    const end = Math.min(chunk.length, at + this.#frameBytes - this.#filled);
    this.#partial.set(chunk.subarray(at, end), this.#filled);
    this.#filled += end - at;
    return end;
  }

  #emitPartial(emit: (frames: Uint8Array) => void): void {
    const frame = this.#partial;
    this.reset();
    if (frame !== null) emit(frame);
  }
}
