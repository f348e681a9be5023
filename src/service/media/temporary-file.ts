/**
 * Bytes in files without a name: written once from front to end, read as often as wanted, gone with the handle. All files of
 * one service together have a bound: what is over it is refused, and the disk never fills up.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiError } from "../api-error.ts";

const READ_BYTES = 65_536;
/** 2 GB. */
const MAX_BYTES = 2_147_483_648;

/** The temporary files of one service: uploads, long answers. */
export class TemporaryFiles {
  readonly maxBytes: number;
  #bytes = 0;

  /** `maxBytes`: of all files together; default 2 GB. */
  constructor({ maxBytes = MAX_BYTES }: { readonly maxBytes?: number } = {}) {
    this.maxBytes = maxBytes;
  }

  /** Bytes on the disk now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The caller closes it. Rejects with the system's error where the file can't be made. */
  async create(): Promise<TemporaryFile> {
    const path = join(tmpdir(), `voicewire-${randomUUID()}`);
    const handle = await open(path, "wx+", 0o600);
    try {
      // Without a name the file goes away with the handle, whatever ends the process.
      await unlink(path);
    } catch (thrown) {
      await handle.close();
      throw thrown;
    }
    return new TemporaryFile(handle, {
      reserve: (bytes) => this.#reserve(bytes),
      release: (bytes) => {
        this.#bytes -= bytes;
      },
    });
  }

  #reserve(bytes: number): void {
    if (this.#bytes + bytes > this.maxBytes) {
      throw ApiError.busy("The temporary storage for audio is full, try again later.");
    }
    this.#bytes += bytes;
  }
}

/** Where a file's bytes are counted. */
interface Account {
  /** Throws ApiError 429 where there is no room for so many more. */
  reserve(bytes: number): void;
  release(bytes: number): void;
}

export class TemporaryFile {
  readonly #handle: FileHandle;
  readonly #account: Account;
  #bytes = 0;
  /** Counted before they are written: more than `#bytes` where a write failed. */
  #reservedBytes = 0;
  #closing: Promise<void> | undefined;

  /** Made by TemporaryFiles.create. */
  constructor(handle: FileHandle, account: Account) {
    this.#handle = handle;
    this.#account = account;
  }

  /** Bytes written. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * One at a time: wait for the one before. Rejects with ApiError 429 `system_busy` where all temporary files together have
   * no room for it, and where the file was closed meanwhile.
   */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#closing !== undefined) throw new Error("Cannot write to the temporary file: it is closed");
    this.#account.reserve(bytes.byteLength);
    this.#reservedBytes += bytes.byteLength;
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

  /** Gives its bytes back. Idempotent. */
  close(): Promise<void> {
    // The handle closes when what is being written and read is done: until then the bytes are on the disk.
    this.#closing ??= this.#handle.close().finally(() => this.#account.release(this.#reservedBytes));
    return this.#closing;
  }
}
