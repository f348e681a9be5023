/** The voice workers as the service sees them: opens jobs on the least busy one and counts what becomes of them. */
import { GatewayError } from "../../errors.ts";
import type { Logger } from "../../kit/log.ts";
import { type PoolJob, WorkerPool } from "../../kit/worker-pool.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import type { FromWorker, JobChunk, JobSpec, ToWorker, VoiceWorkerData } from "./messages.ts";
import type { EnginePiece, SpeechEngine } from "./neural/speech-engine.ts";

/** What a job tells its opener, in order: `chunk`*, then exactly one of `done` and `failed`; nothing after `cancel()`. */
export interface JobHandlers {
  chunk(chunk: JobChunk): void;
  done(): void;
  failed(error: GatewayError): void;
}

export interface Job {
  /** So many bytes of chunks have left: as many more may be made. */
  acknowledge(bytes: number): void;
  /** Stops the synthesis, in the middle of a word if need be. Idempotent. */
  cancel(): void;
}

export interface VoiceStats {
  /** Jobs that are speaking, waiting or being stopped. */
  readonly jobs_active: number;
  readonly jobs_done: number;
  readonly jobs_cancelled: number;
  readonly jobs_failed: number;
  /** Speech that the engine made for jobs that are over, used or not. */
  readonly synthesized_seconds: number;
  readonly workers: number;
  readonly worker_restarts: number;
  /** Restarts of the neural engine's process. */
  readonly engine_restarts: number;
}

export interface PoolOptions {
  readonly workers: number;
  readonly log: Logger;
  /** Whether the first requests are answered as fast as later ones, which takes each worker 0.5 s of its start; default true. */
  readonly warmsUp?: boolean | undefined;
  /** Speaks for the voices of models; default: there are none. Closed with the pool. */
  readonly engine?: SpeechEngine | undefined;
}

/** Jobs in all workers together; more are refused. */
const MAX_JOBS = 2048;

export class VoicePool {
  readonly #log: Logger;
  readonly #pool: WorkerPool<ToWorker, FromWorker>;
  readonly #engine: SpeechEngine | undefined;
  readonly #counts = { done: 0, cancelled: 0, failed: 0, synthesizedMs: 0 };

  constructor({ workers, log, warmsUp = true, engine }: PoolOptions) {
    this.#log = log;
    this.#engine = engine;
    this.#pool = new WorkerPool({
      failure: "Cannot speak",
      url: workerUrl("./voice-worker.ts", import.meta.url),
      threadData: { warmsUp } satisfies VoiceWorkerData,
      maxThreads: workers,
      jobsPerThread: Math.ceil(MAX_JOBS / workers),
      maxWaiting: 0,
      onThreadLost: (error) => log.error({ error: error.message }, "A voice worker was lost"),
    });
  }

  /** Resolves when every worker has its engine warm; throws GatewayError `voice_package_missing` or `internal`. */
  start(): Promise<void> {
    return this.#pool.start();
  }

  get stats(): VoiceStats {
    const { running, threads, lost } = this.#pool.stats;
    return {
      jobs_active: running,
      jobs_done: this.#counts.done,
      jobs_cancelled: this.#counts.cancelled,
      jobs_failed: this.#counts.failed,
      synthesized_seconds: Math.round(this.#counts.synthesizedMs) / 1000,
      workers: threads,
      worker_restarts: lost,
      engine_restarts: this.#engine?.restarts ?? 0,
    };
  }

  /** Throws GatewayError `queue_full` where too many jobs are under way. */
  open(spec: JobSpec, handlers: JobHandlers): Job {
    let [isCancelled, hasFailed] = [false, false];
    let asked: { cancel(): void } | undefined;
    const job = this.#pool.open({
      reply: (message) => {
        if (message.type === "chunk") {
          if (!isCancelled) handlers.chunk(message.chunk);
          return;
        }
        if (message.type === "ask") {
          if (!isCancelled) asked = this.#ask(message.piece, { job, failed: (error) => fail(error) });
          return;
        }
        job.finish();
        const outcome = hasFailed ? "failed" : message.outcome;
        this.#counts[isCancelled && !hasFailed ? "cancelled" : outcome]++;
        this.#counts.synthesizedMs += message.synthesizedMs;
        if (isCancelled) return;
        if (message.outcome === "done") return handlers.done();
        this.#log.error({ error: message.message }, "A speech job failed");
        handlers.failed(new GatewayError("internal", `Speech failed: ${message.message}`));
      },
      failed: (error) => {
        asked?.cancel();
        this.#counts.failed++;
        if (!isCancelled) handlers.failed(error);
      },
    });
    /** The engine could not speak: the worker ends the job, and nobody hears of that any more. */
    const fail = (error: GatewayError): void => {
      if (isCancelled) return;
      [isCancelled, hasFailed] = [true, true];
      this.#log.error({ code: error.code, error: error.message }, "A speech job failed");
      job.post({ type: "cancel" });
      handlers.failed(error);
    };
    const cancelled = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    job.post({ type: "open", spec, cancelled });
    return {
      acknowledge: (bytes) => job.post({ type: "ack", bytes }),
      cancel: () => {
        if (isCancelled) return;
        isCancelled = true;
        asked?.cancel();
        // The flag reaches a worker that is in the middle of a synthesis, the message one that is not.
        Atomics.store(new Int32Array(cancelled), 0, 1);
        job.post({ type: "cancel" });
      },
    };
  }

  /** Ends the workers and the engine; open jobs fail. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#engine?.close()]);
  }

  #ask(
    piece: EnginePiece,
    { job, failed }: { readonly job: PoolJob<ToWorker>; readonly failed: (error: GatewayError) => void },
  ): { cancel(): void } | undefined {
    if (this.#engine === undefined) {
      failed(new GatewayError("internal", `Cannot speak: no engine speaks for voice model "${piece.model}"`));
      return undefined;
    }
    return this.#engine.speak(piece, {
      spoken: ({ samples, sampleRate }) =>
        job.post({ type: "spoken", samples, sampleRate }, [samples.buffer]),
      failed,
    });
  }
}
