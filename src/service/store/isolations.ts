/** Rows of the audio isolation history. */
import { randomBytes } from "node:crypto";
import {
  likePattern,
  numberOf,
  numberOrNull,
  type Row,
  type StoreDatabase,
  searchable,
  textOf,
  textOrNull,
} from "./database.ts";
import type { MediaFile, MediaStore, PinnedMedia } from "./media.ts";
import { deleteWithMedia, mediaOf } from "./rows.ts";

export interface NewIsolation {
  /** The name of the file that was sent. */
  readonly title: string | null;
  /** Seconds since 1970. */
  readonly createdAtUnix: number;
  /** Format of the file that was sent, e.g. `wav`. */
  readonly format: string;
  readonly durationSeconds: number | null;
  readonly previewBase64: string | null;
}

export interface Isolation extends NewIsolation {
  readonly id: string;
  readonly media: MediaFile;
}

interface IsolationQuery {
  readonly pageSize: number;
  /** From 1. */
  readonly page: number;
  readonly search: string | null;
}

interface IsolationPage {
  readonly items: readonly Isolation[];
  readonly hasMore: boolean;
}

export class IsolationStore {
  readonly #database: StoreDatabase;
  readonly #media: MediaStore;

  constructor(database: StoreDatabase, media: MediaStore) {
    this.#database = database;
    this.#media = media;
  }

  /** Takes over the audio: it is released here. */
  add(item: NewIsolation, media: PinnedMedia): Isolation {
    const id = randomBytes(10).toString("hex");
    try {
      this.#database.run(
        `INSERT INTO isolation (id, title, search_text, created_at_unix, format, duration_seconds, preview_b64, media_hash,
          media_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        id,
        item.title,
        searchable(item.title ?? ""),
        item.createdAtUnix,
        item.format,
        item.durationSeconds,
        item.previewBase64,
        media.hash,
        media.bytes,
      );
    } finally {
      media.release();
    }
    return { ...item, id, media: { hash: media.hash, bytes: media.bytes } };
  }

  get(id: string): Isolation | undefined {
    const row = this.#database.get("SELECT * FROM isolation WHERE id = ?", id);
    return row === undefined ? undefined : isolationOf(row);
  }

  /** Its media goes with it; false where it is not there. */
  delete(id: string): boolean {
    return deleteWithMedia({ database: this.#database, media: this.#media }, "isolation", id);
  }

  /** Newest first. */
  list({ pageSize, page, search }: IsolationQuery): IsolationPage {
    const rows = this.#database.all(
      `SELECT * FROM isolation WHERE search_text LIKE ? ESCAPE '\\'
        ORDER BY created_at_unix DESC, seq DESC LIMIT ? OFFSET ?`,
      likePattern(search ?? ""),
      pageSize + 1,
      (page - 1) * pageSize,
    );
    return { items: rows.slice(0, pageSize).map(isolationOf), hasMore: rows.length > pageSize };
  }
}

function isolationOf(row: Row): Isolation {
  return {
    id: textOf(row.id),
    title: textOrNull(row.title),
    createdAtUnix: numberOf(row.created_at_unix),
    format: textOf(row.format),
    durationSeconds: numberOrNull(row.duration_seconds),
    previewBase64: textOrNull(row.preview_b64),
    media: mediaOf(row),
  };
}
