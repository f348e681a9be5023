/**
 * Holds a whole response until its length is known: in memory while it is small, in a temporary file when it is not,
 * so that many long responses at once stay bounded.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY_BYTES = 4_194_304;
const READ_BYTES = 65_536;

export class Spool {
  readonly #memoryBytes: number;
  #chunks: Uint8Array[] = [];
  #size = 0;
  #file: FileHandle | undefined;
  /** Writes run one after another. */
  #tail: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** `memoryBytes`: how much is held before the file is made. */
  constructor(options: { readonly memoryBytes?: number } = {}) {
    this.#memoryBytes = options.memoryBytes ?? MEMORY_BYTES;
  }

  /** Bytes written. */
  get size(): number {
    return this.#size;
  }

  /** Resolves when the bytes are held. */
  write(bytes: Uint8Array): Promise<void> {
    this.#size += bytes.length;
    this.#tail = this.#tail.then(() => this.#hold(bytes));
    return this.#tail;
  }

  /** All that was written, once. */
  async *read(): AsyncGenerator<Uint8Array> {
    await this.#tail;
    if (this.#file === undefined) {
      yield* this.#chunks;
      return;
    }
    for (let position = 0; position < this.#size && !this.#isClosed; ) {
      const { bytesRead, buffer } = await this.#file.read(
        new Uint8Array(READ_BYTES),
        0,
        READ_BYTES,
        position,
      );
      if (bytesRead === 0)
        throw new RangeError("Cannot read the spool: the file is shorter than what was written");
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
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
    if (this.#file === undefined) {
      this.#chunks.push(bytes);
      if (this.#size <= this.#memoryBytes) return;
      const path = join(tmpdir(), `voicewire-${randomUUID()}`);
      this.#file = await open(path, "wx+", 0o600);
      // Without a name the file goes away with the handle, whatever ends the process.
      await unlink(path);
      for (const chunk of this.#chunks.splice(0)) await this.#file.writeFile(chunk);
      return;
    }
    await this.#file.writeFile(bytes);
  }
}
