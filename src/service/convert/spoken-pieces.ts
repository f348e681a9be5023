/** A sentence in one of the embedded voices, as samples: what there is to measure of them. */
import type { GatewayError } from "../../errors.ts";
import type { JobOpener } from "../http/delivery.ts";
import type { PcmPiece } from "../media/pieces.ts";
import type { JobSpec } from "../voice/messages.ts";
import type { Job } from "../voice/pool.ts";

/** Many different sounds in a few seconds. */
const SENTENCE = "The quick brown fox jumps over the lazy dog, while the old judge poured more tea.";
const SAMPLE_RATE = 24_000;

/** Read to its end or returned: the job ends with it. Throws GatewayError as the opener does. */
export async function* spokenPieces(voices: JobOpener, voiceId: string): AsyncGenerator<PcmPiece> {
  const spec: JobSpec = {
    inputs: [{ text: SENTENCE, voiceId, languageCode: null }],
    format: `pcm_${SAMPLE_RATE}`,
    wantsTiming: false,
    wantsTruth: false,
    normalizes: false,
    audioTags: false,
    speed: 1,
    stability: 0.5,
    style: 0,
  };
  const chunks: Uint8Array[] = [];
  let isDone = false;
  let failure: GatewayError | null = null;
  let wake = (): void => undefined;
  const job: Job = voices.open(spec, {
    chunk: (chunk) => {
      chunks.push(chunk.audio);
      wake();
    },
    done: () => {
      isDone = true;
      wake();
    },
    failed: (error) => {
      failure = error;
      wake();
    },
  });
  try {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk !== undefined) {
        job.acknowledge(chunk.length);
        yield { pcm: samplesOf(chunk), sampleRate: SAMPLE_RATE };
      } else if (failure !== null) throw failure;
      else if (isDone) return;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    job.cancel();
  }
}

function samplesOf(bytes: Uint8Array): Int16Array {
  const copy = bytes.slice();
  return new Int16Array(copy.buffer, 0, Math.floor(copy.length / 2));
}
