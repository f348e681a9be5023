/**
 * The body of a response that goes on: held until it is opened and while its client does not read, ended or cut once.
 * What waits is counted, for its owner to bound.
 *
 * What uWebSockets.js does here (measured): `write` returns false once bytes wait in its own buffer; that buffer is
 * drained by the next write, or by an empty cork, not by itself where a writable handler is set; and a response that
 * is blocked for 10 s is aborted unless `resume` is called.
 */
import type { HttpResponse } from "uWebSockets.js";
import type { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { writeHeaders } from "../http.ts";
import { beginResponse, type ResponseTerms } from "../response-lease.ts";

export interface ResponseWriterOptions {
  readonly res: HttpResponse;
  readonly clock: Clock;
  /** A client that takes nothing for so long is gone. */
  readonly idleSeconds: number;
  /** The client has taken what waited. */
  readonly onDrained: () => void;
  /** The response is over, whoever ended it. Called once. */
  readonly onClosed: () => void;
  /** Whose response it is, and for how long. */
  readonly terms: ResponseTerms;
  /** Its key or token does not hold any more: its owner has to end it. */
  readonly onLost: (error: GatewayError) => void;
}

/** How often a blocked response is kept from the library's own time limit, ms. */
const BLOCKED_CHECK_MS = 4000;

export class ResponseWriter {
  readonly #options: ResponseWriterOptions;
  /** Bytes that the library has not been given; all of them until `open`. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #isOpen = false;
  #isClosed = false;
  /** The library holds bytes that the client does not take; how many at least. */
  #blockedBytes = 0;
  #blockedTimer: Timer | null = null;
  /** null: it has not begun. */
  #endLease: (() => void) | null = null;

  constructor(options: ResponseWriterOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }
  /** The client does not read. */
  get isBlocked(): boolean {
    return this.#blockedBytes > 0;
  }
  /** What waits for the client. */
  get bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#heldBytes + this.#blockedBytes;
  }

  /** Its time counts: for who works for the response before it is opened. Idempotent. */
  begin(): void {
    const { terms, onLost } = this.#options;
    this.#endLease ??= beginResponse(terms, onLost);
  }

  /** Writes the head and what is held. */
  open(headers: Readonly<Record<string, string>>): void {
    this.begin();
    const { res } = this.#options;
    this.#isOpen = true;
    res.onWritable(() => this.#drain());
    res.cork(() => {
      res.writeStatus("200 OK");
      writeHeaders(res, headers);
      this.#handNext();
    });
    this.#handHeld();
  }

  /** Bytes are good for this call only: what has to wait is a copy. */
  write(data: Uint8Array | string): void {
    if (this.#isClosed || data.length === 0) return;
    const bytes = bytesOf(data);
    if (this.#isOpen && !this.isBlocked) {
      this.#options.res.cork(() => this.#hand(bytes));
      return;
    }
    // Not `slice`: that of a Buffer is a view.
    this.#held.push(new Uint8Array(bytes));
    this.#heldBytes += bytes.length;
  }

  /** Ends the body well, with a last piece. Before `open` nothing is sent: the response is still to be answered. */
  end(last: Uint8Array | string): void {
    if (this.#isClosed) return;
    const { res } = this.#options;
    const rest = this.#held;
    this.#close();
    if (!this.#isOpen) return;
    res.cork(() => {
      for (const bytes of rest) res.write(bytes);
      res.end(bytesOf(last));
    });
  }

  /** Cuts the response, so that the client sees that it is not whole. Before `open` as `end`. */
  cut(): void {
    if (this.#isClosed) return;
    this.#close();
    if (this.#isOpen) this.#options.res.close();
  }

  /** The client has gone: the response is not touched any more. Idempotent. */
  markAborted(): void {
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#held = [];
    this.#heldBytes = 0;
    this.#blockedTimer?.cancel();
    this.#endLease?.();
    this.#options.onClosed();
  }

  /** Each in a cork of its own: what `write` answers in the middle of one may not be true at its end. */
  #handHeld(): void {
    while (!this.isBlocked && this.#held.length > 0) this.#options.res.cork(() => this.#handNext());
  }

  /** Within a cork. */
  #handNext(): void {
    const bytes = this.#held.shift();
    if (bytes === undefined) return;
    this.#heldBytes -= bytes.length;
    this.#hand(bytes);
  }

  /** Within a cork. */
  #hand(bytes: Uint8Array): void {
    const { res, clock, idleSeconds } = this.#options;
    if (res.write(bytes)) return;
    this.#blockedBytes = bytes.length;
    this.#watch(clock.nowMs() + idleSeconds * 1000);
  }

  #drain(): boolean {
    if (this.#isClosed) return true;
    const { res, onDrained } = this.#options;
    res.cork(() => undefined);
    this.#blockedBytes = 0;
    this.#blockedTimer?.cancel();
    this.#handHeld();
    if (!this.isBlocked) onDrained();
    return true;
  }

  #watch(untilMs: number): void {
    const { clock, res } = this.#options;
    this.#blockedTimer?.cancel();
    this.#blockedTimer = clock.at(Math.min(untilMs, clock.nowMs() + BLOCKED_CHECK_MS), () => {
      if (this.#isClosed) return;
      if (clock.nowMs() >= untilMs) {
        this.cut();
        return;
      }
      res.resume();
      this.#watch(untilMs);
    });
  }
}

function bytesOf(data: Uint8Array | string): Uint8Array {
  return typeof data === "string" ? Buffer.from(data) : data;
}
