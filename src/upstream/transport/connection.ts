/** What an exchange speaks over: a connection of HTTP, or a socket on which messages are the answer. */
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";

export interface ConnectionRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the slash after the origin on. */
  readonly path: string;
  /** Names and values in a row. */
  readonly headers: string[];
  /** A list: the messages that a socket is to send. */
  readonly body: string | Readable | readonly string[] | null;
}

export interface Connection {
  /** Calls the handler as undici does: onRequestStart, then what comes of it, to onResponseEnd or onResponseError. */
  dispatch(request: ConnectionRequest, handler: Dispatcher.DispatchHandler): void;
  readonly reader: ConnectionReader;
}

/** How it is read. */
export interface ConnectionReader {
  /** Which read is being handed on now; null: none, or it is not known. */
  readonly currentRead: number | null;
  /** Nothing is read from now on but what was read already. Idempotent. */
  hold(): void;
  /** Idempotent. */
  release(): void;
}

export interface ConnectionSource {
  /** How many are connected. */
  readonly connected: number;
  /** To be given back by `release`. */
  take(): Connection;
  release(connection: Connection): void;
  /** Destroys every connection with what is on it. */
  destroy(): Promise<void>;
}
