/** Reads one text message of the gateway. Its types are trusted: it is the party that we chose to connect to. */
import type { Event } from "../protocol/events.ts";

/** null where the message is no JSON object with a `type`. */
export function parseEvent(data: unknown): Event | null {
  if (typeof data !== "string") return null;
  try {
    const value: unknown = JSON.parse(data);
    return hasType(value) ? (value as Event) : null;
  } catch {
    return null;
  }
}

function hasType(value: unknown): value is { readonly type: string } {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
