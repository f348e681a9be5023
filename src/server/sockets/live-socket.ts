/** `/live/{session}`: the native protocol on a WebSocket; the client's socket as a listener. */
import type { WebSocket } from "uWebSockets.js";
import type { ArrivedSocket } from "../../cluster/relay/relay.ts";
import type { RelayItem } from "../../cluster/relay/relay-format.ts";
import type { Delivery, SendResult } from "../../delivery/listener.ts";
import { ERRORS, GatewayError, isErrorCode } from "../../errors.ts";
import { closingEvent, type Event } from "../../protocol/events.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import { pathPart } from "../http.ts";
import { requestAddress } from "../request-address.ts";
import type { SocketBehavior } from "../routes.ts";
import { type ClientListener, type LiveConnection, newConnection } from "./live-connection.ts";
import type { LiveConnections, LiveConnectionsOptions } from "./live-connections.ts";
import { RoundTrips } from "./round-trips.ts";
import { UwsBatchSocket } from "./uws-sockets.ts";
import { acceptUpgrade, HARD_MESSAGE_FACTOR, socketLimits } from "./websocket.ts";

/**
 * What the library keeps for a socket. It copies the properties to the socket itself, and a socket with more than a dozen
 * is a dictionary to V8: each send to it would look its method up. So all there is to know stands in one.
 */
interface Kept {
  readonly connection: LiveConnection;
}

export interface LiveSocketOptions extends LiveConnectionsOptions {
  readonly maxOutboxBytes: number;
  readonly idleSeconds: number;
}

/** What one batch may add on top of a full send queue: a second of 48 kHz PCM with its events, generously. */
const BATCH_SLACK_BYTES = 8 * 1024 * 1024;

/** `live`: made of the same options. */
export function liveSocket(live: LiveConnections, options: LiveSocketOptions): SocketBehavior<Kept> {
  const { clock, counters } = options;
  const roundTrips = new RoundTrips<WebSocket<Kept>>({
    clock,
    onRoundTrip: (ms, socket) => {
      counters.histograms.observeRoundTrip(ms);
      const { listener } = socket.getUserData().connection;
      if (listener instanceof SocketListener) listener.roundTripMs = ms;
    },
  });
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
      acceptUpgrade(res, req, { context, data: { connection: newConnection(arrival, options.door) } });
    },
    open: (socket) => {
      // Before it joins: a refusal closes it.
      roundTrips.opened(socket);
      live.opened(socket.getUserData().connection, new SocketListener(socket));
    },
    message: (socket, message, isBinary) => live.message(socket.getUserData().connection, message, isBinary),
    drain: (socket) => live.drained(socket.getUserData().connection),
    pong: (socket, message) => roundTrips.answered(socket, message),
    close: (socket, code) => {
      roundTrips.closed(socket);
      live.closed(socket.getUserData().connection, code);
    },
  };
}

/** A client's socket as a listener: frames as binary messages, events as text. */
export class SocketListener extends UwsBatchSocket<Kept, Delivery> implements ClientListener {
  roundTripMs: number | null = null;
  #offsets: OffsetUnit = "utf16";

  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult {
    this.#offsets = offsets;
    return this.sendBatch(batch);
  }

  notify(event: Event): SendResult {
    return this.sendOne(JSON.stringify(event));
  }

  arrived(): ArrivedSocket {
    return new ArrivedUwsSocket(this.ws);
  }

  /** Frames are binary messages, events are text. */
  protected override sendItem(item: Delivery): number {
    return item instanceof Uint8Array
      ? this.ws.send(item, true)
      : this.ws.send(item.json(this.#offsets), false);
  }
}

/** A client's WebSocket whose session is at another node: messages go through it as they come. */
class ArrivedUwsSocket extends UwsBatchSocket<Kept, RelayItem> implements ArrivedSocket {
  send(items: readonly RelayItem[]): SendResult {
    return this.sendBatch(items);
  }

  override end(closeCode: number, reason: string, retryAfterMs?: number): void {
    if (retryAfterMs !== undefined && !this.isEnded) this.#sayWhen(reason, retryAfterMs);
    super.end(closeCode, reason);
  }

  #sayWhen(code: string, retryAfterMs: number): void {
    if (!isErrorCode(code)) return;
    const error = new GatewayError(code, ERRORS[code].meaning, { retryAfterMs });
    this.sendOne(JSON.stringify(closingEvent(error)));
  }

  protected override sendItem({ bytes, isBinary }: RelayItem): number {
    return this.ws.send(bytes, isBinary);
  }
}
