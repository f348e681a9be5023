/** Says when one of some files that belong together has been replaced. */
import { unwatchFile, watchFile } from "node:fs";
import type { Clock, Timer } from "./clock.ts";

/** How soon a change is seen. The files' state is asked for: events of the folder are lost on mounted secrets. */
const LOOK_EVERY_MS = 1000;
/** They are replaced one by one: the last of them shall be there. */
const SETTLES_MS = 1000;

export interface FileWatchOptions {
  readonly files: readonly string[];
  readonly clock: Clock;
  /** Also once soon after the beginning: they may have changed since they were read. */
  readonly onChange: () => void;
}

/** Idempotent close. */
export class FileWatch {
  readonly #options: FileWatchOptions;
  #timer: Timer | null = null;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    for (const file of options.files) {
      watchFile(file, { interval: LOOK_EVERY_MS, persistent: false }, this.#changed);
    }
    this.#changed();
  }

  close(): void {
    for (const file of this.#options.files) unwatchFile(file, this.#changed);
    this.#timer?.cancel();
  }

  readonly #changed = (): void => {
    const { clock, onChange } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.at(clock.nowMs() + SETTLES_MS, onChange);
  };
}
