/** What a client comes with, as one node says it to another. */
import type { Door } from "../../access/door.ts";
import { passCaller } from "../../access/passed-caller.ts";
import type { Arrival } from "./live-connection.ts";

/** What the session's node has to know of a client, as JSON. */
export function factsOf({ sessionId, query, origin, address, caller }: Arrival): object {
  return { sessionId, query, origin, address, caller: passCaller(caller) };
}

/** undefined: it is no arrival, or its key or token is none of this node's. */
export function readFacts(value: unknown, { access }: Door): Arrival | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { sessionId, query, origin, address, caller: passed } = value as Record<string, unknown>;
  const caller = access.received(passed);
  if (caller === null || typeof sessionId !== "string" || typeof query !== "string") return undefined;
  if (typeof origin !== "string" || typeof address !== "string") return undefined;
  return { sessionId, query, origin, address, caller };
}
