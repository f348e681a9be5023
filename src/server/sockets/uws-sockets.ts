/** uWebSockets.js sockets: safe after close, sent to in batches. */
import type { WebSocket } from "uWebSockets.js";
import type { SendResult } from "../../delivery/listener.ts";

/** What the library's `send` answers; anything else is "buffered, and the socket is behind". */
const SENT = 1;
const DROPPED = 2;

const NOTHING: readonly never[] = [];

function sendResult(answer: number): SendResult {
  return answer === SENT ? "sent" : answer === DROPPED ? "dropped" : "buffered";
}

/** uWebSockets.js faults when a closed socket is touched: after `markClosed` this one does nothing. `T`: its user data. */
class UwsSocket<T> {
  protected readonly ws: WebSocket<T>;
  #isClosed = false;
  #isEnded = false;

  constructor(ws: WebSocket<T>) {
    this.ws = ws;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether we have ended it: what its client still says is not wanted. False where the client has closed it. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Bytes accepted but not yet taken by the operating system. */
  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.ws.getBufferedAmount();
  }

  /** Runs the close handler before it returns: callers must be ready for that. */
  end(closeCode: number, reason: string): void {
    this.#isEnded = true;
    if (!this.#isClosed) this.ws.end(closeCode, reason);
  }

  markClosed(): void {
    this.#isClosed = true;
  }

  /** What is sent in `work` leaves in one system call. */
  corked(work: () => void): void {
    if (this.#isClosed) work();
    else this.ws.cork(work);
  }

  /** A string is a text message, bytes are a binary one. */
  protected sendOne(message: string | Uint8Array): SendResult {
    return this.#isClosed ? "sent" : sendResult(this.ws.send(message, typeof message !== "string"));
  }
}

/** Sends messages one by one. */
export class UwsPort<T> extends UwsSocket<T> {
  /** A string is a text message, bytes are a binary one. */
  send(message: string | Uint8Array): SendResult {
    return this.sendOne(message);
  }
}

/** Sends messages of type `M` in batches, each in one system call. */
export abstract class UwsBatchSocket<T, M> extends UwsSocket<T> {
  #batch: readonly M[] = NOTHING;
  #worst = SENT;

  /** Gives one message to the library and returns its answer. */
  protected abstract sendItem(message: M): number;

  /** In order; nothing more behind one that is dropped. */
  protected sendBatch(messages: readonly M[]): SendResult {
    if (this.isClosed) return "sent";
    this.#batch = messages;
    this.#worst = SENT;
    this.ws.cork(this.#write);
    // Its frames are views of the ring, which may have grown out of that memory.
    this.#batch = NOTHING;
    return sendResult(this.#worst);
  }

  /** Made once: a closure for each batch and listener would be garbage 10,000 times a second. */
  readonly #write = (): void => {
    for (const message of this.#batch) {
      const answer = this.sendItem(message);
      if (answer === SENT) continue;
      this.#worst = answer;
      if (answer === DROPPED) return;
    }
  };
}
