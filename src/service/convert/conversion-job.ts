/**
 * A conversion or a measurement in a thread: samples go in as fast as they are worked off, bytes come out as fast as they are
 * taken.
 */
import { GatewayError } from "../../errors.ts";
import type { PoolJob, WorkerPool } from "../../kit/worker-pool.ts";
import type { PcmPiece } from "../media/pieces.ts";
import { atLatency } from "../voice/audio/latency.ts";
import type { ConverterTask, FromConverter, ToConverter } from "./messages.ts";
import type { VoiceProfile } from "./voice-profile.ts";

/** Samples in one message, and in all on their way: about a second of 44.1 kHz. What is made of one is sent by itself. */
const PART_SAMPLES = { usual: 8192, smallest: 1024 } as const;
const MAX_SAMPLES = 49_152;

/** `chunk`*, then exactly one of the others; nothing after `stop()`. */
export interface ConversionHandlers {
  chunk?(bytes: Uint8Array<ArrayBuffer>): void;
  done?(): void;
  measured?(profile: VoiceProfile | null): void;
  /** What the source threw, or the GatewayError of the pool. */
  failed(thrown: unknown): void;
}

export class ConversionJob {
  readonly #job: PoolJob<ToConverter>;
  readonly #handlers: ConversionHandlers;
  readonly #partSamples: number;
  #parts = 0;
  #wake: () => void = () => undefined;
  #isOver = false;

  /** Reads `source` to its end or returns it. Throws GatewayError `queue_full` where too many wait for a thread. */
  constructor(
    pool: WorkerPool<ToConverter, FromConverter>,
    task: ConverterTask,
    options: { readonly source: AsyncIterable<PcmPiece>; readonly handlers: ConversionHandlers },
  ) {
    this.#handlers = options.handlers;
    const latencyLevel = task.kind === "convert" ? (task.latencyLevel ?? 0) : 0;
    this.#partSamples = atLatency(latencyLevel, PART_SAMPLES);
    this.#job = pool.open({
      reply: (message) => this.#hear(message),
      failed: (error) => this.#fail(error),
    });
    this.#job.post({ type: "open", task });
    this.#pump(options.source).catch((thrown: unknown) => this.#fail(thrown));
  }

  /** So many bytes of chunks have left: as many more may be made. */
  acknowledge(bytes: number): void {
    this.#job.post({ type: "ack", bytes });
  }

  /** Ends it; no handler is called any more. Idempotent. */
  stop(): void {
    this.#isOver = true;
    this.#job.abandon();
    this.#wake();
  }

  async #pump(source: AsyncIterable<PcmPiece>): Promise<void> {
    for await (const { pcm, sampleRate } of source) {
      for (let at = 0; at < pcm.length && !this.#isOver; at += this.#partSamples) {
        while (this.#parts * this.#partSamples >= MAX_SAMPLES && !this.#isOver) await this.#room();
        this.#parts += 1;
        const part = pcm.slice(at, at + this.#partSamples);
        this.#job.post({ type: "samples", pcm: part, sampleRate }, [part.buffer]);
      }
      if (this.#isOver) return;
    }
    this.#job.post({ type: "end" });
  }

  /** Resolves when a part was taken, or all is over. */
  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #hear(message: FromConverter): void {
    switch (message.type) {
      case "chunk":
        this.#handlers.chunk?.(message.bytes);
        break;
      case "taken":
        this.#parts -= 1;
        this.#wake();
        break;
      case "failed":
        this.#fail(new GatewayError("internal", `Cannot convert the voice: ${message.message}`));
        break;
      case "done":
        this.#job.finish();
        this.stop();
        this.#handlers.done?.();
        break;
      case "measured":
        this.#job.finish();
        this.stop();
        this.#handlers.measured?.(message.profile);
        break;
    }
  }

  #fail(thrown: unknown): void {
    if (this.#isOver) return;
    this.stop();
    this.#handlers.failed(thrown);
  }
}
