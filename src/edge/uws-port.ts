/** A WebSocket of the server library as the state behind it sees it. */
import type { WebSocket } from "uWebSockets.js";

/** uWebSockets.js faults when a closed socket is touched: after `markClosed` this one does nothing. */
export class UwsPort<T> {
  readonly #ws: WebSocket<T>;
  #isClosed = false;

  constructor(ws: WebSocket<T>) {
    this.#ws = ws;
  }

  /** A string is a text message, bytes are a binary one. */
  send(message: string | Uint8Array): void {
    if (!this.#isClosed) this.#ws.send(message, typeof message !== "string");
  }

  /** Bytes accepted but not yet taken by the operating system. */
  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#ws.getBufferedAmount();
  }

  /** Runs the close handler before it returns. */
  end(closeCode: number, reason: string): void {
    if (!this.#isClosed) this.#ws.end(closeCode, reason);
  }

  markClosed(): void {
    this.#isClosed = true;
  }
}
