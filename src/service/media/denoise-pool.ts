/** Who may isolate when: a few at once, a bounded queue behind them in the order of arrival, the rest is refused. */
import { GatewayError } from "../../errors.ts";
import { AsyncQueue } from "../../kit/async-queue.ts";
import { WorkerPool, type WorkerPoolStats } from "../../kit/worker-pool.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import { ApiError } from "../api-error.ts";
import type { Denoised, DenoiseSpec, FromDenoiser, ToDenoiser } from "./denoise-messages.ts";
import { inStreamOrder } from "./mp4-order.ts";

export interface DenoisePoolOptions {
  /** Jobs at once, each in a thread of its own; default 2. */
  readonly workers?: number;
  /** Jobs that may wait for their turn; default 16. */
  readonly maxWaiting?: number;
  /** How long a thread without a job is kept; default 30 s. Starting one takes a quarter of a second. */
  readonly idleMs?: number;
}

export interface DenoiseJob {
  readonly file: { read(): AsyncIterable<Uint8Array> };
  readonly spec: DenoiseSpec;
  /** Ends the job, in the middle of a frame if need be: its thread goes with it. */
  readonly signal: AbortSignal;
}

export class DenoisePool {
  readonly #pool: WorkerPool<ToDenoiser, FromDenoiser>;

  constructor({ workers = 2, maxWaiting = 16, idleMs = 30_000 }: DenoisePoolOptions = {}) {
    this.#pool = new WorkerPool({
      failure: "Cannot isolate",
      url: workerUrl("./denoise-worker.ts", import.meta.url),
      maxThreads: workers,
      maxWaiting,
      idleMs,
    });
  }

  get stats(): WorkerPoolStats {
    return this.#pool.stats;
  }

  /**
   * MP3 bytes as they are made. Rejects with the file's ApiError, with GatewayError `queue_full` where too many wait, `internal`
   * where the thread failed, `draining` where the pool is closed, and with the signal's reason. Where the loop is left early
   * the thread is ended.
   */
  async *run({ file, spec, signal }: DenoiseJob): AsyncGenerator<Uint8Array, Denoised> {
    signal.throwIfAborted();
    // Bounded by the worker: it asks for each piece, and waits until its bytes were taken.
    const replies = new AsyncQueue<FromDenoiser>();
    const job = this.#pool.open({
      reply: (reply) => replies.push(reply),
      failed: (error) => replies.fail(error),
    });
    // The thread reads a file once, in the order in which it can decode it.
    const pieces = inStreamOrder(file);
    try {
      job.post({ type: "open", spec });
      while (true) {
        const message = await replies.next(signal);
        switch (message.type) {
          case "more": {
            const piece = await pieces.next();
            if (piece.done === true) job.post({ type: "end" });
            else {
              const bytes = new Uint8Array(piece.value);
              job.post({ type: "piece", bytes }, [bytes.buffer]);
            }
            break;
          }
          case "chunk":
            yield message.bytes;
            job.post({ type: "ack", bytes: message.bytes.length });
            break;
          case "done":
            job.finish();
            return message.result;
          case "refused":
            job.finish();
            throw ApiError.of({ ...message.error, param: "audio" });
          case "failed":
            throw new GatewayError("internal", `Cannot isolate: ${message.message}`);
        }
      }
    } finally {
      // Where it is over, nothing happens.
      job.abandon();
      await pieces.return(undefined);
    }
  }

  /** Ends the threads; jobs fail. Idempotent. */
  close(): Promise<void> {
    return this.#pool.close();
  }
}
