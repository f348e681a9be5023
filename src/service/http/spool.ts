/**
 * Holds a whole response until its length is known: in memory while it is small, in a temporary file when it is not,
 * so that many long responses at once stay bounded.
 */
import type { TemporaryFile, TemporaryFiles } from "../media/temporary-file.ts";

const MEMORY_BYTES = 4_194_304;

export class Spool {
  readonly #temporaryFiles: TemporaryFiles;
  readonly #memoryBytes: number;
  #chunks: Uint8Array[] = [];
  #size = 0;
  #file: TemporaryFile | undefined;
  /** Writes run one after another. */
  #tail: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** `memoryBytes`: how much is held before the file is made. */
  constructor(temporaryFiles: TemporaryFiles, options: { readonly memoryBytes?: number } = {}) {
    this.#temporaryFiles = temporaryFiles;
    this.#memoryBytes = options.memoryBytes ?? MEMORY_BYTES;
  }

  /** Bytes written. */
  get size(): number {
    return this.#size;
  }

  /** Resolves when the bytes are held. Rejects as TemporaryFile.write does. */
  write(bytes: Uint8Array): Promise<void> {
    this.#size += bytes.length;
    this.#tail = this.#tail.then(() => this.#hold(bytes));
    return this.#tail;
  }

  /** All that was written, once. Rejects where it is closed meanwhile. */
  async *read(): AsyncGenerator<Uint8Array> {
    await this.#tail;
    yield* this.#file === undefined ? this.#chunks : this.#file.read();
  }

  /** Frees memory and file. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#tail.catch(() => undefined);
    this.#chunks = [];
    await this.#file?.close();
  }

  async #hold(bytes: Uint8Array): Promise<void> {
    if (this.#isClosed) return;
    if (this.#file !== undefined) return await this.#file.write(bytes);
    this.#chunks.push(bytes);
    if (this.#size <= this.#memoryBytes) return;
    this.#file = await this.#temporaryFiles.create();
    for (const chunk of this.#chunks.splice(0)) await this.#file.write(chunk);
  }
}
