/** Upstream audio -> samples, whatever way its bytes are split; for the formats that a gateway asks for. */
import { GatewayError } from "../../errors.ts";
import { decodeAlaw, decodeUlaw } from "../codecs/g711.ts";
import { createOpusDecoder, type OpusDecoder } from "../codecs/opus-decoder.ts";
import { PcmAligner } from "../codecs/pcm.ts";
import { parseUpstreamFormat } from "../formats.ts";
import { OggOpusReader } from "./ogg-reader.ts";

export interface SourceDecoder {
  /** Hz of what `push` returns. */
  readonly sampleRate: number;
  /** Mono samples; may be a view of `bytes`. Throws GatewayError "upstream_protocol" for bytes of another format. */
  push(bytes: Uint8Array): Int16Array;
  /** The bytes have ended: throws GatewayError "upstream_protocol" in the middle of a sample or a page. */
  finish(): void;
  /** Idempotent. */
  close(): void;
}

/** For ulaw_8000, alaw_8000, pcm_* and opus_48000_*; MP3 and WAV are GatewayError "unknown_format". */
export function createSourceDecoder(formatName: string): SourceDecoder {
  const format = parseUpstreamFormat(formatName);
  switch (format?.codec) {
    case "ulaw":
      return g711Decoder(format.sampleRate, decodeUlaw);
    case "alaw":
      return g711Decoder(format.sampleRate, decodeAlaw);
    case "pcm":
      return new PcmDecoder(format.sampleRate);
    case "opus":
      return new OggOpusDecoder();
    default:
      throw new GatewayError(
        "unknown_format",
        `Cannot decode upstream audio: the format is "${formatName}", expected G.711, PCM or Opus`,
      );
  }
}

function g711Decoder(sampleRate: number, decode: (bytes: Uint8Array) => Int16Array): SourceDecoder {
  return { sampleRate, push: decode, finish: () => undefined, close: () => undefined };
}

class PcmDecoder implements SourceDecoder {
  readonly sampleRate: number;
  readonly #aligner = new PcmAligner();

  constructor(sampleRate: number) {
    this.sampleRate = sampleRate;
  }

  push(bytes: Uint8Array): Int16Array {
    return this.#aligner.push(bytes);
  }

  finish(): void {
    if (this.#aligner.pendingBytes === 0) return;
    throw new GatewayError("upstream_protocol", "Upstream PCM is cut off: it ends inside a sample");
  }

  close(): void {
    this.#aligner.reset();
  }
}

class OggOpusDecoder implements SourceDecoder {
  readonly sampleRate = 48000;
  readonly #reader = new OggOpusReader();
  /** Opened with the first packet: there are few. */
  #decoder: OpusDecoder | null = null;
  #link = 0;
  #samplesToSkip = 0;
  /** Samples given out of the current stream. */
  #samplesOut = 0;
  #isClosed = false;

  push(bytes: Uint8Array): Int16Array {
    if (this.#isClosed) throw new TypeError("Cannot decode Opus: the decoder is closed");
    const pieces: Int16Array[] = [];
    this.#reader.push(bytes, (packet) => pieces.push(this.#decode(packet)));
    const [first] = pieces;
    return pieces.length === 1 && first !== undefined ? first : concat(pieces);
  }

  finish(): void {
    this.#reader.finish();
  }

  close(): void {
    this.#isClosed = true;
    this.#decoder?.close();
    this.#decoder = null;
  }

  #decode(packet: Uint8Array): Int16Array {
    this.#decoder ??= createOpusDecoder();
    if (this.#link !== this.#reader.links) this.#beginLink(this.#decoder);
    const decoded = decodePacket(this.#decoder, packet);
    const skipped = Math.min(decoded.length, this.#samplesToSkip);
    this.#samplesToSkip -= skipped;
    const end = this.#reader.endSamples48k ?? Number.POSITIVE_INFINITY;
    const samples = decoded.subarray(
      skipped,
      Math.max(skipped, skipped + Math.min(decoded.length, end - this.#samplesOut)),
    );
    this.#samplesOut += samples.length;
    return samples;
  }

  #beginLink(decoder: OpusDecoder): void {
    this.#link = this.#reader.links;
    this.#samplesToSkip = this.#reader.preSkip;
    this.#samplesOut = 0;
    decoder.reset();
  }
}

/** What a decoder does not take, the upstream should not have sent. */
function decodePacket(decoder: OpusDecoder, packet: Uint8Array): Int16Array {
  try {
    return decoder.decode(packet);
  } catch (cause) {
    throw new GatewayError("upstream_protocol", "Cannot decode upstream Opus: a packet is broken", { cause });
  }
}

function concat(pieces: readonly Int16Array[]): Int16Array {
  const joined = new Int16Array(pieces.reduce((total, piece) => total + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
