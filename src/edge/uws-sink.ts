/** A client's WebSocket as the fan-out sees it; the only place that sends. */
import type { WebSocket } from "uWebSockets.js";
import type { Message, SendResult, Sink } from "../fanout/sink.ts";
import type { Member } from "../session/member.ts";

/** What the server library keeps for each socket. */
export interface SocketData {
  readonly sessionId: string;
  readonly query: string;
  sink: UwsSink | null;
  member: Member | null;
}

/** What the library's `send` answers; anything else is "buffered, and the socket is behind". */
const SENT = 1;
const DROPPED = 2;

const NOTHING: readonly Message[] = [];

/** uWebSockets.js faults when a closed socket is touched: after `markClosed` this one does nothing. */
export class UwsSink implements Sink {
  readonly #socket: WebSocket<SocketData>;
  #isClosed = false;
  #messages: readonly Message[] = NOTHING;
  #worst = SENT;

  constructor(socket: WebSocket<SocketData>) {
    this.#socket = socket;
  }

  sendAll(messages: readonly Message[]): SendResult {
    if (this.#isClosed) return "sent";
    this.#messages = messages;
    this.#worst = SENT;
    this.#socket.cork(this.#write);
    // Its frames are views of the ring, which may have grown out of that memory.
    this.#messages = NOTHING;
    return this.#worst === SENT ? "sent" : this.#worst === DROPPED ? "dropped" : "buffered";
  }

  /** Made once: a closure for each batch and listener would be garbage 10,000 times a second. */
  readonly #write = (): void => {
    const socket = this.#socket;
    for (const message of this.#messages) {
      const result = socket.send(message.bytes, message.isFrame);
      if (result === SENT) continue;
      this.#worst = result;
      if (result === DROPPED) return;
    }
  };

  sendText(text: string): SendResult {
    if (this.#isClosed) return "sent";
    const result = this.#socket.send(text, false);
    return result === SENT ? "sent" : result === DROPPED ? "dropped" : "buffered";
  }

  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#socket.getBufferedAmount();
  }

  /** Runs the close handler before it returns: callers must be ready for that. */
  end(closeCode: number, reason: string): void {
    if (this.#isClosed) return;
    this.#socket.end(closeCode, reason);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  markClosed(): void {
    this.#isClosed = true;
  }
}
