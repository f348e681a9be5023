/** Section "History" (service-interface.md 2.2, 4.3; contract A7): list, get, delete; its audio is in history-audio.ts. */
import type { FastifyInstance } from "fastify";
import { HISTORY_SOURCES, type HistoryItem, type HistoryQuery } from "../store/history.ts";
import { authorize, queryFields, type ServiceContext } from "./context.ts";
import { registerHistoryAudio } from "./history-audio.ts";
import { requireItem } from "./history-item.ts";
import type { Fields } from "./pydantic.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";

const DEFAULT_PAGE = 100;
const MAX_PAGE = 1000;

export function registerHistory(app: FastifyInstance, context: ServiceContext): void {
  app.get("/v1/history", async (request, reply) => {
    const faults: ValidationEntry[] = [];
    const query = readHistoryQuery(queryFields(request, faults));
    if (faults.length > 0) throw Refusal.invalid(faults);
    authorize(context, request);
    requireOrder(query);
    if (query.startAfterId !== null && context.store.history.get(query.startAfterId) === undefined) {
      throw Refusal.of({
        type: "validation_error",
        code: "invalid_cursor",
        message: `Invalid start_after_history_item_id '${query.startAfterId.slice(0, 64)}', expected an item's id.`,
        param: "start_after_history_item_id",
      });
    }
    const { items, hasMore } = context.store.history.list(query);
    const rest = {
      last_history_item_id: items.at(-1)?.id ?? null,
      has_more: hasMore,
      scanned_until: items.at(-1)?.dateUnix ?? null,
    };
    const history = items.map(historyJson).join(",");
    return reply.type("application/json").send(`{"history":[${history}],${JSON.stringify(rest).slice(1)}`);
  });
  app.get<{ Params: { history_item_id: string } }>("/v1/history/:history_item_id", async (request, reply) => {
    authorize(context, request);
    const json = historyJson(requireItem(context, request.params.history_item_id));
    return reply.type("application/json").send(json);
  });
  app.delete<{ Params: { history_item_id: string } }>("/v1/history/:history_item_id", async (request) => {
    authorize(context, request);
    const { id } = requireItem(context, request.params.history_item_id);
    context.store.history.delete(id);
    return { status: "ok" };
  });
  registerHistoryAudio(app, context);
}

function readHistoryQuery(query: Fields): HistoryQuery {
  return {
    pageSize: query.integer("page_size", { min: 1, max: MAX_PAGE }) ?? DEFAULT_PAGE,
    startAfterId: query.text("start_after_history_item_id") ?? null,
    voiceId: query.text("voice_id") ?? null,
    modelId: query.text("model_id") ?? null,
    beforeUnix: query.integer("date_before_unix") ?? null,
    afterUnix: query.integer("date_after_unix") ?? null,
    direction: query.choice("sort_direction", ["asc", "desc"]) ?? "desc",
    search: query.text("search")?.trim() || null,
    source: query.choice("source", HISTORY_SOURCES) ?? null,
  };
}

function requireOrder({ beforeUnix, afterUnix }: HistoryQuery): void {
  if (beforeUnix === null || afterUnix === null || afterUnix < beforeUnix) return;
  throw Refusal.of({
    type: "validation_error",
    code: "invalid_parameters",
    message: `Nothing can be from ${afterUnix} on and before ${beforeUnix}: expected date_after_unix to be earlier.`,
    param: "date_after_unix",
  });
}

function historyJson(item: HistoryItem): string {
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
  return `${JSON.stringify(record).slice(0, -1)},"alignments":${item.alignmentsJson ?? "null"}}`;
}
