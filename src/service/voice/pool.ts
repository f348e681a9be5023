/** The voice workers as the service sees them: opens jobs on the least busy one, replaces one that dies, counts. */
import { Worker } from "node:worker_threads";
import { GatewayError } from "../../errors.ts";
import type { Logger } from "../../kit/log.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import type { FromWorker, JobChunk, JobSpec, ToWorker } from "./messages.ts";

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
}

interface Running {
  readonly handlers: JobHandlers;
  isCancelled: boolean;
}

interface Seat {
  worker: Worker;
  readonly jobs: Map<number, Running>;
}

export interface PoolOptions {
  readonly workers: number;
  readonly log: Logger;
}

/** Jobs in all workers together; more are refused. */
const MAX_JOBS = 2048;

export class VoicePool {
  readonly #log: Logger;
  readonly #workers: number;
  readonly #seats: Seat[] = [];
  readonly #counts = { done: 0, cancelled: 0, failed: 0, synthesizedMs: 0, restarts: 0 };
  #nextId = 1;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#log = options.log;
    this.#workers = options.workers;
  }

  /** Resolves when every worker has its engine warm; throws GatewayError `voice_package_missing` or `internal`. */
  async start(): Promise<void> {
    try {
      await Promise.all(Array.from({ length: this.#workers }, () => this.#addSeat()));
    } catch (thrown) {
      await this.close();
      throw thrown;
    }
  }

  get stats(): VoiceStats {
    return {
      jobs_active: this.#activeJobs,
      jobs_done: this.#counts.done,
      jobs_cancelled: this.#counts.cancelled,
      jobs_failed: this.#counts.failed,
      synthesized_seconds: Math.round(this.#counts.synthesizedMs) / 1000,
      workers: this.#seats.length,
      worker_restarts: this.#counts.restarts,
    };
  }

  get #activeJobs(): number {
    return this.#seats.reduce((sum, seat) => sum + seat.jobs.size, 0);
  }

  /** Throws GatewayError `queue_full` where too many jobs are under way, or the only worker is being replaced. */
  open(spec: JobSpec, handlers: JobHandlers): Job {
    if (this.#activeJobs >= MAX_JOBS) {
      throw new GatewayError(
        "queue_full",
        `Cannot speak: ${MAX_JOBS} requests are under way, expected fewer`,
      );
    }
    const seat = this.#seats.reduce<Seat | undefined>(
      (best, one) => (best === undefined || one.jobs.size < best.jobs.size ? one : best),
      undefined,
    );
    if (seat === undefined) {
      throw new GatewayError("queue_full", "Cannot speak: no voice worker is running, expected one soon");
    }
    const id = this.#nextId++;
    const running: Running = { handlers, isCancelled: false };
    seat.jobs.set(id, running);
    const cancelled = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    tell(seat, { type: "open", id, spec, cancelled });
    return {
      acknowledge: (bytes) => {
        if (seat.jobs.has(id)) tell(seat, { type: "ack", id, bytes });
      },
      cancel: () => {
        if (running.isCancelled || !seat.jobs.has(id)) return;
        running.isCancelled = true;
        // The flag reaches a worker that is in the middle of a synthesis, the message one that is not.
        Atomics.store(new Int32Array(cancelled), 0, 1);
        tell(seat, { type: "cancel", id });
      },
    };
  }

  /** Ends the workers; open jobs fail. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const seats = this.#seats.splice(0);
    for (const seat of seats)
      failJobs(seat, new GatewayError("draining", "Speech ended: the service is shutting down"));
    await Promise.all(seats.map((seat) => seat.worker.terminate()));
  }

  async #addSeat(): Promise<void> {
    const seat: Seat = { worker: await this.#startWorker(), jobs: new Map() };
    if (this.#isClosed) {
      await seat.worker.terminate();
      return;
    }
    this.#attend(seat);
    this.#seats.push(seat);
  }

  #startWorker(): Promise<Worker> {
    const worker = new Worker(workerUrl("./voice-worker.ts", import.meta.url));
    return new Promise((resolve, reject) => {
      const onMessage = (message: FromWorker) => {
        // One by one: removeAllListeners() also takes the listeners that Worker itself lives by.
        worker.off("error", onError).off("exit", onExit);
        if (message.type === "ready") return resolve(worker);
        void worker.terminate();
        const text = message.type === "unavailable" ? message.message : `unexpected ${message.type}`;
        const isMissing = message.type === "unavailable" && message.isPackageMissing;
        reject(new GatewayError(isMissing ? "voice_package_missing" : "internal", text));
      };
      const onError = (cause: Error) =>
        reject(new GatewayError("internal", `Cannot start a voice worker: ${cause.message}`, { cause }));
      const onExit = (code: number) =>
        reject(new GatewayError("internal", `Cannot start a voice worker: it ended with code ${code}`));
      worker.once("message", onMessage).once("error", onError).once("exit", onExit);
    });
  }

  #attend(seat: Seat): void {
    const { worker } = seat;
    worker.on("message", (message: FromWorker) => this.#hear(seat, message));
    worker.on("error", (cause) => this.#log.error({ error: cause.message }, "A voice worker failed"));
    worker.on("exit", (code) => void this.#replace(seat, code));
  }

  #hear(seat: Seat, message: FromWorker): void {
    if (message.type !== "chunk" && message.type !== "ended") return;
    const running = seat.jobs.get(message.id);
    if (running === undefined) return;
    if (message.type === "chunk") {
      if (!running.isCancelled) running.handlers.chunk(message.chunk);
      return;
    }
    seat.jobs.delete(message.id);
    this.#counts[running.isCancelled ? "cancelled" : message.outcome]++;
    this.#counts.synthesizedMs += message.synthesizedMs;
    if (running.isCancelled) return;
    if (message.outcome === "done") running.handlers.done();
    else {
      this.#log.error({ error: message.message }, "A speech job failed");
      running.handlers.failed(new GatewayError("internal", `Speech failed: ${message.message}`));
    }
  }

  /** A worker ended by itself: its jobs fail, a new one takes its place. */
  async #replace(seat: Seat, code: number): Promise<void> {
    if (this.#isClosed) return;
    this.#counts.restarts++;
    this.#counts.failed += seat.jobs.size;
    this.#log.error({ code, jobs: seat.jobs.size }, "A voice worker ended and is started again");
    const index = this.#seats.indexOf(seat);
    if (index >= 0) this.#seats.splice(index, 1);
    failJobs(seat, new GatewayError("internal", "Speech failed: the voice worker ended"));
    try {
      await this.#addSeat();
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown.message : String(thrown);
      this.#log.error({ error }, "A voice worker can't be started again");
    }
  }
}

function tell(seat: Seat, message: ToWorker): void {
  seat.worker.postMessage(message);
}

function failJobs(seat: Seat, error: GatewayError): void {
  const jobs = [...seat.jobs.values()];
  seat.jobs.clear();
  for (const job of jobs) if (!job.isCancelled) job.handlers.failed(error);
}
