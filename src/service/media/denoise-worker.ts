/** A denoising worker thread: one job at a time, as long as it is fed and its bytes are taken. */
import { serveJobs } from "../../kit/serve-jobs.ts";
import { ApiError } from "../api-error.ts";
import { runDenoise } from "./denoise-job.ts";
import type { DenoiseError, DenoiseSpec, FromDenoiser, ToDenoiser } from "./denoise-messages.ts";
import { createDenoiser } from "./denoiser.ts";

/** Bytes that may be under way before the job waits: four seconds of MP3. */
const CREDIT_BYTES = 65_536;

class Isolation {
  readonly #reply: (message: FromDenoiser, transfer?: readonly ArrayBuffer[]) => void;
  #unacknowledgedBytes = 0;
  /** Called while the job waits, for its next piece or for credit. */
  #onPiece: (bytes: Uint8Array | null) => void = () => undefined;
  #onCredit: () => void = () => undefined;

  constructor(reply: (message: FromDenoiser, transfer?: readonly ArrayBuffer[]) => void) {
    this.#reply = reply;
  }

  async run(spec: DenoiseSpec): Promise<void> {
    try {
      const result = await runDenoise({ read: () => this.#read() }, spec, (bytes) => this.#emit(bytes));
      this.#reply({ type: "done", result });
    } catch (thrown) {
      const error = errorPartsOf(thrown);
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      this.#reply(error === undefined ? { type: "failed", message } : { type: "refused", error });
    }
  }

  /** null: there are no more. */
  piece(bytes: Uint8Array | null): void {
    this.#onPiece(bytes);
  }

  acknowledge(bytes: number): void {
    this.#unacknowledgedBytes -= bytes;
    if (this.#unacknowledgedBytes < CREDIT_BYTES) this.#onCredit();
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    while (true) {
      const piece = await new Promise<Uint8Array | null>((resolve) => {
        this.#onPiece = resolve;
        this.#reply({ type: "more" });
      });
      if (piece === null) return;
      yield piece;
    }
  }

  async #emit(bytes: Uint8Array): Promise<void> {
    const whole = new Uint8Array(bytes);
    this.#unacknowledgedBytes += whole.length;
    this.#reply({ type: "chunk", bytes: whole }, [whole.buffer]);
    if (this.#unacknowledgedBytes < CREDIT_BYTES) return;
    await new Promise<void>((resolve) => {
      this.#onCredit = resolve;
    });
  }
}

function errorPartsOf(thrown: unknown): DenoiseError | undefined {
  if (!(thrown instanceof ApiError)) return undefined;
  const { type, code, message } = thrown.body("").detail as DenoiseError;
  return { type, code, message };
}

await serveJobs<ToDenoiser, FromDenoiser>(async (reply) => {
  // The weights are read before anybody waits for them.
  (await createDenoiser()).close();
  let current: Isolation | undefined;
  return (job, message) => {
    switch (message.type) {
      case "open":
        current = new Isolation((answer, transfer) => reply(job, answer, transfer));
        void current.run(message.spec);
        break;
      case "piece":
        current?.piece(message.bytes);
        break;
      case "end":
        current?.piece(null);
        break;
      case "ack":
        current?.acknowledge(message.bytes);
        break;
    }
  };
});
