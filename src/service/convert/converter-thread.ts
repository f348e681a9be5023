/**
 * A conversion or a measurement in a thread of its own: samples go in as fast as they are worked off, bytes come out as fast
 * as they are taken. The thread ends with its task: whatever became of it, nothing of it is left.
 */
import { Worker } from "node:worker_threads";
import { GatewayError } from "../../errors.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import type { PcmPiece } from "../media/pieces.ts";
import { type ConverterTask, type FromConverter, MAX_UNSENT_BYTES, type ToConverter } from "./messages.ts";
import type { VoiceProfile } from "./voice-profile.ts";

/** Samples in one message, and messages on the way: about a second of 44.1 kHz. */
const PART_SAMPLES = 8192;
const MAX_PARTS = 6;
/** A thread that owes an answer is silent for so long: it hangs. A part takes it some tens of ms. */
const STALL_MS = 60_000;

/** `chunk`*, then exactly one of the others; nothing after `stop()`. */
export interface ConverterHandlers {
  chunk?(bytes: Uint8Array<ArrayBuffer>): void;
  done?(): void;
  measured?(profile: VoiceProfile | null): void;
  /** What the source threw, or a GatewayError "internal". */
  failed(thrown: unknown): void;
}

export class ConverterThread {
  readonly #worker: Worker;
  readonly #handlers: ConverterHandlers;
  readonly #onEnd: () => void;
  readonly #watch: NodeJS.Timeout;
  #parts = 0;
  #unsentBytes = 0;
  #hasEnded = false;
  #wake: (() => void) | null = null;
  #isOver = false;

  /**
   * Starts at once; `onEnd` is called when the task is over, in whatever way. Reads `source` to its end or returns it.
   * `stallMs` (default 60,000): how long the thread may owe an answer before it is given up.
   */
  constructor(
    task: ConverterTask,
    source: AsyncIterable<PcmPiece>,
    options: {
      readonly handlers: ConverterHandlers;
      readonly onEnd: () => void;
      readonly stallMs?: number;
    },
  ) {
    this.#handlers = options.handlers;
    this.#onEnd = options.onEnd;
    const stallMs = options.stallMs ?? STALL_MS;
    this.#worker = new Worker(workerUrl("./convert-worker.ts", import.meta.url), { workerData: task });
    this.#watch = setInterval(() => this.#giveUp(stallMs), stallMs);
    this.#worker.on("message", (message: FromConverter) => this.#hear(message));
    this.#worker.on("error", (cause) => this.fail(internal(cause.message, cause)));
    this.#worker.on("exit", (code) => this.fail(internal(`the thread ended with code ${code}`)));
    this.#pump(source).catch((thrown: unknown) => this.fail(thrown));
  }

  /** So many bytes of chunks have left: as many more may be made. */
  acknowledge(bytes: number): void {
    this.#unsentBytes -= bytes;
    this.#tell({ type: "ack", bytes });
  }

  /** Ends the thread; nothing is told any more. Idempotent. */
  stop(): void {
    this.#end();
  }

  async #pump(source: AsyncIterable<PcmPiece>): Promise<void> {
    for await (const { pcm, sampleRate } of source) {
      for (let at = 0; at < pcm.length && !this.#isOver; at += PART_SAMPLES) {
        while (this.#parts >= MAX_PARTS && !this.#isOver) await this.#room();
        this.#parts += 1;
        this.#tell({ type: "samples", pcm: pcm.slice(at, at + PART_SAMPLES), sampleRate });
      }
      if (this.#isOver) return;
    }
    this.#hasEnded = true;
    this.#tell({ type: "end" });
  }

  /** The thread has said nothing, and was told nothing, for `stallMs`: it owes an answer unless it waits for somebody else. */
  #giveUp(stallMs: number): void {
    const isWaiting = this.#unsentBytes > MAX_UNSENT_BYTES;
    const isOwed = this.#parts > 0 || this.#hasEnded;
    if (isOwed && !isWaiting) this.fail(internal(`the thread was silent for ${stallMs} ms`));
  }

  /** Resolves when a part was taken, or all is over. */
  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #tell(message: ToConverter): void {
    if (this.#isOver) return;
    this.#watch.refresh();
    this.#worker.postMessage(message, message.type === "samples" ? [message.pcm.buffer as ArrayBuffer] : []);
  }

  #hear(message: FromConverter): void {
    if (this.#isOver) return;
    this.#watch.refresh();
    if (message.type === "chunk") {
      this.#unsentBytes += message.bytes.length;
      this.#handlers.chunk?.(message.bytes);
    } else if (message.type === "failed") this.fail(internal(message.message));
    else if (message.type === "taken") {
      this.#parts -= 1;
      this.#wake?.();
    } else {
      this.#end();
      if (message.type === "done") this.#handlers.done?.();
      else this.#handlers.measured?.(message.profile);
    }
  }

  /** Ends the thread and tells why. Nothing after the end. */
  fail(thrown: unknown): void {
    if (this.#isOver) return;
    this.#end();
    this.#handlers.failed(thrown);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#watch);
    this.#wake?.();
    void this.#worker.terminate();
    this.#onEnd();
  }
}

function internal(reason: string, cause?: unknown): GatewayError {
  return new GatewayError("internal", `Cannot convert the voice: ${reason}`, { cause });
}
