/** The history of audio isolation. */
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import type { Isolation } from "../../store/isolations.ts";
import { json } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { BOOLEAN, INTEGER, listOf, NULL, NUMBER, named, nullable, record, STRING } from "../json-schema.ts";
import { integer, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { optional, withDefault } from "../schema.ts";
import { HISTORY_ITEM_ID } from "./history-item.ts";

/** Behind it there can be nothing: fewer rows fit on a disk. */
const LAST_PAGE = 1_000_000_000;
const PATH = "/v1/audio-isolation/history";

const ITEM = named(
  "AudioIsolationHistoryItem",
  record({
    id: STRING,
    title: nullable(STRING),
    created_at_unix: INTEGER,
    format: STRING,
    duration_seconds: nullable(NUMBER),
    download_url: NULL,
    icon_url: NULL,
    source_video_url: NULL,
    supports_video: BOOLEAN,
    processing: BOOLEAN,
    video_processing_failed: BOOLEAN,
    preview_b64: nullable(STRING),
  }),
);

const LIST = operation({
  method: "GET",
  url: PATH,
  id: "get_audio_isolation_history",
  tag: "Audio isolation",
  summary: "What was isolated, newest first",
  query: {
    page_size: withDefault(integer({ range: { min: 1, max: 1000 } }), 100, "Items at most."),
    page: withDefault(
      integer({ range: { min: 1, max: Number.MAX_SAFE_INTEGER } }),
      1,
      "Counted from 1; looked at with search only: without it every page is the first, and has_more is false from the second on.",
    ),
    search: optional(text(), "A part of the title, which is the file's name; items have no other text."),
  },
  answer: json(record({ items: listOf(ITEM), has_more: BOOLEAN }), "A page."),
});

const DELETE = operation({
  method: "DELETE",
  url: `${PATH}/:history_item_id`,
  id: "delete_audio_isolation_history_item",
  tag: "Audio isolation",
  summary: "Deletes an item with its audio",
  params: { history_item_id: HISTORY_ITEM_ID },
  errors: [404],
  status: 204,
  answer: { description: "It is gone." },
});

/** GET /v1/audio-isolation/history, and DELETE of an item. */
export function registerIsolationHistory(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, LIST, async ({ query }) => {
    const search = query.search?.trim() || null;
    const { items, hasMore } = context.store.isolations.list({
      pageSize: query.page_size,
      page: search === null ? 1 : Math.min(query.page, LAST_PAGE),
      search,
    });
    // Without a search every page is the first: who asks for the second shall not ask for ever.
    const hasNext = hasMore && (search !== null || query.page === 1);
    return { items: items.map(isolationRecord), has_more: hasNext };
  });
  route(app, context, DELETE, async ({ params, reply }) => {
    const id = params.history_item_id;
    if (!context.store.isolations.delete(id)) throw ApiError.notFound("history_item", id);
    return reply.code(204).send();
  });
}

/** As the interface lists it; fields of videos are never set here, and there is no address to download from. */
function isolationRecord(item: Isolation): object {
  return {
    id: item.id,
    title: item.title,
    created_at_unix: item.createdAtUnix,
    format: item.format,
    duration_seconds: item.durationSeconds,
    download_url: null,
    icon_url: null,
    source_video_url: null,
    supports_video: false,
    processing: false,
    video_processing_failed: false,
    preview_b64: item.previewBase64,
  };
}
