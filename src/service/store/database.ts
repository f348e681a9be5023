/** The SQLite file of a store: opened, brought up to date, and the only place that knows the library. */
import Database from "libsql";
import { GatewayError } from "../../errors.ts";
import { MIGRATIONS } from "./migrations.ts";

/** A value of a column; bytes where a statement asks for them (CAST AS BLOB): a Buffer from `get`, an ArrayBuffer from `all`. */
export type Cell = string | number | null | Buffer | ArrayBuffer;
export type Row = Readonly<Record<string, Cell>>;

/**
 * How long a statement waits for another process that writes, ms. The event loop waits with it: well below the 5 s after
 * which a gateway takes its service for hung (cli/serve/hang-watch.ts).
 */
const BUSY_MS = 2000;

/** Whether an error of the store or of its files says that the disk has no room. */
export function isDiskFull(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || !("code" in thrown)) return false;
  return thrown.code === "ENOSPC" || thrown.code === "EDQUOT" || thrown.code === "SQLITE_FULL";
}

/** Everything is synchronous: a statement takes some microseconds, less than handing it to a thread would. */
export class StoreDatabase {
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Database.Statement>();
  #isClosed = false;

  /** Throws GatewayError "invalid_config" where the file can't be opened, or was written by a newer version. */
  constructor(path: string) {
    try {
      this.#database = new Database(path);
      this.#database.pragma(`busy_timeout = ${BUSY_MS}`);
      // Readers don't wait for writers, and what was committed survives a crash of this process.
      this.#database.pragma("journal_mode = WAL");
      this.#database.pragma("synchronous = NORMAL");
      this.#database.pragma("foreign_keys = ON");
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new GatewayError("invalid_config", `Cannot open the store ${path}: ${reason}`, { cause });
    }
    this.#migrate(path);
  }

  /** Statements without a result. */
  run(sql: string, ...values: Cell[]): number {
    return this.#prepared(sql).run(...values).changes;
  }

  get(sql: string, ...values: Cell[]): Row | undefined {
    return this.#prepared(sql).get(...values) as Row | undefined;
  }

  all(sql: string, ...values: Cell[]): Row[] {
    return this.#prepared(sql).all(...values) as Row[];
  }

  /** All of it or nothing. `body` must not wait. */
  transaction<T>(body: () => T): T {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const result = body();
      this.#database.exec("COMMIT");
      return result;
    } catch (thrown) {
      // On a full disk it may be rolled back by itself: another ROLLBACK would fail, and hide why.
      if (this.#database.inTransaction) this.#database.exec("ROLLBACK");
      throw thrown;
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#statements.clear();
    this.#database.close();
  }

  #prepared(sql: string): Database.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #migrate(path: string): void {
    const has = Number(this.get("PRAGMA user_version")?.user_version ?? 0);
    if (has > MIGRATIONS.length) {
      this.close();
      const message = `Cannot open the store ${path}: it is of version ${has}, this program knows up to ${MIGRATIONS.length}`;
      throw new GatewayError("invalid_config", message);
    }
    for (let step = has; step < MIGRATIONS.length; step += 1) {
      this.transaction(() => {
        // Another process may have been faster.
        if (Number(this.get("PRAGMA user_version")?.user_version ?? 0) > step) return;
        this.#database.exec(MIGRATIONS[step] ?? "");
        this.#database.exec(`PRAGMA user_version = ${step + 1}`);
      });
    }
  }
}

export function textOf(cell: Cell | undefined): string {
  return typeof cell === "string" ? cell : "";
}

export function textOrNull(cell: Cell | undefined): string | null {
  return typeof cell === "string" ? cell : null;
}

/** What was read as bytes; null for NULL. */
export function bytesOrNull(cell: Cell | undefined): Buffer | null {
  if (cell instanceof ArrayBuffer) return Buffer.from(cell);
  return Buffer.isBuffer(cell) ? cell : null;
}

/** What was read as bytes; empty for NULL. */
export function bytesOf(cell: Cell | undefined): Buffer {
  return bytesOrNull(cell) ?? Buffer.alloc(0);
}

export function numberOf(cell: Cell | undefined): number {
  return Number(cell ?? 0);
}

export function numberOrNull(cell: Cell | undefined): number | null {
  return cell === null || cell === undefined ? null : Number(cell);
}

/** JSON that this store wrote; null for NULL. */
export function jsonOf(cell: Cell | undefined): unknown {
  return typeof cell === "string" ? JSON.parse(cell) : null;
}

/** For searches without regard to case, width or composition. LIKE would read a text up to its first NUL only. */
export function searchable(text: string): string {
  return text.normalize("NFKC").toLowerCase().replaceAll("\0", "\ufffd");
}

/** `text` anywhere, for LIKE ... ESCAPE '\\'. */
export function likePattern(text: string): string {
  return `%${searchable(text).replace(/[\\%_]/g, "\\$&")}%`;
}
