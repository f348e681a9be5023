/**
 * The file of one recording. Lines wait in memory for a moment and are written in order; what waits is bounded, and so is the file.
 * Behind a bound the recording ends with a line that says so, and the session goes on: speech never waits for it.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Clock, Timer } from "../kit/clock.ts";
import { Chain } from "./chain.ts";
import type { EndReason } from "./format.ts";
import type { LineSink } from "./recorder.ts";

const OWNER_ALONE = 0o600;
const FLUSH_MS = 250;
/** Written before its time: what one session brings in a burst. */
const FLUSH_BYTES = 256 * 1024;
/** What waits of one session where the disk is slow. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** For the last line. */
const END_BYTES = 64;

/** What a recording needs of a disk. */
export interface RecordingDisk {
  /** Rejects where the file is there already, or can't be made. */
  create(path: string): Promise<RecordingHandle>;
}

export interface RecordingHandle {
  /** Adds bytes; how many of them were. Rejects where none can be. */
  append(bytes: Uint8Array): Promise<number>;
  close(): Promise<void>;
}

/** All recordings of a folder together. */
export interface FolderRoom {
  /** null: so many more bytes may be written; else why not. */
  take(bytes: number): EndReason | null;
}

export interface RecordingFileOptions {
  readonly path: string;
  readonly disk: RecordingDisk;
  readonly clock: Clock;
  readonly maxBytes: number;
  readonly room: FolderRoom;
  /** It has ended, and why; `thrown` where the disk refused. Called once. */
  readonly onEnd: (reason: EndReason, thrown: unknown) => void;
}

export class RecordingFile implements LineSink {
  readonly #options: RecordingFileOptions;
  readonly #chain = new Chain();
  readonly #handle: Promise<RecordingHandle>;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #bytes = 0;
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;
  #isOver = false;
  #isLost = false;

  constructor(options: RecordingFileOptions) {
    this.#options = options;
    this.#handle = options.disk.create(options.path);
    this.#handle.catch((thrown: unknown) => this.#lose(thrown));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  line(json: string): void {
    if (this.#isOver) return;
    const bytes = Buffer.byteLength(json) + END_BYTES;
    if (this.#bytes + bytes > this.#options.maxBytes) {
      this.end("session_full");
      return;
    }
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.end("lost");
      return;
    }
    const refused = this.#options.room.take(bytes);
    if (refused !== null) {
      this.end(refused);
      return;
    }
    this.#bytes += bytes;
    this.#push(json, bytes);
  }

  end(reason: EndReason): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#push(JSON.stringify({ end: reason }), END_BYTES);
    this.#options.onEnd(reason, null);
    void this.#flush();
  }

  /** Resolves when all is written that can be, and the file is closed. Ends it where it goes on. */
  async close(): Promise<void> {
    this.end("shutdown");
    await this.#flush();
    await this.#handle.then(
      (handle) => handle.close(),
      () => undefined,
    );
  }

  #push(json: string, bytes: number): void {
    this.#waiting.push(json);
    this.#waitingBytes += bytes;
    const { clock } = this.#options;
    if (this.#waitingBytes > FLUSH_BYTES) void this.#flush();
    else {
      this.#timer ??= clock.at(clock.nowMs() + FLUSH_MS, () => {
        this.#timer = null;
        void this.#flush();
      });
    }
  }

  #flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null;
    });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      const handle = await this.#handle;
      while (this.#waiting.length > 0 && !this.#isLost) {
        const [lines, bytes] = [this.#waiting, this.#waitingBytes];
        this.#waiting = [];
        const whole = Buffer.from(lines.map((json) => `${this.#chain.sign(json)}\n`).join(""));
        const written = await handle.append(whole);
        this.#waitingBytes -= bytes;
        if (written < whole.length) throw new Error("the disk is full");
      }
    } catch (thrown) {
      this.#lose(thrown);
    }
  }

  /** What waits is let go: the file ends where it could be written last. */
  #lose(thrown: unknown): void {
    this.#isLost = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onEnd("disk", thrown);
  }
}

export const recordingDisk: RecordingDisk = {
  create: async (path) => {
    const handle: FileHandle = await open(
      path,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND,
      OWNER_ALONE,
    );
    return {
      append: async (bytes) => (await handle.write(bytes)).bytesWritten,
      close: () => handle.close(),
    };
  },
};
