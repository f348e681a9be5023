/** The file behind a ledger: lines are only ever added. Opened for each write, so that it may be moved away at any time. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { open, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { GatewayError } from "../errors.ts";

const OWNER_ALONE = 0o600;
const NEWLINE = 10;

/** What the ledger needs of a disk. */
export interface LedgerFile {
  /** Adds bytes; how many of them were. Rejects where none can be. */
  append(bytes: Uint8Array): Promise<number>;
  /** Room on its disk, bytes. */
  free(): Promise<number>;
}

/**
 * `endsInsideLine`: what was written last, by a process that was killed, has no end. Throws invalid_config where it can't be
 * written.
 */
export function openLedgerFile(path: string): {
  readonly file: LedgerFile;
  readonly endsInsideLine: boolean;
} {
  const endsInsideLine = endsInside(path);
  const file: LedgerFile = {
    append: async (bytes) => {
      const handle = await open(path, "a", OWNER_ALONE);
      try {
        return (await handle.write(bytes)).bytesWritten;
      } finally {
        await handle.close();
      }
    },
    free: async () => {
      const { bavail, bsize } = await statfs(dirname(path));
      return bavail * bsize;
    },
  };
  return { file, endsInsideLine };
}

function endsInside(path: string): boolean {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, OWNER_ALONE);
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) throw new Error("it is no file");
    if (facts.size === 0) return false;
    const last = new Uint8Array(1);
    readSync(descriptor, last, 0, 1, facts.size - 1);
    return last[0] !== NEWLINE;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `Setting ledger: the file can't be written: ${why}. Expected a file in a folder that the gateway may write to`;
    throw new GatewayError("invalid_config", message, { field: "ledger", cause });
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}
