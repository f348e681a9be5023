/** `/live/{session}`: the native protocol on a WebSocket. */
import { pathPart } from "../http.ts";
import { requestAddress } from "../request-address.ts";
import type { SocketBehavior } from "../routes.ts";
import { type LiveConnection, newConnection } from "./live-connection.ts";
import type { LiveConnections, LiveConnectionsOptions } from "./live-connections.ts";
import { SocketListener } from "./socket-listener.ts";
import { acceptUpgrade, HARD_MESSAGE_FACTOR, socketLimits } from "./websocket.ts";

export interface LiveSocketOptions extends LiveConnectionsOptions {
  readonly maxOutboxBytes: number;
  readonly idleSeconds: number;
}

/** What one batch may add on top of a full send queue: a second of 48 kHz PCM with its events, generously. */
const BATCH_SLACK_BYTES = 8 * 1024 * 1024;

/** `live`: made of the same options. */
export function liveSocket(
  live: LiveConnections,
  options: LiveSocketOptions,
): SocketBehavior<LiveConnection> {
  return {
    ...socketLimits({
      hardMessageBytes: options.maxMessageBytes * HARD_MESSAGE_FACTOR,
      maxBackpressureBytes: options.maxOutboxBytes + BATCH_SLACK_BYTES,
      idleSeconds: options.idleSeconds,
    }),
    upgrade: (res, req, context, caller) => {
      const arrival = {
        sessionId: pathPart(req),
        caller,
        origin: req.getHeader("origin"),
        address: requestAddress(res, req, options.door.proxyTrust),
        query: req.getQuery() ?? "",
        http: null,
      };
      acceptUpgrade(res, req, { context, data: newConnection(arrival, options.door) });
    },
    open: (socket) => live.opened(socket.getUserData(), new SocketListener(socket)),
    message: (socket, message, isBinary) => live.message(socket.getUserData(), message, isBinary),
    drain: (socket) => live.drained(socket.getUserData()),
    close: (socket, code) => live.closed(socket.getUserData(), code),
  };
}
