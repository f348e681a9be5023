/** Bytes in a file without a name: written once from front to end, read as often as wanted, gone with the handle. */
import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const READ_BYTES = 65_536;

export class TemporaryFile {
  readonly #handle: FileHandle;
  #bytes = 0;
  #closing: Promise<void> | undefined;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Rejects with the system's error where the file can't be made. */
  static async create(): Promise<TemporaryFile> {
    const path = join(tmpdir(), `voicewire-${randomUUID()}`);
    const handle = await open(path, "wx+", 0o600);
    try {
      // Without a name the file goes away with the handle, whatever ends the process.
      await unlink(path);
    } catch (thrown) {
      await handle.close();
      throw thrown;
    }
    return new TemporaryFile(handle);
  }

  /** Bytes written. */
  get bytes(): number {
    return this.#bytes;
  }

  /** One at a time: wait for the one before. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#handle.writeFile(bytes);
    this.#bytes += bytes.byteLength;
  }

  /** All that was written, from the start each time. Rejects where the file was closed meanwhile. */
  async *read(): AsyncGenerator<Uint8Array> {
    for (let position = 0; position < this.#bytes; ) {
      const { bytesRead, buffer } = await this.#handle.read(
        new Uint8Array(READ_BYTES),
        0,
        READ_BYTES,
        position,
      );
      if (bytesRead === 0) throw new RangeError("Cannot read the temporary file: it is shorter than it was");
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#handle.close();
    return this.#closing;
  }
}
