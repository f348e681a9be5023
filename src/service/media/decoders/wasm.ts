/** FLAC (native and in Ogg) and Ogg Vorbis by the decoders of wasm-audio-decoders. The one file that touches them. */
import { FLACDecoder } from "@wasm-audio-decoders/flac";
import { OggVorbisDecoder } from "@wasm-audio-decoders/ogg-vorbis";
import { type PcmPiece, toInt16 } from "../pieces.ts";
import { invalidAudio, requireRate, type UploadDecoder } from "./decoder.ts";
import { FlacFrames } from "./flac-frames.ts";
import { FlacHead } from "./flac-head.ts";
import { VorbisHead } from "./vorbis-head.ts";

/** What both libraries give. */
interface Decoded {
  readonly channelData: readonly Float32Array[];
  readonly samplesDecoded: number;
  readonly sampleRate: number;
  readonly errors: readonly unknown[];
}

interface Library {
  decode(parts: readonly Uint8Array[]): Promise<Decoded>;
  /** null where nothing is left once all parts were decoded. */
  readonly flush: (() => Promise<Decoded>) | null;
  free(): void;
}

/** What reads a file before the library does: gives it nothing before the file's head was found to be sound. */
interface Reader {
  /** Throws ApiError 400 for bytes that no decoder is opened for. */
  push(bytes: Uint8Array): readonly Uint8Array[];
  /** The bytes have ended: what is left. */
  finish(): readonly Uint8Array[];
}

export function createFlacUpload(): UploadDecoder {
  return new LateUpload("FLAC", new FlacReader(), async () => {
    const library = new FLACDecoder();
    await library.ready;
    return {
      decode: (frames) => library.decodeFrames([...frames]),
      flush: null,
      free: () => library.free(),
    };
  });
}

export function createOggFlacUpload(): UploadDecoder {
  return new LateUpload("FLAC", { push: (bytes) => [bytes], finish: () => [] }, async () => {
    const library = new FLACDecoder();
    await library.ready;
    return streamed(library);
  });
}

export function createVorbisUpload(): UploadDecoder {
  return new LateUpload("Ogg Vorbis", new VorbisReader(), async () => {
    const library = new OggVorbisDecoder();
    await library.ready;
    forgetChannels(library);
    return streamed(library);
  });
}

function streamed(library: FLACDecoder | OggVorbisDecoder): Library {
  // Called by `flush`, which would open another decoder for a file that never comes.
  library.reset = () => Promise.resolve();
  return {
    decode: (parts) => library.decode(Buffer.concat(parts)),
    flush: () => library.flush(),
    free: () => library.free(),
  };
}

/** Fields of the library's object that its types leave out. */
interface VorbisInternals {
  readonly _decoder: { readonly _channels: { readonly buf: Uint32Array } };
}

/**
 * Until the first packet the library (0.1.20) takes what lies in its memory for the number of channels, and makes an array
 * for each in every piece: 7 ms for 36,000 (measured).
 */
function forgetChannels(library: OggVorbisDecoder): void {
  const { _decoder } = library as unknown as VorbisInternals;
  _decoder._channels.buf[0] = 0;
}

/** So much junk may stand behind a sound header; longer than any frame may be. */
const MAX_BYTES_BEFORE_FRAMES = 1_048_576;

/**
 * The library's own search for frames takes time by the square of their bytes: they are cut apart before it. What stands before
 * the first one is left out: pictures of megabytes.
 */
class FlacReader implements Reader {
  readonly #head = new FlacHead();
  readonly #frames = new FlacFrames();
  /** null once a frame was found. */
  #bytesBefore: number | null = 0;

  push(bytes: Uint8Array): readonly Uint8Array[] {
    const sound = this.#head.push(bytes);
    const frames = this.#frames.push(sound);
    if (frames.length > 0) this.#bytesBefore = null;
    if (this.#bytesBefore === null) return frames;
    this.#bytesBefore += sound.length;
    if (this.#bytesBefore > MAX_BYTES_BEFORE_FRAMES) {
      throw invalidAudio("the FLAC file has no frames behind its header");
    }
    return frames;
  }

  finish(): readonly Uint8Array[] {
    if (!this.#head.isDone) throw invalidAudio("the FLAC file ends inside its header");
    const last = this.#frames.finish();
    return last === null ? [] : [last];
  }
}

class VorbisReader implements Reader {
  readonly #head = new VorbisHead();

  push(bytes: Uint8Array): readonly Uint8Array[] {
    const sound = this.#head.push(bytes);
    return sound.length === 0 ? [] : [sound];
  }

  finish(): readonly Uint8Array[] {
    if (!this.#head.isDone) throw invalidAudio("the Ogg Vorbis stream ends inside its headers");
    return [];
  }
}

/** Opens its library with the first sound: that takes 17 MB and a millisecond, which a broken file shall not cost. */
class LateUpload implements UploadDecoder {
  readonly #name: string;
  readonly #reader: Reader;
  readonly #open: () => Promise<Library>;
  #library: Library | null = null;
  #isClosed = false;

  constructor(name: string, reader: Reader, open: () => Promise<Library>) {
    this.#name = name;
    this.#reader = reader;
    this.#open = open;
  }

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    return await this.#decode(this.#reader.push(bytes));
  }

  async finish(): Promise<readonly PcmPiece[]> {
    const pieces = await this.#decode(this.#reader.finish());
    const flush = this.#library?.flush ?? null;
    return flush === null ? pieces : [...pieces, ...(await this.#attempt(flush))];
  }

  close(): void {
    this.#isClosed = true;
    this.#library?.free();
    this.#library = null;
  }

  async #decode(parts: readonly Uint8Array[]): Promise<readonly PcmPiece[]> {
    if (parts.length === 0) return [];
    const library = this.#library ?? (await this.#open());
    this.#library = library;
    // Closed while it was opened: it would be left open.
    if (this.#isClosed) this.close();
    return this.#isClosed ? [] : await this.#attempt(() => library.decode(parts));
  }

  async #attempt(decode: () => Promise<Decoded>): Promise<readonly PcmPiece[]> {
    let decoded: Decoded;
    try {
      decoded = await decode();
    } catch {
      // The libraries throw plain errors, at bytes only: they hold nothing else.
      throw invalidAudio(`the ${this.#name} stream is broken`);
    }
    if (decoded.errors.length > 0) throw invalidAudio(`the ${this.#name} stream is broken`);
    const { channelData, samplesDecoded, sampleRate } = decoded;
    if (samplesDecoded <= 0) return [];
    return [{ pcm: toInt16(channelData, samplesDecoded), sampleRate: requireRate(sampleRate) }];
  }
}
