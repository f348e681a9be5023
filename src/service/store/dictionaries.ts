/** Pronunciation dictionaries and their versions. */
import { randomBytes } from "node:crypto";
import type { PronunciationRule } from "../text/pronunciation.ts";
import {
  jsonOf,
  numberOf,
  numberOrNull,
  type Row,
  type StoreDatabase,
  textOf,
  textOrNull,
} from "./database.ts";

export const MAX_DICTIONARIES = 1000;
/** One dictionary keeps so many; the oldest go. */
export const MAX_VERSIONS = 100;
/** Bound of the rules of all versions, as JSON. */
export const MAX_RULE_BYTES = 64 * 1024 ** 2;

interface NewDictionary {
  readonly name: string;
  readonly description: string | null;
  /** Seconds since 1970. */
  readonly createdAtUnix: number;
}

export interface Dictionary extends NewDictionary {
  readonly id: string;
  readonly archivedAtUnix: number | null;
  readonly latest: DictionaryVersion;
}

export interface DictionaryVersion {
  readonly id: string;
  readonly rulesCount: number;
}

interface DictionaryPage {
  readonly sort: "creation_time_unix" | "name";
  readonly isDescending: boolean;
  readonly includesArchived: boolean;
  /** The last one of the page before. */
  readonly after: string | undefined;
  readonly count: number;
}

const SELECT = `
  SELECT dictionary.*, version.id AS version_id, version.rules_count FROM dictionary
  JOIN dictionary_version AS version ON version.seq =
    (SELECT MAX(seq) FROM dictionary_version WHERE dictionary_id = dictionary.id)`;

export class DictionaryStore {
  readonly #database: StoreDatabase;

  constructor(database: StoreDatabase) {
    this.#database = database;
  }

  get count(): number {
    return numberOf(this.#database.get("SELECT COUNT(*) AS count FROM dictionary")?.count);
  }

  /** Undefined where there are as many, or as many bytes of rules, as may be, and none is archived. */
  add(dictionary: NewDictionary, rules: readonly PronunciationRule[]): Dictionary | undefined {
    const id = newId();
    return this.#database.transaction(() => {
      while (this.count >= MAX_DICTIONARIES) if (!this.#dropArchived(id)) return undefined;
      this.#database.run(
        "INSERT INTO dictionary (id, name, description, created_at_unix) VALUES (?, ?, ?, ?)",
        id,
        dictionary.name,
        dictionary.description,
        dictionary.createdAtUnix,
      );
      const latest = this.#insertVersion(id, rules);
      if (latest !== undefined) return { ...dictionary, id, archivedAtUnix: null, latest };
      this.#database.run("DELETE FROM dictionary WHERE id = ?", id);
      return undefined;
    });
  }

  get(id: string): Dictionary | undefined {
    const row = this.#database.get(`${SELECT} WHERE dictionary.id = ?`, id);
    return row === undefined ? undefined : dictionaryOf(row);
  }

  /** The rules of a version, or of the latest; undefined where there is no such version of that dictionary. */
  rules(id: string, versionId: string | undefined): readonly PronunciationRule[] | undefined {
    const row =
      versionId === undefined
        ? this.#database.get(
            "SELECT rules FROM dictionary_version WHERE dictionary_id = ? ORDER BY seq DESC LIMIT 1",
            id,
          )
        : this.#database.get(
            "SELECT rules FROM dictionary_version WHERE dictionary_id = ? AND id = ?",
            id,
            versionId,
          );
    return row === undefined ? undefined : (jsonOf(row.rules) as readonly PronunciationRule[]);
  }

  /** The new latest version; undefined where the rules of all are more bytes than may be, and no other is archived. */
  addVersion(dictionaryId: string, rules: readonly PronunciationRule[]): DictionaryVersion | undefined {
    return this.#database.transaction(() => this.#insertVersion(dictionaryId, rules));
  }

  #insertVersion(dictionaryId: string, rules: readonly PronunciationRule[]): DictionaryVersion | undefined {
    const json = JSON.stringify(rules);
    const bytes = Buffer.byteLength(json);
    if (this.#bytesInUse(dictionaryId) + bytes > MAX_RULE_BYTES) return undefined;
    while (this.#ruleBytes + bytes > MAX_RULE_BYTES) this.#dropArchived(dictionaryId);
    const id = newId();
    this.#database.run(
      "INSERT INTO dictionary_version (id, dictionary_id, rules, rules_bytes, rules_count) VALUES (?, ?, ?, ?, ?)",
      id,
      dictionaryId,
      json,
      bytes,
      rules.length,
    );
    this.#database.run(
      `DELETE FROM dictionary_version WHERE dictionary_id = ?1 AND seq NOT IN
        (SELECT seq FROM dictionary_version WHERE dictionary_id = ?1 ORDER BY seq DESC LIMIT ?2)`,
      dictionaryId,
      MAX_VERSIONS,
    );
    return { id, rulesCount: rules.length };
  }

  get #ruleBytes(): number {
    return numberOf(this.#database.get("SELECT SUM(rules_bytes) AS bytes FROM dictionary_version")?.bytes);
  }

  /** Counts the rules of all that are not archived, and those of the one named. */
  #bytesInUse(id: string): number {
    const row = this.#database.get(
      `SELECT SUM(rules_bytes) AS bytes FROM dictionary_version AS version
        JOIN dictionary ON dictionary.id = version.dictionary_id WHERE archived_at_unix IS NULL OR dictionary.id = ?`,
      id,
    );
    return numberOf(row?.bytes);
  }

  /** Deletes the one that was archived first, for room; false where there is none but `keptId`. */
  #dropArchived(keptId: string): boolean {
    const dropped = this.#database.run(
      `DELETE FROM dictionary WHERE seq = (
        SELECT seq FROM dictionary WHERE archived_at_unix IS NOT NULL AND id <> ? ORDER BY archived_at_unix, seq LIMIT 1
      )`,
      keptId,
    );
    return dropped > 0;
  }

  /** What is undefined stays as it is. */
  update(
    id: string,
    changes: { readonly name: string | undefined; readonly archivedAtUnix: number | null | undefined },
  ): void {
    if (changes.name !== undefined) {
      this.#database.run("UPDATE dictionary SET name = ? WHERE id = ?", changes.name, id);
    }
    if (changes.archivedAtUnix !== undefined) {
      this.#database.run(
        "UPDATE dictionary SET archived_at_unix = ? WHERE id = ?",
        changes.archivedAtUnix,
        id,
      );
    }
  }

  /** Undefined where `after` is no dictionary. */
  list({ sort, isDescending, includesArchived, after, count }: DictionaryPage): Dictionary[] | undefined {
    const last =
      after === undefined ? undefined : this.#database.get("SELECT * FROM dictionary WHERE id = ?", after);
    if (after !== undefined && last === undefined) return undefined;
    const key = sort === "name" ? "name COLLATE NOCASE" : "created_at_unix";
    const [direction, is] = isDescending ? ["DESC", "<"] : ["ASC", ">"];
    const conditions = [
      ...(includesArchived ? [] : ["archived_at_unix IS NULL"]),
      ...(last === undefined ? [] : [`(${key}, dictionary.seq) ${is} (?, ?)`]),
    ];
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const place =
      last === undefined
        ? []
        : [last[sort === "name" ? "name" : "created_at_unix"] ?? null, last.seq ?? null];
    return this.#database
      .all(
        `${SELECT} ${where} ORDER BY ${key} ${direction}, dictionary.seq ${direction} LIMIT ?`,
        ...place,
        count,
      )
      .map(dictionaryOf);
  }
}

/** As the interface's: 20 letters and digits. */
function newId(): string {
  return randomBytes(10).toString("hex");
}

function dictionaryOf(row: Row): Dictionary {
  return {
    id: textOf(row.id),
    name: textOf(row.name),
    description: textOrNull(row.description),
    createdAtUnix: numberOf(row.created_at_unix),
    archivedAtUnix: numberOrNull(row.archived_at_unix),
    latest: { id: textOf(row.version_id), rulesCount: numberOf(row.rules_count) },
  };
}
