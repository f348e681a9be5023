/**
 * Chunks as the phrase cache keeps them: own copies of exactly the bytes there are (what comes from a socket is a view
 * into 64 KiB), and as many copies for readers as are asked for, each the reader's own.
 */
import type { Alignment, VoiceSegment } from "../../timing/alignment.ts";
import type { SynthesisChunk } from "../types.ts";

/** Times as numbers, characters as one text; or JSON where an alignment is not of that shape. */
type PackedAlignment =
  /** `times`: all starts, then all ends. */
  | { readonly kind: "numbers"; readonly text: string; readonly times: Float64Array }
  | { readonly kind: "json"; readonly json: string };

export interface PackedChunk {
  readonly audio: Uint8Array<ArrayBuffer>;
  readonly alignment: PackedAlignment | null;
  /** The same object as `alignment` where it came so. */
  readonly normalizedAlignment: PackedAlignment | null;
  /** JSON; null: none. */
  readonly voiceSegments: string | null;
  /** What it takes in memory. */
  readonly bytes: number;
}

/** What V8 takes for the objects around the bytes of a chunk, and of an alignment (measured, rounded up). */
const CHUNK_OVERHEAD_BYTES = 320;
const ALIGNMENT_OVERHEAD_BYTES = 320;
/** Of a string's UTF-16 code unit; V8 takes one byte where all are Latin-1. */
const BYTES_PER_UNIT = 2;

export function packChunk(chunk: SynthesisChunk): PackedChunk {
  const audio = new Uint8Array(chunk.audio);
  const alignment = chunk.alignment === null ? null : packAlignment(chunk.alignment);
  const isSame = chunk.normalizedAlignment === chunk.alignment;
  const normalizedAlignment =
    chunk.normalizedAlignment === null ? null : isSame ? alignment : packAlignment(chunk.normalizedAlignment);
  const voiceSegments = chunk.voiceSegments.length === 0 ? null : JSON.stringify(chunk.voiceSegments);
  const bytes =
    CHUNK_OVERHEAD_BYTES +
    audio.byteLength +
    bytesOf(alignment) +
    (isSame ? 0 : bytesOf(normalizedAlignment)) +
    BYTES_PER_UNIT * (voiceSegments?.length ?? 0);
  return { audio, alignment, normalizedAlignment, voiceSegments, bytes };
}

/** A copy, which may be written to and given away. */
export function unpackChunk(packed: PackedChunk): SynthesisChunk {
  const alignment = packed.alignment === null ? null : unpackAlignment(packed.alignment);
  return {
    audio: packed.audio.slice(),
    alignment,
    normalizedAlignment:
      packed.normalizedAlignment === null
        ? null
        : packed.normalizedAlignment === packed.alignment
          ? alignment
          : unpackAlignment(packed.normalizedAlignment),
    // Written by packChunk, so it is what it was.
    voiceSegments: packed.voiceSegments === null ? [] : (JSON.parse(packed.voiceSegments) as VoiceSegment[]),
  };
}

function packAlignment(alignment: Alignment): PackedAlignment {
  const { characters } = alignment;
  const starts = alignment.character_start_times_seconds;
  const ends = alignment.character_end_times_seconds;
  const text = characters.join("");
  // An upstream's times may be null, and its lists of unequal length: they are mended later, so kept as they are.
  const isEven = starts.length === ends.length;
  if (isEven && areNumbers(starts) && areNumbers(ends) && isSplitOf(text, characters)) {
    const times = new Float64Array(2 * starts.length);
    times.set(starts);
    times.set(ends, starts.length);
    return { kind: "numbers", text, times };
  }
  return { kind: "json", json: JSON.stringify(alignment) };
}

function unpackAlignment(packed: PackedAlignment): Alignment {
  if (packed.kind === "json") return JSON.parse(packed.json) as Alignment;
  const { text, times } = packed;
  const count = times.length / 2;
  return {
    characters: [...text],
    character_start_times_seconds: Array.from(times.subarray(0, count)),
    character_end_times_seconds: Array.from(times.subarray(count)),
  };
}

function areNumbers(times: readonly unknown[]): boolean {
  return times.every((time) => typeof time === "number");
}

/** Whether the text falls into these characters again: an upstream may put more than one code point into one. */
function isSplitOf(text: string, characters: readonly string[]): boolean {
  let index = 0;
  for (const character of text) {
    if (characters[index] !== character) return false;
    index += 1;
  }
  return index === characters.length;
}

function bytesOf(packed: PackedAlignment | null): number {
  if (packed === null) return 0;
  if (packed.kind === "json") return ALIGNMENT_OVERHEAD_BYTES + BYTES_PER_UNIT * packed.json.length;
  return ALIGNMENT_OVERHEAD_BYTES + BYTES_PER_UNIT * packed.text.length + packed.times.byteLength;
}
