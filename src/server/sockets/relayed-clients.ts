/** Takes clients of other nodes in as if they had come here. */
import type { Door } from "../../access/door.ts";
import type { RelayHost } from "../../cluster/relay/relay.ts";
import { type Arrival, type LiveConnection, newConnection } from "./live-connection.ts";
import type { LiveConnections } from "./live-connections.ts";
import { readFacts } from "./passed-arrival.ts";

export function relayHost(live: LiveConnections, door: Door): RelayHost<Arrival, LiveConnection> {
  return {
    readFacts: (value) => readFacts(value, door),
    opened: (arrival, listener) => {
      const connection = newConnection(arrival, door);
      live.opened(connection, listener);
      return connection;
    },
    message: (connection, { isBinary, bytes }) => live.message(connection, bytes, isBinary),
    drained: (connection) => live.drained(connection),
    closed: (connection, code) => live.closed(connection, code),
  };
}
