/** FLAC (native and in Ogg) and Ogg Vorbis by the decoders of wasm-audio-decoders. The one file that touches them. */
import { FLACDecoder } from "@wasm-audio-decoders/flac";
import { OggVorbisDecoder } from "@wasm-audio-decoders/ogg-vorbis";
import { type PcmPiece, toInt16 } from "../pieces.ts";
import { invalidAudio, requireRate, type UploadDecoder } from "./decoder.ts";
import { FlacFrames } from "./flac-frames.ts";

/** What both libraries give. */
interface Decoded {
  readonly channelData: readonly Float32Array[];
  readonly samplesDecoded: number;
  readonly sampleRate: number;
  readonly errors: readonly unknown[];
}

interface Library {
  readonly ready: Promise<void>;
  decode(bytes: Uint8Array): Promise<Decoded>;
  flush(): Promise<Decoded>;
  free(): void;
}

/** `isNative`: the bytes begin with "fLaC", not with a page of Ogg. */
export async function createFlacUpload({ isNative }: { readonly isNative: boolean }): Promise<UploadDecoder> {
  const library = new FLACDecoder();
  return isNative ? new MetadataSkipper(await open(framed(library), "FLAC")) : await open(library, "FLAC");
}

/** The library's own search for frames takes time by the square of their bytes: they are cut apart before it. */
function framed(library: FLACDecoder): Library {
  const frames = new FlacFrames();
  return {
    ready: library.ready,
    decode: (bytes) => library.decodeFrames(frames.push(bytes)),
    flush: () => {
      const last = frames.finish();
      return library.decodeFrames(last === null ? [] : [last]);
    },
    free: () => library.free(),
  };
}

export async function createVorbisUpload(): Promise<UploadDecoder> {
  const library = new OggVorbisDecoder();
  const upload = await open(library, "Ogg Vorbis");
  forgetChannels(library);
  return upload;
}

/** Fields of the library's object that its types leave out. */
interface VorbisInternals {
  readonly _decoder: { readonly _channels: { readonly buf: Uint32Array } };
}

/**
 * Until the first packet the library (0.1.20) takes what lies in its memory for the number of channels, and makes an array
 * for each in every piece: 7 ms for 36,000 (measured), while a file's comments may go on for megabytes.
 */
function forgetChannels(library: OggVorbisDecoder): void {
  const { _decoder } = library as unknown as VorbisInternals;
  _decoder._channels.buf[0] = 0;
}

async function open(library: Library, name: string): Promise<UploadDecoder> {
  await library.ready;
  let isOver = false;
  const attempt = async (decode: () => Promise<Decoded>): Promise<readonly PcmPiece[]> => {
    let decoded: Decoded;
    try {
      decoded = await decode();
    } catch {
      // The libraries throw plain errors, at bytes only: they hold nothing else.
      throw invalidAudio(`the ${name} stream is broken`);
    }
    if (decoded.errors.length > 0) throw invalidAudio(`the ${name} stream is broken`);
    const { channelData, samplesDecoded, sampleRate } = decoded;
    if (samplesDecoded <= 0) return [];
    return [{ pcm: toInt16(channelData, samplesDecoded), sampleRate: requireRate(sampleRate) }];
  };
  return {
    push: (bytes) => attempt(() => library.decode(bytes)),
    finish: () => attempt(() => library.flush()),
    close: () => {
      if (!isOver) library.free();
      isOver = true;
    },
  };
}

const MARKER_BYTES = 4;
const BLOCK_HEADER_BYTES = 4;

/** Leaves out what stands before the first frame of a FLAC file: pictures of megabytes, through which the parser would search. */
class MetadataSkipper implements UploadDecoder {
  readonly #inner: UploadDecoder;
  #held: Uint8Array = new Uint8Array(0);
  /** Bytes of the marker or of a block that are still to be passed over. */
  #toSkip = MARKER_BYTES;
  #isInFrames = false;
  #isLastBlock = false;

  constructor(inner: UploadDecoder) {
    this.#inner = inner;
  }

  push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    const rest = this.#isInFrames ? bytes : this.#skip(bytes);
    return rest.length === 0 ? Promise.resolve([]) : this.#inner.push(rest);
  }

  async finish(): Promise<readonly PcmPiece[]> {
    if (!this.#isInFrames) throw invalidAudio("the FLAC file ends inside its header");
    return await this.#inner.finish();
  }

  close(): void {
    this.#inner.close();
  }

  #skip(bytes: Uint8Array): Uint8Array {
    let rest = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    this.#held = new Uint8Array(0);
    while (true) {
      const skipped = Math.min(this.#toSkip, rest.length);
      this.#toSkip -= skipped;
      rest = rest.subarray(skipped);
      if (this.#toSkip > 0) return rest;
      if (this.#isLastBlock) {
        this.#isInFrames = true;
        return rest;
      }
      if (rest.length < BLOCK_HEADER_BYTES) {
        this.#held = new Uint8Array(rest);
        return new Uint8Array(0);
      }
      const [kind = 0, high = 0, middle = 0, low = 0] = rest;
      this.#isLastBlock = (kind & 0x80) !== 0;
      this.#toSkip = (high << 16) | (middle << 8) | low;
      rest = rest.subarray(BLOCK_HEADER_BYTES);
    }
  }
}
