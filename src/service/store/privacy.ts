/**
 * Keeps a store its owner's alone: spoken texts, audio and the webhooks' secrets are in it. Files are 0600 and folders 0700,
 * also those that were there before. On Windows nothing is done: it has no such modes, and `process.getuid` is missing there.
 */
import type { Stats } from "node:fs";
import { chmod, open, stat } from "node:fs/promises";
import { GatewayError } from "../../errors.ts";
import type { Logger } from "../../kit/log.ts";

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const MODE_BITS = 0o777;
/** What group and others may do. */
const OTHERS_BITS = 0o077;

/**
 * Throws GatewayError "invalid_config" where the folder is another user's, who could read and change all that is kept. A
 * folder that is open to others is the operator's choice: the log warns of it.
 */
export async function checkFolder(folder: string, log: Logger): Promise<void> {
  const ownUid = process.getuid?.();
  if (ownUid === undefined) return;
  const { uid, mode } = await stat(folder);
  if (uid !== ownUid) {
    throw new GatewayError(
      "invalid_config",
      `Cannot use the folder ${folder}: it belongs to another user (uid ${uid}), expected uid ${ownUid}; ` +
        "start as its owner, change its owner, or name a folder inside it that does not exist yet",
    );
  }
  if ((mode & OTHERS_BITS) === 0) return;
  log.warn(
    { folder, mode: (mode & MODE_BITS).toString(8) },
    `Other users may look into the store's folder: run chmod 700 ${folder}`,
  );
}

/** Makes the file where there is none, so that whoever opens it does not choose its mode, and makes it private. */
export async function makePrivateFile(path: string): Promise<void> {
  const file = await open(path, "a", FILE_MODE);
  await file.close();
  await keepPrivate(path);
}

/** Makes a file or a folder private, if it is there; its facts, or null where it is not. */
export async function keepPrivate(path: string): Promise<Stats | null> {
  try {
    const facts = await stat(path);
    const mode = facts.isDirectory() ? FOLDER_MODE : FILE_MODE;
    if (process.getuid !== undefined && (facts.mode & MODE_BITS) !== mode) await chmod(path, mode);
    return facts;
  } catch (thrown) {
    // Another process that uses the store may have removed it.
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return null;
    throw thrown;
  }
}
