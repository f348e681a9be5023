/** Section "Audio isolation" (service-interface.md 2.3, 4.5; contract A5): noise out of uploaded speech, and its history. */
import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../errors.ts";
import { FILE_FORMATS, type FileFormat } from "../media/decode-upload.ts";
import type { Denoised } from "../media/denoise-messages.ts";
import { DenoisePool } from "../media/denoise-pool.ts";
import { MP3_RATE, mp3InfoFrame } from "../media/mp3-info.ts";
import { TemporaryFile } from "../media/temporary-file.ts";
import { formFields, readUpload, registerUploads, requiredFile, type UploadedFile } from "../media/upload.ts";
import type { Isolation, NewIsolation } from "../store/isolations.ts";
import type { MediaWriter } from "../store/media.ts";
import { authorize, queryFields, type ServiceContext } from "./context.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";

const CONTENT_TYPE = "audio/mpeg";
const DEFAULT_PAGE = 100;
const MAX_PAGE = 1000;
/** Behind it there can be nothing: fewer rows fit on a disk. */
const LAST_PAGE = 1_000_000_000;
/** Characters of a preview: a list of a thousand of them is to stay below 100 MB. */
const MAX_PREVIEW_LENGTH = 98_304;

/** What was asked for, once it is known to be sound. */
interface Request {
  readonly audio: UploadedFile;
  readonly fileFormat: FileFormat;
  readonly previewBase64: string | null;
}

/** One request on its way: given up when the client leaves. */
interface Exchange {
  readonly asked: Request;
  readonly reply: FastifyReply;
  readonly signal: AbortSignal;
}

export function registerAudioIsolation(app: FastifyInstance, context: ServiceContext): void {
  const isolations = new Isolations(context);
  app.addHook("onClose", () => isolations.close());
  app.register(async (scope) => {
    await registerUploads(scope);
    scope.post("/v1/audio-isolation", (request, reply) =>
      isolations.handle({ request, reply, hasPreview: true }, (exchange) => isolations.sendWhole(exchange)),
    );
    scope.post("/v1/audio-isolation/stream", (request, reply) =>
      isolations.handle({ request, reply, hasPreview: false }, (exchange) =>
        isolations.sendStreamed(exchange),
      ),
    );
  });
  app.get("/v1/audio-isolation/history", async (request) => {
    const faults: ValidationEntry[] = [];
    const query = queryFields(request, faults);
    const pageSize = query.integer("page_size", { min: 1, max: MAX_PAGE }) ?? DEFAULT_PAGE;
    const page = query.integer("page", { min: 1, max: Number.MAX_SAFE_INTEGER }) ?? 1;
    const search = query.text("search")?.trim() || null;
    if (faults.length > 0) throw Refusal.invalid(faults);
    authorize(context, request);
    const { items, hasMore } = context.store.isolations.list({
      pageSize,
      page: search === null ? 1 : Math.min(page, LAST_PAGE),
      search,
    });
    return { items: items.map(isolationRecord), has_more: hasMore };
  });
  app.delete<{ Params: { history_item_id: string } }>(
    "/v1/audio-isolation/history/:history_item_id",
    async (request, reply) => {
      authorize(context, request);
      const id = request.params.history_item_id;
      if (!context.store.isolations.delete(id)) throw itemNotFound(id);
      return reply.code(204).send();
    },
  );
}

class Isolations {
  readonly #context: ServiceContext;
  readonly #pool = new DenoisePool();
  /** Requests that are being answered: closing waits for them, because they write to the store. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(context: ServiceContext) {
    this.#context = context;
  }

  /** Reads and checks the form in the order of the interface: its fields, then the key; then answers. */
  async handle(
    facts: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly hasPreview: boolean },
    answer: (exchange: Exchange) => Promise<void>,
  ): Promise<FastifyReply> {
    const { reply } = facts;
    const leaving = new AbortController();
    reply.raw.once("close", () => leaving.abort(new ClientGone()));
    const answering = this.#answer(facts, { answer, signal: leaving.signal });
    this.#underWay.add(answering);
    try {
      await answering;
    } catch (thrown) {
      if (!(thrown instanceof ClientGone)) throw asRefusal(thrown);
    } finally {
      this.#underWay.delete(answering);
    }
    // The raw response was written, or nobody is there to read it.
    return reply.hijack();
  }

  /** Resolves when nothing of any request is left. */
  async close(): Promise<void> {
    await this.#pool.close();
    await Promise.allSettled(this.#underWay);
  }

  async sendWhole(exchange: Exchange): Promise<void> {
    const { reply } = exchange;
    const file = await TemporaryFile.create();
    try {
      const result = await eachOf(this.#isolate(exchange), (bytes) => file.write(bytes));
      const info = mp3InfoFrame(result);
      const whole = joined(info, file.read());
      const writer = await this.#context.store.media.writer();
      await this.#keep(exchange, { writer, result }, async () => {
        await writer.write(info);
        for await (const bytes of file.read()) await writer.write(bytes);
      });
      exchange.signal.throwIfAborted();
      const length = info.length + file.bytes;
      writeHead(reply, { "content-length": String(length) });
      for await (const bytes of whole) await send(exchange, bytes);
      reply.raw.end();
    } finally {
      await file.close();
    }
  }

  async sendStreamed(exchange: Exchange): Promise<void> {
    const { reply } = exchange;
    const writer = await this.#context.store.media.writer();
    const pass = async (bytes: Uint8Array): Promise<void> => {
      await writer.write(bytes);
      await send(exchange, bytes);
    };
    try {
      const result = await eachOf(this.#isolate(exchange), async (bytes) => {
        // The first sound is there: what is unknown or broken from its start has been refused.
        if (!reply.raw.headersSent) {
          writeHead(reply, {});
          await pass(mp3InfoFrame(null));
        }
        await pass(bytes);
      });
      await this.#keep(exchange, { writer, result }, () => Promise.resolve());
      reply.raw.end();
    } catch (thrown) {
      await writer.abort();
      if (!reply.raw.headersSent) throw thrown;
      // Too late for an error body: a cut connection tells the client that the audio is not whole.
      reply.raw.destroy();
    }
  }

  async #answer(
    { request, reply, hasPreview }: Parameters<Isolations["handle"]>[0],
    then: { readonly answer: (exchange: Exchange) => Promise<void>; readonly signal: AbortSignal },
  ): Promise<void> {
    const keyFault = this.#keyFault(request);
    // The form is checked before the key, but what strangers send is not put on the disk.
    const upload = await readUpload(request, { keepsFiles: keyFault === undefined });
    try {
      const faults: ValidationEntry[] = [];
      const audio = requiredFile(upload, "audio", faults);
      const fields = formFields(upload, faults);
      const fileFormat = fields.choice("file_format", FILE_FORMATS) ?? "other";
      const previewBase64 = hasPreview ? (fields.text("preview_b64") ?? null) : null;
      if (faults.length > 0 || audio === undefined) throw Refusal.invalid(faults);
      if (keyFault !== undefined) throw keyFault;
      requirePreviewLength(previewBase64);
      then.signal.throwIfAborted();
      await then.answer({ asked: { audio, fileFormat, previewBase64 }, reply, signal: then.signal });
    } finally {
      await upload.close();
    }
  }

  #keyFault(request: FastifyRequest): unknown {
    try {
      authorize(this.#context, request);
      return undefined;
    } catch (thrown) {
      return thrown;
    }
  }

  #isolate({ asked, signal }: Exchange): AsyncGenerator<Uint8Array, Denoised> {
    return this.#pool.run({ file: asked.audio, spec: { fileFormat: asked.fileFormat }, signal });
  }

  /** The item is in the history before the client sees the end. */
  async #keep(
    { asked, signal }: Exchange,
    made: { readonly writer: MediaWriter; readonly result: Denoised },
    write: () => Promise<void>,
  ): Promise<void> {
    try {
      await write();
      // What the client gave up is not kept.
      signal.throwIfAborted();
      const media = await made.writer.finish();
      this.#context.store.isolations.add(newIsolation(asked, made.result), media);
    } catch (thrown) {
      await made.writer.abort();
      throw thrown;
    }
  }
}

/** The client closed the connection: there is nobody to answer. */
class ClientGone extends Error {
  override readonly name = "ClientGone";
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

/** Contract A5; what concerns videos is never so here, and there is no address to download from. */
function isolationRecord(item: Isolation): object {
  return {
    id: item.id,
    title: item.title,
    created_at_unix: item.createdAtUnix,
    format: item.format,
    duration_seconds: item.durationSeconds,
    download_url: null,
    icon_url: null,
    source_video_url: null,
    supports_video: false,
    processing: false,
    video_processing_failed: false,
    preview_b64: item.previewBase64,
  };
}

function writeHead(reply: FastifyReply, more: Readonly<Record<string, string>>): void {
  const given: OutgoingHttpHeaders = { "content-type": CONTENT_TYPE, ...more };
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) given[name] = value;
  }
  reply.raw.writeHead(200, given);
}

/** Resolves when the socket takes more; rejects with ClientGone. */
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

function requirePreviewLength(preview: string | null): void {
  if (preview === null || preview.length <= MAX_PREVIEW_LENGTH) return;
  throw Refusal.of({
    type: "validation_error",
    code: "invalid_parameters",
    message: `preview_b64 has ${preview.length} characters, expected at most ${MAX_PREVIEW_LENGTH}.`,
    param: "preview_b64",
  });
}

function itemNotFound(id: string): Refusal {
  return Refusal.of({
    type: "not_found",
    code: "history_item_not_found",
    message: `A history item with history_item_id '${id.slice(0, 64)}' was not found.`,
    param: "history_item_id",
  });
}

function asRefusal(thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError) || thrown.code !== "draining") return thrown;
  return Refusal.of({ type: "service_unavailable", code: "service_unavailable", message: thrown.message });
}
