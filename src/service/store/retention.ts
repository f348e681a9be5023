/** How much is kept: the oldest history and isolations go when they are too old or too much. Voices and webhooks stay. */
import { numberOf, type StoreDatabase, textOf } from "./database.ts";
import type { HistoryStore } from "./history.ts";
import type { IsolationStore } from "./isolations.ts";

export interface RetentionLimits {
  /** Days after which an item goes. */
  readonly keepDays: number;
  /** Bytes of audio of all items together. */
  readonly keepBytes: number;
}

/** Rows looked at in one go, so that a large clearing does not hold up requests. */
const BATCH = 200;

export class Retention {
  readonly #database: StoreDatabase;
  readonly #history: HistoryStore;
  readonly #isolations: IsolationStore;
  readonly #limits: RetentionLimits;

  constructor(
    parts: {
      readonly database: StoreDatabase;
      readonly history: HistoryStore;
      readonly isolations: IsolationStore;
    },
    limits: RetentionLimits,
  ) {
    this.#database = parts.database;
    this.#history = parts.history;
    this.#isolations = parts.isolations;
    this.#limits = limits;
  }

  /** Deletes up to a batch of what is over the limits at `nowUnix`; true where there may be more. */
  enforce(nowUnix: number): boolean {
    const beforeUnix = nowUnix - this.#limits.keepDays * 86_400;
    let excess = this.#keptBytes - this.#limits.keepBytes;
    const oldest = this.#oldest();
    for (const { kind, id, dateUnix, bytes } of oldest) {
      if (dateUnix >= beforeUnix && excess <= 0) return false;
      if (kind === "history") this.#history.delete(id);
      else this.#isolations.delete(id);
      excess -= bytes;
    }
    return oldest.length === BATCH;
  }

  get #keptBytes(): number {
    const row = this.#database.get(
      "SELECT (SELECT TOTAL(media_bytes) FROM history) + (SELECT TOTAL(media_bytes) FROM isolation) AS bytes",
    );
    return numberOf(row?.bytes);
  }

  #oldest() {
    return this.#database
      .all(
        `SELECT 'history' AS kind, id, date_unix, media_bytes, seq FROM history
          UNION ALL SELECT 'isolation', id, created_at_unix, media_bytes, seq FROM isolation
          ORDER BY date_unix, seq LIMIT ?`,
        BATCH,
      )
      .map((row) => ({
        kind: textOf(row.kind),
        id: textOf(row.id),
        dateUnix: numberOf(row.date_unix),
        bytes: numberOf(row.media_bytes),
      }));
  }
}
