/**
 * Requests to one base URL: its connections, its governor, and the exchanges that are open. Every kind of upstream asks
 * through one of these, whatever it says on the wire.
 */
import { type ErrorCode, GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import { type Logger, logWith } from "../../kit/log.ts";
import { Governor, type GroupLimit, type Wanted } from "../governor.ts";
import { parseBaseUrl } from "./base-url.ts";
import type { ConnectionRequest, ConnectionSource } from "./connection.ts";
import { Connections } from "./connections.ts";
import { Exchange, type ExchangeReceiver } from "./exchange.ts";
import { FaultLog } from "./fault-log.ts";
import { isUpstreamFault } from "./faults.ts";
import type { ForwardMethod } from "./forward.ts";
import { SocketConnections } from "./socket-connections.ts";
import type { SocketLine } from "./socket-line.ts";
import { transportError } from "./transport-error.ts";

export interface RequesterOptions {
  readonly baseUrl: string;
  /** What is spoken there in the place of HTTP. */
  readonly line?: SocketLine | undefined;
  readonly maxConnections: number;
  readonly maxQueued: number;
  /** As GovernorOptions. */
  readonly startLimit?: number;
  readonly isAdditive?: boolean;
  readonly timeoutMs: number;
  readonly log: Logger;
  readonly clock: Clock;
  /** As UpstreamOptions.onRead. */
  readonly onRead: () => void;
  /** What each request says of this upstream: null = it works, else how it failed. */
  readonly onOutcome: (fault: ErrorCode | null) => void;
}

export interface UpstreamStats {
  /** Requests that hold a connection. */
  readonly open: number;
  /** Requests that wait for one. */
  readonly queued: number;
  /** Requests that were refused, since as many waited as may. */
  readonly refused: number;
  /** Connections that stand, in use or idle. */
  readonly connected: number;
}

/** How one request differs from others of its kind. */
export interface RequestOptions {
  /** Longest wait for the answer's headers, and from there to the first piece of its body, ms; default as for any silence. */
  readonly headersMs?: number;
  readonly firstPieceMs?: number;
  /** Longest silence in a body, ms; default: that of the upstream, and at least four minutes for what is passed on. */
  readonly timeoutMs?: number;
  /** How long it may be asked again after a 429, ms; default: as long as its kind may. */
  readonly patienceMs?: number;
  /** In the place of the upstream's own. */
  readonly onOutcome?: RequesterOptions["onOutcome"];
}

export interface WantedExchange extends RequestOptions {
  readonly method: ForwardMethod;
  /** From the slash after the prefix on. */
  readonly path: string;
  readonly body: ConnectionRequest["body"];
  /** Names and values in a row. */
  readonly headers: readonly string[];
  readonly receiver: ExchangeReceiver;
  readonly wanted: Wanted;
  readonly patienceMs: number;
}

/** What is not speech is not counted by the upstream; it waits for a connection only. */
const UNLIMITED: Wanted = { group: null, priority: 0 };
/** A connect that takes longer will not make a conversation; undici's own default is 10 s. */
const MAX_CONNECT_MS = 5000;

export class Requester {
  readonly #onRead: () => void;
  readonly #onOutcome: (fault: ErrorCode | null) => void;
  readonly #governor: Governor;
  readonly #connections: ConnectionSource;
  readonly #isHttp: boolean;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #prefix: string;
  readonly faults: FaultLog;
  readonly #exchanges = new Set<Exchange>();
  /** First of all: who is failed may ask again at once. */
  #isClosed = false;
  #closing: Promise<void> | null = null;

  /** Throws invalid_config. */
  constructor(options: RequesterOptions) {
    const { line } = options;
    // A socket's URL was checked where it is set.
    const url = line === undefined ? parseBaseUrl(options.baseUrl) : new URL(options.baseUrl);
    const origin = `${url.protocol}//${url.host}`;
    this.faults = new FaultLog(logWith(options.log, { upstream: origin }), options.clock);
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs;
    this.#onRead = options.onRead;
    this.#onOutcome = options.onOutcome;
    const { maxConnections: max, maxQueued: maxWaiting, startLimit, isAdditive = false } = options;
    const start = startLimit === undefined ? {} : { startLimit };
    this.#governor = new Governor({ max, maxWaiting, isAdditive, ...start });
    const connectTimeoutMs = Math.min(options.timeoutMs, MAX_CONNECT_MS);
    this.#isHttp = line === undefined;
    this.#connections =
      line === undefined
        ? new Connections({ origin, connectTimeoutMs })
        : new SocketConnections({ url: new URL(origin), line, connectTimeoutMs });
  }

  /** Throws upstream_busy, draining. Calls nothing before it returns. */
  begin(wanted: WantedExchange): Exchange {
    const { method, path, body, receiver, headers, timeoutMs = this.#timeoutMs } = wanted;
    if (this.#isClosed) {
      throw new GatewayError(
        "draining",
        "Nothing can be asked of the upstream: the gateway is shutting down",
      );
    }
    const exchange: Exchange = new Exchange({
      request: {
        method,
        path: `${this.#prefix}${path}`,
        headers: [...headers],
        body,
      },
      receiver,
      governor: this.#governor,
      wanted: wanted.wanted,
      patienceMs: wanted.patienceMs,
      connections: this.#connections,
      clock: this.#clock,
      timeoutMs,
      headersMs: wanted.headersMs ?? timeoutMs,
      firstPieceMs: wanted.firstPieceMs ?? timeoutMs,
      faults: this.faults,
      onRead: this.#onRead,
      onReleased: () => this.#exchanges.delete(exchange),
      onOutcome: wanted.onOutcome ?? this.#onOutcome,
    });
    this.#exchanges.add(exchange);
    return exchange;
  }

  /** See Governor.limit. */
  limitOpen(max: number): void {
    this.#governor.limit(max);
  }

  /** Most requests that may hold a connection now. */
  get maxOpen(): number {
    return this.#governor.max;
  }

  stats(): UpstreamStats {
    const { held, waiting, refused } = this.#governor;
    return { open: held, queued: waiting, refused, connected: this.#connections.connected };
  }

  /** The limits that are known, at most `most` of them. */
  limits(most: number): GroupLimit[] {
    return this.#governor.limits(most);
  }

  warm(): Promise<void> {
    // A socket is for one request.
    if (!this.#isHttp || this.#isClosed || this.#connections.connected > 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const connect = (): void => {
        const connection = this.#connections.take();
        const done = (thrown: Error) => {
          this.#connections.release(connection);
          permit?.release();
          if (thrown === CONNECTED) {
            resolve();
            return;
          }
          const error = transportError(thrown, { faults: this.faults, progress: "asking" });
          if (isUpstreamFault(error)) this.#onOutcome(error.code);
          reject(error);
        };
        // Thrown before anything is written, it ends the request and leaves the connection standing.
        const onRequestStart = () => {
          throw CONNECTED;
        };
        connection.dispatch(
          { method: "GET", path: "/", headers: [], body: null },
          { onRequestStart, onResponseError: (_controller, thrown) => done(thrown) },
        );
      };
      // Where all permits are taken and all places in the queue, there is no lack of connections.
      const permit = this.#governor.request(UNLIMITED, { grant: connect, turnOut: resolve });
      if (permit === null) resolve();
    });
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#closing ??= this.#closeNow();
    return this.#closing;
  }

  async #closeNow(): Promise<void> {
    const error = new GatewayError("draining", "The request was cut off: the gateway is shutting down");
    for (const exchange of [...this.#exchanges]) exchange.fail(error);
    await this.#connections.destroy();
  }
}

/** What warm() ends its request with. */
const CONNECTED: Error = new GatewayError("session_closed", "Connected, which was all that was wanted");
