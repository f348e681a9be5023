/** The history item that a path names, or the answer that there is none. */
import type { HistoryItem } from "../store/history.ts";
import type { ServiceContext } from "./context.ts";
import { Refusal } from "./refusal.ts";

/** Throws the 404 of an item that is not there. */
export function requireItem(context: ServiceContext, id: string): HistoryItem {
  const item = context.store.history.get(id);
  if (item !== undefined) return item;
  throw Refusal.of({
    type: "not_found",
    code: "history_item_not_found",
    message: `A history item with history_item_id '${id.slice(0, 64)}' was not found.`,
    param: "history_item_id",
  });
}
