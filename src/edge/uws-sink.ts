/** A client's WebSocket as the fan-out sees it; the only place that sends. */
import type { WebSocket } from "uWebSockets.js";
import type { SendResult, Sink } from "../fanout/sink.ts";
import type { Member } from "../session/member.ts";

/** What the server library keeps for each socket. */
export interface SocketData {
  readonly sessionId: string;
  readonly query: string;
  sink: UwsSink | null;
  member: Member | null;
}

/** uWebSockets.js faults when a closed socket is touched: after `markClosed` this one does nothing. */
export class UwsSink implements Sink {
  readonly #socket: WebSocket<SocketData>;
  #isClosed = false;

  constructor(socket: WebSocket<SocketData>) {
    this.#socket = socket;
  }

  send(message: Uint8Array | string, isBinary: boolean): SendResult {
    if (this.#isClosed) return "sent";
    const result = this.#socket.send(message, isBinary, false);
    return result === 1 ? "sent" : result === 0 ? "buffered" : "dropped";
  }

  cork(write: () => void): void {
    if (!this.#isClosed) this.#socket.cork(write);
  }

  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#socket.getBufferedAmount();
  }

  /** Runs the close handler before it returns: callers must be ready for that. */
  end(closeCode: number, reason: string): void {
    if (this.#isClosed) return;
    this.#socket.end(closeCode, reason);
  }

  markClosed(): void {
    this.#isClosed = true;
  }
}
