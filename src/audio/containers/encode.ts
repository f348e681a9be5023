/** Samples -> bytes of any upstream output format, as they are produced. */
import { GatewayError } from "../../errors.ts";
import { concatBytes } from "../bytes.ts";
import { encodeAlaw, encodeUlaw } from "../codecs/g711.ts";
import { createMp3Encoder } from "../codecs/mp3.ts";
import { bytesOf } from "../codecs/pcm.ts";
import { parseUpstreamFormat, type UpstreamFormat } from "../formats.ts";
import { OggOpusEncoder } from "./ogg-encoder.ts";
import { UNKNOWN_DATA_BYTES, wavHeader } from "./wav.ts";

export interface StreamEncoder {
  /** MIME type of the bytes. */
  readonly contentType: string;
  /**
   * Mono samples at the format's own rate in, bytes out as far as they can be said: possibly none, for PCM always
   * whole samples and possibly a view of `pcm`. Throws GatewayError "encoder_failed".
   */
  push(pcm: Int16Array): Uint8Array;
  /** The last bytes. Nothing can be pushed after it. */
  flush(): Uint8Array;
  /** Frees the encoder; idempotent, with or without a flush before. */
  close(): void;
}

export interface StreamEncoderOptions {
  /** 0-4294967295: the serial number of an Ogg stream; random where absent, so no two answers are the same bytes. */
  readonly serial?: number | undefined;
}

const CONTENT_TYPES: Readonly<Record<UpstreamFormat["codec"], string>> = {
  mp3: "audio/mpeg",
  pcm: "audio/pcm",
  wav: "audio/wav",
  opus: "audio/opus",
  ulaw: "audio/basic",
  alaw: "audio/x-alaw-basic",
};

const NO_BYTES = new Uint8Array(0);

/** The MIME type of an upstream format. */
export function contentTypeOf(format: UpstreamFormat): string {
  return CONTENT_TYPES[format.codec];
}

/**
 * An encoder for any of OUTPUT_FORMATS; rejects with GatewayError "unknown_format" for another name and with
 * "encoder_failed" where as many Opus encoders are open in this thread as may be (60).
 */
export async function createStreamEncoder(
  formatName: string,
  options: StreamEncoderOptions = {},
): Promise<StreamEncoder> {
  const format = parseUpstreamFormat(formatName);
  if (format === undefined) {
    throw new GatewayError(
      "unknown_format",
      `Cannot encode: the format is "${formatName}", expected an output format of the service`,
    );
  }
  return format.codec === "mp3" ? mp3Encoder(format, contentTypeOf(format)) : openEncoder(format, options);
}

/** The same at once, for all but MP3, whose encoder has to be compiled first. Throws "encoder_failed", TypeError for MP3. */
export function openEncoder(format: UpstreamFormat, options: StreamEncoderOptions = {}): StreamEncoder {
  const contentType = contentTypeOf(format);
  switch (format.codec) {
    case "mp3":
      throw new TypeError("Cannot open an MP3 encoder at once: see createStreamEncoder");
    case "opus":
      return opusEncoder(format, contentType, options);
    case "wav":
      return wavEncoder(format.sampleRate, contentType);
    case "pcm":
      return plainEncoder(bytesOf, contentType);
    case "ulaw":
      return plainEncoder(encodeUlaw, contentType);
    case "alaw":
      return plainEncoder(encodeAlaw, contentType);
  }
}

function plainEncoder(encode: (pcm: Int16Array) => Uint8Array, contentType: string): StreamEncoder {
  return { contentType, push: encode, flush: () => NO_BYTES, close: () => undefined };
}

/** The length is not known yet when the header goes out (wav.ts). */
function wavEncoder(sampleRate: number, contentType: string): StreamEncoder {
  let header = wavHeader({ sampleRate, dataBytes: UNKNOWN_DATA_BYTES });
  const takeHeader = (): Uint8Array => {
    const taken = header;
    header = NO_BYTES;
    return taken;
  };
  return {
    contentType,
    push: (pcm) => (header.length === 0 ? bytesOf(pcm) : concatBytes([takeHeader(), bytesOf(pcm)])),
    flush: takeHeader,
    close: () => undefined,
  };
}

async function mp3Encoder(format: UpstreamFormat, contentType: string): Promise<StreamEncoder> {
  const { sampleRate, bitrateKbps } = format;
  const encoder = await createMp3Encoder({ sampleRate, bitrateKbps: bitrateKbps ?? 0 });
  return {
    contentType,
    push: (pcm) => encoder.encode(pcm),
    flush: () => encoder.finish(),
    // The encoder is memory of its own that goes when nothing refers to it.
    close: () => undefined,
  };
}

function opusEncoder(
  format: UpstreamFormat,
  contentType: string,
  { serial }: StreamEncoderOptions,
): StreamEncoder {
  const encoder = new OggOpusEncoder({ bitrateKbps: format.bitrateKbps ?? 0, serial });
  return {
    contentType,
    push: (pcm) => encoder.push(pcm),
    flush: () => encoder.flush(),
    close: () => encoder.close(),
  };
}
