/** A thread of the pool's tests: answers, hangs, crashes or cannot start, as it is asked. */
import { workerData } from "node:worker_threads";
import { serveJobs } from "../../../dist/kit/serve-jobs.js";

await serveJobs(async (reply) => {
  if (process.env.ECHO_WORKER_FAULT !== undefined) throw new Error(process.env.ECHO_WORKER_FAULT);
  // Nothing is heard of a thread that is ended in the middle of its code.
  process.on("exit", () => {
    if (workerData !== undefined) Atomics.add(workerData.ended, 0, 1);
  });
  return (job, request) => {
    if (request === "crash") throw new Error("asked to crash");
    if (request === "hang") for (;;);
    reply(job, request);
  };
});
