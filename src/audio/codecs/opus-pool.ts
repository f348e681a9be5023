/**
 * Opus encoders in worker threads. An encoder belongs to one stream at a time; packets come back in order, several in
 * one call where they were encoded together. It is no kit/worker-pool.ts, because it is on the way of every frame: encoders
 * are made in advance, and the frames of all streams cross in one message a turn, with their bytes transferred.
 */
import { GatewayError } from "../../errors.ts";
import { MAX_LIVE_CODECS, type OpusRate } from "./opus-codec.ts";
import { OpusThread, type SlotHolder } from "./opus-thread.ts";

export interface OpusPoolOptions {
  /** Worker threads, 1 or more. */
  readonly workers: number;
  /** 1-60, default 60: opusscript's memory must not grow (opus-codec.ts). */
  readonly encodersPerWorker?: number;
  /** 6-510. */
  readonly bitrateKbps: number;
  /** 0 (fastest) - 10 (best), default 5. */
  readonly complexity?: number;
}

export interface OpusStreamOptions {
  /** Hz. */
  readonly sampleRate: OpusRate;
  /** Samples a packet at that rate: 10, 20, 40 or 60 ms. */
  readonly frameSamples: number;
}

/** Called from the event loop, never inside `push`; neither may throw. */
interface OpusStreamHandlers {
  /** In order; the bytes may be kept. */
  packets(packets: readonly Uint8Array[]): void;
  /** The stream is dead (its thread died or the pool was closed); what was in flight is lost. Acquire another. */
  error(error: GatewayError): void;
}

export interface OpusStream {
  /** Frames that were pushed and whose packets have not come. */
  readonly framesInFlight: number;
  /**
   * Whole frames, copied. Throws GatewayError "encoder_failed" where the stream is dead or released, or more than
   * MAX_FRAMES_IN_FLIGHT would wait; RangeError for part of a frame.
   */
  push(frames: Int16Array): void;
  /** Gives the encoder back; what is in flight is not encoded any more, and nothing is delivered. Idempotent. */
  release(): void;
}

export interface OpusPool {
  /** Throws GatewayError "encoder_failed" when every encoder is taken. */
  acquire(options: OpusStreamOptions, handlers: OpusStreamHandlers): OpusStream;
  /** Ends the threads; every stream gets its error. Idempotent. */
  close(): Promise<void>;
}

/** Bound on what one stream may have waiting: two minutes in frames of 10 ms. */
export const MAX_FRAMES_IN_FLIGHT = 12_000;

const DEFAULT_COMPLEXITY = 5;
/** Somebody may have stopped speaking by then. */
const RETRY_AFTER_MS = 1000;

/** Starts the threads; rejects with GatewayError "encoder_failed" where one can't start. */
export async function createOpusPool(options: OpusPoolOptions): Promise<OpusPool> {
  const encoders = options.encodersPerWorker ?? MAX_LIVE_CODECS;
  if (!Number.isInteger(encoders) || encoders < 1 || encoders > MAX_LIVE_CODECS) {
    throw new RangeError(
      `Cannot start an Opus pool: encodersPerWorker is ${encoders}, expected 1-${MAX_LIVE_CODECS}`,
    );
  }
  const setup = {
    // The two rates that frames are made at; a slot changes its rate where another one is asked for.
    rates: Array.from({ length: encoders }, (_, slot): OpusRate => (slot % 2 === 0 ? 24000 : 48000)),
    bitrateKbps: options.bitrateKbps,
    complexity: options.complexity ?? DEFAULT_COMPLEXITY,
  };
  const threads = Array.from({ length: options.workers }, () => new OpusThread(setup));
  const pool = new ThreadPool(threads);
  try {
    await Promise.all(threads.map((thread) => thread.start()));
  } catch (error) {
    await pool.close();
    throw error;
  }
  return pool;
}

class ThreadPool implements OpusPool {
  readonly #threads: readonly OpusThread[];

  constructor(threads: readonly OpusThread[]) {
    this.#threads = threads;
  }

  acquire(options: OpusStreamOptions, handlers: OpusStreamHandlers): OpusStream {
    // The emptiest thread, so that streams spread over the cores.
    const thread = this.#threads.reduce((best, other) => (other.freeSlots > best.freeSlots ? other : best));
    const slot = thread.freeSlot(options.sampleRate);
    if (slot === undefined) {
      throw this.#noneFree();
    }
    return new ThreadStream({ ...options, thread, slot }, handlers);
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  #noneFree(): GatewayError {
    const failed = this.#threads.filter((thread) => thread.hasFailed).length;
    const encoders = this.#threads.reduce(
      (total, thread) => total + (thread.hasFailed ? 0 : thread.slots),
      0,
    );
    const count = this.#threads.length;
    const threads = `${count} ${count === 1 ? "thread" : "threads"}`;
    return new GatewayError(
      "encoder_failed",
      `Cannot encode Opus: all ${encoders} encoders of ${threads} are taken${
        failed > 0 ? ` (${failed} failed for good)` : ""
      }: listen in another format, or give the gateway more threads (opusWorkers)`,
      { retryAfterMs: RETRY_AFTER_MS },
    );
  }
}

class ThreadStream implements OpusStream, SlotHolder {
  readonly #thread: OpusThread;
  readonly #slot: number;
  readonly #frameSamples: number;
  readonly #handlers: OpusStreamHandlers;
  readonly generation: number;
  #framesInFlight = 0;
  #isEnded = false;

  constructor(
    options: OpusStreamOptions & { thread: OpusThread; slot: number },
    handlers: OpusStreamHandlers,
  ) {
    this.#thread = options.thread;
    this.#slot = options.slot;
    this.#frameSamples = options.frameSamples;
    this.#handlers = handlers;
    this.generation = options.thread.nextGeneration();
    const { sampleRate, frameSamples } = options;
    this.#thread.open(this.#slot, this, { sampleRate, frameSamples });
  }

  get framesInFlight(): number {
    return this.#framesInFlight;
  }

  push(frames: Int16Array): void {
    const count = frames.length / this.#frameSamples;
    if (!Number.isInteger(count)) {
      throw new RangeError(
        `Cannot encode Opus: ${frames.length} samples are no whole frames of ${this.#frameSamples}`,
      );
    }
    if (this.#isEnded) {
      throw new GatewayError(
        "encoder_failed",
        "Cannot encode Opus: the stream has ended, expected an open one",
      );
    }
    if (this.#framesInFlight + count > MAX_FRAMES_IN_FLIGHT) {
      throw new GatewayError(
        "encoder_failed",
        `Cannot encode Opus: ${this.#framesInFlight} frames wait, expected at most ${MAX_FRAMES_IN_FLIGHT}`,
      );
    }
    if (count === 0) return;
    this.#framesInFlight += count;
    this.#thread.encode(this.#slot, frames);
  }

  release(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#thread.free(this.#slot, this.#framesInFlight > 0);
    this.#framesInFlight = 0;
  }

  deliver(packets: readonly Uint8Array[]): void {
    this.#framesInFlight -= packets.length;
    this.#handlers.packets(packets);
  }

  fail(error: GatewayError): void {
    this.#isEnded = true;
    this.#framesInFlight = 0;
    this.#handlers.error(error);
  }
}
