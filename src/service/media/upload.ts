/**
 * multipart/form-data bodies: small fields in memory, files in nameless temporary files as they come in, so that an upload of
 * any size takes no more memory than a small one. Mounted in a scope of its own, because the rest of the server reads bodies
 * as bytes of at most 1 MB:
 *
 *   app.register(async (scope) => {
 *     await uploads.register(scope);
 *     scope.post(path, async (request, reply) => {
 *       const upload = await uploads.read(request, reply);
 *       try { ... } finally { await upload.close(); }
 *     });
 *   });
 */
import { fastifyMultipart, type MultipartFile } from "@fastify/multipart";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ClientLimit } from "../../kit/client-limit.ts";
import { ApiError } from "../api-error.ts";
import { BodyWatch, discardBody } from "./request-body.ts";
import type { TemporaryFile, TemporaryFiles } from "./temporary-file.ts";

const MAX_FIELDS = 64;
/** Most bytes of all fields of a form together, which are held in memory. */
const MAX_FIELD_BYTES = 1_048_576;
const MAX_FILE_NAME_LENGTH = 255;
const MAX_READING_MS = 3_600_000;
const MAX_STRANGER_READING_MS = 30_000;
const MEGABYTE = 1_048_576;

export interface UploadLimits {
  readonly maxFileBytes: number;
  readonly maxFiles: number;
  /** Most bytes of a whole form. */
  readonly maxFormBytes: number;
  /** Most bytes of a form whose client will be refused: its key is wrong or missing. */
  readonly maxStrangerBytes: number;
  /** Forms at once, read or being answered. */
  readonly maxUploads: number;
  /** Forms at once of one client (clientOf in kit/client-limit.ts); Infinity where one address stands for many. */
  readonly maxUploadsPerClient: number;
  /** Silence after which the connection is cut. */
  readonly stallMs: number;
  /** How long after it was refused a client that goes on sending is cut off. */
  readonly lingerMs: number;
}

export const UPLOAD_LIMITS: UploadLimits = {
  maxFileBytes: 100 * MEGABYTE,
  maxFiles: 8,
  maxFormBytes: 250 * MEGABYTE,
  maxStrangerBytes: MEGABYTE,
  maxUploads: 64,
  maxUploadsPerClient: 4,
  stallMs: 60_000,
  lingerMs: 5_000,
};

export interface UploadedFile {
  /** The name of its part. */
  readonly field: string;
  /** As the client gave it, without folders; "" where it gave none. */
  readonly fileName: string;
  /** As the client gave it: not to be relied on. */
  readonly mimeType: string;
  readonly bytes: number;
  /** From the start, each time it is called. */
  read(): AsyncIterable<Uint8Array>;
}

export interface Upload {
  /** The last one where a field is repeated. */
  readonly fields: ReadonlyMap<string, string>;
  /** In the order of the body; several may have the same field. */
  readonly files: readonly UploadedFile[];
  /** Frees the files and the client's place. Idempotent; to be called on every path. */
  close(): Promise<void>;
}

/** How a form is read: of a stranger's, less than of anybody else's. */
interface Terms {
  readonly clients: ClientLimit;
  readonly maxBytes: number;
  readonly wholeMs: number;
  /** null: no byte of a file is kept. */
  readonly temporaryFiles: TemporaryFiles | null;
  /** Thrown where too many forms are being read. */
  readonly busy: ApiError;
  /** Thrown for a form over `maxBytes`. */
  readonly tooLarge: ApiError;
}

const NO_FORM: Upload = { fields: new Map(), files: [], close: () => Promise.resolve() };

/** The uploads of one service. */
export class Uploads {
  readonly #limits: UploadLimits;
  readonly #terms: Terms;
  /** Apart from the others, so that strangers can't take the places of those who have the key. */
  readonly #strangers: ClientLimit;

  constructor(temporaryFiles: TemporaryFiles, limits: Partial<UploadLimits> = {}) {
    this.#limits = { ...UPLOAD_LIMITS, ...limits };
    const { maxFormBytes, maxUploads: maxTotal, maxUploadsPerClient } = this.#limits;
    this.#strangers = new ClientLimit({ maxTotal, maxPerClient: UPLOAD_LIMITS.maxUploadsPerClient });
    this.#terms = {
      clients: new ClientLimit({ maxTotal, maxPerClient: maxUploadsPerClient }),
      maxBytes: maxFormBytes,
      wholeMs: MAX_READING_MS,
      temporaryFiles,
      busy: ApiError.busy("Too many uploads are under way, try again when one of them is done."),
      tooLarge: tooLarge(`The form is larger than ${sizeText(maxFormBytes)}: send less at once.`),
    };
  }

  /** Makes the scope read multipart bodies, and leaves every other body alone. */
  async register(scope: FastifyInstance): Promise<void> {
    const { maxFiles } = this.#limits;
    scope.removeAllContentTypeParsers();
    await scope.register(fastifyMultipart, {
      limits: {
        // Counted where it is read: the parser would go on to the end of a file that is too large.
        fileSize: Number.POSITIVE_INFINITY,
        files: maxFiles,
        fields: MAX_FIELDS,
        fieldSize: MAX_FIELD_BYTES,
        parts: maxFiles + MAX_FIELDS,
      },
    });
    // To FastAPI a body that is no form is a form without parts.
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  }

  /**
   * The parts of the body; one that is no form has none. Rejects with ApiError 400 for a broken form and for one over a limit
   * (`request_too_large`), 429 where too many uploads are under way or the temporary files have no room. Nothing is left open
   * when it rejects, also where the client leaves in the middle.
   *
   * `stranger`: why the client will be refused in any case, its key being wrong or missing. The interface looks at the key
   * after the shape of the form, so a small form is read to its end, but no byte of its files is kept. For a larger one
   * `stranger` is thrown at once.
   */
  async read(
    request: FastifyRequest,
    reply: FastifyReply,
    { stranger = null }: { readonly stranger?: ApiError | null } = {},
  ): Promise<Upload> {
    const { raw } = request;
    const { stallMs, lingerMs } = this.#limits;
    if (!isMultipart(request)) {
      discardBody(request, reply, lingerMs);
      return NO_FORM;
    }
    if (raw.destroyed && !raw.readableEnded) throw brokenForm();
    const terms = stranger === null ? this.#terms : this.#termsOf(stranger);
    const leave = terms.clients.acquire(raw.socket.remoteAddress ?? "");
    const watch = new BodyWatch(raw, { ...terms, stallMs });
    const reading = new Reading(terms, { limits: this.#limits, watch, onClose: () => leave?.() });
    try {
      if (leave === null) throw terms.busy;
      if (Number(request.headers["content-length"] ?? 0) > terms.maxBytes) throw terms.tooLarge;
      for await (const part of request.parts()) {
        if (part.type === "file") await reading.file(part);
        else reading.field(part.fieldname, part.value, part.valueTruncated);
      }
      watch.end();
      return reading.upload();
    } catch (thrown) {
      watch.end();
      discardBody(request, reply, lingerMs);
      await reading.close();
      throw this.#formFault(thrown);
    }
  }

  #termsOf(stranger: ApiError): Terms {
    return {
      clients: this.#strangers,
      maxBytes: this.#limits.maxStrangerBytes,
      wholeMs: MAX_STRANGER_READING_MS,
      temporaryFiles: null,
      busy: stranger,
      tooLarge: stranger,
    };
  }

  /** The plugin's errors are known by their code. */
  #formFault(thrown: unknown): unknown {
    if (thrown instanceof ApiError || !(thrown instanceof Error)) return thrown;
    const code = "code" in thrown ? String(thrown.code) : "";
    if (/^FST_(?:PARTS|FILES|FIELDS)_LIMIT$/.test(code)) {
      const { maxFiles } = this.#limits;
      return tooLarge(
        `The form has too many parts, expected at most ${maxFiles} files and ${MAX_FIELDS} fields.`,
      );
    }
    // System errors (no space on the disk) are ours and have an errno; the rest is the form's.
    return "errno" in thrown ? thrown : brokenForm();
  }
}

/** The parts as they come in. */
class Reading {
  readonly #terms: Terms;
  readonly #limits: UploadLimits;
  readonly #watch: BodyWatch;
  readonly #onClose: () => void;
  readonly #fields = new Map<string, string>();
  readonly #files: UploadedFile[] = [];
  readonly #opened: TemporaryFile[] = [];
  #fieldBytes = 0;

  constructor(
    terms: Terms,
    options: { readonly limits: UploadLimits; readonly watch: BodyWatch; readonly onClose: () => void },
  ) {
    this.#terms = terms;
    this.#limits = options.limits;
    this.#watch = options.watch;
    this.#onClose = options.onClose;
  }

  field(name: string, value: unknown, isCut: boolean): void {
    this.#requireSize();
    // A part that calls itself JSON comes parsed.
    const text = typeof value === "string" ? value : JSON.stringify(value);
    this.#fieldBytes += Buffer.byteLength(text);
    if (isCut || this.#fieldBytes > MAX_FIELD_BYTES) {
      throw tooLarge(
        `The fields of the form are larger than ${sizeText(MAX_FIELD_BYTES)} without its files.`,
      );
    }
    this.#fields.set(name, text);
  }

  async file(part: MultipartFile): Promise<void> {
    const { maxFileBytes } = this.#limits;
    const kept = await this.#create(part);
    let bytes = 0;
    for await (const chunk of part.file as AsyncIterable<Uint8Array>) {
      this.#requireSize();
      bytes += chunk.byteLength;
      if (bytes > maxFileBytes) {
        throw tooLarge(
          `A file is larger than ${sizeText(maxFileBytes)}: send a shorter recording, or a compressed one.`,
        );
      }
      await kept?.write(chunk);
    }
    this.#files.push({
      field: part.fieldname,
      fileName: (part.filename ?? "").slice(0, MAX_FILE_NAME_LENGTH),
      mimeType: part.mimetype,
      bytes,
      read: () => kept?.read() ?? nothing(),
    });
  }

  upload(): Upload {
    return { fields: this.#fields, files: this.#files, close: () => this.close() };
  }

  async close(): Promise<void> {
    try {
      await Promise.all(this.#opened.map((file) => file.close()));
    } finally {
      this.#onClose();
    }
  }

  #requireSize(): void {
    if (this.#watch.bytes > this.#terms.maxBytes) throw this.#terms.tooLarge;
  }

  async #create(part: MultipartFile): Promise<TemporaryFile | undefined> {
    try {
      const file = await this.#terms.temporaryFiles?.create();
      if (file !== undefined) this.#opened.push(file);
      return file;
    } catch (thrown) {
      part.file.destroy();
      throw thrown;
    }
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  yield* [];
}

function isMultipart(request: FastifyRequest): boolean {
  return /^multipart\/form-data(?:;|\s|$)/i.test(request.headers["content-type"] ?? "");
}

/** FastAPI's own words. */
function brokenForm(): ApiError {
  return new ApiError(400, "There was an error parsing the body");
}

function tooLarge(message: string): ApiError {
  return ApiError.of({ type: "invalid_request", code: "request_too_large", message });
}

function sizeText(bytes: number): string {
  return bytes % MEGABYTE === 0 ? `${bytes / MEGABYTE} MB` : `${bytes} bytes`;
}
