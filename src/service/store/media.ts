/**
 * Audio as files named by their content: written aside, put on the disk, and only then given their name, so that a file with
 * a name is whole whatever ends the process. Equal content is kept once.
 *
 *   media/tmp/<random>  --flush, rename-->  media/ab/abcdef...   (SHA-256, hex)
 */
import { createHash, type Hash, randomUUID } from "node:crypto";
import { createReadStream, type ReadStream, unlinkSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import { keepPrivate } from "./privacy.ts";

/** A file without a row, or unfinished, is somebody's who is still at it, or is left over; after this it is left over. */
const LEFT_OVER_MS = 3_600_000;

export interface MediaFile {
  /** SHA-256 of the content, 64 hex digits. */
  readonly hash: string;
  readonly bytes: number;
}

/** A file that is whole. It is not removed before `release` was called: by then a row names it, or nobody wants it. */
export interface PinnedMedia extends MediaFile {
  /** Idempotent. */
  release(): void;
}

export class MediaStore {
  readonly #folder: string;
  readonly #isReferenced: (hash: string) => boolean;
  readonly #pins = new Map<string, number>();

  private constructor(folder: string, isReferenced: (hash: string) => boolean) {
    this.#folder = folder;
    this.#isReferenced = isReferenced;
  }

  /** `isReferenced`: whether any row names the file. Removes what is left over from a crash, and makes the rest private. */
  static async open(folder: string, isReferenced: (hash: string) => boolean): Promise<MediaStore> {
    await mkdir(join(folder, "tmp"), { recursive: true, mode: 0o700 });
    const store = new MediaStore(folder, isReferenced);
    await store.#sweep();
    return store;
  }

  /** A file to be written piece by piece; ended by `finish` or `abort`. */
  async writer(): Promise<MediaWriter> {
    const path = join(this.#folder, "tmp", randomUUID());
    return new MediaWriter(await open(path, "wx", 0o600), path, (file) => this.#keep(path, file));
  }

  async put(bytes: Uint8Array): Promise<PinnedMedia> {
    const writer = await this.writer();
    try {
      await writer.write(bytes);
      return await writer.finish();
    } catch (thrown) {
      await writer.abort();
      throw thrown;
    }
  }

  /** Rejects with ENOENT where it is gone. */
  read(hash: string): Promise<Buffer> {
    return readFile(this.#pathOf(hash));
  }

  /** The caller ends it: `destroy`, or reading to the end. */
  stream(hash: string): ReadStream {
    return createReadStream(this.#pathOf(hash));
  }

  /** Removes a file that no row names any more and nobody is about to name. */
  drop(hash: string): void {
    if (this.#pins.has(hash) || this.#isReferenced(hash)) return;
    try {
      unlinkSync(this.#pathOf(hash));
    } catch (thrown) {
      if (codeOf(thrown) !== "ENOENT") throw thrown;
    }
  }

  async #keep(path: string, file: MediaFile): Promise<PinnedMedia> {
    const { hash } = file;
    this.#pins.set(hash, (this.#pins.get(hash) ?? 0) + 1);
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      const pins = (this.#pins.get(hash) ?? 1) - 1;
      if (pins > 0) this.#pins.set(hash, pins);
      else this.#pins.delete(hash);
      this.drop(hash);
    };
    try {
      await mkdir(join(this.#folder, hash.slice(0, 2)), { recursive: true, mode: 0o700 });
      await rename(path, this.#pathOf(hash));
      // The name is in the folder: that has to reach the disk, too.
      const folder = await open(join(this.#folder, hash.slice(0, 2)), "r");
      await folder.sync().finally(() => folder.close());
    } catch (thrown) {
      release();
      throw thrown;
    }
    return { ...file, release };
  }

  #pathOf(hash: string): string {
    return join(this.#folder, hash.slice(0, 2), hash);
  }

  async #sweep(): Promise<void> {
    const before = Date.now() - LEFT_OVER_MS;
    await keepPrivate(this.#folder);
    for (const shelf of await readdir(this.#folder)) {
      await keepPrivate(join(this.#folder, shelf));
      for (const name of await readdir(join(this.#folder, shelf))) {
        const path = join(this.#folder, shelf, name);
        const facts = await keepPrivate(path);
        if (shelf !== "tmp" && this.#isReferenced(name)) continue;
        if (facts !== null && facts.mtimeMs < before) await unlink(path);
      }
    }
  }
}

export class MediaWriter {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #keep: (file: MediaFile) => Promise<PinnedMedia>;
  readonly #hash: Hash = createHash("sha256");
  #bytes = 0;
  #isOver = false;

  constructor(handle: FileHandle, path: string, keep: (file: MediaFile) => Promise<PinnedMedia>) {
    this.#handle = handle;
    this.#path = path;
    this.#keep = keep;
  }

  /** Bytes written. */
  get bytes(): number {
    return this.#bytes;
  }

  /** One at a time: wait for the one before. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    this.#bytes += bytes.byteLength;
    await this.#handle.writeFile(bytes);
  }

  /** The file is whole and on the disk. Once. */
  async finish(): Promise<PinnedMedia> {
    await this.#handle.sync();
    await this.#handle.close();
    this.#isOver = true;
    return await this.#keep({ hash: this.#hash.digest("hex"), bytes: this.#bytes });
  }

  /** Nothing is left of it. Idempotent; nothing after `finish`. */
  async abort(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#handle.close().catch(() => undefined);
    await unlink(this.#path).catch((thrown: unknown) => {
      if (codeOf(thrown) !== "ENOENT") throw thrown;
    });
  }
}

function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
}
