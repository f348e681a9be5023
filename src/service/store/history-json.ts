/**
 * History items in the interface's words, as bytes: a page of a hundred is nearly all alignments, which are
 * put behind the rest as they were read.
 */
import type { HistoryItem, HistoryPage } from "./history-item.ts";

/**
 * The record of a row of `history`, all but its alignments, as an SQL expression: a JSON object. `settings` and `dialogue`
 * are kept as JSON.
 */
export const RECORD_SQL = `json_object(
  'history_item_id', id,
  'request_id', request_id,
  'voice_id', voice_id,
  'model_id', model_id,
  'voice_name', voice_name,
  'voice_category', voice_category,
  'text', text,
  'date_unix', date_unix,
  'character_count_change_from', characters_from,
  'character_count_change_to', characters_to,
  'content_type', content_type,
  'state', 'created',
  'settings', json(settings),
  'feedback', NULL,
  'share_link_id', NULL,
  'source', source,
  'dialogue', json(dialogue),
  'output_format', output_format)`;

const ALIGNMENTS = Buffer.from(',"alignments":');
const NULL = Buffer.from("null");
const END = Buffer.from("}");
const COMMA = Buffer.from(",");

/** One item as UTF-8 JSON. */
export function historyItemJson(item: HistoryItem): Buffer {
  return Buffer.concat(itemParts(item));
}

/** The answer to a list: the items, the last one's id and date for the next page, and whether there is one. */
export function historyPageJson({ items, hasMore }: HistoryPage): Buffer {
  const last = items.at(-1);
  const rest = {
    last_history_item_id: last?.id ?? null,
    has_more: hasMore,
    scanned_until: last?.dateUnix ?? null,
  };
  const parts = items.flatMap((item, index) => (index === 0 ? itemParts(item) : [COMMA, ...itemParts(item)]));
  return Buffer.concat([
    Buffer.from('{"history":['),
    ...parts,
    Buffer.from(`],${JSON.stringify(rest).slice(1)}`),
  ]);
}

function itemParts({ recordJson, alignmentsJson }: HistoryItem): Uint8Array[] {
  // Without its last brace.
  return [recordJson.subarray(0, -1), ALIGNMENTS, alignmentsJson ?? NULL, END];
}
