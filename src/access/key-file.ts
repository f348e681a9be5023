/**
 * The file of keys, read again whenever it changes: keys come and go without a restart. A file that is broken while the gateway runs
 * changes nothing but the log: the keys before it stay.
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import { FileWatch } from "../kit/file-watch.ts";
import type { Logger } from "../kit/log.ts";
import { modeForOthers } from "../kit/private-file.ts";
import { type KeyRing, readKeys } from "./keys.ts";

const MAX_FILE_BYTES = 16 * 1024 * 1024;

export interface KeyFileOptions {
  readonly path: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** See FileWatch. */
  readonly watchMs?: number | undefined;
  /** The keys are others now. */
  readonly onChange: () => void;
}

/** Idempotent close. */
export class KeyFile {
  readonly #options: KeyFileOptions;
  readonly #watch: FileWatch;
  #keys: KeyRing;
  /** A digest of the file's text as it was read last. */
  #digest = "";
  #isBroken = false;

  /** Throws invalid_config. */
  constructor(options: KeyFileOptions) {
    this.#options = options;
    this.#keys = readKeys(this.#textOf());
    const { path, clock, watchMs } = options;
    this.#watch = new FileWatch({ files: [path], clock, watchMs, onChange: () => this.#changed() });
  }

  get keys(): KeyRing {
    return this.#keys;
  }
  /** The file can't be read as it is: the keys are those from before. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  close(): void {
    this.#watch.close();
  }

  #changed(): void {
    const { log, onChange } = this.#options;
    const before = this.#digest;
    try {
      const text = this.#textOf();
      if (this.#digest === before) return;
      this.#keys = readKeys(text);
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
  }

  #textOf(): string {
    const { path, log } = this.#options;
    let json: string;
    try {
      const { size } = statSync(path);
      if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, expected at most ${MAX_FILE_BYTES}`);
      const mode = modeForOthers(path);
      if (mode !== null) log.warn({ mode }, "Others may read the key file: chmod 600");
      json = readFileSync(path, "utf8");
    } catch (thrown) {
      this.#digest = "";
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      throw new GatewayError("invalid_config", `Setting keys-file: it can't be read: ${why}`, {
        field: "keys-file",
        cause: thrown,
      });
    }
    this.#digest = createHash("sha256").update(json).digest("hex");
    return json;
  }
}
