/** A voice worker thread: loads the engine, warms it up where asked to, then speaks what the pool sends. */
import { workerData } from "node:worker_threads";
import { serveJobs } from "../../kit/serve-jobs.ts";
import { Locales } from "../text/locale.ts";
import { Engine } from "./engine/engine.ts";
import { VOICES } from "./engine/voices.ts";
import { VoiceJob } from "./job.ts";
import { type FromWorker, type JobSpec, PLAIN_JOB, type ToWorker, type VoiceWorkerData } from "./messages.ts";
import { Scheduler } from "./scheduler.ts";

/** Runs of the whole path before the first request: the first one costs tens of ms, by then it is compiled and 2-4. */
const WARM_UP_RUNS = 8;

function warmUp(engine: Engine): void {
  const spec: JobSpec = {
    ...PLAIN_JOB,
    inputs: [{ text: "Warm up, please: 1 2 3.", voiceId: VOICES[0]?.id ?? "", languageCode: null }],
    format: "pcm_16000",
    normalization: "auto",
  };
  for (let run = 0; run < WARM_UP_RUNS; run++) {
    const encoder = {
      push: (pcm: Int16Array) => new Uint8Array(pcm.length),
      flush: () => new Uint8Array(0),
      close: () => undefined,
    };
    const job = new VoiceJob({
      spec: { ...spec, wantsTiming: run % 2 === 0 },
      engine,
      locales: new Locales(),
      encoder,
      isCancelled: () => false,
      emit: () => undefined,
    });
    while (job.step());
    job.close();
  }
}

await serveJobs<ToWorker, FromWorker>(async (reply) => {
  const engine = await Engine.load();
  if ((workerData as VoiceWorkerData).warmsUp) warmUp(engine);
  const scheduler = new Scheduler({ engine, reply });
  return (job, message) => {
    if (message.type === "open") scheduler.open(job, message.spec, message.cancelled);
    else if (message.type === "ack") scheduler.acknowledge(job, message.bytes);
    else if (message.type === "spoken") scheduler.receive(job, message);
    else scheduler.cancel(job);
  };
});
