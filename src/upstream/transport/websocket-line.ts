/**
 * A WebSocket to a service. A handshake that is refused, and a socket that is closed before anything was said, are handed on
 * as a refusal by HTTP is: with its status.
 */
import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import { type ErrorCode, GatewayError } from "../../errors.ts";
import { ABNORMAL_CLOSURE, GOING_AWAY, NO_CODE, NORMAL_CLOSURE } from "../../kit/close-codes.ts";
import {
  type LineEvents,
  type LineRequest,
  lineError,
  type OpenLine,
  type SocketLine,
} from "./socket-line.ts";

/** As long as a line over HTTP may be. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** So much is read of the text of a refused handshake. */
const MAX_REFUSAL_BYTES = 64 * 1024;
/** How long the other side may take to close, ms. */
const CLOSE_TIMEOUT_MS = 1000;
/** Codes from here on are a status of HTTP. */
const STATUS_CODES_FROM = 4000;
const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [1003, 400],
  [1007, 400],
  [1008, 403],
  [1009, 400],
  [1011, 500],
  [1012, 503],
  [1013, 503],
]);

/** What a status means that comes where no refusal can any more. */
const CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [400, "upstream_invalid"],
  [401, "upstream_unauthorized"],
  [403, "upstream_forbidden"],
  [429, "upstream_rate_limited"],
]);

export const WEBSOCKET_LINE: SocketLine = {
  open: (request, events) => new WebSocketConnection(request, events),
};

class WebSocketConnection implements OpenLine {
  readonly #events: LineEvents;
  readonly #socket: WebSocket;
  readonly #messages: readonly string[];
  #headers: IncomingMessage["headers"] = {};
  #hasAnswered = false;
  #isOver = false;

  constructor({ url, headers, messages, connectTimeoutMs }: LineRequest, events: LineEvents) {
    this.#events = events;
    this.#messages = messages;
    this.#socket = new WebSocket(url, {
      headers: recordOf(headers),
      handshakeTimeout: connectTimeoutMs,
      maxPayload: MAX_MESSAGE_BYTES,
      closeTimeout: CLOSE_TIMEOUT_MS,
      // Audio gains nothing by it, and small messages could become large ones.
      perMessageDeflate: false,
      followRedirects: false,
    } as WebSocket.ClientOptions);
    this.#listen();
  }

  hold(): void {
    if (this.#isOpen) this.#socket.pause();
  }
  release(): void {
    if (this.#isOpen) this.#socket.resume();
  }
  end(): void {
    this.#isOver = true;
    if (this.#isOpen) {
      // Paused, it would not see the other side close.
      this.#socket.resume();
      this.#socket.close(NORMAL_CLOSURE);
    } else if (this.#socket.readyState === WebSocket.CONNECTING) this.#socket.terminate();
  }
  destroy(): void {
    this.#isOver = true;
    this.#socket.terminate();
  }

  /** The library throws where it has no connection to pause. */
  get #isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  #listen(): void {
    const socket = this.#socket;
    socket.on("upgrade", ({ headers }) => {
      this.#headers = headers;
    });
    socket.on("unexpected-response", (request, response) => {
      this.#refused(response, () => request.destroy());
    });
    socket.on("open", () => this.#open());
    socket.on("message", (data) => {
      if (!this.#isOver) this.#take(data as Buffer);
    });
    socket.on("error", (error) => this.#close(() => this.#events.failed(errorOf(error))));
    socket.on("close", (code) => this.#close(() => this.#closed(code)));
  }

  #open(): void {
    if (this.#isOver || !this.#events.opened()) return;
    for (const message of this.#messages) this.#socket.send(message);
    if (this.#messages.length > 0) return;
    this.#answer(200);
    this.#close(() => this.#events.ended());
    this.end();
  }

  #take(message: Buffer): void {
    this.#answer(200);
    if (!this.#isOver) this.#events.message(message);
  }

  #answer(status: number): void {
    if (this.#hasAnswered) return;
    this.#hasAnswered = true;
    this.#events.answered(status, this.#headers);
  }

  /** The handshake was answered by something else. */
  #refused(response: IncomingMessage, destroy: () => void): void {
    const { statusCode: status = 500 } = response;
    this.#headers = response.headers;
    if (this.#isOver || !this.#events.opened()) {
      destroy();
      return;
    }
    if (status < 300) {
      const what = `The upstream's answer can't be read: it opened no WebSocket, and answered with status ${status}: check its url`;
      this.#close(() => this.#events.failed(new GatewayError("upstream_not_speech", what)));
      destroy();
      return;
    }
    // Before any of its text, which is not read on from the moment that it is too long.
    this.#answer(status);
    let length = 0;
    response.on("data", (bytes: Buffer) => {
      length += bytes.length;
      if (!this.#isOver) this.#events.message(bytes);
      if (length <= MAX_REFUSAL_BYTES && !this.#isOver) return;
      this.#close(() => this.#events.ended());
      destroy();
    });
    response.on("end", () => this.#close(() => this.#events.ended()));
    response.on("error", (error) => this.#close(() => this.#events.failed(error)));
  }

  #closed(code: number): void {
    const isWell = [NORMAL_CLOSURE, GOING_AWAY, NO_CODE].includes(code);
    if (code === ABNORMAL_CLOSURE) {
      this.#events.failed(lineError("ECONNRESET", "The WebSocket broke off"));
      return;
    }
    if (isWell || !this.#hasAnswered) {
      this.#answer(isWell ? 200 : statusOf(code));
      this.#events.ended();
      return;
    }
    const what = `The upstream closed its WebSocket in the middle of its answer (code ${code})`;
    this.#events.failed(new GatewayError(CODES.get(statusOf(code)) ?? "upstream_failed", what));
  }

  /** Once. */
  #close(tell: () => void): void {
    if (this.#isOver) return;
    tell();
    this.#isOver = true;
  }
}

function statusOf(code: number): number {
  const status = code - STATUS_CODES_FROM;
  return status >= 400 && status < 600 ? status : (STATUS_OF_CODE.get(code) ?? 500);
}

/** The library's own errors are of the protocol; what it says of them may hold what was received. */
function errorOf(error: Error): Error {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (/timed out/.test(error.message)) return lineError("ETIMEDOUT", error.message);
  if (code !== "" && !code.startsWith("WS_ERR")) return error;
  return unreadable(
    code === "" ? "its handshake is none of a WebSocket" : `it breaks the protocol (${code})`,
  );
}

function unreadable(what: string): GatewayError {
  return new GatewayError("upstream_protocol", `The upstream's answer can't be read: ${what}`);
}

function recordOf(headers: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (let at = 0; at + 1 < headers.length; at += 2) record[headers[at] ?? ""] = headers[at + 1] ?? "";
  return record;
}
