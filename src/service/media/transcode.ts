/** Kept audio in another format, a piece at a time, so that an hour of it takes no more memory than a second. */
import { createStreamEncoder } from "../../audio/containers/encode.ts";
import { createSourceDecoder } from "../../audio/containers/source-decoder.ts";
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { RateConverter } from "../../audio/resample/rate-converter.ts";
import { createMp3Decoder } from "./mp3-decoder.ts";
import type { PieceDecoder } from "./pieces.ts";

/** Both are of OUTPUT_FORMATS; bytes of a `wav_` format are those of its PCM, without a header. */
export interface Formats {
  readonly from: string;
  readonly to: string;
}

/**
 * The bytes in the other format. Rejects with GatewayError "upstream_protocol" for broken audio. Between pieces the event
 * loop is free: encoding a minute takes a second.
 */
export async function* transcode(
  source: AsyncIterable<Uint8Array>,
  { from, to }: Formats,
): AsyncGenerator<Uint8Array> {
  const decoder = await createDecoder(bare(from));
  const encoder = await createStreamEncoder(bare(to));
  const converter = new RateConverter(parseUpstreamFormat(to)?.sampleRate ?? 44_100);
  try {
    for await (const bytes of source) {
      for (const part of split(bytes)) {
        const { pcm, sampleRate } = decoder.push(part);
        if (pcm.length === 0) continue;
        for (const converted of converter.push(pcm, sampleRate)) yield encoder.push(converted).slice();
        await immediate();
      }
    }
    const { pcm, sampleRate } = decoder.finish();
    if (pcm.length > 0) for (const last of converter.push(pcm, sampleRate)) yield encoder.push(last).slice();
    yield encoder.push(converter.flush()).slice();
    yield encoder.flush().slice();
  } finally {
    decoder.close();
    encoder.close();
  }
}

/** A WAV file is PCM behind a header. */
export function bare(format: string): string {
  return format.replace(/^wav_/, "pcm_");
}

const PART_BYTES = 16_384;

function* split(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES);
}

function immediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function createDecoder(format: string): Promise<PieceDecoder> {
  if (parseUpstreamFormat(format)?.codec === "mp3") return await createMp3Decoder();
  const decoder = createSourceDecoder(format);
  return {
    push: (bytes) => ({ pcm: decoder.push(bytes), sampleRate: decoder.sampleRate }),
    finish: () => {
      decoder.finish();
      return { pcm: new Int16Array(0), sampleRate: decoder.sampleRate };
    },
    close: () => decoder.close(),
  };
}
