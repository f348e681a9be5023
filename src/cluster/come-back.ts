/** The errors that end connections to a session that goes elsewhere, and when their clients come back: not all at once. */
import { GatewayError } from "../errors.ts";

const MOVED_RETRY_MS = 200;
/** A node that lost its sessions to others lost thousands. */
const MOVED_SPREAD_MS = 800;
/** Sessions are handed over a few at a time. */
const HANDED_OVER_SPREAD_MS = 200;
/** About as long as a gateway needs to start again. */
const RESTART_MS = 500;
const RESTART_SPREAD_MS = 1000;

/** Clients try again, and then find the session where it is. */
export function movedAway(): GatewayError {
  return atAnotherNode(spread(MOVED_RETRY_MS, MOVED_SPREAD_MS));
}

/** The other node has it already, or waits for it. */
export function handedOver(): GatewayError {
  return atAnotherNode(spread(0, HANDED_OVER_SPREAD_MS));
}

export function shuttingDown(): GatewayError {
  const retryAfterMs = spread(RESTART_MS, RESTART_SPREAD_MS);
  return new GatewayError("draining", "Gateway is shutting down: connect again", { retryAfterMs });
}

function atAnotherNode(retryAfterMs: number): GatewayError {
  return new GatewayError("bus_lost", "Session is at another node: connect again", { retryAfterMs });
}

function spread(fromMs: number, spreadMs: number): number {
  return fromMs + Math.round(Math.random() * spreadMs);
}
