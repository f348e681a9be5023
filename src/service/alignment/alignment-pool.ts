/**
 * Finds the words of texts in their audio, with the embedded voice as the reference. The thread starts with the first response
 * that needs it, and ends when none has for a while.
 */
import { sampledFormatOf } from "../../audio/codecs/samples.ts";
import { type GatewayError, toGatewayError } from "../../errors.ts";
import type { Logger } from "../../kit/log.ts";
import { type PoolJob, WorkerPool } from "../../kit/worker-pool.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import type { Aligner, AlignmentHandlers, AlignmentJob, AlignmentRequest } from "../../timing/aligner.ts";
import { isVoicePackageInstalled } from "../voice/engine/package.ts";
import type { FromAlignment, ToAlignment } from "./alignment-messages.ts";

/** Responses at a time; of more the times are guessed. */
const MAX_RESPONSES = 256;
/** The longest text whose sound is made: it is made in one go, which holds up all other responses. UTF-16 units. */
const MAX_TEXT = 1000;
/** Audio of a response that the thread has not looked at: 10 s of pcm_48000. */
const MAX_WAITING_BYTES = 1_000_000;
/** Audio of a response that is looked at; seconds. */
const MAX_SECONDS = 120;
const IDLE_MS = 60_000;

export interface AlignmentPoolOptions {
  readonly log: Logger;
  /** Whether the embedded voice is installed; default: looked for. */
  readonly isInstalled?: boolean;
}

export class AlignmentPool implements Aligner {
  readonly #log: Logger;
  readonly #pool: WorkerPool<ToAlignment, FromAlignment>;
  readonly #isInstalled: boolean;
  #isReported = false;

  constructor({ log, isInstalled = isVoicePackageInstalled() }: AlignmentPoolOptions) {
    this.#log = log;
    this.#isInstalled = isInstalled;
    this.#pool = new WorkerPool({
      failure: "Cannot find words in audio",
      url: workerUrl("./alignment-worker.ts", import.meta.url),
      maxThreads: 1,
      jobsPerThread: MAX_RESPONSES,
      maxWaiting: 0,
      idleMs: IDLE_MS,
    });
  }

  open(request: AlignmentRequest, handlers: AlignmentHandlers): AlignmentJob | null {
    const sampled = sampledFormatOf(request.format);
    if (sampled === null || request.text.length > MAX_TEXT) return null;
    if (!this.#isInstalled) {
      this.#report("the embedded voice is not installed");
      return null;
    }
    const maxBytes = sampled.sampleRate * (sampled.codec === "pcm" ? 2 : 1) * MAX_SECONDS;
    try {
      return new ResponseJob(this.#pool, request, {
        handlers,
        maxBytes,
        failed: (error) => this.#report(error.message),
      });
    } catch (thrown) {
      // `queue_full` is the bound that it says, and anything else means that it is closed.
      this.#report(toGatewayError(thrown).message);
      return null;
    }
  }

  /** Ends the thread; open jobs fail. Idempotent. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  /** Once: it goes on being so. */
  #report(reason: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#log.warn({ reason }, "Times of speech that comes without any are guessed by its pauses");
  }
}

interface ResponseJobOptions {
  readonly handlers: AlignmentHandlers;
  readonly maxBytes: number;
  readonly failed: (error: GatewayError) => void;
}

class ResponseJob implements AlignmentJob {
  readonly #job: PoolJob<ToAlignment>;
  readonly #options: ResponseJobOptions;
  #bytes = 0;
  #waitingBytes = 0;
  /** No handler is called any more. */
  #isClosed = false;
  #isFinished = false;

  constructor(
    pool: WorkerPool<ToAlignment, FromAlignment>,
    { text, language, format }: AlignmentRequest,
    options: ResponseJobOptions,
  ) {
    this.#options = options;
    this.#job = pool.open({
      reply: (reply) => this.#hear(reply),
      failed: (error) => {
        if (!this.#isClosed && error.code !== "draining") options.failed(error);
        this.#end("failed");
      },
    });
    this.#job.post({ type: "open", text, language, format });
  }

  push(audio: Uint8Array): void {
    if (this.#isClosed || this.#isFinished || audio.length === 0) return;
    this.#bytes += audio.length;
    this.#waitingBytes += audio.length;
    if (this.#bytes > this.#options.maxBytes || this.#waitingBytes > MAX_WAITING_BYTES) {
      this.close();
      // Not from inside this call.
      queueMicrotask(() => this.#options.handlers.ended("failed"));
      return;
    }
    const bytes = new Uint8Array(audio);
    this.#job.post({ type: "audio", bytes }, [bytes.buffer]);
  }

  finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#job.post({ type: "end", isWanted: true });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (!this.#isFinished) this.#job.post({ type: "end", isWanted: false });
    this.#isFinished = true;
  }

  #hear(reply: FromAlignment): void {
    if (reply.type === "ended") {
      this.#job.finish();
      this.#end(reply.isLike ? "complete" : "unlike");
      return;
    }
    this.#waitingBytes -= reply.bytes;
    if (!this.#isClosed && reply.words.length > 0) this.#options.handlers.found(reply.words);
  }

  #end(outcome: "complete" | "unlike" | "failed"): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.handlers.ended(outcome);
  }
}
