/** Jobs of the embedded service's voice, said in this thread. */
import { Locales } from "../../src/service/text/locale.ts";
import type { Engine } from "../../src/service/voice/engine/engine.ts";
import { VoiceJob } from "../../src/service/voice/job.ts";
import { type JobChunk, type JobSpec, PLAIN_JOB } from "../../src/service/voice/messages.ts";

/** Nothing, with its times and the truth about them: what a test does not say. */
export const JOB_DEFAULTS: JobSpec = {
  ...PLAIN_JOB,
  format: "pcm_16000",
  wantsTiming: true,
  wantsTruth: true,
  normalization: "auto",
};

/** All that the voice says; PCM of `spec.format`'s rate, as it is made. */
export function sayJob(engine: Engine, spec: JobSpec): JobChunk[] {
  const chunks: JobChunk[] = [];
  const job = new VoiceJob({
    spec,
    engine,
    locales: new Locales(),
    encoder: {
      push: (pcm) => new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength),
      flush: () => new Uint8Array(0),
      close: () => undefined,
    },
    isCancelled: () => false,
    emit: (chunk) => chunks.push(chunk),
  });
  while (job.step());
  job.close();
  return chunks;
}

/** When each character of a job's text begins, seconds, by its UTF-16 offset. */
export function startsOf(chunks: readonly JobChunk[]): Map<number, number> {
  const starts = new Map<number, number>();
  let at = 0;
  for (const { timing } of chunks) {
    for (const [i, character] of (timing?.alignment?.characters ?? []).entries()) {
      starts.set(at, timing?.alignment?.character_start_times_seconds[i] ?? Number.NaN);
      at += character.length;
    }
  }
  return starts;
}
