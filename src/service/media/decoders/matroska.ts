/** WebM and Matroska (mkv, mka) piece by piece: the first audio track; browsers' recordings without lengths, too. */
import type { PcmPiece } from "../pieces.ts";
import { ForeignTrack, invalidAudio, type UploadDecoder } from "./decoder.ts";
import { childrenOf, elementAt, floatOf, MAX_ELEMENT_HEADER_BYTES, unsignedOf, vintAt } from "./ebml.ts";
import { createTrackDecoder, type TrackDecoder, type TrackFacts } from "./track-decoder.ts";

const SEGMENT = 0x18538067;
const CLUSTER = 0x1f43b675;
const BLOCK_GROUP = 0xa0;
/** Their elements are read as if they stood in no other: so it does not matter whether their length is known. */
const ENTERED: ReadonlySet<number> = new Set([SEGMENT, CLUSTER, BLOCK_GROUP]);
const SIMPLE_BLOCK = 0xa3;
const BLOCK = 0xa1;
const TRACKS = 0x1654ae6b;
const TRACK_ENTRY = 0xae;
const TRACK_NUMBER = 0xd7;
const TRACK_TYPE = 0x83;
const CODEC_ID = 0x86;
const CODEC_PRIVATE = 0x63a2;
const CONTENT_ENCODINGS = 0x6d80;
const AUDIO = 0xe1;
const SAMPLING_FREQUENCY = 0xb5;
const CHANNELS = 0x9f;
const BIT_DEPTH = 0x6264;
const TYPE_AUDIO = 2;

const MAX_TRACKS_BYTES = 2_097_152;
/** Longest block of sound: seconds of PCM in the most channels. */
const MAX_BLOCK_BYTES = 1_048_576;
const MAX_VINT_BYTES = 8;

export class MatroskaDecoder implements UploadDecoder {
  #held: Uint8Array = new Uint8Array(0);
  #toSkip = 0;
  #track: { readonly number: number; readonly decoder: TrackDecoder } | null = null;
  #isClosed = false;

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const pieces: PcmPiece[] = [];
    while (await this.#step(pieces));
    // Copied: a view of the rest would keep all bytes in memory.
    this.#held = new Uint8Array(this.#held);
    return pieces;
  }

  /** A block that is cut off is left out. */
  async finish(): Promise<readonly PcmPiece[]> {
    if (this.#track === null) throw invalidAudio("the WebM or Matroska file ends before its tracks");
    return await this.#track.decoder.finish();
  }

  close(): void {
    this.#isClosed = true;
    this.#held = new Uint8Array(0);
    this.#track?.decoder.close();
    this.#track = null;
  }

  /** False where more bytes are needed. */
  async #step(pieces: PcmPiece[]): Promise<boolean> {
    if (this.#toSkip > 0) this.#skip();
    if (this.#toSkip > 0) return false;
    const header = elementAt(this.#held, 0);
    if (header === "short") return this.#needMore(MAX_ELEMENT_HEADER_BYTES);
    if (header === "broken") throw broken();
    const { id, size, headerBytes } = header;
    if (ENTERED.has(id)) {
      this.#held = this.#held.subarray(headerBytes);
      return true;
    }
    if (size === null) throw broken();
    if (id === TRACKS) return await this.#tracks(headerBytes, size);
    if (id === BLOCK || id === SIMPLE_BLOCK) return await this.#block(headerBytes, size, pieces);
    this.#toSkip = headerBytes + size;
    return true;
  }

  #needMore(maxBytes: number): false {
    if (this.#held.length >= maxBytes) throw broken();
    return false;
  }

  #skip(): void {
    const skipped = Math.min(this.#toSkip, this.#held.length);
    this.#held = this.#held.subarray(skipped);
    this.#toSkip -= skipped;
  }

  async #tracks(headerBytes: number, size: number): Promise<boolean> {
    if (size > MAX_TRACKS_BYTES) throw invalidAudio("the WebM or Matroska file's tracks are too large");
    const end = headerBytes + size;
    if (this.#held.length < end) return false;
    // A live recording may say its tracks again: the first word stands.
    if (this.#track === null) {
      const facts = firstAudioTrack(this.#held.subarray(headerBytes, end));
      const decoder = await createTrackDecoder(facts);
      this.#track = { number: facts.number, decoder };
      // Closed while the decoder was made: it would be left open.
      if (this.#isClosed) this.close();
    }
    this.#held = this.#held.subarray(end);
    return true;
  }

  async #block(headerBytes: number, size: number, pieces: PcmPiece[]): Promise<boolean> {
    const end = headerBytes + size;
    const number = vintAt(this.#held.subarray(0, end), headerBytes);
    if (number === "short" && this.#held.length < Math.min(end, headerBytes + MAX_VINT_BYTES)) return false;
    if (number === "short" || number === "broken") throw broken();
    if (this.#track === null) throw invalidAudio("the WebM or Matroska file has blocks before its tracks");
    // Pictures are not held, however large they are.
    if (number.value !== this.#track.number) {
      this.#toSkip = end;
      return true;
    }
    if (size > MAX_BLOCK_BYTES) throw invalidAudio("a block of the WebM or Matroska file is too large");
    if (this.#held.length < end) return false;
    const frames = framesOf(this.#held.subarray(headerBytes + number.length, end));
    for (const frame of frames) {
      if (frame.length > 0) pieces.push(...(await this.#track.decoder.packet(frame)));
    }
    this.#held = this.#held.subarray(end);
    return true;
  }
}

function broken(): Error {
  return invalidAudio("the WebM or Matroska file is broken");
}

function firstAudioTrack(tracks: Uint8Array): TrackFacts & { readonly number: number } {
  for (const { id, content } of childrenOf(tracks)) {
    if (id !== TRACK_ENTRY) continue;
    const fields = new Map([...childrenOf(content)].map((child) => [child.id, child.content]));
    const numberOf = (field: number, from = fields): number =>
      unsignedOf(from.get(field) ?? new Uint8Array(0));
    if (numberOf(TRACK_TYPE) !== TYPE_AUDIO) continue;
    if (fields.has(CONTENT_ENCODINGS)) {
      throw new ForeignTrack("its audio track is compressed or encrypted by the WebM or Matroska file");
    }
    const audio = new Map(
      [...childrenOf(fields.get(AUDIO) ?? new Uint8Array(0))].map((child) => [child.id, child.content]),
    );
    return {
      number: numberOf(TRACK_NUMBER),
      codec: Buffer.from(fields.get(CODEC_ID) ?? [])
        .toString("latin1")
        .replaceAll("\0", ""),
      // A copy: what the decoder keeps must not hold on to the whole.
      setup: new Uint8Array(fields.get(CODEC_PRIVATE) ?? []),
      sampleRate: Math.round(floatOf(audio.get(SAMPLING_FREQUENCY) ?? new Uint8Array(0))),
      channels: audio.has(CHANNELS) ? numberOf(CHANNELS, audio) : 1,
      bits: numberOf(BIT_DEPTH, audio),
    };
  }
  throw invalidAudio("the WebM or Matroska file has no audio track");
}

const LACING_NONE = 0;
const LACING_XIPH = 1;
const LACING_FIXED = 2;
/** Fields of a block behind its track's number: a time of two bytes, and flags. */
const BLOCK_FIELDS_BYTES = 3;

/** The frames of a block, which may be laced: several in one, with their sizes in front. */
function framesOf(block: Uint8Array): readonly Uint8Array[] {
  if (block.length < BLOCK_FIELDS_BYTES) throw broken();
  const lacing = ((block[2] ?? 0) >> 1) & 3;
  if (lacing === LACING_NONE) return [block.subarray(BLOCK_FIELDS_BYTES)];
  const frames = (block[BLOCK_FIELDS_BYTES] ?? 0) + 1;
  const { sizes, from } = lacedSizes(block, { lacing, frames });
  const parts: Uint8Array[] = [];
  let at = from;
  for (const size of sizes) {
    if (size < 0 || at + size > block.length) throw broken();
    parts.push(block.subarray(at, at + size));
    at += size;
  }
  return lacing === LACING_FIXED ? parts : [...parts, block.subarray(at)];
}

/** Sizes of all frames, or of all but the last, which has the rest; `from`: where the first one begins. */
function lacedSizes(
  block: Uint8Array,
  { lacing, frames }: { readonly lacing: number; readonly frames: number },
): { readonly sizes: readonly number[]; readonly from: number } {
  let at = BLOCK_FIELDS_BYTES + 1;
  if (lacing === LACING_FIXED) {
    const size = (block.length - at) / frames;
    if (!Number.isInteger(size) || size < 0) throw broken();
    return { sizes: Array.from({ length: frames }, () => size), from: at };
  }
  const sizes: number[] = [];
  while (sizes.length < frames - 1) {
    if (lacing === LACING_XIPH) {
      let size = 0;
      let byte = 255;
      while (byte === 255) {
        const next = block[at];
        if (next === undefined) throw broken();
        byte = next;
        size += byte;
        at += 1;
      }
      sizes.push(size);
      continue;
    }
    const number = vintAt(block, at);
    if (number === "short" || number === "broken") throw broken();
    at += number.length;
    // The first is a size; each other says how much more it is than the one before.
    const bias = 2 ** (7 * number.length - 1) - 1;
    const before = sizes.at(-1);
    sizes.push(before === undefined ? number.value : before + number.value - bias);
  }
  return { sizes, from: at };
}
