/**
 * What has come of a response and was not taken yet, in its order. With a pool its audio is copied into blocks of that:
 * an HTTP client hands over a new buffer for each read of a socket, and seconds of sound would wait in them.
 */
import { BLOCK_BYTES, type BlockPool } from "../kit/block-pool.ts";
import type { SynthesisChunk } from "../upstream/types.ts";

export interface WaitingChunksOptions {
  /** null: chunks are kept as they come, and are the taker's to keep. */
  readonly pool: BlockPool | null;
  /** Whether a chunk that carries sound alone may be taken in several. */
  readonly mayDivide: boolean;
}

interface Waiting {
  readonly chunk: SynthesisChunk;
  /** Its audio in blocks; empty: in the chunk. */
  readonly pieces: readonly Uint8Array[];
}

const NO_AUDIO = new Uint8Array(0);

export class WaitingChunks {
  readonly #pool: BlockPool | null;
  readonly #mayDivide: boolean;
  readonly #waiting: Waiting[] = [];
  #audioBytes = 0;
  /** Those that hold what waits, the oldest first; the last is filled up to `#filled`. */
  readonly #blocks: Uint8Array[] = [];
  #filled = BLOCK_BYTES;
  /** Those whose last piece was taken, and may still be looked at. */
  readonly #taken: Uint8Array[] = [];

  constructor({ pool, mayDivide }: WaitingChunksOptions) {
    this.#pool = pool;
    this.#mayDivide = mayDivide;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get audioBytes(): number {
    return this.#audioBytes;
  }

  /** UTF-16 code units of text that are timed by what is here; counted at each call. */
  get timedChars(): number {
    let chars = 0;
    for (const { chunk } of this.#waiting) {
      for (const character of chunk.alignment?.characters ?? []) chars += character.length;
    }
    return chars;
  }

  push(chunk: SynthesisChunk): void {
    this.#audioBytes += chunk.audio.byteLength;
    if (this.#pool === null || chunk.audio.byteLength === 0) {
      this.#waiting.push({ chunk, pieces: [] });
      return;
    }
    const pieces = this.#copy(chunk.audio, this.#pool);
    // What came in is not kept by what came with it.
    const rest = { ...chunk, audio: NO_AUDIO };
    if (this.#mayDivide) for (const piece of pieces) this.#waiting.push({ chunk: rest, pieces: [piece] });
    else this.#waiting.push({ chunk: rest, pieces });
  }

  /** The oldest chunk. With a pool its audio is good until the next call. */
  take(): SynthesisChunk | undefined {
    this.#giveBack();
    const next = this.#waiting.shift();
    if (next === undefined) return undefined;
    const { chunk, pieces } = next;
    const [piece] = pieces;
    this.#audioBytes -= pieces.reduce((bytes, { byteLength }) => bytes + byteLength, chunk.audio.byteLength);
    if (piece === undefined) return chunk;
    for (const { byteOffset, byteLength } of pieces) {
      if (byteOffset + byteLength === BLOCK_BYTES) this.#taken.push(...this.#blocks.splice(0, 1));
    }
    return { ...chunk, audio: pieces.length === 1 ? piece : Buffer.concat(pieces) };
  }

  /** Forgets everything; what was taken is no longer good. */
  clear(): void {
    this.#waiting.length = 0;
    this.#audioBytes = 0;
    this.#taken.push(...this.#blocks.splice(0));
    this.#filled = BLOCK_BYTES;
    this.#giveBack();
  }

  #giveBack(): void {
    // Nothing waits: what is left of the block that is being filled is not worth keeping it.
    if (this.isEmpty) {
      this.#taken.push(...this.#blocks.splice(0));
      this.#filled = BLOCK_BYTES;
    }
    for (const block of this.#taken) this.#pool?.give(block);
    this.#taken.length = 0;
  }

  #copy(audio: Uint8Array, pool: BlockPool): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < audio.byteLength; ) {
      if (this.#filled === BLOCK_BYTES) {
        this.#blocks.push(pool.take());
        this.#filled = 0;
      }
      const bytes = audio.subarray(at, at + BLOCK_BYTES - this.#filled);
      const piece = this.#blocks.at(-1)?.subarray(this.#filled, this.#filled + bytes.byteLength) ?? NO_AUDIO;
      piece.set(bytes);
      pieces.push(piece);
      this.#filled += bytes.byteLength;
      at += bytes.byteLength;
    }
    return pieces;
  }
}
