/** Uploaded audio of any common format as mono samples, by its content, a piece at a time. */
import { SAMPLE_RATES } from "../../audio/resample/resample.ts";
import { audioTooLong, invalidAudio, type UploadDecoder, unknownFormat } from "./decoders/decoder.ts";
import { createMp3Upload } from "./decoders/mp3.ts";
import { createOggOpusUpload } from "./decoders/ogg-opus.ts";
import { RawDecoder } from "./decoders/raw.ts";
import { type Container, containerOf, id3Bytes, SNIFF_BYTES } from "./decoders/sniff.ts";
import { createFlacUpload, createVorbisUpload } from "./decoders/wasm.ts";
import { WavDecoder } from "./decoders/wav.ts";
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
const MAX_ID3_BYTES = 67_108_864;

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

async function* decodedPieces(
  file: { read(): AsyncIterable<Uint8Array> },
  { fileFormat, onFormat }: DecodeOptions,
): AsyncGenerator<PcmPiece> {
  let decoder: UploadDecoder | null = null;
  const front = new Front();
  if (fileFormat === "pcm_s16le_16") {
    onFormat?.("pcm");
    decoder = new RawDecoder();
  }
  const begin = (): Promise<UploadDecoder> => {
    const container = front.container();
    onFormat?.(container);
    return createDecoder(container);
  };
  try {
    for await (const bytes of file.read()) {
      const known = decoder === null ? front.push(bytes) : bytes;
      if (known === null) continue;
      decoder ??= await begin();
      for (let at = 0; at < known.length; at += PART_BYTES) {
        yield* withSamples(await decoder.push(known.subarray(at, at + PART_BYTES)));
        await immediate();
      }
    }
    if (decoder === null) {
      const rest = front.finish();
      decoder = await begin();
      yield* withSamples(await decoder.push(rest));
    }
    yield* withSamples(await decoder.finish());
  } finally {
    decoder?.close();
  }
}

function* withSamples(pieces: readonly PcmPiece[]): Generator<PcmPiece> {
  for (const piece of pieces) if (piece.pcm.length > 0) yield piece;
}

/** The first bytes, gathered until they tell what the file is; an ID3 tag before them is passed over. */
class Front {
  #held: Buffer = Buffer.alloc(0);
  #toSkip = 0;
  #hasLookedForTag = false;

  /** What there is, once it is enough; null before. */
  push(bytes: Uint8Array): Uint8Array | null {
    this.#take(bytes);
    if (!this.#hasLookedForTag && this.#held.length >= 10) {
      this.#hasLookedForTag = true;
      this.#toSkip = id3Bytes(this.#held);
      if (this.#toSkip > MAX_ID3_BYTES) throw invalidAudio("its ID3 tag is too large");
      const held = this.#held;
      this.#held = Buffer.alloc(0);
      this.#take(held);
    }
    return this.#hasLookedForTag && this.#held.length >= SNIFF_BYTES ? this.#held : null;
  }

  /** The file has ended before it was enough. */
  finish(): Uint8Array {
    if (this.#held.length === 0) throw invalidAudio("it is empty");
    return this.#held;
  }

  container(): Container {
    const container = containerOf(this.#held);
    if (container === undefined) throw unknownFormat("its format is not known");
    return container;
  }

  #take(bytes: Uint8Array): void {
    const skipped = Math.min(this.#toSkip, bytes.length);
    this.#toSkip -= skipped;
    this.#held = Buffer.concat([this.#held, bytes.subarray(skipped)]);
  }
}

async function createDecoder(container: Container): Promise<UploadDecoder> {
  switch (container) {
    case "wav":
      return new WavDecoder();
    case "mp3":
      return await createMp3Upload();
    case "flac":
      return await createFlacUpload({ isNative: true });
    case "ogg-flac":
      return await createFlacUpload({ isNative: false });
    case "ogg-opus":
      return createOggOpusUpload();
    case "ogg-vorbis":
      return await createVorbisUpload();
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
