/** Uploaded audio of any common format as mono samples, by its content, a piece at a time. */
import { SAMPLE_RATES } from "../../audio/resample/resample.ts";
import { AiffDecoder } from "./decoders/aiff.ts";
import {
  audioTooLong,
  ForeignTrack,
  invalidAudio,
  MAX_TAGS_BYTES,
  type UploadDecoder,
  unknownFormat,
} from "./decoders/decoder.ts";
import { decodedByFfmpeg, MP4 } from "./decoders/ffmpeg.ts";
import { MatroskaDecoder } from "./decoders/matroska.ts";
import { createMp3Upload } from "./decoders/mp3.ts";
import { createOggOpusUpload } from "./decoders/ogg-opus.ts";
import { RawDecoder } from "./decoders/raw.ts";
import { type Container, containerOf, foreignNameOf, id3Bytes, SNIFF_BYTES } from "./decoders/sniff.ts";
import { createFlacUpload, createOggFlacUpload, createVorbisUpload } from "./decoders/wasm.ts";
import { WavDecoder } from "./decoders/wav.ts";
import { inStreamOrder } from "./mp4-order.ts";
import { OddRateConverter } from "./odd-rate.ts";
import type { PcmPiece } from "./pieces.ts";

/** `pcm_s16le_16`: raw 16-bit little-endian mono PCM at 16 kHz; `other`: whatever the bytes say they are. */
export const FILE_FORMATS = ["pcm_s16le_16", "other"] as const;
export type FileFormat = (typeof FILE_FORMATS)[number];

/** Seconds of the longest audio that is taken. */
export const MAX_UPLOAD_SECONDS = 3600;
/** Decoded in one go; between two of them the event loop is free. */
const PART_BYTES = 8192;
/** Rates that the gateway's resampler does not know are brought to this one. */
const COMMON_RATE = 48_000;
const ID3_HEADER_BYTES = 10;
/** So much of a Matroska file is looked through for its tracks, which stand in its first kilobytes. */
const MAX_START_BYTES = 1_048_576;

export interface DecodeOptions {
  readonly fileFormat: FileFormat;
  /** Default 3600. */
  readonly maxSeconds?: number;
  /** Told once, before the first piece: what the bytes are. */
  readonly onFormat?: (format: "pcm" | Container) => void;
}

/**
 * The samples of the file, at one of the rates of SAMPLE_RATES, which is the same for all pieces but in chained files; no
 * piece is empty. Rejects with ApiError 400: `invalid_audio_format` for bytes of no known format, `invalid_audio` for broken
 * ones and for none, `audio_too_long`. Leaving the loop early frees the decoder.
 */
export async function* decodeUpload(
  file: { read(): AsyncIterable<Uint8Array> },
  options: DecodeOptions,
): AsyncGenerator<PcmPiece> {
  const maxSeconds = options.maxSeconds ?? MAX_UPLOAD_SECONDS;
  const rates = new CommonRates();
  let seconds = 0;
  for await (const piece of decodedPieces(file, options)) {
    seconds += piece.pcm.length / piece.sampleRate;
    if (seconds > maxSeconds) throw audioTooLong(maxSeconds);
    yield* rates.push(piece);
  }
  if (seconds === 0) throw invalidAudio("there is no sound in it");
  yield* rates.flush();
}

/** How long the whole is. Rejects as decodeUpload does, and with the signal's reason once it is aborted. */
export async function uploadSeconds(
  file: { read(): AsyncIterable<Uint8Array> },
  { signal, ...options }: DecodeOptions & { readonly signal: AbortSignal },
): Promise<number> {
  let seconds = 0;
  for await (const piece of decodeUpload(file, options)) {
    signal.throwIfAborted();
    seconds += piece.pcm.length / piece.sampleRate;
  }
  return seconds;
}

async function* decodedPieces(
  file: { read(): AsyncIterable<Uint8Array> },
  { fileFormat, onFormat }: DecodeOptions,
): AsyncGenerator<PcmPiece> {
  if (fileFormat === "pcm_s16le_16") {
    onFormat?.("pcm");
    yield* decodedBy(new RawDecoder(), file.read());
    return;
  }
  const front = new Front(inStreamOrder(file));
  try {
    const container = await front.container();
    onFormat?.(container);
    if (container === "mp4") yield* decodedByFfmpeg(front.all(), MP4);
    else if (container === "matroska") yield* decodedMatroska(front);
    else yield* decodedBy(await createDecoder(container), front.all());
  } finally {
    await front.close();
  }
}

/** Its header says the codec, before any sound. A file with one that has no decoder here goes to ffmpeg, from its start on. */
async function* decodedMatroska(front: Front): AsyncGenerator<PcmPiece> {
  const start = new Start(front.all());
  try {
    for await (const piece of decodedBy(new MatroskaDecoder(), start.all())) {
      start.forget();
      yield piece;
    }
  } catch (thrown) {
    const bytes = start.bytes;
    if (!(thrown instanceof ForeignTrack) || bytes === null) throw thrown;
    const whole = joined(bytes, front.all());
    yield* decodedByFfmpeg(whole, {
      demuxer: "matroska",
      name: "WebM or Matroska",
      refusal: () => thrown,
    });
  }
}

/** Keeps what was read of a source, while that may be needed again and is not too much. */
class Start {
  readonly #source: AsyncIterable<Uint8Array>;
  #kept: Buffer | null = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source;
  }

  async *all(): AsyncGenerator<Uint8Array> {
    for await (const bytes of this.#source) {
      if (this.#kept !== null) this.#kept = Buffer.concat([this.#kept, bytes]);
      if (this.#kept !== null && this.#kept.length > MAX_START_BYTES) this.#kept = null;
      yield bytes;
    }
  }

  forget(): void {
    this.#kept = null;
  }

  /** null where they were forgotten, or were too many. */
  get bytes(): Uint8Array | null {
    return this.#kept;
  }
}

async function* joined(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

async function* decodedBy(
  decoder: UploadDecoder,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<PcmPiece> {
  try {
    for await (const bytes of source) {
      for (let at = 0; at < bytes.length; at += PART_BYTES) {
        yield* withSamples(await decoder.push(bytes.subarray(at, at + PART_BYTES)));
        await immediate();
      }
    }
    yield* withSamples(await decoder.finish());
  } finally {
    decoder.close();
  }
}

function* withSamples(pieces: readonly PcmPiece[]): Generator<PcmPiece> {
  for (const piece of pieces) if (piece.pcm.length > 0) yield piece;
}

/** The first bytes, gathered until they say what the file is; an ID3 tag before them is passed over. */
class Front {
  readonly #source: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Once, before `all`. Rejects with ApiError 400 for bytes of no known format, and for none. */
  async container(): Promise<Container> {
    await this.#hold(ID3_HEADER_BYTES);
    const tagBytes = id3Bytes(this.#held);
    if (tagBytes > MAX_TAGS_BYTES) throw invalidAudio("its ID3 tag is too large");
    await this.#drop(tagBytes);
    await this.#hold(SNIFF_BYTES);
    if (this.#held.length === 0) throw invalidAudio("it is empty");
    const container = containerOf(this.#held);
    if (container !== undefined) return container;
    const name = foreignNameOf(this.#held);
    throw unknownFormat(name === undefined ? "its format is not known" : `it is ${name}`);
  }

  /** The whole file behind its tag; asked for again, the rest of it. */
  async *all(): AsyncGenerator<Uint8Array> {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    yield held;
    for (let bytes = await this.#next(); bytes !== null; bytes = await this.#next()) yield bytes;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  /** So many bytes, or all there are. */
  async #hold(count: number): Promise<void> {
    while (this.#held.length < count) {
      const bytes = await this.#next();
      if (bytes === null) return;
      this.#held = Buffer.concat([this.#held, bytes]);
    }
  }

  async #drop(count: number): Promise<void> {
    let left = count;
    while (left > 0) {
      const dropped = Math.min(left, this.#held.length);
      this.#held = this.#held.subarray(dropped);
      left -= dropped;
      if (left === 0) return;
      const bytes = await this.#next();
      if (bytes === null) return;
      this.#held = Buffer.from(bytes);
    }
  }

  async #next(): Promise<Uint8Array | null> {
    const next = await this.#source.next();
    return next.done === true ? null : next.value;
  }
}

async function createDecoder(container: Exclude<Container, "mp4" | "matroska">): Promise<UploadDecoder> {
  switch (container) {
    case "wav":
      return new WavDecoder();
    case "aiff":
      return new AiffDecoder();
    case "mp3":
      return await createMp3Upload();
    case "flac":
      return createFlacUpload();
    case "ogg-flac":
      return createOggFlacUpload();
    case "ogg-opus":
      return createOggOpusUpload();
    case "ogg-vorbis":
      return createVorbisUpload();
  }
}

/** Lets common rates through and converts all others. */
class CommonRates {
  #converter: OddRateConverter | null = null;
  #fromRate = 0;

  *push(piece: PcmPiece): Generator<PcmPiece> {
    if (piece.sampleRate !== this.#fromRate) {
      yield* this.flush();
      this.#fromRate = piece.sampleRate;
      this.#converter = SAMPLE_RATES.includes(piece.sampleRate)
        ? null
        : new OddRateConverter({ fromRate: piece.sampleRate, toRate: COMMON_RATE });
    }
    if (this.#converter === null) yield piece;
    else yield* withSamples([{ pcm: this.#converter.push(piece.pcm), sampleRate: COMMON_RATE }]);
  }

  *flush(): Generator<PcmPiece> {
    if (this.#converter === null) return;
    yield* withSamples([{ pcm: this.#converter.flush(), sampleRate: COMMON_RATE }]);
    this.#converter = null;
    this.#fromRate = 0;
  }
}

function immediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
