/** A thread's side of a WorkerPool: starts, then hands over what comes for its jobs. */
import { parentPort } from "node:worker_threads";
import { GatewayError } from "../errors.ts";
import type { FromThread, ToThread } from "./worker-pool.ts";

/** So long a thread stands still before it ends. */
const STILL_MS = 50;

/** To whoever opened the job. */
export type SendReply<Reply> = (job: number, reply: Reply, transfer?: readonly ArrayBuffer[]) => void;

/**
 * `start` prepares what all jobs need, and gives what is called for each request; jobs begin with their first one. What that
 * throws ends the thread, and all of its jobs fail: it answers what concerns one job alone. Where `start` rejects, the pool
 * gets the reason.
 */
export async function serveJobs<Request, Reply>(
  start: (reply: SendReply<Reply>) => Promise<(job: number, request: Request) => void>,
): Promise<void> {
  const port = parentPort;
  if (port === null) throw new TypeError("Cannot serve jobs: this is no worker thread");
  const send = (message: FromThread<Reply>, transfer: readonly ArrayBuffer[] = []): void =>
    port.postMessage(message, transfer);
  // A thread of Node that only compiles WebAssembly, and has nothing on its event loop, waits for the background tasks of all
  // threads. Where one of these waits for that thread, both wait for ever (nodejs/node#54918).
  port.ref();
  try {
    const handle = await start((job, reply, transfer) => send({ kind: "reply", job, reply }, transfer));
    port.on("message", (message: ToThread<Request>) => {
      if (message === "end") endStill();
      else if (message === null) send({ kind: "pong" });
      else handle(message.job, message.request);
    });
    send({ kind: "ready" });
  } catch (thrown) {
    const code = thrown instanceof GatewayError ? thrown.code : "internal";
    send({ kind: "unavailable", code, message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}

/**
 * Node ends the whole process where a thread is ended while V8 still compiles its functions beside it ("Assertion failed:
 * (data.first) != nullptr" in node_platform.cc). What runs no code has nothing to compile.
 */
function endStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STILL_MS);
  process.exit();
}
