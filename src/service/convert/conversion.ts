/** A conversion as a job of the kind that speech is delivered, recorded and made to fail by (http/delivery.ts). */
import { toGatewayError } from "../../errors.ts";
import type { JobOpener } from "../http/speech/delivery.ts";
import type { PcmPiece } from "../media/pieces.ts";
import { type JobSpec, PLAIN_JOB } from "../voice/messages.ts";
import type { ConversionPool } from "./conversion-pool.ts";
import type { Manner } from "./messages.ts";
import type { VoiceProfile } from "./voice-profile.ts";

interface Conversion {
  readonly source: () => AsyncIterable<PcmPiece>;
  readonly target: VoiceProfile;
  readonly removesNoise: boolean;
  readonly seed?: number | undefined;
  readonly manner?: Manner | undefined;
  /** `optimize_streaming_latency`. */
  readonly latencyLevel?: number | undefined;
  /** Told before the job's `failed`: what really went wrong, which may be an ApiError. */
  readonly onFailure: (thrown: unknown) => void;
}

/** For requests that may work. The job's `spec` says the format only. */
export function conversionOpener(pool: ConversionPool, conversion: Conversion): JobOpener {
  const { source, onFailure, ...how } = conversion;
  return {
    open: (spec, handlers) => {
      const thread = pool.convert(source(), {
        ...how,
        format: spec.format,
        handlers: {
          chunk: (audio) => handlers.chunk({ audio, timing: null }),
          done: () => handlers.done(),
          failed: (thrown) => {
            onFailure(thrown);
            handlers.failed(toGatewayError(thrown));
          },
        },
      });
      return { acknowledge: (bytes) => thread.acknowledge(bytes), cancel: () => thread.stop() };
    },
  };
}

/** `outputFormat` is one of OUTPUT_FORMATS; a WAV file is PCM behind a header, which is written when the length is known. */
export function conversionSpec(outputFormat: string): JobSpec {
  return { ...PLAIN_JOB, format: outputFormat.replace(/^wav_/, "pcm_") };
}
