/**
 * The chunks of a phrase that are held in memory, each counted in the cache's room from when it comes until it goes: own
 * copies of exactly the bytes there are (what comes from a socket is a view into 64 KiB), and as many copies for readers
 * as are asked for, each the reader's own.
 */
import type { SynthesisChunk } from "../types.ts";

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

interface PackedChunk {
  readonly audio: Uint8Array<ArrayBuffer>;
  /** JSON of all but the audio; null: there is nothing else. */
  readonly timing: string | null;
  /** Both alignments are one object. */
  readonly isSame: boolean;
  /** What it takes in memory. */
  readonly bytes: number;
}

/** What V8 takes for the objects around the bytes of a chunk (measured, rounded up). */
const CHUNK_OVERHEAD_BYTES = 320;
/** Bytes of a string's UTF-16 code unit; V8 takes one byte where all are Latin-1. */
const BYTES_PER_UNIT = 2;

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

  /** A copy, which may be written to and given away; undefined: not pushed yet, or dropped. */
  at(index: number): SynthesisChunk | undefined {
    const packed = this.#chunks[index - this.#first];
    return packed === undefined ? undefined : unpack(packed);
  }

  /** Pushes it if the phrase stays within `maxBytes` and there is room. */
  tryPush(chunk: SynthesisChunk, maxBytes: number): boolean {
    const packed = pack(chunk);
    if (this.#bytes + packed.bytes > maxBytes || !this.#room.take(packed.bytes)) return false;
    this.#add(packed);
    return true;
  }

  /** Pushes it in any case. */
  push(chunk: SynthesisChunk): void {
    const packed = pack(chunk);
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

/** The upstream's timing came as JSON: as JSON it takes little, and is read three times as fast as from lists of numbers. */
function pack({ audio, ...timing }: SynthesisChunk): PackedChunk {
  const { alignment, normalizedAlignment, voiceSegments } = timing;
  const isSame = alignment === normalizedAlignment;
  const isEmpty = alignment === null && normalizedAlignment === null && voiceSegments.length === 0;
  const json = isEmpty
    ? null
    : JSON.stringify({ ...timing, ...(isSame ? { normalizedAlignment: null } : {}) });
  const bytes = CHUNK_OVERHEAD_BYTES + audio.byteLength + BYTES_PER_UNIT * (json?.length ?? 0);
  return { audio: new Uint8Array(audio), timing: json, isSame, bytes };
}

function unpack({ audio, timing, isSame }: PackedChunk): SynthesisChunk {
  const own = audio.slice();
  if (timing === null) return { audio: own, alignment: null, normalizedAlignment: null, voiceSegments: [] };
  // Written by `pack`, so it is what it was.
  const read = JSON.parse(timing) as Omit<SynthesisChunk, "audio">;
  return { ...read, audio: own, ...(isSame ? { normalizedAlignment: read.alignment } : {}) };
}
