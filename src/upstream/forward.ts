/**
 * A request passed on as it is, with the key added: bodies stream both ways, each held back where the other side is slower.
 * What is of one hop only (RFC 9110 section 7.6.1) stays behind, and so do the client's own credentials where there is a key.
 */
import type { Readable } from "node:stream";
import type { GatewayError } from "../errors.ts";
import type { ExchangeReceiver } from "./exchange-options.ts";
import type { ResponseHeaders } from "./headers.ts";

export type ForwardMethod = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

export interface ForwardRequest {
  readonly method: ForwardMethod;
  /** From the slash after the base URL on, with the query. */
  readonly path: string;
  /** As the client sent them, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** null where there is none; a stream is destroyed when the upstream wants no more of it. */
  readonly body: string | Readable | null;
  /** Requests of one group share the upstream's limit: the model; "": not limited. */
  readonly group: string;
}

/** Called in order: sent, head, data*, then one of end and error. */
export interface ForwardHandlers {
  /** The request goes out on a connected socket: from here on the upstream may have it. Again where it is asked again. */
  sent?(): void;
  head(status: number, headers: readonly (readonly [name: string, value: string])[]): void;
  /** Good until it returns. */
  data(piece: Uint8Array): void;
  end(): void;
  /** After `head` the answer is not whole. */
  error(error: GatewayError): void;
}

export interface Forwarded {
  /** Reads no more of the answer until `resume`. Idempotent. */
  pause(): void;
  resume(): void;
  /** The client has sent something: the upstream is not silent, it listens. */
  touch(): void;
  /** Gives the request up; no handler is called any more. Idempotent. */
  abort(): void;
}

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** The client's, of no meaning upstream. */
const OWN: ReadonlySet<string> = new Set(["host", "expect"]);
const CREDENTIALS: ReadonlySet<string> = new Set(["xi-api-key", "authorization"]);

/** Header names and values in a row, as undici takes them. `key` "": the client's own credentials go on. */
export function forwardedHeaders(headers: ForwardRequest["headers"], key: string): string[] {
  const named = namedByConnection(headers);
  const kept = headers.filter(
    ([name]) =>
      !HOP_BY_HOP.has(name) && !OWN.has(name) && !named.has(name) && (key === "" || !CREDENTIALS.has(name)),
  );
  return [...kept.flat(), ...(key === "" ? [] : ["xi-api-key", key])];
}

/** Other headers that are of this hop only. */
function namedByConnection(headers: ForwardRequest["headers"]): ReadonlySet<string> {
  const values = headers.filter(([name]) => name === "connection").map(([, value]) => value);
  return new Set(values.flatMap((value) => value.split(",")).map((name) => name.trim().toLowerCase()));
}

export class ForwardReceiver implements ExchangeReceiver {
  readonly #handlers: ForwardHandlers;
  readonly #body: Readable | null;
  #isAborted = false;

  /** `body`: destroyed when the answer is over; null where that is somebody else's business. */
  constructor(handlers: ForwardHandlers, body: Readable | null) {
    this.#handlers = handlers;
    this.#body = body;
  }

  /** No handler is called any more. */
  abort(): void {
    this.#isAborted = true;
    this.#body?.destroy();
  }

  sent(): void {
    if (!this.#isAborted) this.#handlers.sent?.();
  }

  head(status: number, headers: ResponseHeaders): void {
    if (this.#isAborted) return;
    const pairs = Object.entries(headers).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value ?? ""]).map((one): [string, string] => [name, String(one)]),
    );
    const named = namedByConnection(pairs);
    this.#handlers.head(
      status,
      pairs.filter(([name]) => !HOP_BY_HOP.has(name) && !named.has(name)),
    );
  }

  data(piece: Buffer): void {
    if (!this.#isAborted) this.#handlers.data(piece);
  }

  end(): void {
    this.#body?.destroy();
    if (!this.#isAborted) this.#handlers.end();
  }

  error(error: GatewayError): void {
    this.#body?.destroy();
    if (!this.#isAborted) this.#handlers.error(error);
  }
}
