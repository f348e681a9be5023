/**
 * Carries a speech job's chunks to the client: streamed as they come, or whole with its length. Bytes are acknowledged
 * to the job when the socket has taken them, so that a slow client slows its own job only; a client that leaves ends it.
 */
import type { OutgoingHttpHeaders } from "node:http";
import { wavHeader } from "../../../audio/containers/wav.ts";
import { parseUpstreamFormat } from "../../../audio/formats.ts";
import { GatewayError } from "../../../errors.ts";
import { ApiError } from "../../api-error.ts";
import type { TemporaryFiles } from "../../media/temporary-file.ts";
import type { JobChunk, JobSpec } from "../../voice/messages.ts";
import type { Job, JobHandlers } from "../../voice/pool.ts";
import { asApiError } from "../failure.ts";
import { Spool } from "../spool.ts";
import { GatheredTiming, timedChunk } from "./timing-json.ts";

/** What a delivery needs of the voice pool. */
export interface JobOpener {
  open(spec: JobSpec, handlers: JobHandlers): Job;
}

/** What a delivery needs of the response: a ServerResponse, or one with faults. */
export interface Outlet {
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  writeHead(status: number, headers: OutgoingHttpHeaders): unknown;
  write(bytes: string | Uint8Array, onWritten?: () => void): boolean;
  end(): unknown;
  destroy(): unknown;
  once(event: "close" | "drain", listener: () => void): unknown;
  off(event: "close" | "drain", listener: () => void): unknown;
}

export interface Delivery {
  readonly opener: JobOpener;
  /** Where a long answer is held until it is whole. */
  readonly temporaryFiles: TemporaryFiles;
  readonly spec: JobSpec;
  readonly isDialogue: boolean;
  /** Whether the client asked for timing; the job may be asked for it without. */
  readonly wantsTiming: boolean;
  /** As asked for: a `wav_` format is PCM to the job. */
  readonly outputFormat: string;
  readonly response: Outlet;
  /** Called once, when the first audio is there: all headers but the length. `first`: it, where it is sent at once. */
  readonly headers: (first?: JobChunk) => Readonly<Record<string, string>>;
}

/** Streams audio, or with timing one JSON object a line. Throws ApiError while nothing has been sent. */
export function deliverStream(delivery: Delivery): Promise<void> {
  const { response, wantsTiming } = delivery;
  return run(delivery, {
    chunk: (chunk, job) => {
      if (response.destroyed) return;
      if (!response.headersSent) response.writeHead(200, delivery.headers(chunk));
      const bytes = wantsTiming ? timedLine(chunk, delivery) : chunk.audio;
      const length = chunk.audio.length;
      // Called back when the bytes have left for the kernel, also after a failed write: credit never leaks.
      response.write(bytes, () => job.acknowledge(length));
    },
    done: () => {
      if (!response.headersSent) response.writeHead(200, delivery.headers());
      response.end();
      return Promise.resolve();
    },
  });
}

function timedLine(chunk: JobChunk, delivery: Delivery): string {
  return `${JSON.stringify(timedChunk(chunk, delivery))}\n`;
}

/** Answers with the whole file, or with one JSON object. Throws ApiError while nothing has been sent. */
export async function deliverWhole(delivery: Delivery): Promise<void> {
  const { wantsTiming } = delivery;
  const spool = new Spool(delivery.temporaryFiles);
  const timing = new GatheredTiming();
  try {
    await run(delivery, {
      chunk: (chunk, job) => {
        if (chunk.timing !== null) timing.add(chunk.timing);
        const length = chunk.audio.length;
        void spool.write(chunk.audio).then(
          () => job.acknowledge(length),
          (thrown: unknown) => job.cancel(thrown),
        );
      },
      done: () => (wantsTiming ? sendJson(delivery, spool, timing) : sendFile(delivery, spool)),
    });
  } finally {
    await spool.close();
  }
}

interface Steps {
  chunk(chunk: JobChunk, job: { acknowledge(bytes: number): void; cancel(thrown: unknown): void }): void;
  done(): Promise<void>;
}

/** Runs the job until it is delivered, refused or abandoned by the client; then nothing of it is left. */
function run(delivery: Delivery, steps: Steps): Promise<void> {
  const { response } = delivery;
  return new Promise((resolve, reject) => {
    let job: Job | undefined;
    const settle = (fault?: unknown) => {
      response.off("close", onClose);
      job?.cancel();
      if (fault === undefined) return resolve();
      // Too late for an error body: a cut connection tells the client that the audio is not whole.
      if (response.headersSent) {
        response.destroy();
        return resolve();
      }
      reject(fault);
    };
    const onClose = () => settle();
    response.once("close", onClose);
    // Gone before it began: there will be no "close" any more.
    if (response.destroyed) return settle();
    try {
      job = delivery.opener.open(delivery.spec, {
        chunk: (chunk) =>
          steps.chunk(chunk, {
            acknowledge: (bytes) => job?.acknowledge(bytes),
            cancel: (thrown) => settle(thrown),
          }),
        done: () => void steps.done().then(() => settle(), settle),
        failed: (error) => settle(speechFailed(error)),
      });
    } catch (thrown) {
      settle(thrown instanceof GatewayError ? speechFailed(thrown) : thrown);
    }
  });
}

/** Failures beside those of a queue or a shutdown are faults of ours: the message says what happened. */
function speechFailed(error: GatewayError): unknown {
  const apiError = asApiError(error);
  if (apiError !== error) return apiError;
  return ApiError.of({ type: "internal_error", code: "internal_error", message: error.message });
}

async function sendFile(delivery: Delivery, spool: Spool): Promise<void> {
  const header = fileHeader(delivery.outputFormat, spool.size);
  await send(delivery, header.length + spool.size, withHeader(header, spool));
}

async function* withHeader(header: Uint8Array, spool: Spool): AsyncGenerator<Uint8Array> {
  if (header.length > 0) yield header;
  yield* spool.read();
}

/** The 44 bytes of a WAV file; empty for every other format. */
function fileHeader(outputFormat: string, dataBytes: number): Uint8Array {
  const format = parseUpstreamFormat(outputFormat);
  if (format?.codec !== "wav") return new Uint8Array(0);
  return wavHeader({ sampleRate: format.sampleRate, dataBytes });
}

async function sendJson(delivery: Delivery, spool: Spool, timing: GatheredTiming): Promise<void> {
  const header = fileHeader(delivery.outputFormat, spool.size);
  const rest = Buffer.from(timing.json(delivery));
  const open = Buffer.from('{"audio_base64":"');
  const base64Length = Math.ceil((header.length + spool.size) / 3) * 4;
  await send(delivery, open.length + base64Length + rest.length, parts());
  async function* parts(): AsyncGenerator<Uint8Array> {
    yield open;
    yield* base64(withHeader(header, spool));
    yield rest;
  }
}

/** Standard base64 of the whole, in pieces: a piece ends at a multiple of three bytes. */
async function* base64(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([held, chunk]);
    const whole = bytes.length - (bytes.length % 3);
    held = bytes.subarray(whole);
    yield Buffer.from(bytes.subarray(0, whole).toString("base64"), "latin1");
  }
  yield Buffer.from(held.toString("base64"), "latin1");
}

async function send(delivery: Delivery, length: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const { response } = delivery;
  response.writeHead(200, { ...delivery.headers(), "content-length": String(length) });
  for await (const chunk of chunks) {
    if (response.destroyed) return;
    if (!response.write(chunk)) await drained(response);
  }
  response.end();
}

/** Resolves when the socket takes more, or is gone. */
function drained(response: Outlet): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      response.off("drain", settle);
      response.off("close", settle);
      resolve();
    };
    response.once("drain", settle);
    response.once("close", settle);
    if (response.destroyed) settle();
  });
}
