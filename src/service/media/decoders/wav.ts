/** WAV files piece by piece: integers of 8-32 bits, floats, G.711; any channels; plain, extensible, RF64, unknown length. */
import type { PcmPiece } from "../pieces.ts";
import { ChunkFile, nameAt, type Stage } from "./chunk-file.ts";
import { invalidAudio, MAX_CHANNELS, requireRate, type UploadDecoder, unknownFormat } from "./decoder.ts";
import { floatReader, g711Reader, integerReader, type Layout, type ReadSample } from "./samples.ts";

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

export class WavDecoder implements UploadDecoder {
  /** null before the fmt chunk, and inside of one. */
  #layout: Layout | null = null;
  /** Length that an RF64 file gives apart from its data chunk. */
  #longDataBytes: number | null = null;
  readonly #chunkHeader: Stage = {
    name: "header",
    bytes: CHUNK_HEADER_BYTES,
    read: (view) => this.#chunk(view),
  };
  readonly #file = new ChunkFile({ name: "header", bytes: RIFF_HEADER_BYTES, read: () => this.#chunkHeader });

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    return this.#file.push(bytes);
  }

  /** A data chunk that is cut off is played as far as it goes; a header that is cut off is nothing. */
  async finish(): Promise<readonly PcmPiece[]> {
    if (this.#layout === null) throw invalidAudio("the WAV file ends inside its header");
    return [];
  }

  close(): void {
    this.#file.close();
  }

  #chunk(view: DataView): Stage {
    const name = nameAt(view, 0);
    const size = view.getUint32(4, true);
    if (name === "fmt ") {
      if (size < 16 || size > MAX_FORMAT_BYTES)
        throw invalidAudio(`the WAV file's fmt chunk has ${size} bytes`);
      this.#layout = null;
      return { name: "header", bytes: size, read: (format) => this.#format(format) };
    }
    if (name === "ds64" && size <= MAX_FORMAT_BYTES)
      return { name: "header", bytes: size, read: (sizes) => this.#sizes(sizes) };
    if (name !== "data") return this.#skip(size + (size % 2));
    const layout = this.#layout;
    if (layout === null) throw invalidAudio("the WAV file has no fmt chunk before its data");
    // Writers that don't know the length say 0 or the largest number: then it is all that comes.
    const isUnknown = size === UNKNOWN_SIZE || size === 0;
    const bytes = isUnknown ? (this.#longDataBytes ?? Number.POSITIVE_INFINITY) : size;
    return { name: "samples", bytes, layout };
  }

  #format(view: DataView): Stage {
    this.#layout = layoutOf(view);
    return this.#skip(view.byteLength % 2);
  }

  #sizes(view: DataView): Stage {
    const size = view.byteLength >= 16 ? Number(view.getBigUint64(8, true)) : 0;
    if (size > 0 && Number.isSafeInteger(size)) this.#longDataBytes = size;
    return this.#skip(view.byteLength % 2);
  }

  #skip(bytes: number): Stage {
    return { name: "skip", bytes, next: this.#chunkHeader };
  }
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
