/**
 * What the service keeps: rows in SQLite, audio as files beside it. A folder of its own, or one that is removed with the
 * service where nobody asked for anything to be kept.
 *
 *   <folder>/voicewire.db   rows, write-ahead log beside it
 *   <folder>/media/         audio, by content
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayError } from "../../errors.ts";
import { type Logger, silentLog } from "../../kit/log.ts";
import { isDiskFull, StoreDatabase } from "./database.ts";
import { DictionaryStore } from "./dictionaries.ts";
import { HistoryStore } from "./history.ts";
import { IsolationStore } from "./isolations.ts";
import { MediaStore } from "./media.ts";
import { checkFolder, keepPrivate, makePrivateFile } from "./privacy.ts";
import { Retention, type RetentionLimits } from "./retention.ts";
import { VoiceStore } from "./voices.ts";

export interface Store {
  readonly database: StoreDatabase;
  readonly media: MediaStore;
  readonly history: HistoryStore;
  readonly isolations: IsolationStore;
  readonly voices: VoiceStore;
  readonly dictionaries: DictionaryStore;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface StoreOptions {
  /** Made where it is not there; null: a temporary one, removed on closing. */
  readonly folder: string | null;
  /** Default: 30 days, 1 GB; of what is temporary 256 MB. */
  readonly limits?: RetentionLimits;
  /** Gets a warning where others may look into the folder, and where the disk is full. */
  readonly log?: Logger;
  /** How often what is over the limits is looked for, ms; default a minute. */
  readonly retentionEveryMs?: number;
}

const DATABASE = "voicewire.db";
const KEEP_DAYS = 30;
const KEEP_BYTES = 1024 ** 3;
const KEEP_TEMPORARY_BYTES = 256 * 1024 ** 2;
/** How often what is over the limits is looked for, ms. */
const RETENTION_EVERY_MS = 60_000;

/** Throws GatewayError "invalid_config" where the folder can't be used. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const folder = await prepareFolder(options);
  const database = new StoreDatabase(join(folder, DATABASE));
  const media = await MediaStore.open(join(folder, "media"), (hash) => isReferenced(database, hash)).catch(
    (thrown: unknown) => {
      database.close();
      throw unusable(folder, thrown);
    },
  );
  const history = new HistoryStore(database, media);
  const isolations = new IsolationStore(database, media);
  const retention = new Retention({ database, history, isolations }, limitsOf(options));
  const { log = silentLog, retentionEveryMs = RETENTION_EVERY_MS } = options;
  const enforce = (): boolean => retention.enforce(Math.floor(Date.now() / 1000));
  while (unlessFull(enforce, { folder, log }));
  const timer = setInterval(() => void unlessFull(enforce, { folder, log }), retentionEveryMs);
  timer.unref();
  let closing: Promise<void> | undefined;
  return {
    database,
    media,
    history,
    isolations,
    voices: new VoiceStore(database, media),
    dictionaries: new DictionaryStore(database),
    close: () => {
      clearInterval(timer);
      closing ??= closeStore(database, options.folder === null ? folder : null);
      return closing;
    },
  };
}

/** Deleting takes room, too: on a full disk it is put off, and the service speaks on. */
function unlessFull(
  enforce: () => boolean,
  { folder, log }: { readonly folder: string; readonly log: Logger },
): boolean {
  try {
    return enforce();
  } catch (thrown) {
    if (!isDiskFull(thrown)) throw thrown;
    log.warn({ folder }, "The disk of the store is full: what is too old can't be deleted either");
    return false;
  }
}

function limitsOf({ folder, limits }: StoreOptions): RetentionLimits {
  return limits ?? { keepDays: KEEP_DAYS, keepBytes: folder === null ? KEEP_TEMPORARY_BYTES : KEEP_BYTES };
}

/** With the database's files private in it, before the database is opened. */
async function prepareFolder({ folder, log = silentLog }: StoreOptions): Promise<string> {
  try {
    const path = folder ?? (await mkdtemp(join(tmpdir(), "voicewire-")));
    await mkdir(path, { recursive: true, mode: 0o700 });
    await checkFolder(path, log);
    // SQLite gives the files beside the database the database's mode, but leaves those that are there as they are.
    await makePrivateFile(join(path, DATABASE));
    for (const beside of ["-wal", "-shm"]) await keepPrivate(join(path, `${DATABASE}${beside}`));
    return path;
  } catch (thrown) {
    throw unusable(folder ?? tmpdir(), thrown);
  }
}

function unusable(folder: string, cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new GatewayError("invalid_config", `Cannot use the folder ${folder}: ${reason}`, { cause });
}

async function closeStore(database: StoreDatabase, temporary: string | null): Promise<void> {
  database.close();
  if (temporary !== null) await rm(temporary, { recursive: true, force: true });
}

function isReferenced(database: StoreDatabase, hash: string): boolean {
  const row = database.get(
    `SELECT EXISTS (SELECT 1 FROM history WHERE media_hash = ?1)
      OR EXISTS (SELECT 1 FROM isolation WHERE media_hash = ?1)
      OR EXISTS (SELECT 1 FROM voice_sample WHERE media_hash = ?1) AS is_referenced`,
    hash,
  );
  return row?.is_referenced === 1;
}
