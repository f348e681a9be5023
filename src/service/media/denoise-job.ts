/** One isolation: decode, bring to 48 kHz, take the noise out, bring to 44.1 kHz, encode. */
import { concatBytes } from "../../audio/bytes.ts";
import { createStreamEncoder } from "../../audio/containers/encode.ts";
import { RateConverter } from "../../audio/resample/rate-converter.ts";
import { decodeUpload } from "./decode-upload.ts";
import type { Denoised, DenoiseSpec } from "./denoise-messages.ts";
import { createDenoiser, DENOISER_RATE } from "./denoiser.ts";
import { MP3_RATE } from "./mp3-info.ts";

const MP3_FORMAT = "mp3_44100_128";
/** 128 kbit/s: a frame is 1152 samples, 417 or 418 bytes. */
const BYTES_PER_FRAME = (1152 * 128_000) / 8 / MP3_RATE;

/** Emits MP3 frames as they are made, none of them empty. Rejects with the ApiErrors of decodeUpload. */
export async function runDenoise(
  file: { read(): AsyncIterable<Uint8Array> },
  spec: DenoiseSpec,
  emit: (bytes: Uint8Array) => Promise<void>,
): Promise<Denoised> {
  const denoiser = await createDenoiser();
  const encoder = await createStreamEncoder(MP3_FORMAT).catch((thrown: unknown) => {
    denoiser.close();
    throw thrown;
  });
  const before = new RateConverter(DENOISER_RATE);
  const after = new RateConverter(MP3_RATE);
  let format = "";
  let samples = 0;
  let bytes = 0;
  const encode = (pcm: Int16Array): Uint8Array => {
    samples += pcm.length;
    return encoder.push(pcm);
  };
  const send = async (parts: readonly Uint8Array[]): Promise<void> => {
    const joined = concatBytes(parts);
    bytes += joined.length;
    // A copy: it crosses to another thread, with all that it is a view of.
    if (joined.length > 0) await emit(joined.slice());
  };
  const clean = (pcm: Int16Array): Uint8Array[] =>
    after.push(denoiser.push(pcm), DENOISER_RATE).map((converted) => encode(converted));
  try {
    const pieces = decodeUpload(file, {
      fileFormat: spec.fileFormat,
      onFormat: (container) => {
        format = container.split("-")[0] ?? container;
      },
    });
    for await (const { pcm, sampleRate } of pieces) {
      for (const common of before.push(pcm, sampleRate)) await send(clean(common));
    }
    await send(clean(before.flush()));
    const rest = after.push(denoiser.flush(), DENOISER_RATE).map((converted) => encode(converted));
    await send([...rest, encode(after.flush()), encoder.flush()]);
    return { format, samples, bytes, frames: Math.round(bytes / BYTES_PER_FRAME) };
  } finally {
    denoiser.close();
    encoder.close();
  }
}
