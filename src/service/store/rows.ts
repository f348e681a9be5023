/** What the tables of kept audio have in common. */
import { type Cell, numberOf, type Row, type StoreDatabase, textOf } from "./database.ts";
import type { MediaFile, MediaStore } from "./media.ts";

/** Each has the columns `id`, `media_hash` and `media_bytes`. */
type MediaTable = "history" | "isolation" | "voice_sample";

/** The file that a row names. */
export function mediaOf(row: Row): MediaFile {
  return { hash: textOf(row.media_hash), bytes: numberOf(row.media_bytes) };
}

/** Deletes the row, and its audio unless another row has the same; false where there is no such row. */
export function deleteWithMedia(
  parts: { readonly database: StoreDatabase; readonly media: MediaStore },
  table: MediaTable,
  id: Cell,
): boolean {
  const { database, media } = parts;
  const [row] = database.all(`DELETE FROM ${table} WHERE id = ? RETURNING media_hash`, id);
  if (row === undefined) return false;
  media.drop(textOf(row.media_hash));
  return true;
}
