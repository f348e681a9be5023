/**
 * The connections to one upstream: an undici Client each, one request on each at a time (no pipelining: a stream of
 * speech would block whatever stood behind it). Permits bound how many are taken; one that comes back is kept and
 * used again, the most recently used first, so that the rest fall idle and close.
 *
 * Not undici's Pool: with a bound of connections it queues by itself and, after a failed connect, hands that queue to
 * clients that it has already forgotten; without one it opens a new connection for a request that is dispatched as
 * another ends, since the ending client is free only a turn later.
 */
import type { TLSSocket } from "node:tls";
import { buildConnector, Client, type Dispatcher } from "undici";
import { READ_BYTES } from "../types.ts";
import type { Connection, ConnectionSource } from "./connection.ts";
import { SocketReader } from "./socket-reader.ts";

export interface ConnectionsOptions {
  readonly origin: string;
  /** Longest wait for TCP and TLS, ms. */
  readonly connectTimeoutMs: number;
}

/** One, connected or not. */
interface HttpConnection extends Connection {
  readonly client: Client;
}

/**
 * How long an idle connection is kept where the server does not say. Turns of a conversation are seconds apart and a
 * TLS handshake costs two round trips; a server that closes earlier is seen to close, and its connection is dropped.
 */
const KEEP_ALIVE_MS = 60_000;
const KEEP_ALIVE_MAX_MS = 600_000;
/** Taken off the server's own keep-alive time, for the way there. */
const KEEP_ALIVE_MARGIN_MS = 1000;
/** First TCP keep-alive probe: a stream can be silent for long while it is paused. */
const TCP_PROBE_MS = 15_000;

export class Connections implements ConnectionSource {
  readonly #options: ConnectionsOptions;
  readonly #all = new Set<HttpConnection>();
  /** The last one was used last. */
  readonly #idle: HttpConnection[] = [];
  /** All read into the same memory. */
  readonly #readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
  /** Session of the latest handshake; resumed by the next one. */
  #tlsSession: Buffer | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** How many are connected. Looks at each: for statistics, not for every request. */
  get connected(): number {
    let count = 0;
    for (const { client } of this.#all) count += client.stats.connected ? 1 : 0;
    return count;
  }

  /** An idle connection, a connected one if there is any, else a new one. To be given back by `release`. */
  take(): HttpConnection {
    const connected = this.#idle.findLastIndex(({ client }) => client.stats.connected);
    // None is connected: -1, which takes the one that was used last.
    const [connection] = this.#idle.splice(connected, 1);
    return connection ?? this.#open();
  }

  release(connection: HttpConnection): void {
    connection.reader.release();
    this.#idle.push(connection);
  }

  /** Destroys every connection with what is on it. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map(({ client }) => client.destroy()));
  }

  #open(): HttpConnection {
    const reader = new SocketReader(this.#readBuffer);
    const client = new Client(this.#options.origin, {
      connect: this.#connectorOf(reader),
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
      // Deadlines are the exchange's, by the injected clock; undici's timers tick only twice a second.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const connection: HttpConnection = {
      client,
      reader,
      dispatch: (request, handler) => client.dispatch(request as Dispatcher.DispatchOptions, handler),
    };
    this.#all.add(connection);
    return connection;
  }

  /** undici's own connector, for sockets that `reader` reads. */
  #connectorOf(reader: SocketReader): buildConnector.connector {
    return (target, callback) => {
      const options = {
        timeout: this.#options.connectTimeoutMs,
        allowH2: false,
        keepAliveInitialDelay: TCP_PROBE_MS,
        onread: reader.onread,
        session: this.#tlsSession,
      };
      buildConnector(options as buildConnector.BuildOptions)(target, (...[error, socket]) => {
        if (error !== null) {
          callback(failureOf(error), null);
          return;
        }
        reader.attach(socket);
        if (target.protocol === "https:") this.#keepSession(socket as TLSSocket);
        callback(null, socket);
      });
    };
  }

  #keepSession(socket: TLSSocket): void {
    this.#tlsSession = socket.getSession() ?? this.#tlsSession;
    // TLS 1.3: a ticket comes behind the handshake, and is good for one more.
    socket.on("session", (session) => {
      this.#tlsSession = session;
    });
  }
}

/**
 * undici 7 keeps a place on the client for a request that failed by this code, and the client never asks again: what it is
 * given next waits for ever. So the code is hidden in the cause.
 */
function failureOf(error: Error): Error {
  if (!("code" in error) || error.code !== "ERR_TLS_CERT_ALTNAME_INVALID") return error;
  return Object.assign(new Error(error.message, { cause: error }), { code: "ERR_TLS_CERT_NAME" });
}
