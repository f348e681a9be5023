/** A sentence in one of the embedded voices, as samples: what there is to measure of them. */
import { AsyncQueue } from "../../kit/async-queue.ts";
import type { JobOpener } from "../http/speech/delivery.ts";
import type { PcmPiece } from "../media/pieces.ts";
import { type JobSpec, PLAIN_JOB } from "../voice/messages.ts";
import type { Job } from "../voice/pool.ts";

/** Many different sounds in a few seconds. */
const SENTENCE = "The quick brown fox jumps over the lazy dog, while the old judge poured more tea.";
const SAMPLE_RATE = 24_000;

/** Read to its end or returned: the job ends with it. Throws GatewayError as the opener does. */
export async function* spokenPieces(voices: JobOpener, voiceId: string): AsyncGenerator<PcmPiece> {
  const spec: JobSpec = {
    ...PLAIN_JOB,
    inputs: [{ text: SENTENCE, voiceId, languageCode: null }],
    format: `pcm_${SAMPLE_RATE}`,
    // A voice measures the same after a restart, so that a conversion is the same, too.
    isRepeatable: true,
  };
  // null: the job is done. Bounded by the bytes that are acknowledged.
  const chunks = new AsyncQueue<Uint8Array | null>();
  const job: Job = voices.open(spec, {
    chunk: (chunk) => chunks.push(chunk.audio),
    done: () => chunks.push(null),
    failed: (error) => chunks.fail(error),
  });
  try {
    for (let chunk = await chunks.next(); chunk !== null; chunk = await chunks.next()) {
      job.acknowledge(chunk.length);
      yield { pcm: samplesOf(chunk), sampleRate: SAMPLE_RATE };
    }
  } finally {
    job.cancel();
  }
}

function samplesOf(bytes: Uint8Array): Int16Array {
  const copy = bytes.slice();
  return new Int16Array(copy.buffer, 0, Math.floor(copy.length / 2));
}
