/**
 * History items in the interface's words (contract A7), as bytes: a page of a hundred is nearly all alignments, which are
 * put between the rest as they were read.
 */
import type { HistoryItem, HistoryPage } from "./history.ts";

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

function itemParts(item: HistoryItem): Uint8Array[] {
  const record = {
    history_item_id: item.id,
    request_id: item.requestId,
    voice_id: item.voiceId,
    model_id: item.modelId,
    voice_name: item.voiceName,
    voice_category: item.voiceCategory,
    text: item.text,
    date_unix: item.dateUnix,
    character_count_change_from: item.charactersFrom,
    character_count_change_to: item.charactersTo,
    content_type: item.contentType,
    state: "created",
    settings: item.settings,
    feedback: null,
    share_link_id: null,
    source: item.source,
    dialogue: item.dialogue,
    output_format: item.outputFormat,
  };
  const front = Buffer.from(`${JSON.stringify(record).slice(0, -1)},"alignments":`);
  return [front, item.alignmentsJson ?? NULL, END];
}
