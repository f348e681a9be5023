/** AIFF and AIFC files piece by piece: integers of 8-32 bits in either order of bytes, floats, G.711; any channels. */
import type { PcmPiece } from "../pieces.ts";
import { ChunkFile, nameAt, type Stage } from "./chunk-file.ts";
import { invalidAudio, MAX_CHANNELS, requireRate, type UploadDecoder, unknownFormat } from "./decoder.ts";
import { floatReader, g711Reader, integerReader, type Layout, type ReadSample } from "./samples.ts";

const FORM_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
/** AIFF's has 18; AIFC adds a codec and its name. */
const MIN_COMMON_BYTES = 18;
const MAX_COMMON_BYTES = 1024;
/** Offset and block size stand before the samples. */
const SOUND_HEADER_BYTES = 8;

export class AiffDecoder implements UploadDecoder {
  #layout: Layout | null = null;
  readonly #chunkHeader: Stage = {
    name: "header",
    bytes: CHUNK_HEADER_BYTES,
    read: (view) => this.#chunk(view),
  };
  readonly #file = new ChunkFile({ name: "header", bytes: FORM_BYTES, read: () => this.#chunkHeader });

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    return this.#file.push(bytes);
  }

  /** Samples that are cut off are played as far as they go. */
  async finish(): Promise<readonly PcmPiece[]> {
    if (this.#layout === null) throw invalidAudio("the AIFF file ends inside its header");
    return [];
  }

  close(): void {
    this.#file.close();
  }

  #chunk(view: DataView): Stage {
    const name = nameAt(view, 0);
    const size = view.getUint32(4);
    if (name === "COMM") {
      if (size < MIN_COMMON_BYTES || size > MAX_COMMON_BYTES) {
        throw invalidAudio(`the AIFF file's COMM chunk has ${size} bytes`);
      }
      return { name: "header", bytes: size, read: (common) => this.#common(common) };
    }
    if (name !== "SSND") return this.#skip(size + (size % 2));
    const layout = this.#layout;
    if (layout === null) throw invalidAudio("the AIFF file has no COMM chunk before its samples");
    return {
      name: "header",
      bytes: SOUND_HEADER_BYTES,
      read: (sound) => {
        const offset = sound.getUint32(0);
        const bytes = Math.max(0, size - SOUND_HEADER_BYTES - offset);
        return { name: "skip", bytes: offset, next: { name: "samples", bytes, layout } };
      },
    };
  }

  #common(view: DataView): Stage {
    this.#layout = layoutOf(view);
    return this.#skip(view.byteLength % 2);
  }

  #skip(bytes: number): Stage {
    return { name: "skip", bytes, next: this.#chunkHeader };
  }
}

function layoutOf(view: DataView): Layout {
  const channels = view.getUint16(0);
  const bits = view.getUint16(6);
  const sampleRate = requireRate(Math.round(extendedAt(view, 8)));
  if (channels < 1 || channels > MAX_CHANNELS) {
    throw unknownFormat(`the AIFF file has ${channels} channels, which is not from 1 to ${MAX_CHANNELS}`);
  }
  const codec = view.byteLength >= 22 ? nameAt(view, 18) : "NONE";
  const bytesPerSample = /^[au]law$/i.test(codec) ? 1 : Math.ceil(bits / 8);
  const read = readerOf(codec, bytesPerSample);
  if (read === undefined) {
    // The name is the file's: letters and digits only.
    const shown = codec.replaceAll(/[^\w]/g, "?");
    throw unknownFormat(`the AIFF file has codec "${shown}" in ${bits} bits`);
  }
  return { sampleRate, channels, bytesPerSample, read };
}

function readerOf(codec: string, bytes: number): ReadSample | undefined {
  switch (codec) {
    case "NONE":
    case "twos":
    case "in24":
    case "in32":
      return bytes === 1 ? (view, at) => view.getInt8(at) / 128 : integerReader(bytes, false);
    case "sowt":
      return bytes === 1 ? (view, at) => view.getInt8(at) / 128 : integerReader(bytes, true);
    case "fl32":
    case "FL32":
    case "fl64":
    case "FL64":
      return floatReader(bytes, false);
    case "alaw":
    case "ALAW":
      return g711Reader("alaw");
    case "ulaw":
    case "ULAW":
      return g711Reader("ulaw");
    default:
      return undefined;
  }
}

/** The 80-bit float of the sample rate; its whole part. */
function extendedAt(view: DataView, at: number): number {
  const exponent = view.getUint16(at) & 0x7fff;
  return (
    view.getUint32(at + 2) * 2 ** (exponent - 16_383 - 31) +
    view.getUint32(at + 6) * 2 ** (exponent - 16_383 - 63)
  );
}
