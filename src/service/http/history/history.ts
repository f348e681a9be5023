/** Section "History": list, get, delete; its audio is in history-audio.ts. */
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import { HISTORY_SOURCES, type HistoryQuery } from "../../store/history.ts";
import { historyItemJson, historyPageJson } from "../../store/history-json.ts";
import { json, STATUS_OK } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { BOOLEAN, INTEGER, listOf, nullable, record, STRING } from "../json-schema.ts";
import { integer, literal, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { optional, type Values, withDefault } from "../schema.ts";
import { registerHistoryAudio } from "./history-audio.ts";
import { HISTORY_ITEM, HISTORY_ITEM_ID, requireItem } from "./history-item.ts";

const QUERY = {
  page_size: withDefault(integer({ range: { min: 1, max: 1000 } }), 100, "Items at most."),
  start_after_history_item_id: optional(
    text(),
    "Begins behind this item, the last of the page before; it may have been deleted. Empty for the first page.",
  ),
  voice_id: optional(text(), "Said by this voice, or by it among others in a dialogue. Empty for any."),
  model_id: optional(text(), "Asked for with this model. Empty for any."),
  date_before_unix: optional(integer({ examples: [1_900_000_000] }), "Seconds since 1970, exclusive."),
  date_after_unix: optional(integer({ examples: [1_700_000_000] }), "Seconds since 1970, inclusive."),
  sort_direction: withDefault(literal(["asc", "desc"]), "desc", "By date."),
  search: optional(text(), "A part of the text. Empty for any."),
  source: optional(literal(HISTORY_SOURCES), "Made by text to speech, speech to speech, or flows."),
} as const;

const LIST = operation({
  method: "GET",
  url: "/v1/history",
  id: "get_speech_history",
  tag: "History",
  summary: "What was said, newest first",
  query: QUERY,
  answer: json(
    record({
      history: listOf(HISTORY_ITEM),
      last_history_item_id: nullable(STRING),
      has_more: BOOLEAN,
      scanned_until: nullable(INTEGER),
    }),
    "A page.",
  ),
});
const ONE = {
  url: "/v1/history/:history_item_id",
  tag: "History",
  params: { history_item_id: HISTORY_ITEM_ID },
  errors: [404],
} as const;
const GET = operation({
  ...ONE,
  method: "GET",
  id: "get_speech_history_item",
  summary: "One item",
  answer: json(HISTORY_ITEM, "The item."),
});
const DELETE = operation({
  ...ONE,
  method: "DELETE",
  id: "delete_speech_history_item",
  summary: "Deletes an item with its audio",
  answer: STATUS_OK,
});

/** GET /v1/history, GET and DELETE of an item, and its audio. */
export function registerHistory(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, LIST, async ({ query: asked, reply }) => {
    const query = historyQuery(asked);
    if (query.startAfterId !== null && !context.store.history.isPlace(query.startAfterId)) {
      const id = query.startAfterId.slice(0, 64);
      const message = `Invalid start_after_history_item_id '${id}', expected an item's id.`;
      throw ApiError.unfit("invalid_cursor", message, { param: "start_after_history_item_id" });
    }
    return reply.type("application/json").send(historyPageJson(context.store.history.list(query)));
  });
  route(app, context, GET, async ({ params, reply }) =>
    reply.type("application/json").send(historyItemJson(requireItem(context, params.history_item_id))),
  );
  route(app, context, DELETE, async ({ params }) => {
    const { id } = requireItem(context, params.history_item_id);
    context.store.history.delete(id);
    return { status: "ok" };
  });
  registerHistoryAudio(app, context);
}

/** An empty text counts as absent: clients that page in a loop begin with one. */
function historyQuery(query: Values<typeof QUERY>): HistoryQuery {
  return {
    pageSize: query.page_size,
    startAfterId: query.start_after_history_item_id || null,
    voiceId: query.voice_id || null,
    modelId: query.model_id || null,
    beforeUnix: query.date_before_unix ?? null,
    afterUnix: query.date_after_unix ?? null,
    direction: query.sort_direction,
    search: query.search?.trim() || null,
    source: query.source ?? null,
  };
}
