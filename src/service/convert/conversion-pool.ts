/**
 * Where voices are converted and measured: for at most two requests at a time, and sixteen that wait. It keeps what was
 * measured of the embedded voices, which is the same every time. One for each service (see `conversionPoolOf`).
 */
import type { FastifyInstance } from "fastify";
import { type Release, Semaphore } from "../../kit/semaphore.ts";
import { WorkerPool, type WorkerPoolOptions } from "../../kit/worker-pool.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import type { JobOpener } from "../http/speech/delivery.ts";
import type { PcmPiece } from "../media/pieces.ts";
import { findVoice } from "../voice/engine/voices.ts";
import { type ConversionHandlers, ConversionJob } from "./conversion-job.ts";
import type { ConvertTask, FromConverter, ToConverter } from "./messages.ts";
import { spokenPieces } from "./spoken-pieces.ts";
import type { VoiceProfile } from "./voice-profile.ts";

const MAX_REQUESTS = 2;
/** So long a thread without work is kept. */
const IDLE_MS = 30_000;
const MAX_WAITING = 16;
const DECORATOR = "conversionPool";

export class ConversionPool {
  readonly #voices: JobOpener;
  readonly #requests = new Semaphore({ limit: MAX_REQUESTS, maxWaiting: MAX_WAITING });
  readonly #pool = createConverterThreads();
  /** By voice id, of embedded voices only: the catalogue bounds it. */
  readonly #profiles = new Map<string, Promise<VoiceProfile | null>>();

  constructor(voices: JobOpener) {
    this.#voices = voices;
  }

  /** Requests that work, and threads that do. */
  get load(): { readonly requests: number; readonly threads: number } {
    return { requests: this.#requests.held, threads: this.#pool.stats.running };
  }

  /** Waits until the request may work; see Semaphore.acquire. */
  acquire(signal: AbortSignal): Promise<Release> {
    return this.#requests.acquire(signal);
  }

  /** Starts a conversion; the caller stops it or hears its end. For requests that may work. */
  convert(
    source: AsyncIterable<PcmPiece>,
    options: Omit<ConvertTask, "kind"> & { readonly handlers: ConversionHandlers },
  ): ConversionJob {
    const { handlers, ...task } = options;
    return new ConversionJob(this.#pool, { kind: "convert", ...task }, { source, handlers });
  }

  /** The profile of whoever speaks, null where nobody does. Rejects with what the source threw. */
  measure(
    source: AsyncIterable<PcmPiece>,
    { signal, removesNoise = false }: { readonly signal?: AbortSignal; readonly removesNoise?: boolean } = {},
  ): Promise<VoiceProfile | null> {
    return new Promise((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener("abort", onAbort);
      const handlers: ConversionHandlers = {
        measured: (profile) => {
          settle();
          resolve(profile);
        },
        failed: (thrown) => {
          settle();
          reject(thrown);
        },
      };
      const job = new ConversionJob(this.#pool, { kind: "measure", removesNoise }, { source, handlers });
      const onAbort = (): void => {
        job.stop();
        reject(signal?.reason);
      };
      if (signal?.aborted) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** The profile of an embedded voice, which is measured once; null where there is no such voice. */
  profileOf(voiceId: string): Promise<VoiceProfile | null> {
    const known = this.#profiles.get(voiceId);
    if (known !== undefined) return known;
    if (findVoice(voiceId) === undefined) return Promise.resolve(null);
    const measured = this.measure(spokenPieces(this.#voices, voiceId));
    this.#profiles.set(voiceId, measured);
    // Those who wait for it get a failure, which is not kept.
    measured.catch(() => this.#profiles.delete(voiceId));
    return measured;
  }

  /** Ends what runs: it fails with GatewayError `draining`. Idempotent. */
  close(): Promise<void> {
    return this.#pool.close();
  }
}

/** A thread for each request that works. It is kept for the next ones: to start one takes longer than a short conversion. */
export function createConverterThreads(
  options: Pick<WorkerPoolOptions, "stallMs"> = {},
): WorkerPool<ToConverter, FromConverter> {
  return new WorkerPool({
    failure: "Cannot convert the voice",
    url: workerUrl("./convert-worker.ts", import.meta.url),
    maxThreads: MAX_REQUESTS,
    // A measurement of an embedded voice outlives the request that asked for it.
    maxWaiting: MAX_WAITING,
    idleMs: IDLE_MS,
    ...options,
  });
}

/** The app's pool: made where there is none yet, closed with the app. The sections share it, and so its limits. */
export function conversionPoolOf(app: FastifyInstance, voices: JobOpener): ConversionPool {
  if (app.hasDecorator(DECORATOR)) return app.getDecorator<ConversionPool>(DECORATOR);
  const pool = new ConversionPool(voices);
  app.decorate(DECORATOR, pool);
  app.addHook("onClose", () => pool.close());
  return pool;
}
