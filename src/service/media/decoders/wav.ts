/** WAV files piece by piece: integers of 8-32 bits, floats, G.711; any channels; plain, extensible, RF64, unknown length. */
import type { PcmPiece } from "../pieces.ts";
import { invalidAudio, MAX_CHANNELS, requireRate, type UploadDecoder, unknownFormat } from "./decoder.ts";
import { floatReader, g711Reader, integerReader, type Layout, mix, type ReadSample } from "./samples.ts";

const CHUNK_HEADER_BYTES = 8;
const RIFF_HEADER_BYTES = 12;
/** A fmt chunk has 16, 18 or 40 bytes. */
const MAX_FORMAT_BYTES = 1024;
const UNKNOWN_SIZE = 0xffff_ffff;
const TAG_PCM = 1;
const TAG_FLOAT = 3;
const TAG_ALAW = 6;
const TAG_ULAW = 7;
const TAG_EXTENSIBLE = 0xfffe;

/** What the bytes that come next are. */
type Stage =
  | { readonly name: "riff" }
  | { readonly name: "chunk" }
  | { readonly name: "format"; readonly bytes: number }
  | { readonly name: "sizes"; readonly bytes: number }
  | { readonly name: "skip"; bytes: number }
  | { readonly name: "data"; bytes: number }
  | { readonly name: "end" };

export class WavDecoder implements UploadDecoder {
  #held: Uint8Array = new Uint8Array(0);
  #stage: Stage = { name: "riff" };
  #layout: Layout | null = null;
  /** Of RF64, whose data chunk says "see there". */
  #longDataBytes: number | null = null;

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const pieces: PcmPiece[] = [];
    while (this.#step(pieces));
    // A copy: what is left must not hold on to the whole.
    this.#held = this.#held.slice();
    return pieces;
  }

  async finish(): Promise<readonly PcmPiece[]> {
    const { name } = this.#stage;
    // A data chunk that is cut off is played as far as it goes; a header that is cut off is nothing.
    if (this.#layout === null || name === "format" || name === "riff") {
      throw invalidAudio("the WAV file ends inside its header");
    }
    return [];
  }

  close(): void {
    this.#held = new Uint8Array(0);
    this.#stage = { name: "end" };
  }

  /** False where more bytes are needed. */
  #step(pieces: PcmPiece[]): boolean {
    const stage = this.#stage;
    switch (stage.name) {
      case "riff":
        return this.#take(RIFF_HEADER_BYTES, () => ({ name: "chunk" }));
      case "chunk":
        return this.#take(CHUNK_HEADER_BYTES, (view) => this.#chunk(view));
      case "format":
        return this.#take(stage.bytes, (view) => {
          this.#layout = layoutOf(view);
          return { name: "skip", bytes: stage.bytes % 2 };
        });
      case "sizes":
        return this.#take(stage.bytes, (view) => {
          const size = view.byteLength >= 16 ? Number(view.getBigUint64(8, true)) : 0;
          if (size > 0 && Number.isSafeInteger(size)) this.#longDataBytes = size;
          return { name: "skip", bytes: stage.bytes % 2 };
        });
      case "skip":
        return this.#skip(stage);
      case "data":
        return this.#samples(stage, pieces);
      case "end":
        this.#held = this.#held.subarray(this.#held.length);
        return false;
    }
  }

  #take(bytes: number, read: (view: DataView) => Stage): boolean {
    if (this.#held.length < bytes) return false;
    const stage = read(new DataView(this.#held.buffer, this.#held.byteOffset, bytes));
    this.#held = this.#held.subarray(bytes);
    this.#stage = stage;
    return true;
  }

  #chunk(view: DataView): Stage {
    const name = nameAt(view, 0);
    const size = view.getUint32(4, true);
    if (name === "fmt ") {
      if (size < 16 || size > MAX_FORMAT_BYTES)
        throw invalidAudio(`the WAV file's fmt chunk has ${size} bytes`);
      return { name: "format", bytes: size };
    }
    if (name === "ds64" && size <= MAX_FORMAT_BYTES) return { name: "sizes", bytes: size };
    if (name !== "data") return { name: "skip", bytes: size + (size % 2) };
    if (this.#layout === null) throw invalidAudio("the WAV file has no fmt chunk before its data");
    // Writers that don't know the length say 0 or the largest number: then it is all that comes.
    const isUnknown = size === UNKNOWN_SIZE || size === 0;
    return {
      name: "data",
      bytes: isUnknown ? (this.#longDataBytes ?? Number.POSITIVE_INFINITY) : size,
    };
  }

  #skip(stage: { bytes: number }): boolean {
    const skipped = Math.min(stage.bytes, this.#held.length);
    this.#held = this.#held.subarray(skipped);
    stage.bytes -= skipped;
    if (stage.bytes > 0) return false;
    this.#stage = { name: "chunk" };
    return true;
  }

  #samples(stage: { bytes: number }, pieces: PcmPiece[]): boolean {
    const layout = this.#layout;
    if (layout === null) return false;
    const blockBytes = layout.channels * layout.bytesPerSample;
    const there = Math.min(stage.bytes, this.#held.length);
    const taken = there - (there % blockBytes);
    if (taken > 0) pieces.push(mix(this.#held.subarray(0, taken), layout));
    this.#held = this.#held.subarray(taken);
    stage.bytes -= taken;
    if (stage.bytes >= blockBytes) return false;
    // What follows is about the recording, not of it.
    this.#stage = { name: "end" };
    return true;
  }
}

function nameAt(view: DataView, at: number): string {
  return String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at, 4));
}

function layoutOf(view: DataView): Layout {
  const tag = view.getUint16(0, true);
  const isExtensible = tag === TAG_EXTENSIBLE && view.byteLength >= 26;
  const channels = view.getUint16(2, true);
  const sampleRate = requireRate(view.getUint32(4, true));
  const blockBytes = view.getUint16(12, true);
  if (channels < 1 || channels > MAX_CHANNELS) {
    throw unknownFormat(`the WAV file has ${channels} channels, which is not from 1 to ${MAX_CHANNELS}`);
  }
  // The block says how many bytes a sample takes; its bits may be fewer (20 in 24).
  const bytesPerSample = blockBytes / channels;
  const codec = isExtensible ? view.getUint16(24, true) : tag;
  const read = readerOf(codec, bytesPerSample);
  if (read === undefined)
    throw unknownFormat(`the WAV file has codec ${codec} in ${bytesPerSample * 8} bits`);
  return { sampleRate, channels, bytesPerSample, read };
}

function readerOf(codec: number, bytes: number): ReadSample | undefined {
  if (codec === TAG_FLOAT) return floatReader(bytes, true);
  if (codec === TAG_ALAW && bytes === 1) return g711Reader("alaw");
  if (codec === TAG_ULAW && bytes === 1) return g711Reader("ulaw");
  if (codec !== TAG_PCM) return undefined;
  return bytes === 1 ? (view, at) => (view.getUint8(at) - 128) / 128 : integerReader(bytes, true);
}
