/**
 * A request passed on as it is, with the key added: bodies stream both ways, each held back where the other side is slower.
 * What is of one hop only (RFC 9110 section 7.6.1) stays behind, and so do the client's own credentials where there is a key.
 * An answer that holds the key is not passed on.
 */
import type { Readable } from "node:stream";
import { GatewayError } from "../../errors.ts";
import type { Subject } from "../governor.ts";
import type { ResponseHeaders } from "../headers.ts";
import type { ExchangeReceiver } from "./exchange.ts";
import { isFilteredKey, KeyFilter } from "./key-filter.ts";

export type ForwardMethod = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";

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
  /** For whom; default: the gateway itself. */
  readonly subject?: Subject | undefined;
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
/** Not the client's to say where there is a key: its credentials, and an encoding in which the key can't be found. */
const GATEWAYS: ReadonlySet<string> = new Set(["xi-api-key", "authorization", "accept-encoding"]);

/** Header names and values in a row, as undici takes them. `key` "": the client's own credentials go on. */
export function forwardedHeaders(headers: ForwardRequest["headers"], key: string): string[] {
  const named = namedByConnection(headers);
  const kept = headers.filter(
    ([name]) =>
      !HOP_BY_HOP.has(name) && !OWN.has(name) && !named.has(name) && (key === "" || !GATEWAYS.has(name)),
  );
  return [...kept.flat(), ...(key === "" ? [] : ["accept-encoding", "identity", "xi-api-key", key])];
}

/** Other headers that are of this hop only. */
function namedByConnection(headers: ForwardRequest["headers"]): ReadonlySet<string> {
  const values = headers.filter(([name]) => name === "connection").map(([, value]) => value);
  return new Set(values.flatMap((value) => value.split(",")).map((name) => name.trim().toLowerCase()));
}

/**
 * Why an answer can't be searched for the key; undefined: it can. Compressed bytes hide it, and so does a part of a text:
 * two parts make a whole. Of audio parts are asked for by players.
 */
function unreadable(status: number, headers: ResponseHeaders): string | undefined {
  const { "content-encoding": encoding, "content-type": type } = headers;
  if (encoding !== undefined && String(encoding).toLowerCase() !== "identity") return "is compressed";
  if (status === 206 && !String(type).startsWith("audio/")) return "is a part of a text";
  return undefined;
}

export interface ForwardReceiverOptions {
  /** Destroyed when the answer is over; null where there is none, or it is somebody else's business. */
  readonly body: Readable | null;
  /** What no answer may hold; "" or too short: nothing is looked for. */
  readonly key: string;
  /** Ends the request, whose answer is not wanted any more. */
  readonly giveUp: () => void;
  /** The answer is not passed on; `reason` for the log. Returns the id under which it is there. */
  readonly onWithheld: (reason: string) => string;
}

export class ForwardReceiver implements ExchangeReceiver {
  readonly #handlers: ForwardHandlers;
  readonly #options: ForwardReceiverOptions;
  readonly #filter: KeyFilter | null;
  #isAborted = false;

  constructor(handlers: ForwardHandlers, options: ForwardReceiverOptions) {
    this.#handlers = handlers;
    this.#options = options;
    this.#filter = isFilteredKey(options.key) ? new KeyFilter(options.key) : null;
  }

  /** No handler is called any more. */
  abort(): void {
    this.#isAborted = true;
    this.#options.body?.destroy();
  }

  sent(): void {
    if (!this.#isAborted) this.#handlers.sent?.();
  }

  head(status: number, headers: ResponseHeaders): void {
    if (this.#isAborted) return;
    const pairs = Object.entries(headers).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value ?? ""]).map((one): [string, string] => [name, String(one)]),
    );
    if (this.#filter !== null) {
      const hasKey = pairs.some(([, value]) => value.includes(this.#options.key));
      const reason = hasKey ? "holds the key in a header" : unreadable(status, headers);
      if (reason !== undefined) {
        this.#withhold(reason);
        return;
      }
    }
    const named = namedByConnection(pairs);
    this.#handlers.head(
      status,
      pairs.filter(([name]) => !HOP_BY_HOP.has(name) && !named.has(name)),
    );
  }

  data(piece: Buffer): void {
    if (this.#isAborted) return;
    const bytes = this.#filter === null ? piece : this.#filter.push(piece);
    if (bytes === null) this.#withhold("holds the key");
    else if (bytes.length > 0) this.#handlers.data(bytes);
  }

  end(): void {
    this.#options.body?.destroy();
    if (this.#isAborted) return;
    const rest = this.#filter?.end();
    if (rest !== undefined && rest.length > 0) this.#handlers.data(rest);
    this.#handlers.end();
  }

  error(error: GatewayError): void {
    this.#options.body?.destroy();
    if (!this.#isAborted) this.#handlers.error(error);
  }

  #withhold(reason: string): void {
    this.abort();
    this.#options.giveUp();
    const id = this.#options.onWithheld(reason);
    const what = "The upstream's answer is not passed on: it holds the gateway's key, or could hide it";
    this.#handlers.error(
      new GatewayError("upstream_protocol", `${what}. For the operator: error id ${id} in the gateway's log`),
    );
  }
}
