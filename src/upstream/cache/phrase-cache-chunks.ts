/** The chunks of a phrase that are held in memory, each counted in the cache's room from when it comes until it goes. */
import type { PackedChunk } from "./phrase-cache-pack.ts";

/** What a phrase takes without its chunks, with its place in the cache's index (measured, rounded up). */
export const PHRASE_OVERHEAD_BYTES = 2048;

/** The memory that all phrases share. */
export interface Room {
  /** Counts `bytes` if there is room or can be made. */
  take(bytes: number): boolean;
  /** Counts `bytes` that are there already. */
  charge(bytes: number): void;
  release(bytes: number): void;
}

export class PhraseChunks {
  readonly #room: Room;
  #chunks: PackedChunk[] = [];
  /** Index of the first one held. */
  #first = 0;
  #bytes = PHRASE_OVERHEAD_BYTES;
  #audioBytes = 0;

  /** PHRASE_OVERHEAD_BYTES of the room were taken for the phrase. */
  constructor(room: Room) {
    this.#room = room;
  }

  /** Chunks that were pushed. */
  get length(): number {
    return this.#first + this.#chunks.length;
  }
  /** Memory held now, and of the phrase itself. */
  get bytes(): number {
    return this.#bytes;
  }
  /** Audio of all chunks that were pushed. */
  get audioBytes(): number {
    return this.#audioBytes;
  }

  /** undefined: not pushed yet, or dropped. */
  at(index: number): PackedChunk | undefined {
    return this.#chunks[index - this.#first];
  }

  /** Pushes it if the phrase stays within `maxBytes` and there is room. */
  tryPush(packed: PackedChunk, maxBytes: number): boolean {
    if (this.#bytes + packed.bytes > maxBytes || !this.#room.take(packed.bytes)) return false;
    this.#add(packed);
    return true;
  }

  /** Pushes it in any case. */
  push(packed: PackedChunk): void {
    this.#room.charge(packed.bytes);
    this.#add(packed);
  }

  dropBefore(index: number): void {
    const dropped = this.#chunks.splice(0, index - this.#first);
    this.#first += dropped.length;
    this.#release(dropped.reduce((sum, packed) => sum + packed.bytes, 0));
  }

  /** Nothing is left of the phrase. Idempotent. */
  dropAll(): void {
    this.#first = this.length;
    this.#chunks = [];
    this.#release(this.#bytes);
  }

  #add(packed: PackedChunk): void {
    this.#chunks.push(packed);
    this.#bytes += packed.bytes;
    this.#audioBytes += packed.audio.byteLength;
  }

  #release(bytes: number): void {
    this.#bytes -= bytes;
    this.#room.release(bytes);
  }
}
