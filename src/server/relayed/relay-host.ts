/** Takes clients of other nodes in as if they had come here. */
import type { Door } from "../../access/door.ts";
import type { RelayedListener, RelayHost } from "../../cluster/relay/relay.ts";
import type { RelayItem } from "../../cluster/relay/relay-format.ts";
import { POLICY_VIOLATION } from "../../kit/close-codes.ts";
import type { Logger } from "../../kit/log.ts";
import { type ArrivalKind, type PassedFacts, readFacts } from "../passed-facts.ts";
import { type HttpArrival, newConnection } from "../sockets/live-connection.ts";
import type { LiveConnections } from "../sockets/live-connections.ts";

/** A client of another node. */
export interface HostedClient {
  /** Its bytes are lent for the call. */
  message(item: RelayItem): void;
  /** What waited for it has been sent. */
  drained(): void;
  /** Once, behind everything else. */
  closed(code: number): void;
}

/** Takes in a client of one kind; undefined: what it says of itself can't be read. */
export type TakeIn = (facts: PassedFacts, listener: RelayedListener) => HostedClient | undefined;

const NOBODY: HostedClient = { message: () => undefined, drained: () => undefined, closed: () => undefined };

export function relayHost(
  takeIn: Readonly<Record<ArrivalKind, TakeIn>>,
  { door, log }: { readonly door: Pick<Door, "access">; readonly log: Pick<Logger, "warn"> },
): RelayHost<PassedFacts, HostedClient> {
  return {
    readFacts: (value) => {
      const facts = readFacts(value, door);
      if (facts === undefined) {
        log.warn(
          {},
          "Client of another node refused: this node does not have its key. Give all nodes the same keys-file",
        );
      }
      return facts;
    },
    opened: (facts, listener) => {
      const client = takeIn[facts.kind](facts, listener);
      if (client === undefined) listener.end(POLICY_VIOLATION, "relay_refused");
      return client ?? NOBODY;
    },
    message: (client, item) => client.message(item),
    drained: (client) => client.drained(),
    closed: (client, code) => client.closed(code),
  };
}

/** Clients of the native protocol, and answers over HTTP that join as they do. */
export function takeInLive(live: LiveConnections, door: Door): TakeIn {
  return ({ sessionId, caller, address, more }, listener) => {
    const { query, origin, http } = more;
    if (typeof query !== "string" || typeof origin !== "string" || !isHttp(http)) return undefined;
    const connection = newConnection({ sessionId, caller, address, query, origin, http }, door);
    live.opened(connection, listener);
    return {
      message: ({ isBinary, bytes }) => live.message(connection, bytes, isBinary),
      drained: () => live.drained(connection),
      closed: (code) => live.closed(connection, code),
    };
  };
}

function isHttp(value: unknown): value is HttpArrival | null {
  if (value === null) return true;
  if (typeof value !== "object" || value === undefined || !("lastEventId" in value)) return false;
  return value.lastEventId === null || typeof value.lastEventId === "string";
}
