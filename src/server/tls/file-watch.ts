/**
 * Says when one of some files has been replaced. They are looked at each second: notices of the file system do not come from
 * every one, nor for a folder behind a symbolic link that is turned to another, as certbot and Kubernetes do.
 */
import { stat } from "node:fs/promises";
import type { Clock, Timer } from "../../kit/clock.ts";

const LOOK_EVERY_MS = 1000;

export interface FileWatchOptions {
  readonly files: readonly string[];
  readonly clock: Clock;
  /** Called once a change has stood from one look to the next: files that belong together are replaced one by one. */
  readonly onChange: () => void;
}

/** Idempotent close. */
export class FileWatch {
  readonly #options: FileWatchOptions;
  #timer: Timer | null = null;
  /** As the files were when `onChange` was called last; null before the first look. */
  #known: string | null = null;
  /** As they were at the last look. */
  #last = "";
  #isClosed = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    this.#wait();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #wait(): void {
    const { clock } = this.#options;
    this.#timer = clock.at(clock.nowMs() + LOOK_EVERY_MS, () => void this.#look());
  }

  async #look(): Promise<void> {
    const stamp = (await Promise.all(this.#options.files.map(stampOf))).join(" ");
    if (this.#isClosed) return;
    const hasSettled = stamp === this.#last;
    this.#last = stamp;
    if (hasSettled && stamp !== this.#known) {
      this.#known = stamp;
      this.#options.onChange();
    }
    this.#wait();
  }
}

/** Never rejects: a file that is missing is one more state of it. */
async function stampOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join("-");
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code ?? "unknown";
  }
}
