/**
 * The connections to one upstream: an undici Client each, one request on each at a time (no pipelining: a stream of
 * speech would block whatever stood behind it). Permits bound how many are taken; one that comes back is kept and
 * used again, the most recently used first, so that the rest fall idle and close.
 *
 * Not undici's Pool: with a bound of connections it queues by itself and, after a failed connect, hands that queue to
 * clients that it has already forgotten; without one it opens a new connection for a request that is dispatched as
 * another ends, since the ending client is free only a turn later.
 */
import { buildConnector, Client } from "undici";

export interface ConnectionsOptions {
  readonly origin: string;
  /** Longest wait for TCP and TLS, ms. */
  readonly connectTimeoutMs: number;
  /** Also offer HTTP/2 by ALPN; still one request a connection. */
  readonly allowH2: boolean;
}

/** What a socket reads ahead of a held request, bytes. */
const HELD_SOCKET_BYTES = 1024;
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

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #connect: buildConnector.connector;
  readonly #all = new Set<Client>();
  /** The last one was used last. */
  readonly #idle: Client[] = [];

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    // One connector for all clients: it holds the TLS sessions that later handshakes resume.
    this.#connect = buildConnector({
      timeout: options.connectTimeoutMs,
      allowH2: options.allowH2,
      keepAliveInitialDelay: TCP_PROBE_MS,
      // A socket goes on reading for a request that is held until so much waits in it: little, so that what an upstream
      // sends in small pieces gathers in the kernel and is read in one system call.
      highWaterMark: HELD_SOCKET_BYTES,
    } as buildConnector.BuildOptions);
  }

  /** How many are connected. Looks at each: for statistics, not for every request. */
  get connected(): number {
    let count = 0;
    for (const client of this.#all) count += client.stats.connected ? 1 : 0;
    return count;
  }

  /** An idle connection, a connected one if there is any, else a new one. To be given back by `release`. */
  take(): Client {
    const connected = this.#idle.findLastIndex((client) => client.stats.connected);
    // None is connected: -1, which takes the one that was used last.
    const [client] = this.#idle.splice(connected, 1);
    return client ?? this.#open();
  }

  release(client: Client): void {
    this.#idle.push(client);
  }

  /** Destroys every connection with what is on it. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((client) => client.destroy()));
  }

  #open(): Client {
    const client = new Client(this.#options.origin, {
      connect: this.#connect,
      allowH2: this.#options.allowH2,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
      // Deadlines are the exchange's, by the injected clock; undici's timers tick only twice a second.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.#all.add(client);
    return client;
  }
}
