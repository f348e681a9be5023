/** A history item: the one that a path names, or the answer that there is none, and what its record is. */

import { ApiError } from "../../api-error.ts";
import { HISTORY_SOURCES, type HistoryItem } from "../../store/history.ts";
import type { ServiceContext } from "../context.ts";
import { INTEGER, listOf, NULL, named, nullable, oneOf, record, STRING } from "../json-schema.ts";
import { text } from "../kinds.ts";
import { required } from "../schema.ts";
import { KEPT_ALIGNMENTS } from "../speech/speech-answers.ts";

export const HISTORY_ITEM_ID = required(text(), "One of the history; any other is refused with 404.");

const LINE = record({ text: STRING, voice_id: STRING, voice_name: STRING });

export const HISTORY_ITEM = named(
  "SpeechHistoryItem",
  record({
    history_item_id: STRING,
    request_id: nullable(STRING),
    voice_id: nullable(STRING),
    model_id: nullable(STRING),
    voice_name: nullable(STRING),
    voice_category: nullable(STRING),
    text: { ...nullable(STRING), description: "Null for a dialogue and for speech to speech." },
    date_unix: INTEGER,
    character_count_change_from: INTEGER,
    character_count_change_to: INTEGER,
    content_type: STRING,
    state: { ...STRING, const: "created" },
    settings: nullable({ type: "object" }),
    feedback: NULL,
    share_link_id: NULL,
    source: oneOf(HISTORY_SOURCES),
    dialogue: nullable(listOf(LINE)),
    output_format: STRING,
    alignments: nullable(KEPT_ALIGNMENTS),
  }),
);

/** Throws the 404 of an item that is not there. */
export function requireItem(context: ServiceContext, id: string): HistoryItem {
  const item = context.store.history.get(id);
  if (item === undefined) throw ApiError.notFound("history_item", id);
  return item;
}
