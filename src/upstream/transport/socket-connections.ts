/**
 * Sockets in the place of HTTP connections: one for each request, since a service that speaks on one says neither where an
 * answer of another request begins nor whether it is done with it. To an exchange they look like undici's connections.
 */
import type { Dispatcher } from "undici";
import { GatewayError } from "../../errors.ts";
import type { Connection, ConnectionReader, ConnectionRequest, ConnectionSource } from "./connection.ts";
import type { LineEvents, OpenLine, SocketLine } from "./socket-line.ts";

export interface SocketConnectionsOptions {
  /** The base URL without its path. */
  readonly url: URL;
  readonly line: SocketLine;
  readonly connectTimeoutMs: number;
}

export class SocketConnections implements ConnectionSource {
  readonly #options: SocketConnectionsOptions;
  readonly #taken = new Set<SocketConnection>();

  constructor(options: SocketConnectionsOptions) {
    this.#options = options;
  }

  get connected(): number {
    let count = 0;
    for (const { isConnected } of this.#taken) count += isConnected ? 1 : 0;
    return count;
  }

  take(): Connection {
    const connection = new SocketConnection(this.#options);
    this.#taken.add(connection);
    return connection;
  }

  release(connection: Connection): void {
    if (!(connection instanceof SocketConnection)) return;
    this.#taken.delete(connection);
    connection.end();
  }

  destroy(): Promise<void> {
    for (const connection of this.#taken) connection.destroy();
    this.#taken.clear();
    return Promise.resolve();
  }
}

class SocketConnection implements Connection, ConnectionReader, LineEvents, Dispatcher.DispatchController {
  readonly #options: SocketConnectionsOptions;
  #line: OpenLine | null = null;
  /** null: nobody listens any more. */
  #handler: Dispatcher.DispatchHandler | null = null;
  isConnected = false;

  constructor(options: SocketConnectionsOptions) {
    this.#options = options;
  }

  dispatch({ path, headers, body }: ConnectionRequest, handler: Dispatcher.DispatchHandler): void {
    this.#handler = handler;
    const { url, line, connectTimeoutMs } = this.#options;
    const messages = Array.isArray(body) ? body : [];
    this.#line = line.open({ url: new URL(path, url), headers, messages, connectTimeoutMs }, this);
  }

  end(): void {
    this.#handler = null;
    this.#line?.end();
  }

  destroy(): void {
    this.#handler = null;
    this.#line?.destroy();
  }

  // ---- ConnectionReader ------------------------------------------------------------------------------------------

  /** What comes behind a pause is held by the exchange: a message, or the rest of a read. */
  readonly currentRead = null;

  get reader(): ConnectionReader {
    return this;
  }
  hold(): void {
    this.#line?.hold();
  }
  release(): void {
    this.#line?.release();
  }

  // ---- DispatchController ----------------------------------------------------------------------------------------

  readonly aborted = false;
  readonly paused = false;
  readonly reason = null;
  rawHeaders = null;
  rawTrailers = null;

  pause(): void {
    this.hold();
  }
  resume(): void {
    this.release();
  }
  abort(reason: Error): void {
    this.#line?.destroy();
    this.failed(reason);
  }

  // ---- LineEvents ------------------------------------------------------------------------------------------------

  opened(): boolean {
    this.isConnected = true;
    try {
      this.#handler?.onRequestStart?.(this, {});
    } catch (thrown) {
      this.abort(
        thrown instanceof Error ? thrown : new GatewayError("internal", "The request can't be sent"),
      );
    }
    return this.#handler !== null;
  }

  answered(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.#handler?.onResponseStart?.(this, status, headers, "");
  }

  message(bytes: Buffer): void {
    this.#handler?.onResponseData?.(this, bytes);
  }

  ended(): void {
    this.#handler?.onResponseEnd?.(this, {});
  }

  failed(error: Error): void {
    const handler = this.#handler;
    this.#handler = null;
    handler?.onResponseError?.(this, error);
  }
}
