/**
 * multipart/form-data bodies: small fields in memory, files in nameless temporary files as they come in, so that an upload of
 * any size takes no more memory than a small one. Mounted in a scope of its own, because the rest of the server reads bodies
 * as bytes of at most 1 MB:
 *
 *   app.register(async (scope) => {
 *     await registerUploads(scope);
 *     scope.post(path, async (request) => {
 *       const upload = await readUpload(request);
 *       try { ... } finally { await upload.close(); }
 *     });
 *   });
 */
import { fastifyMultipart, type MultipartFile } from "@fastify/multipart";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Refusal } from "../http/refusal.ts";
import { TemporaryFile } from "./temporary-file.ts";

const MAX_FILE_BYTES = 1_073_741_824;
const MAX_FILES = 25;
const MAX_FIELDS = 64;
const MAX_FIELD_BYTES = 1_048_576;
const MAX_FILE_NAME_LENGTH = 255;
/** Requests with an upload in one scope at the same time, read or being answered. */
const MAX_REQUESTS = 64;
/** Nothing came for so long: the client is taken for gone. */
const STALL_MS = 60_000;
/** The whole body must be there by then, however slowly it drips. */
const MAX_READING_MS = 3_600_000;

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
  /** Frees the files. Idempotent; to be called on every path. */
  close(): Promise<void>;
}

export interface UploadOptions {
  /** Default 1 GB; the longest of each file. */
  readonly maxFileBytes?: number;
  /** Default 60,000: silence after which the connection is cut. */
  readonly stallMs?: number;
  /** False: files are read but not kept (`bytes` counts, `read` gives nothing). For a client whose key is wrong: see readUpload. */
  readonly keepsFiles?: boolean;
}

/** Makes the scope read multipart bodies, and leaves every other body alone. Over 64 such requests at once are 429. */
export async function registerUploads(scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers();
  await scope.register(fastifyMultipart, {
    throwFileSizeLimit: false,
    limits: {
      fileSize: MAX_FILE_BYTES,
      files: MAX_FILES,
      fields: MAX_FIELDS,
      fieldSize: MAX_FIELD_BYTES,
      parts: MAX_FILES + MAX_FIELDS,
    },
  });
  // Never read: to FastAPI a body that is no form is a form without parts.
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  let requests = 0;
  scope.addHook("preParsing", async (request, reply) => {
    if (!isMultipart(request)) return;
    if (requests >= MAX_REQUESTS) throw Refusal.busy("Too many uploads are under way, try again later.");
    requests += 1;
    reply.raw.once("close", () => {
      requests -= 1;
    });
  });
}

/**
 * The parts of the body; one that is no form has none. Throws Refusal 400 for a broken form and for one over a limit
 * (`request_too_large`). Nothing is left open when it rejects, also where the client leaves in the middle.
 *
 * What is missing is told before the key is looked at (contract C1). To spare the disk of strangers, look at the key first,
 * read with `keepsFiles: false` where it is wrong, and refuse afterwards.
 */
export async function readUpload(request: FastifyRequest, options: UploadOptions = {}): Promise<Upload> {
  if (!isMultipart(request)) return { fields: new Map(), files: [], close: () => Promise.resolve() };
  const { raw } = request;
  if (raw.destroyed && !raw.readableEnded) throw brokenForm();
  const reading = new Reading(options);
  const watch = watchProgress(request, options.stallMs ?? STALL_MS);
  try {
    for await (const part of request.parts({ limits: { fileSize: reading.maxFileBytes } })) {
      if (part.type === "file") await reading.file(part);
      else reading.field(part.fieldname, part.value, part.valueTruncated);
    }
    return reading.upload();
  } catch (thrown) {
    // What still comes is thrown away: the parser would hold it back and with it the answer.
    raw.unpipe();
    raw.resume();
    await reading.close();
    throw formFault(thrown);
  } finally {
    watch.end();
  }
}

/** The parts as they come in. */
class Reading {
  readonly maxFileBytes: number;
  readonly #keepsFiles: boolean;
  readonly #fields = new Map<string, string>();
  readonly #files: UploadedFile[] = [];
  readonly #opened: TemporaryFile[] = [];

  constructor(options: UploadOptions) {
    this.maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES;
    this.#keepsFiles = options.keepsFiles ?? true;
  }

  field(name: string, value: unknown, isCut: boolean): void {
    if (isCut) throw tooLarge(`The field '${name.slice(0, 64)}' is larger than ${MAX_FIELD_BYTES} bytes.`);
    // A part that calls itself JSON comes parsed.
    this.#fields.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }

  async file(part: MultipartFile): Promise<void> {
    const kept = this.#keepsFiles ? await this.#create(part) : undefined;
    let bytes = 0;
    for await (const chunk of part.file as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength;
      await kept?.write(chunk);
    }
    if (part.file.truncated) throw tooLarge(`A file is larger than ${this.maxFileBytes} bytes.`);
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
    await Promise.all(this.#opened.map((file) => file.close()));
  }

  async #create(part: MultipartFile): Promise<TemporaryFile> {
    try {
      const file = await TemporaryFile.create();
      this.#opened.push(file);
      return file;
    } catch (thrown) {
      part.file.destroy();
      throw thrown;
    }
  }
}

/** Cuts the connection of a client that has fallen silent, or that takes all day. */
function watchProgress(request: FastifyRequest, stallMs: number): { end(): void } {
  const { raw } = request;
  const cut = (): void => {
    raw.destroy();
  };
  const stall = setTimeout(cut, stallMs);
  const whole = setTimeout(cut, MAX_READING_MS);
  const onData = (): void => {
    stall.refresh();
  };
  raw.on("data", onData);
  return {
    end: () => {
      clearTimeout(stall);
      clearTimeout(whole);
      raw.off("data", onData);
    },
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  yield* [];
}

function isMultipart(request: FastifyRequest): boolean {
  return /^multipart\/form-data(?:;|\s|$)/i.test(request.headers["content-type"] ?? "");
}

/** The plugin's errors are known by their code. */
function formFault(thrown: unknown): unknown {
  if (thrown instanceof Refusal || !(thrown instanceof Error)) return thrown;
  const code = "code" in thrown ? String(thrown.code) : "";
  if (/^FST_(?:PARTS|FILES|FIELDS)_LIMIT$/.test(code)) {
    return tooLarge(
      `The form has too many parts, expected at most ${MAX_FILES} files and ${MAX_FIELDS} fields.`,
    );
  }
  // System errors (no space on the disk) are ours and have an errno; the rest is the form's.
  return "errno" in thrown ? thrown : brokenForm();
}

/** FastAPI's own words. */
function brokenForm(): Refusal {
  return new Refusal(400, "There was an error parsing the body");
}

function tooLarge(message: string): Refusal {
  return Refusal.of({ type: "invalid_request", code: "request_too_large", message });
}
