/** Section "Audio isolation": noise out of uploaded speech, and its history. */
import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyReply } from "fastify";
import { ApiError } from "../../api-error.ts";
import { clientSignal } from "../../convert/client-signal.ts";
import type { FileFormat } from "../../media/decode-upload.ts";
import { requireWholeSamples } from "../../media/decoders/raw.ts";
import type { Denoised } from "../../media/denoise-messages.ts";
import { DenoisePool } from "../../media/denoise-pool.ts";
import { MP3_RATE, mp3InfoFrame } from "../../media/mp3-info.ts";
import type { UploadedFile } from "../../media/upload.ts";
import type { NewIsolation } from "../../store/isolations.ts";
import type { MediaWriter } from "../../store/media.ts";
import type { ServiceContext } from "../context.ts";
import { asApiError } from "../failure.ts";
import { registerIsolationHistory } from "../history/isolation-history.ts";
import { route } from "../operation.ts";
import { type Admission, concurrencyHeaders, requireLoggable } from "../tiers.ts";
import {
  ISOLATE,
  ISOLATE_STREAMED,
  MAX_PREVIEW_LENGTH,
  requireIsolationFormat,
} from "./isolation-operations.ts";

const CONTENT_TYPE = "audio/mpeg";

/** What was asked for, once it is known to be sound. */
interface Request {
  readonly audio: UploadedFile;
  readonly fileFormat: FileFormat;
  readonly outputFormat: string;
  readonly previewBase64: string | null;
  /** Whether it is kept in the history. */
  readonly isLogged: boolean;
}

/** One request on its way: given up when the client leaves. */
interface Exchange {
  readonly asked: Request;
  readonly reply: FastifyReply;
  readonly admission: Admission;
  readonly signal: AbortSignal;
}

/** POST /v1/audio-isolation and its /stream, and the history of both. */
export function registerAudioIsolation(app: FastifyInstance, context: ServiceContext): void {
  const isolations = new Isolations(context);
  app.addHook("onClose", () => isolations.close());
  app.register(async (scope) => {
    await context.uploads.register(scope);
    route(scope, context, ISOLATE, ({ reply, query, body }) => {
      const { audio, file_format: fileFormat, preview_b64: previewBase64 = null } = body;
      const { enable_logging: isLogged } = query;
      requirePreview(previewBase64, { isLogged });
      return isolations.handle(
        { audio, fileFormat, previewBase64, isLogged, outputFormat: query.output_format },
        reply,
        (exchange) => isolations.sendWhole(exchange),
      );
    });
    route(scope, context, ISOLATE_STREAMED, ({ reply, query, body }) => {
      const { audio, file_format: fileFormat } = body;
      const { enable_logging: isLogged, output_format: outputFormat } = query;
      return isolations.handle(
        { audio, fileFormat, previewBase64: null, isLogged, outputFormat },
        reply,
        (exchange) => isolations.sendStreamed(exchange),
      );
    });
  });
  registerIsolationHistory(app, context);
}

class Isolations {
  readonly #context: ServiceContext;
  readonly #pool = new DenoisePool();
  /** Requests that are being answered: closing waits for them, because they write to the store. */
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(context: ServiceContext) {
    this.#context = context;
  }

  /** Answers while the client is there. */
  async handle(
    asked: Request,
    reply: FastifyReply,
    answer: (exchange: Exchange) => Promise<void>,
  ): Promise<FastifyReply> {
    requireIsolationFormat(asked.outputFormat);
    requireLoggable(asked.isLogged, this.#context.tier);
    // Looked at here, for a stream has begun before the end is decoded.
    if (asked.fileFormat === "pcm_s16le_16") requireWholeSamples(asked.audio.bytes);
    if (this.#isClosed) throw ApiError.unavailable("Isolation ended: the service is shutting down");
    const admission = this.#context.gate.enter("standard");
    const client = clientSignal(reply.raw);
    const answering = answer({ asked, reply, admission, signal: client.signal });
    this.#underWay.add(answering);
    try {
      await answering;
    } catch (thrown) {
      // Nobody is there to be told.
      if (thrown !== client.signal.reason) throw asApiError(thrown);
    } finally {
      client.release();
      admission.release();
      this.#underWay.delete(answering);
    }
    // The raw response was written, or nobody is there to read it.
    return reply.hijack();
  }

  /** Resolves when nothing of any request is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pool.close();
    await Promise.allSettled(this.#underWay);
  }

  async sendWhole(exchange: Exchange): Promise<void> {
    const file = await this.#context.temporaryFiles.create();
    try {
      const result = await eachOf(this.#isolate(exchange), (bytes) => file.write(bytes));
      const info = mp3InfoFrame(result);
      const whole = joined(info, file.read());
      const writer = await this.#writerFor(exchange);
      await this.#keep(exchange, { writer, result }, async () => {
        if (writer === null) return;
        await writer.write(info);
        for await (const bytes of file.read()) await writer.write(bytes);
      });
      exchange.signal.throwIfAborted();
      const length = info.length + file.bytes;
      writeHead(exchange, { "content-length": String(length) });
      for await (const bytes of whole) await send(exchange, bytes);
      exchange.reply.raw.end();
    } finally {
      await file.close();
    }
  }

  async sendStreamed(exchange: Exchange): Promise<void> {
    const { reply } = exchange;
    const writer = await this.#writerFor(exchange);
    const pass = async (bytes: Uint8Array): Promise<void> => {
      await writer?.write(bytes);
      await send(exchange, bytes);
    };
    try {
      const result = await eachOf(this.#isolate(exchange), async (bytes) => {
        // The first sound is there: what is unknown or broken from its start has been refused.
        if (!reply.raw.headersSent) {
          writeHead(exchange, {});
          await pass(mp3InfoFrame(null));
        }
        await pass(bytes);
      });
      await this.#keep(exchange, { writer, result }, () => Promise.resolve());
      reply.raw.end();
    } catch (thrown) {
      await writer?.abort();
      if (!reply.raw.headersSent) throw thrown;
      // Too late for an error body: a cut connection tells the client that the audio is not whole.
      reply.raw.destroy();
    }
  }

  #isolate({ asked, signal }: Exchange): AsyncGenerator<Uint8Array, Denoised> {
    return this.#pool.run({ file: asked.audio, spec: { fileFormat: asked.fileFormat }, signal });
  }

  /** Null where nothing is kept. */
  async #writerFor({ asked }: Exchange): Promise<MediaWriter | null> {
    return asked.isLogged ? await this.#context.store.media.writer() : null;
  }

  /** The item is in the history before the client sees the end. */
  async #keep(
    { asked, signal }: Exchange,
    made: { readonly writer: MediaWriter | null; readonly result: Denoised },
    write: () => Promise<void>,
  ): Promise<void> {
    try {
      await write();
      // What the client gave up is not kept.
      signal.throwIfAborted();
      if (made.writer === null) return;
      const media = await made.writer.finish();
      this.#context.store.isolations.add(newIsolation(asked, made.result), media);
    } catch (thrown) {
      await made.writer?.abort();
      throw thrown;
    }
  }
}

function newIsolation({ audio, previewBase64 }: Request, result: Denoised): NewIsolation {
  return {
    title: audio.fileName === "" ? null : audio.fileName,
    createdAtUnix: Math.floor(Date.now() / 1000),
    format: result.format,
    durationSeconds: result.samples / MP3_RATE,
    previewBase64,
  };
}

function writeHead({ reply, admission }: Exchange, more: Readonly<Record<string, string>>): void {
  const given: OutgoingHttpHeaders = {
    "content-type": CONTENT_TYPE,
    ...concurrencyHeaders(admission),
    ...more,
  };
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) given[name] = value;
  }
  reply.raw.writeHead(200, given);
}

/** Resolves when the socket takes more; rejects when the client has gone. */
async function send({ reply, signal }: Exchange, bytes: Uint8Array): Promise<void> {
  const response = reply.raw;
  signal.throwIfAborted();
  if (response.write(bytes)) return;
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      response.off("drain", settle);
      signal.removeEventListener("abort", settle);
      resolve();
    };
    response.once("drain", settle);
    signal.addEventListener("abort", settle);
  });
  signal.throwIfAborted();
}

/** Takes every piece in turn; gives what the generator returns. */
async function eachOf<T>(
  pieces: AsyncGenerator<Uint8Array, T>,
  take: (bytes: Uint8Array) => Promise<void>,
): Promise<T> {
  try {
    while (true) {
      const next = await pieces.next();
      if (next.done === true) return next.value;
      await take(next.value);
    }
  } catch (thrown) {
    // Ends the worker of a job that was left in the middle; nothing to do where it threw itself.
    await pieces.throw(thrown).catch(() => undefined);
    throw thrown;
  }
}

async function* joined(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

function requirePreview(preview: string | null, { isLogged }: { readonly isLogged: boolean }): void {
  if (preview === null) return;
  const refuse = (message: string): never => {
    throw ApiError.unfit("invalid_parameters", message, { param: "preview_b64" });
  };
  if (!isLogged) refuse("preview_b64 can not be used with enable_logging=false: no item is kept then.");
  if (preview.length > MAX_PREVIEW_LENGTH) {
    refuse(`preview_b64 has ${preview.length} characters, expected at most ${MAX_PREVIEW_LENGTH}.`);
  }
  const isBase64 = preview.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(preview);
  if (!isBase64) refuse("preview_b64 is no base64, expected a picture as standard base64 with its padding.");
}
