/** The error for clients of a session that is at another node now. */
import { GatewayError } from "../errors.ts";

const RETRY_MS = 200;
/** Not all at once: a node that goes has thousands. */
const SPREAD_MS = 800;

/** Clients try again, and then find the session where it is. */
export function movedAway(): GatewayError {
  const retryAfterMs = RETRY_MS + Math.round(Math.random() * SPREAD_MS);
  return new GatewayError("bus_lost", "Session is at another node: connect again", { retryAfterMs });
}
