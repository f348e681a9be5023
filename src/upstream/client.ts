/**
 * The way to a speech service over HTTP: bounded, with deadlines, and every failure as one of our errors. The same code
 * for the vendor, a gateway of one's own and the embedded service: a base URL and a key.
 */
import type { Readable } from "node:stream";
import { GatewayError, toGatewayError } from "../errors.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { Connections } from "./connections.ts";
import { Exchange, type ExchangeReceiver } from "./exchange.ts";
import { BodyCollector, type FetchedBody } from "./fetch-body.ts";
import {
  type Forwarded,
  type ForwardHandlers,
  type ForwardMethod,
  ForwardReceiver,
  type ForwardRequest,
  forwardedHeaders,
} from "./forward.ts";
import { Governor, type Wanted } from "./governor.ts";
import { wireRequest } from "./request.ts";
import { SpeechStream } from "./speech-stream.ts";
import { transportError } from "./transport-error.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest, Upstream } from "./types.ts";

export { REGION_URLS, regionUrl } from "./regions.ts";

export interface UpstreamOptions {
  /** http or https; a path is kept as a prefix, e.g. `https://proxy.example/speech`. */
  readonly baseUrl: string;
  /** Sent as xi-api-key; empty: not sent. */
  readonly key: string;
  /** Most requests open at once, and so most connections. */
  readonly maxConnections: number;
  /** Most requests that wait for a connection; 0 = none waits. */
  readonly maxQueued: number;
  /** Longest wait for headers, and between two pieces of a body that is not paused, ms. */
  readonly timeoutMs: number;
  /** How long speech is asked for again that was turned away for too many requests (429), ms; 0: not at all. Default 20 s. */
  readonly patienceMs?: number;
  readonly clock?: Clock;
  /** Also offer HTTP/2 by ALPN, one request a connection; default false. */
  readonly allowH2?: boolean;
}

export interface UpstreamStats {
  /** Requests that hold a connection. */
  readonly open: number;
  /** Requests that wait for one. */
  readonly queued: number;
  /** Connections that stand, in use or idle. */
  readonly connected: number;
}

/**
 * `open` calls no handler before it returns; every failure comes through `error`. Nothing is retried here: only the
 * session knows what was said already.
 */
export interface UpstreamClient extends Upstream {
  /** GETs a path of the interface with the key added: any status, at most 8 MiB. Rejects with GatewayError. */
  get(path: string): Promise<FetchedBody>;
  /** Passes a request on with the key added; every failure comes through `error`, after this returned. */
  forward(request: ForwardRequest, handlers: ForwardHandlers): Forwarded;
  stats(): UpstreamStats;
  /** Connects, so that the first request need not. Rejects with upstream_unreachable. */
  warm(): Promise<void>;
  /** Takes nothing new; resolves once all that was accepted has ended. */
  drain(): Promise<void>;
  /** Fails what is open and waiting with `draining`, and closes every connection. Idempotent. */
  close(): Promise<void>;
}

const MAX_FETCHED_BYTES = 8 * 1024 * 1024;
/** What is passed on may be a whole answer that takes long to make; the vendor's own client waits as long. */
const FORWARD_TIMEOUT_MS = 240_000;
/** What is not speech is not counted by the upstream; it waits for a connection only. */
const UNLIMITED: Wanted = { group: "not speech", priority: 0 };
/** Of speech that names no model. */
const DEFAULT_GROUP = "default model";
/** Then its listeners have given up, too. */
const PATIENCE_MS = 20_000;
/** What is passed on is waited for longer: a program asks, and not a conversation. */
const FORWARD_PATIENCE = 3;
/** A connect that takes longer will not make a conversation; undici's own default is 10 s. */
const MAX_CONNECT_MS = 5000;

export function createUpstream(options: UpstreamOptions): UpstreamClient {
  return new HttpUpstream(options);
}

class HttpUpstream implements UpstreamClient {
  readonly #governor: Governor;
  readonly #connections: Connections;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #patienceMs: number;
  readonly #key: string;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #getHeaders: readonly string[];
  readonly #postHeaders: readonly string[];
  readonly #exchanges = new Set<Exchange>();
  #isDraining = false;
  #closing: Promise<void> | null = null;
  #idleWaiters: (() => void)[] = [];

  constructor(options: UpstreamOptions) {
    const url = parseBaseUrl(options.baseUrl);
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.#key = options.key;
    this.#getHeaders = options.key === "" ? [] : ["xi-api-key", checkedKey(options.key)];
    this.#postHeaders = [...this.#getHeaders, "content-type", "application/json"];
    this.#clock = options.clock ?? systemClock;
    this.#timeoutMs = options.timeoutMs;
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS;
    this.#governor = new Governor({ max: options.maxConnections, maxWaiting: options.maxQueued });
    this.#connections = new Connections({
      origin: url.origin,
      connectTimeoutMs: Math.min(options.timeoutMs, MAX_CONNECT_MS),
      allowH2: options.allowH2 ?? false,
    });
  }

  open(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    const stream = new SpeechStream({ request, handlers, key: this.#key });
    try {
      const { path, body } = wireRequest(request);
      const wanted = { group: request.modelId ?? DEFAULT_GROUP, priority: request.priority ?? 0 };
      const patienceMs = this.#patienceMs;
      stream.attach(this.#begin({ method: "POST", path, body, receiver: stream, wanted, patienceMs }));
    } catch (thrown) {
      queueMicrotask(() => stream.error(toGatewayError(thrown)));
    }
    return stream;
  }

  get(path: string): Promise<FetchedBody> {
    return new Promise((resolve, reject) => {
      const receiver = new BodyCollector({ maxBytes: MAX_FETCHED_BYTES, onDone: resolve, onError: reject });
      this.#begin({ method: "GET", path, receiver });
    });
  }

  forward(request: ForwardRequest, handlers: ForwardHandlers): Forwarded {
    const receiver = new ForwardReceiver(handlers, typeof request.body === "string" ? null : request.body);
    let exchange: Exchange | null = null;
    try {
      exchange = this.#begin({
        method: request.method,
        path: request.path,
        headers: forwardedHeaders(request.headers, this.#key),
        body: request.body,
        receiver,
        timeoutMs: Math.max(this.#timeoutMs, FORWARD_TIMEOUT_MS),
        wanted: request.group === "" ? UNLIMITED : { group: request.group, priority: 0 },
        // A body that streams can't be sent twice.
        patienceMs:
          typeof request.body === "string" || request.body === null ? FORWARD_PATIENCE * this.#patienceMs : 0,
      });
    } catch (thrown) {
      queueMicrotask(() => receiver.error(toGatewayError(thrown)));
    }
    return {
      pause: () => exchange?.pause(),
      resume: () => exchange?.resume(),
      touch: () => exchange?.touch(),
      abort: () => {
        receiver.abort();
        exchange?.abort();
      },
    };
  }

  stats(): UpstreamStats {
    const { held, waiting } = this.#governor;
    return { open: held, queued: waiting, connected: this.#connections.connected };
  }

  warm(): Promise<void> {
    if (this.#isDraining || this.#connections.connected > 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const permit = this.#governor.request(UNLIMITED, () => {
        const client = this.#connections.take();
        const done = (thrown: Error) => {
          this.#connections.release(client);
          permit?.release();
          if (thrown === CONNECTED) resolve();
          else reject(transportError(thrown, { origin: this.#origin, progress: "asking" }));
        };
        // Thrown before anything is written, it ends the request and leaves the connection standing.
        const onRequestStart = () => {
          throw CONNECTED;
        };
        client.dispatch(
          { method: "GET", path: "/" },
          { onRequestStart, onResponseError: (_controller, thrown) => done(thrown) },
        );
      });
      // All permits are taken and all places in the queue: there is no lack of connections.
      if (permit === null) resolve();
    });
  }

  async drain(): Promise<void> {
    this.#isDraining = true;
    if (this.#exchanges.size === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  close(): Promise<void> {
    this.#isDraining = true;
    this.#closing ??= this.#closeNow();
    return this.#closing;
  }

  async #closeNow(): Promise<void> {
    const error = new GatewayError("draining", "The request was cut off: the gateway is shutting down");
    for (const exchange of [...this.#exchanges]) exchange.fail(error);
    await this.#connections.destroy();
  }

  #begin(wanted: WantedExchange): Exchange {
    const { method, path, body, receiver, headers } = wanted;
    if (this.#isDraining) {
      throw new GatewayError(
        "draining",
        "Nothing can be asked of the upstream: the gateway is shutting down",
      );
    }
    const ownHeaders = method === "GET" ? this.#getHeaders : this.#postHeaders;
    const exchange = new Exchange({
      request: {
        method,
        path: `${this.#prefix}${path}`,
        headers: [...(headers ?? ownHeaders)],
        body: body ?? null,
      },
      receiver,
      governor: this.#governor,
      wanted: wanted.wanted ?? UNLIMITED,
      patienceMs: wanted.patienceMs ?? 0,
      connections: this.#connections,
      clock: this.#clock,
      timeoutMs: wanted.timeoutMs ?? this.#timeoutMs,
      origin: this.#origin,
      onReleased: (released) => this.#onReleased(released),
    });
    this.#exchanges.add(exchange);
    return exchange;
  }

  #onReleased(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    if (this.#exchanges.size > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

interface WantedExchange {
  readonly method: ForwardMethod;
  /** From the slash after the prefix on. */
  readonly path: string;
  readonly body?: string | Readable | null;
  /** Names and values in a row; default: the key, and JSON for a POST. */
  readonly headers?: readonly string[];
  readonly timeoutMs?: number;
  readonly receiver: ExchangeReceiver;
  /** Default: of no group. */
  readonly wanted?: Wanted;
  /** Default: not asked again. */
  readonly patienceMs?: number;
}

/** What warm() ends its request with. */
const CONNECTED: Error = new GatewayError("session_closed", "Connected, which was all that was wanted");

function parseBaseUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (
    url !== null &&
    isHttp &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    url.hash === ""
  ) {
    return url;
  }
  throw new GatewayError(
    "invalid_config",
    `Setting upstream-url can't be used: ${describeUrl(url)}, expected http(s)://host[:port][/prefix]`,
    { field: "upstream-url" },
  );
}

/** What is wrong with it, without repeating it: it may hold a password. */
function describeUrl(url: URL | null): string {
  if (url === null) return "it is not a URL";
  if (url.protocol !== "http:" && url.protocol !== "https:") return `its scheme is ${url.protocol}`;
  return url.username === "" && url.password === ""
    ? "it has a query or fragment"
    : "it has a user name or password";
}

function checkedKey(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new GatewayError(
    "invalid_config",
    "Setting upstream-key can't be used: it has blanks or characters that a header can't carry, expected visible ASCII",
    { field: "upstream-key" },
  );
}
