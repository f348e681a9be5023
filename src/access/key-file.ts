/**
 * The file of keys, read again whenever it changes: keys come and go without a restart. A file that is broken while the gateway runs
 * changes nothing but the log: the keys before it stay.
 */
import { readFileSync, statSync, unwatchFile, watchFile } from "node:fs";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Logger } from "../kit/log.ts";
import { type KeyRing, readKeys } from "./keys.ts";

/** How soon a change is seen. The file's state is asked for: events of the folder are lost on mounted secrets. */
const WATCH_EVERY_MS = 1000;
const MAX_FILE_BYTES = 16 * 1024 * 1024;
/** Permissions of group and others. */
const OTHERS = 0o077;

export interface KeyFileOptions {
  readonly path: string;
  readonly log: Logger;
  /** The keys are others now. */
  readonly onChange: () => void;
}

/** Idempotent close. */
export class KeyFile {
  readonly #options: KeyFileOptions;
  #keys: KeyRing;
  #isBroken = false;

  /** Throws invalid_config. */
  constructor(options: KeyFileOptions) {
    this.#options = options;
    this.#keys = this.#read();
    watchFile(options.path, { interval: WATCH_EVERY_MS, persistent: false }, this.#changed);
  }

  get keys(): KeyRing {
    return this.#keys;
  }
  /** The file can't be read as it is: the keys are those from before. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  close(): void {
    unwatchFile(this.#options.path, this.#changed);
  }

  readonly #changed = (): void => {
    const { log, onChange } = this.#options;
    try {
      this.#keys = this.#read();
      this.#isBroken = false;
    } catch (thrown) {
      this.#isBroken = true;
      log.error(
        { detail: toGatewayError(thrown).message },
        "The key file is broken: the keys before it stay",
      );
      return;
    }
    log.info({ keys: this.#keys.size }, "Keys were read again");
    onChange();
  };

  #read(): KeyRing {
    const { path, log } = this.#options;
    let json: string;
    try {
      const { mode, size } = statSync(path);
      if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, expected at most ${MAX_FILE_BYTES}`);
      if ((mode & OTHERS) !== 0) {
        log.warn({ mode: (mode & 0o777).toString(8) }, "Others may read the key file: chmod 600");
      }
      json = readFileSync(path, "utf8");
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      throw new GatewayError("invalid_config", `Setting keys-file: it can't be read: ${why}`, {
        field: "keys-file",
        cause: thrown,
      });
    }
    return readKeys(json);
  }
}
