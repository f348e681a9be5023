/**
 * Worker threads that do jobs: so many threads, so many jobs in each, and a bounded line of jobs behind them in the order of
 * arrival. A job is a conversation with one thread. The thread's side is serve-jobs.ts.
 */
import { Worker } from "node:worker_threads";
import { type ErrorCode, GatewayError } from "../errors.ts";

/** What crosses to a thread. `null`: a ping. `end`: it ends itself, between two turns. */
export type ToThread<Request> = { readonly job: number; readonly request: Request } | "end" | null;

export type FromThread<Reply> =
  | { readonly kind: "reply"; readonly job: number; readonly reply: Reply }
  | { readonly kind: "ready" }
  | { readonly kind: "pong" }
  /** It cannot do any job. */
  | { readonly kind: "unavailable"; readonly code: ErrorCode; readonly message: string };

export interface WorkerPoolOptions {
  /** What fails where a job fails, for messages: "Cannot speak". */
  readonly failure: string;
  /** The thread's file (worker-url.ts). */
  readonly url: URL;
  /** What each thread has as its `workerData`. */
  readonly threadData?: unknown;
  readonly maxThreads: number;
  /** Jobs that one thread does by turns; default 1. */
  readonly jobsPerThread?: number;
  /** Jobs that wait for a thread; more are refused. */
  readonly maxWaiting: number;
  /** How long a thread without a job is kept; default: until `close`. */
  readonly idleMs?: number;
  /** How long a thread may owe the answer to a ping before it is ended; default 60,000. */
  readonly stallMs?: number;
  /** A thread ended by itself, or was ended because it hung. */
  readonly onThreadLost?: (error: GatewayError) => void;
}

interface JobHandlers<Reply> {
  reply(reply: Reply): void;
  /**
   * Nothing follows. `internal`: the thread crashed or hung. `draining`: the pool was closed. Or what the thread said where
   * it could not start.
   */
  failed(error: GatewayError): void;
}

export interface PoolJob<Request> {
  /** In order. Kept while the job waits for a thread: the caller bounds them. Does nothing once the job is over. */
  post(request: Request, transfer?: readonly ArrayBuffer[]): void;
  /** The thread has done it, and may do another. No handler is called any more. Idempotent. */
  finish(): void;
  /** Given up in the middle: its thread is ended. No handler is called any more. Idempotent. */
  abandon(): void;
}

export interface WorkerPoolStats {
  /** Jobs in threads, and jobs that wait for one. */
  readonly running: number;
  readonly waiting: number;
  /** Those that are starting included. */
  readonly threads: number;
  /** Threads lost since the pool was made. */
  readonly lost: number;
}

interface Post<Request> {
  readonly request: Request;
  readonly transfer: readonly ArrayBuffer[];
}

interface JobState<Request, Reply> {
  readonly id: number;
  readonly handlers: JobHandlers<Reply>;
  /** Until it has a thread. */
  unsent: Post<Request>[];
  thread: PoolThread<Request, Reply> | null;
  isOver: boolean;
}

const DEFAULT_STALL_MS = 60_000;
/** A thread that is to end has so long to come to the end of its turn. */
const END_MS = 2000;

export class WorkerPool<Request, Reply> {
  readonly #options: WorkerPoolOptions;
  readonly #threads: PoolThread<Request, Reply>[] = [];
  readonly #waiting: JobState<Request, Reply>[] = [];
  /** Threads whose job was given up, and that are not gone yet. */
  #ending = 0;
  #nextId = 1;
  #lost = 0;
  /** Whether all threads stand in advance. */
  #isWarm = false;
  #isClosed = false;
  #closing: Promise<void> | null = null;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  get stats(): WorkerPoolStats {
    return {
      running: this.#threads.reduce((sum, { jobs }) => sum + jobs.size, 0),
      waiting: this.#waiting.length,
      threads: this.#threads.length,
      lost: this.#lost,
    };
  }

  /**
   * Starts all threads in advance, and keeps their number: a lost one is replaced at once. Resolves when all are ready.
   * Rejects with the GatewayError of the first that cannot start; the pool is closed then.
   */
  async start(): Promise<void> {
    const threads = Array.from({ length: this.#options.maxThreads }, () => this.#startThread());
    try {
      await Promise.all(threads.map((thread) => thread.ready));
      this.#isWarm = true;
    } catch (thrown) {
      await this.close();
      throw thrown;
    }
  }

  /** Throws GatewayError `queue_full` where too many wait, `draining` after `close`. Handlers are never called inside it. */
  open(handlers: JobHandlers<Reply>): PoolJob<Request> {
    if (this.#isClosed) throw this.#closed();
    const thread = this.#threadWithRoom();
    if (thread === undefined && this.#waiting.length >= this.#options.maxWaiting) {
      const { running, waiting } = this.stats;
      throw this.#error("queue_full", `${running} jobs are under way and ${waiting} wait, expected fewer`);
    }
    const job: JobState<Request, Reply> = {
      id: this.#nextId++,
      handlers,
      unsent: [],
      thread: null,
      isOver: false,
    };
    if (thread === undefined) this.#waiting.push(job);
    else thread.take(job);
    return {
      post: (request, transfer = []) => {
        if (job.isOver) return;
        if (job.thread === null) job.unsent.push({ request, transfer });
        else job.thread.post(job.id, { request, transfer });
      },
      finish: () => {
        if (this.#end(job) && job.thread !== null) this.#onRoom(job.thread);
      },
      abandon: () => {
        if (!this.#end(job) || job.thread === null) return;
        this.#ending += 1;
        void job.thread.end().then(() => {
          this.#ending -= 1;
          this.#giveOut();
        });
        this.#remove(job.thread, this.#error("internal", "the thread was ended"));
      },
    };
  }

  /** Ends the threads; every job fails. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    const threads = this.#threads.splice(0);
    const jobs = [...threads.flatMap((thread) => [...thread.jobs.values()]), ...this.#waiting];
    const ended = threads.map((thread) => thread.end());
    for (const job of jobs) this.#fail(job, this.#closed());
    await Promise.all(ended);
  }

  /** The one with the fewest jobs, or a new one; undefined where all are full. */
  #threadWithRoom(): PoolThread<Request, Reply> | undefined {
    const { maxThreads, jobsPerThread = 1 } = this.#options;
    const [best] = this.#threads.toSorted((a, b) => a.jobs.size - b.jobs.size);
    if (best?.jobs.size === 0) return best;
    if (this.#threads.length + this.#ending < maxThreads) return this.#startThread();
    return best !== undefined && best.jobs.size < jobsPerThread ? best : undefined;
  }

  #startThread(): PoolThread<Request, Reply> {
    const { url, threadData, failure, stallMs = DEFAULT_STALL_MS } = this.#options;
    const onLost = (error: GatewayError): void => this.#lose(thread, error);
    const thread: PoolThread<Request, Reply> = new PoolThread(url, { threadData, failure, stallMs, onLost });
    this.#threads.push(thread);
    return thread;
  }

  #lose(thread: PoolThread<Request, Reply>, error: GatewayError): void {
    this.#lost += 1;
    this.#options.onThreadLost?.(error);
    this.#remove(thread, error);
  }

  /** Its jobs fail, and those that wait may have another thread. */
  #remove(thread: PoolThread<Request, Reply>, error: GatewayError): void {
    const index = this.#threads.indexOf(thread);
    if (index < 0) return;
    this.#threads.splice(index, 1);
    // One that never was ready would fail again: the next job tries.
    if (this.#isWarm && thread.isReady) this.#startThread();
    for (const job of [...thread.jobs.values()]) this.#fail(job, error);
    this.#giveOut();
  }

  /** A job of this thread is over. */
  #onRoom(thread: PoolThread<Request, Reply>): void {
    this.#giveOut();
    const { idleMs } = this.#options;
    if (thread.jobs.size > 0 || idleMs === undefined) return;
    thread.startIdle(idleMs, () => {
      this.#threads.splice(this.#threads.indexOf(thread), 1);
      void thread.end();
    });
  }

  #giveOut(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#threadWithRoom();
      const job = thread === undefined ? undefined : this.#waiting.shift();
      if (thread === undefined || job === undefined) return;
      thread.take(job);
    }
  }

  #fail(job: JobState<Request, Reply>, error: GatewayError): void {
    if (this.#end(job)) job.handlers.failed(error);
  }

  /** Whether it was not over yet. */
  #end(job: JobState<Request, Reply>): boolean {
    if (job.isOver) return false;
    job.isOver = true;
    job.unsent = [];
    if (job.thread !== null) job.thread.jobs.delete(job.id);
    else this.#waiting.splice(this.#waiting.indexOf(job), 1);
    return true;
  }

  #closed(): GatewayError {
    return this.#error("draining", "it is shutting down");
  }

  #error(code: ErrorCode, reason: string): GatewayError {
    return new GatewayError(code, `${this.#options.failure}: ${reason}`);
  }
}

interface ThreadOptions {
  readonly threadData: unknown;
  readonly failure: string;
  readonly stallMs: number;
  /** Called once, and not after `end`. */
  readonly onLost: (error: GatewayError) => void;
}

class PoolThread<Request, Reply> {
  readonly jobs = new Map<number, JobState<Request, Reply>>();
  /** Rejects with GatewayError where it is lost or ended before. */
  readonly ready: Promise<void>;
  readonly #worker: Worker;
  readonly #options: ThreadOptions;
  readonly #watch: NodeJS.Timeout;
  #onReady: (error?: GatewayError) => void = () => undefined;
  #idle: NodeJS.Timeout | undefined;
  #isReady = false;
  #owesPong = false;
  readonly #gone: Promise<void>;
  #ending: Promise<void> | null = null;

  constructor(url: URL, options: ThreadOptions) {
    this.#options = options;
    this.#worker = new Worker(url, { workerData: options.threadData });
    this.#worker.on("message", (message: FromThread<Reply>) => this.#hear(message));
    this.#worker.on("error", (cause) => this.#break(`the thread failed: ${cause.message}`, cause));
    this.#gone = new Promise((resolve) => {
      this.#worker.on("exit", (code) => {
        resolve();
        this.#break(`the thread ended with code ${code}`);
      });
    });
    this.ready = new Promise((resolve, reject) => {
      this.#onReady = (error) => (error === undefined ? resolve() : reject(error));
    });
    // Only who starts a pool in advance waits for it; jobs learn of it by their handlers.
    this.ready.catch(() => undefined);
    this.#watch = setInterval(() => this.#look(), options.stallMs);
    this.#ping();
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  take(job: JobState<Request, Reply>): void {
    clearTimeout(this.#idle);
    this.jobs.set(job.id, job);
    job.thread = this;
    for (const post of job.unsent.splice(0)) this.post(job.id, post);
    if (this.jobs.size === 1) this.#ping();
  }

  post(job: number, { request, transfer }: Post<Request>): void {
    const message: ToThread<Request> = { job, request };
    this.#worker.postMessage(message, transfer);
  }

  /** Calls `onIdle` where no job comes for so long. */
  startIdle(idleMs: number, onIdle: () => void): void {
    this.#idle = setTimeout(onIdle, idleMs).unref();
  }

  /** Resolves when the thread is gone. Idempotent. */
  end(): Promise<void> {
    if (this.#ending !== null) return this.#ending;
    clearInterval(this.#watch);
    clearTimeout(this.#idle);
    this.#worker.postMessage("end" satisfies ToThread<Request>);
    // One that is starting hears nothing yet.
    const late = setTimeout(() => void this.#worker.terminate(), this.#isReady ? END_MS : 0);
    this.#ending = this.#gone.finally(() => clearTimeout(late));
    this.#onReady(new GatewayError("internal", `${this.#options.failure}: the thread was ended`));
    return this.#ending;
  }

  #ping(): void {
    if (this.#owesPong) return;
    this.#owesPong = true;
    this.#watch.refresh();
    this.#worker.postMessage(null satisfies ToThread<Request>);
  }

  #look(): void {
    if (this.#owesPong) this.#break(`the thread was silent for ${this.#options.stallMs} ms`);
    else if (this.jobs.size > 0) this.#ping();
  }

  #hear(message: FromThread<Reply>): void {
    if (this.#ending !== null) return;
    this.#owesPong = false;
    if (message.kind === "reply") this.jobs.get(message.job)?.handlers.reply(message.reply);
    else if (message.kind === "unavailable") this.#lose(new GatewayError(message.code, message.message));
    else if (message.kind === "ready") {
      this.#isReady = true;
      this.#onReady();
    }
  }

  #break(reason: string, cause?: unknown): void {
    this.#lose(new GatewayError("internal", `${this.#options.failure}: ${reason}`, { cause }));
  }

  #lose(error: GatewayError): void {
    if (this.#ending !== null) return;
    this.#onReady(error);
    void this.end();
    this.#options.onLost(error);
  }
}
