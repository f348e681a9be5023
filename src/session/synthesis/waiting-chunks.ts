/**
 * What has come of a response and was not taken yet, in its order. With a pool its audio is copied into blocks of that:
 * an HTTP client hands over a new buffer for each read of a socket, and seconds of sound would wait in them.
 */
import { BLOCK_BYTES, type BlockPool } from "../../kit/block-pool.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";

export interface WaitingChunksOptions {
  /** null: chunks are not copied, and who takes one may keep it. */
  readonly pool: BlockPool | null;
  /** Whether chunks that carry sound alone may be taken in others than they came in. */
  readonly mayDivide: boolean;
}

/** A part of a block. */
interface Piece {
  readonly block: Uint8Array;
  readonly start: number;
  end: number;
}

interface Waiting {
  readonly chunk: SynthesisChunk;
  /** Its audio in blocks; empty: in the chunk. */
  readonly pieces: readonly Piece[];
}

const NO_AUDIO = new Uint8Array(0);
/** What a piece of sound alone comes as: only its bytes matter. */
const SOUND: SynthesisChunk = {
  audio: NO_AUDIO,
  alignment: null,
  normalizedAlignment: null,
  voiceSegments: [],
};

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
    if (this.#mayDivide && isSoundAlone(chunk)) {
      this.#copySound(chunk.audio, this.#pool);
      return;
    }
    // What came in is not kept by what came with it.
    this.#waiting.push({
      chunk: { ...chunk, audio: NO_AUDIO },
      pieces: this.#copy(chunk.audio, this.#pool),
    });
  }

  /** The oldest chunk. With a pool its audio is good until the next call. */
  take(): SynthesisChunk | undefined {
    this.#giveBack();
    const next = this.#waiting.shift();
    if (next === undefined) return undefined;
    const { chunk, pieces } = next;
    const [piece] = pieces;
    this.#audioBytes -= pieces.reduce((bytes, { start, end }) => bytes + end - start, chunk.audio.byteLength);
    if (piece === undefined) return chunk;
    for (const { end } of pieces) if (end === BLOCK_BYTES) this.#taken.push(...this.#blocks.splice(0, 1));
    const audio = pieces.length === 1 ? bytesOf(piece) : Buffer.concat(pieces.map(bytesOf));
    return { ...chunk, audio };
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

  /**
   * As few pieces as there are blocks: with a piece for each read they are old when they are taken, and to find that they
   * are done with the collector walks the memory of the whole process.
   */
  #copySound(audio: Uint8Array, pool: BlockPool): void {
    const last = this.#waiting.at(-1);
    const open = last?.chunk === SOUND && this.#filled < BLOCK_BYTES ? last.pieces[0] : undefined;
    let at = 0;
    if (open !== undefined) {
      at = this.#fill(open.block, audio);
      open.end = this.#filled;
    }
    if (at === audio.byteLength) return;
    for (const piece of this.#copy(audio.subarray(at), pool))
      this.#waiting.push({ chunk: SOUND, pieces: [piece] });
  }

  #copy(audio: Uint8Array, pool: BlockPool): Piece[] {
    const pieces: Piece[] = [];
    for (let at = 0; at < audio.byteLength; ) {
      if (this.#filled === BLOCK_BYTES) {
        this.#blocks.push(pool.take());
        this.#filled = 0;
      }
      const block = this.#blocks.at(-1) ?? NO_AUDIO;
      const start = this.#filled;
      at += this.#fill(block, audio.subarray(at));
      pieces.push({ block, start, end: this.#filled });
    }
    return pieces;
  }

  /** Copies what there is room for into the block that is being filled; returns how much. */
  #fill(block: Uint8Array, audio: Uint8Array): number {
    const bytes = audio.subarray(0, BLOCK_BYTES - this.#filled);
    block.set(bytes, this.#filled);
    this.#filled += bytes.byteLength;
    return bytes.byteLength;
  }
}

function bytesOf({ block, start, end }: Piece): Uint8Array {
  return block.subarray(start, end);
}

function isSoundAlone({ alignment, normalizedAlignment, voiceSegments }: SynthesisChunk): boolean {
  return alignment === null && normalizedAlignment === null && voiceSegments.length === 0;
}
