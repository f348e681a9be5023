/** Reads and changes a key file: whole or not at all, for its owner only, and never into one that the gateway would refuse. */
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { type KeyRing, newSecret, readKeys } from "../../access/keys.ts";
import { usageError } from "../exit.ts";

/** Its owner reads and writes it, nobody else. */
const OWNER_ONLY = 0o600;
/** The signing key of a file that is new. */
const FIRST_SIGNING_KEY = "gateway";

/** A file that the gateway takes; all of it that is not changed stays as it is. */
export interface KeyFileContent {
  readonly keys: readonly { readonly id: string }[];
  readonly revoked?: {
    readonly tokens?: readonly string[];
    readonly subjects?: Readonly<Record<string, number>>;
  };
}

/** Throws invalid_config. */
export function loadKeys(path: string): KeyRing {
  return readKeys(textOf(path));
}

/** Gives the content to `change`, and writes what comes back; a missing file is made. Throws invalid_config. */
export function changeKeys(
  path: string,
  { mayCreate }: { readonly mayCreate: boolean },
  change: (content: KeyFileContent) => KeyFileContent,
): { readonly isNew: boolean } {
  // A link stays one: what it points to is changed.
  const isNew = !existsSync(path);
  if (isNew && !mayCreate) textOf(path);
  const target = isNew ? path : realpathSync(path);
  const next = `${target}.new`;
  const file = openNew(next);
  try {
    try {
      const json = `${JSON.stringify(change(isNew ? firstContent() : contentOf(target)), null, 2)}\n`;
      readKeys(json);
      writeSync(file, json);
    } finally {
      closeSync(file);
    }
    renameSync(next, target);
  } catch (thrown) {
    rmSync(next, { force: true });
    throw thrown;
  }
  return { isNew };
}

function firstContent(): KeyFileContent {
  const key = { id: FIRST_SIGNING_KEY, algorithm: "HS256", secret: newSecret(), mints: true };
  return { keys: [key] };
}

function contentOf(path: string): KeyFileContent {
  const json = textOf(path);
  // Throws in the gateway's own words; what it takes has these fields.
  readKeys(json);
  return JSON.parse(json) as KeyFileContent;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw usageError(`Key file: it can't be read: ${why}; \`voicewire keys new ID\` makes one`, "file");
  }
}

/** Where two write at once, the second one fails. */
function openNew(path: string): number {
  try {
    return openSync(path, "wx", OWNER_ONLY);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw usageError(`Key file: ${path} can't be made: ${why}; is another command at work on it?`, "file");
  }
}
