/** Rows of the speech history. */
import { randomBytes } from "node:crypto";
import {
  bytesOf,
  bytesOrNull,
  type Cell,
  likePattern,
  numberOf,
  type Row,
  type StoreDatabase,
  searchable,
  textOf,
  textOrNull,
} from "./database.ts";
import type { HistoryItem, HistoryPage } from "./history-item.ts";
import { RECORD_SQL } from "./history-json.ts";
import type { MediaFile, MediaStore, PinnedMedia } from "./media.ts";
import { deleteWithMedia, mediaOf } from "./rows.ts";

export type { HistoryItem, HistoryPage };

export const HISTORY_SOURCES = ["TTS", "STS", "Flows"] as const;
type HistorySource = (typeof HISTORY_SOURCES)[number];

interface DialogueLine {
  readonly text: string;
  readonly voice_id: string;
  readonly voice_name: string;
}

/** What is known of a generation when its audio is whole. */
export interface NewHistoryItem {
  /** Given beforehand where a header had to name it; else one is made. */
  readonly id?: string;
  readonly requestId: string | null;
  /** null, as is `text`, for a dialogue. */
  readonly voiceId: string | null;
  readonly voiceName: string | null;
  readonly voiceCategory: string | null;
  readonly modelId: string | null;
  readonly text: string | null;
  /** Seconds since 1970. */
  readonly dateUnix: number;
  /** Characters billed for it. */
  readonly characters: number;
  readonly contentType: string;
  readonly outputFormat: string;
  readonly source: HistorySource;
  readonly settings: Readonly<Record<string, unknown>> | null;
  /** `{alignment, normalized_alignment}` as they were sent, as JSON: a page of them is large, and handed on as it is. */
  readonly alignmentsJson: string | null;
  readonly dialogue: readonly DialogueLine[] | null;
}

export interface HistoryQuery {
  /** 1 or more. */
  readonly pageSize: number;
  /** Begins behind this item, in the order asked for, also where it was deleted; one that never was: from the beginning. */
  readonly startAfterId: string | null;
  /** Speaks in it, as one of several in a dialogue. */
  readonly voiceId: string | null;
  readonly modelId: string | null;
  /** Exclusive and inclusive, seconds. */
  readonly beforeUnix: number | null;
  readonly afterUnix: number | null;
  readonly direction: "asc" | "desc";
  readonly search: string | null;
  readonly source: HistorySource | null;
}

/**
 * The record is put together by SQLite: a page of a hundred is 900 values less to be made one by one. The timing comes by a
 * subquery, which is asked for the rows of the page only.
 */
const SELECT = `SELECT id, voice_name, date_unix, content_type, output_format, media_hash, media_bytes,
    CAST(${RECORD_SQL} AS BLOB) AS record,
    (SELECT CAST(alignments AS BLOB) FROM history_timing AS timing WHERE timing.seq = history.seq) AS alignments
  FROM history`;

/** An id as the vendor's look: 20 letters and digits. */
export function newHistoryId(): string {
  return randomBytes(10).toString("hex");
}

export class HistoryStore {
  readonly #database: StoreDatabase;
  readonly #media: MediaStore;
  /** What is being said by requests that are not kept yet, by request id. Bounded by the requests under way. */
  readonly #underWay = new Map<string, string>();

  constructor(database: StoreDatabase, media: MediaStore) {
    this.#database = database;
    this.#media = media;
  }

  /** Characters billed so far. */
  get charactersUsed(): number {
    return numberOf(this.#database.get("SELECT characters FROM usage WHERE id = 1")?.characters);
  }

  /** Takes over the audio: it is released here. What it was kept under. */
  add(item: NewHistoryItem, media: PinnedMedia): { readonly id: string } {
    try {
      return this.#database.transaction(() => this.#insert(item, media));
    } finally {
      media.release();
    }
  }

  /** Bills without keeping anything else. */
  charge(characters: number): void {
    this.#database.run("UPDATE usage SET characters = characters + ? WHERE id = 1", characters);
  }

  /** Others may be stitched to the request from now on; call what it returns when it is kept or given up. */
  begin(item: Omit<NewHistoryItem, "alignmentsJson">): () => void {
    const { requestId } = item;
    if (requestId === null) return () => undefined;
    this.#underWay.set(requestId, spokenText(item));
    return () => this.#underWay.delete(requestId);
  }

  /** The text of a speech request that is under way, or was kept at `sinceUnix` (seconds) or later. */
  textOf(requestId: string, sinceUnix: number): string | undefined {
    const underWay = this.#underWay.get(requestId);
    if (underWay !== undefined) return underWay;
    const row = this.#database.get(
      "SELECT text, dialogue FROM history WHERE request_id = ? AND date_unix >= ? AND source = 'TTS'",
      requestId,
      sinceUnix,
    );
    if (row === undefined) return undefined;
    const dialogue = textOrNull(row.dialogue);
    const lines = dialogue === null ? null : (JSON.parse(dialogue) as DialogueLine[]);
    return spokenText({ text: textOrNull(row.text), dialogue: lines });
  }

  get(id: string): HistoryItem | undefined {
    const row = this.#database.get(`${SELECT} WHERE id = ?`, id);
    return row === undefined ? undefined : itemOf(row);
  }

  has(id: string): boolean {
    return this.#database.get("SELECT 1 FROM history WHERE id = ?", id) !== undefined;
  }

  /** A page can begin behind it: it is there, or was among the last 10,000 that were deleted. */
  isPlace(id: string): boolean {
    return this.#placeOf(id) !== undefined;
  }

  /** Its audio goes with it, unless another item has the same; false where it is not there. */
  delete(id: string): boolean {
    return deleteWithMedia({ database: this.#database, media: this.#media }, "history", id);
  }

  list(query: HistoryQuery): HistoryPage {
    const { conditions, values } = this.#conditions(query);
    const order = query.direction === "asc" ? "ASC" : "DESC";
    const rows = this.#database.all(
      `${SELECT} ${conditions} ORDER BY date_unix ${order}, seq ${order} LIMIT ?`,
      ...values,
      query.pageSize + 1,
    );
    return { items: rows.slice(0, query.pageSize).map(itemOf), hasMore: rows.length > query.pageSize };
  }

  #conditions(query: HistoryQuery): { readonly conditions: string; readonly values: Cell[] } {
    const parts: string[] = [];
    const values: Cell[] = [];
    const add = (condition: string, ...given: (Cell | undefined)[]): void => {
      parts.push(condition);
      for (const value of given) values.push(value ?? null);
    };
    const after = query.startAfterId === null ? undefined : this.#placeOf(query.startAfterId);
    if (after !== undefined) {
      const sign = query.direction === "asc" ? ">" : "<";
      add(`(date_unix, seq) ${sign} (?, ?)`, after.date_unix, after.seq);
    }
    if (query.voiceId !== null) {
      const speaks = "seq IN (SELECT speaker.seq FROM history_speaker AS speaker WHERE speaker.voice_id = ?)";
      add(`(voice_id = ? OR ${speaks})`, query.voiceId, query.voiceId);
    }
    if (query.modelId !== null) add("model_id = ?", query.modelId);
    if (query.source !== null) add("source = ?", query.source);
    if (query.beforeUnix !== null) add("date_unix < ?", query.beforeUnix);
    if (query.afterUnix !== null) add("date_unix >= ?", query.afterUnix);
    if (query.search !== null) add("search_text LIKE ? ESCAPE '\\'", likePattern(query.search));
    return { conditions: parts.length === 0 ? "" : `WHERE ${parts.join(" AND ")}`, values };
  }

  #placeOf(id: string): Row | undefined {
    return this.#database.get(
      `SELECT date_unix, seq FROM history WHERE id = ?
        UNION ALL SELECT date_unix, seq FROM history_gone WHERE id = ? LIMIT 1`,
      id,
      id,
    );
  }

  #insert(item: NewHistoryItem, media: MediaFile): { readonly id: string } {
    const from = this.charactersUsed;
    this.charge(item.characters);
    const id = item.id ?? newHistoryId();
    this.#database.run(
      `INSERT INTO history (id, request_id, voice_id, voice_name, voice_category, model_id, text, search_text, date_unix,
        characters_from, characters_to, content_type, output_format, source, settings, dialogue, media_hash, media_bytes)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      id,
      item.requestId,
      item.voiceId,
      item.voiceName,
      item.voiceCategory,
      item.modelId,
      item.text,
      searchable(spokenText(item)),
      item.dateUnix,
      from,
      from + item.characters,
      item.contentType,
      item.outputFormat,
      item.source,
      item.settings === null ? null : JSON.stringify(item.settings),
      item.dialogue === null ? null : JSON.stringify(item.dialogue),
      media.hash,
      media.bytes,
    );
    if (item.alignmentsJson !== null) {
      this.#database.run(
        "INSERT INTO history_timing (seq, alignments) SELECT seq, ? FROM history WHERE id = ?",
        item.alignmentsJson,
        id,
      );
    }
    return { id };
  }
}

function spokenText({ text, dialogue }: Pick<NewHistoryItem, "text" | "dialogue">): string {
  return text ?? (dialogue ?? []).map((line) => line.text).join("\n");
}

function itemOf(row: Row): HistoryItem {
  return {
    id: textOf(row.id),
    voiceName: textOrNull(row.voice_name),
    dateUnix: numberOf(row.date_unix),
    contentType: textOf(row.content_type),
    outputFormat: textOf(row.output_format),
    media: mediaOf(row),
    recordJson: bytesOf(row.record),
    alignmentsJson: bytesOrNull(row.alignments),
  };
}
