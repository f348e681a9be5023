/** Says when one of some files that belong together has been replaced. */
import { stat, unwatchFile, watchFile } from "node:fs";
import type { Clock, Timer } from "./clock.ts";

const WATCH_MS = 1000;

export interface FileWatchOptions {
  readonly files: readonly string[];
  readonly clock: Clock;
  /**
   * How often their state is asked for: events of the folder are lost on mounted secrets. And how long it has to stay, since
   * they are replaced one by one: the last of them shall be there. Default 1000.
   */
  readonly watchMs?: number | undefined;
  /** Also once soon after the beginning: they may have changed since they were read. */
  readonly onChange: () => void;
}

/** Idempotent close. */
export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #watchMs: number;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    this.#watchMs = options.watchMs ?? WATCH_MS;
    for (const file of options.files) {
      watchFile(file, { interval: this.#watchMs, persistent: false }, this.#changed);
    }
    // What changes before their first state is known is never told: they are read once behind that. States are asked for in order.
    stat(options.files.at(-1) ?? "", this.#changed);
  }

  close(): void {
    this.#isClosed = true;
    for (const file of this.#options.files) unwatchFile(file, this.#changed);
    this.#timer?.cancel();
  }

  readonly #changed = (): void => {
    if (this.#isClosed) return;
    const { clock, onChange } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.at(clock.nowMs() + this.#watchMs, onChange);
  };
}
