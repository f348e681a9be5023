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
import { StoreDatabase } from "./database.ts";
import { HistoryStore } from "./history.ts";
import { IsolationStore } from "./isolations.ts";
import { MediaStore } from "./media.ts";
import { Retention, type RetentionLimits } from "./retention.ts";
import { VoiceStore } from "./voices.ts";

export interface Store {
  readonly database: StoreDatabase;
  readonly media: MediaStore;
  readonly history: HistoryStore;
  readonly isolations: IsolationStore;
  readonly voices: VoiceStore;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface StoreOptions {
  /** Made where it is not there; null: a temporary one, removed on closing. */
  readonly folder: string | null;
  /** Default: 30 days, 1 GB; of what is temporary 256 MB. */
  readonly limits?: RetentionLimits;
}

const KEEP_DAYS = 30;
const KEEP_BYTES = 1024 ** 3;
const KEEP_TEMPORARY_BYTES = 256 * 1024 ** 2;
/** How often what is over the limits is looked for, ms. */
const RETENTION_EVERY_MS = 60_000;

/** Throws GatewayError "invalid_config" where the folder can't be used. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const folder = await prepareFolder(options.folder);
  const database = new StoreDatabase(join(folder, "voicewire.db"));
  const media = await MediaStore.open(join(folder, "media"), (hash) => isReferenced(database, hash));
  const history = new HistoryStore(database, media);
  const isolations = new IsolationStore(database, media);
  const retention = new Retention({ database, history, isolations }, limitsOf(options));
  const enforce = (): boolean => retention.enforce(Math.floor(Date.now() / 1000));
  while (enforce());
  const timer = setInterval(enforce, RETENTION_EVERY_MS);
  timer.unref();
  let closing: Promise<void> | undefined;
  return {
    database,
    media,
    history,
    isolations,
    voices: new VoiceStore(database, media),
    close: () => {
      clearInterval(timer);
      closing ??= closeStore(database, options.folder === null ? folder : null);
      return closing;
    },
  };
}

function limitsOf({ folder, limits }: StoreOptions): RetentionLimits {
  return limits ?? { keepDays: KEEP_DAYS, keepBytes: folder === null ? KEEP_TEMPORARY_BYTES : KEEP_BYTES };
}

async function prepareFolder(folder: string | null): Promise<string> {
  try {
    if (folder === null) return await mkdtemp(join(tmpdir(), "voicewire-"));
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return folder;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new GatewayError("invalid_config", `Cannot use the folder ${folder ?? tmpdir()}: ${reason}`, {
      cause,
    });
  }
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
