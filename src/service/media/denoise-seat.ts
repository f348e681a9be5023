/** A denoising worker as the pool sees it: runs one job after the other, and is ended where one is given up. */
import { Worker } from "node:worker_threads";
import { GatewayError } from "../../errors.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import { Refusal } from "../http/refusal.ts";
import type { Denoised, DenoiseSpec, FromDenoiser, ToDenoiser } from "./denoise-messages.ts";

export interface DenoiseJob {
  readonly file: { read(): AsyncIterable<Uint8Array> };
  readonly spec: DenoiseSpec;
  /** Ends the job, in the middle of a frame if need be: its worker goes with it. */
  readonly signal: AbortSignal;
}

export class DenoiseSeat {
  readonly #worker: Worker;
  /** Not yet read; the worker's credit bounds them. */
  readonly #inbox: FromDenoiser[] = [];
  #wake: (() => void) | undefined;
  #fault: GatewayError | undefined;
  #ending: Promise<void> | undefined;

  constructor() {
    this.#worker = new Worker(workerUrl("./denoise-worker.ts", import.meta.url));
    this.#worker.on("message", (message: FromDenoiser) => {
      this.#inbox.push(message);
      this.#wake?.();
    });
    this.#worker.on("error", (cause) => this.#fail(`it failed: ${cause.message}`, cause));
    this.#worker.on("exit", (code) => this.#fail(`it ended with code ${code}`));
  }

  /** False once it was ended, or ended by itself: it can run nothing any more. */
  get isUsable(): boolean {
    return this.#fault === undefined && this.#ending === undefined;
  }

  /** Resolves when it can run jobs at full speed; rejects with GatewayError `internal`, or when the signal is given. */
  async ready(signal: AbortSignal): Promise<void> {
    while ((await this.#next(signal)).type !== "ready");
  }

  /**
   * MP3 bytes as they are made. Rejects with the file's Refusal, with GatewayError `internal` where the worker failed,
   * and with the signal's reason. Where the loop is left early the worker is ended.
   */
  async *run({ file, spec, signal }: DenoiseJob): AsyncGenerator<Uint8Array, Denoised> {
    const pieces = file.read()[Symbol.asyncIterator]();
    let isOver = false;
    try {
      this.#tell({ type: "open", spec });
      while (true) {
        const message = await this.#next(signal);
        switch (message.type) {
          case "more": {
            const piece = await pieces.next();
            this.#tell(
              piece.done === true ? { type: "end" } : { type: "piece", bytes: new Uint8Array(piece.value) },
            );
            break;
          }
          case "chunk":
            yield message.bytes;
            this.#tell({ type: "ack", bytes: message.bytes.length });
            break;
          case "done":
            isOver = true;
            return message.result;
          case "refused":
            isOver = true;
            throw Refusal.of({ ...message.refusal, param: "audio" });
          case "failed":
            throw new GatewayError("internal", `Cannot isolate: ${message.message}`);
          case "ready":
            break;
        }
      }
    } finally {
      if (!isOver) await this.end();
      await pieces.return?.();
    }
  }

  /** Resolves when the thread is gone. Idempotent. */
  end(): Promise<void> {
    this.#ending ??= this.#worker.terminate().then(() => undefined);
    return this.#ending;
  }

  async #next(signal: AbortSignal): Promise<FromDenoiser> {
    while (true) {
      signal.throwIfAborted();
      const message = this.#inbox.shift();
      if (message !== undefined) return message;
      if (this.#fault !== undefined) throw this.#fault;
      await this.#woken(signal);
    }
  }

  #woken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        this.#wake = undefined;
        resolve();
      };
      this.#wake = wake;
      signal.addEventListener("abort", wake);
    });
  }

  #fail(reason: string, cause?: Error): void {
    const message = `Cannot isolate: the worker is gone, ${reason}`;
    this.#fault ??= new GatewayError("internal", message, cause === undefined ? {} : { cause });
    this.#wake?.();
  }

  #tell(message: ToDenoiser): void {
    const transfer = message.type === "piece" ? [message.bytes.buffer] : [];
    this.#worker.postMessage(message, transfer);
  }
}
