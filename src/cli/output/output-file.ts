/**
 * A file that is written as its content comes. What was there before stays until the first byte comes, so that speech that fails
 * before takes nothing away. Synchronous: frames are small, and a disk that does not keep up must hold us up and not our memory.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { usageError } from "../exit.ts";

export interface OutputFileOptions {
  /** What it is to the user, as errors name it: Output. */
  readonly what: string;
  /** The flag that names it. */
  readonly flag: string;
}

/** Its methods throw `invalid_config` where the file can't be written. */
export class OutputFile {
  readonly #path: string;
  readonly #options: OutputFileOptions;
  readonly #descriptor: number;
  readonly #isNew: boolean;
  #hasBegun = false;
  #isClosed = false;

  constructor(path: string, options: OutputFileOptions) {
    this.#path = path;
    this.#options = options;
    const { descriptor, isNew } = this.#attempt(() => openKept(path));
    this.#descriptor = descriptor;
    this.#isNew = isNew;
  }

  append(bytes: Uint8Array): void {
    this.#attempt(() => {
      this.#begin();
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#descriptor, bytes, at);
    });
  }

  /** Writes over the beginning. */
  rewrite(bytes: Uint8Array): void {
    this.#attempt(() => void writeSync(this.#descriptor, bytes, 0, bytes.length, 0));
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#descriptor);
  }

  /** Nothing is to come: where nothing came, there is what was there before. */
  discard(): void {
    const isUnused = !this.#isClosed && !this.#hasBegun;
    this.close();
    if (isUnused && this.#isNew) this.#attempt(() => rmSync(this.#path, { force: true }));
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    // A pipe or a device has no length.
    if (fstatSync(this.#descriptor).isFile()) ftruncateSync(this.#descriptor);
  }

  /** A full disk or a missing folder is the user's to mend: said with the file's name. */
  #attempt<T>(action: () => T): T {
    try {
      return action();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const { what, flag } = this.#options;
      throw usageError(`${what} "${this.#path}" can't be written: ${reason}`, flag);
    }
  }
}

function openKept(path: string): { readonly descriptor: number; readonly isNew: boolean } {
  try {
    return { descriptor: openSync(path, "wx"), isNew: true };
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST")) throw thrown;
    return { descriptor: openSync(path, constants.O_WRONLY | constants.O_CREAT), isNew: false };
  }
}
