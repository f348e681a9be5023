/** A sound as bytes of an output format, made in slices so that the thread's other work goes on between them. */
import { createStreamEncoder } from "../../audio/containers/encode.ts";
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { RateConverter } from "../../audio/resample/rate-converter.ts";
import { SAMPLE_RATE } from "./dsp.ts";
import type { SoundPlan } from "./plan.ts";
import { renderSound } from "./render.ts";

/** Work in one go, in milliseconds: four sounds at once then keep the event loop from others for less than 20. */
const SLICE_MS = 3;

/**
 * The bytes of a whole sound in one of STREAM_FORMATS, as they are made; none is empty. Ends where `isWanted` says no. Rejects
 * with GatewayError "encoder_failed" or "unknown_format". Ending it early frees the encoder.
 */
export async function* soundBytes(
  plan: SoundPlan,
  { outputFormat, isWanted }: { readonly outputFormat: string; readonly isWanted: () => boolean },
): AsyncGenerator<Uint8Array> {
  const converter = new RateConverter(parseUpstreamFormat(outputFormat)?.sampleRate ?? SAMPLE_RATE);
  const encoder = await createStreamEncoder(outputFormat);
  try {
    let sliceBeganMs = performance.now();
    for (const block of renderSound(plan)) {
      if (block.length > 0) {
        for (const pcm of converter.push(block, SAMPLE_RATE)) {
          const bytes = encoder.push(pcm);
          // Copied: an encoder may use its memory again for the next piece.
          if (bytes.length > 0) yield bytes.slice();
        }
      }
      if (performance.now() - sliceBeganMs < SLICE_MS) continue;
      await immediate();
      if (!isWanted()) return;
      sliceBeganMs = performance.now();
    }
    for (const bytes of [encoder.push(converter.flush()).slice(), encoder.flush().slice()]) {
      if (bytes.length > 0) yield bytes;
    }
  } finally {
    encoder.close();
  }
}

/** After this, whatever came in meanwhile has been served. */
function immediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
