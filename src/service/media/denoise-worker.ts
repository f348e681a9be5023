/** A denoising worker thread: one job at a time, as long as it is fed and its bytes are taken. */
import { parentPort } from "node:worker_threads";
import { Refusal } from "../http/refusal.ts";
import { runDenoise } from "./denoise-job.ts";
import type { DenoiseRefusal, DenoiseSpec, FromDenoiser, ToDenoiser } from "./denoise-messages.ts";
import { createDenoiser } from "./denoiser.ts";

const port = parentPort;
if (port === null) throw new TypeError("Cannot run denoise-worker: it is no worker thread");

/** Bytes that may be under way before the job waits: four seconds of MP3. */
const CREDIT_BYTES = 65_536;

let unacknowledgedBytes = 0;
/** Set while the job waits, for its next piece or for credit. */
let onPiece: ((bytes: Uint8Array | null) => void) | undefined;
let onCredit: (() => void) | undefined;

function post(message: FromDenoiser, transfer: readonly ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer);
}

async function* read(): AsyncGenerator<Uint8Array> {
  while (true) {
    const piece = await new Promise<Uint8Array | null>((resolve) => {
      onPiece = resolve;
      post({ type: "more" });
    });
    if (piece === null) return;
    yield piece;
  }
}

async function emit(bytes: Uint8Array): Promise<void> {
  const whole = new Uint8Array(bytes);
  unacknowledgedBytes += whole.length;
  post({ type: "chunk", bytes: whole }, [whole.buffer]);
  if (unacknowledgedBytes < CREDIT_BYTES) return;
  await new Promise<void>((resolve) => {
    onCredit = resolve;
  });
}

async function run(spec: DenoiseSpec): Promise<void> {
  try {
    const result = await runDenoise({ read }, spec, emit);
    post({ type: "done", result });
  } catch (thrown) {
    const refusal = refusalOf(thrown);
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    post(refusal === undefined ? { type: "failed", message } : { type: "refused", refusal });
  }
}

function refusalOf(thrown: unknown): DenoiseRefusal | undefined {
  if (!(thrown instanceof Refusal)) return undefined;
  const { type, code, message } = thrown.body("").detail as DenoiseRefusal;
  return { type, code, message };
}

port.on("message", (message: ToDenoiser) => {
  switch (message.type) {
    case "open":
      unacknowledgedBytes = 0;
      void run(message.spec);
      break;
    case "piece":
      onPiece?.(message.bytes);
      break;
    case "end":
      onPiece?.(null);
      break;
    case "ack":
      unacknowledgedBytes -= message.bytes;
      if (unacknowledgedBytes < CREDIT_BYTES) onCredit?.();
      break;
  }
});

// The weights are read before anybody waits for them.
(await createDenoiser()).close();
post({ type: "ready" });
