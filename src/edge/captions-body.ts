/**
 * A response of text that goes on: held until it is opened, bounded while its client does not read, ended once. How
 * uWebSockets.js blocks and drains is told in `http-sink.ts`.
 */
import type { HttpResponse } from "uWebSockets.js";
import type { Clock, Timer } from "../kit/clock.ts";

export interface CaptionsBodyOptions {
  readonly res: HttpResponse;
  readonly clock: Clock;
  /** A client that takes nothing for so long is gone. */
  readonly idleSeconds: number;
  /** The client has taken what waited. */
  readonly onDrained: () => void;
  /** The response is over, whoever ended it. Called once. */
  readonly onClosed: () => void;
}

/** How often a blocked response is kept from the library's own time limit, ms. */
const BLOCKED_CHECK_MS = 4000;

export class CaptionsBody {
  readonly #options: CaptionsBodyOptions;
  readonly #encoder = new TextEncoder();
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #isOpen = false;
  #isClosed = false;
  /** The library holds bytes that the client does not take; how many at least. */
  #blockedBytes = 0;
  #blockedTimer: Timer | null = null;

  constructor(options: CaptionsBodyOptions) {
    this.#options = options;
    options.res.onAborted(() => this.#close());
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }
  /** What waits for the client. */
  get bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#heldBytes + this.#blockedBytes;
  }

  /** Writes the head and everything held. */
  open(headers: Readonly<Record<string, string>>): void {
    const { res } = this.#options;
    this.#isOpen = true;
    res.onWritable(() => this.#drain());
    res.cork(() => {
      res.writeStatus("200 OK");
      for (const [name, value] of Object.entries(headers)) res.writeHeader(name, value);
      this.#handHeld();
    });
  }

  write(text: string): void {
    if (this.#isClosed || text === "") return;
    const bytes = this.#encoder.encode(text);
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#isOpen && this.#blockedBytes === 0) this.#options.res.cork(() => this.#handHeld());
  }

  /** Ends the body well, with a last piece. Before `open` nothing is sent: the response is still to be answered. */
  end(last: string): void {
    if (this.#isClosed) return;
    const { res } = this.#options;
    const rest = [...this.#held, this.#encoder.encode(last)];
    const wasOpen = this.#isOpen;
    this.#close();
    if (wasOpen) res.cork(() => void res.end(Buffer.concat(rest)));
  }

  /** Cuts the response, so that the client sees that it is not whole. */
  cut(): void {
    if (this.#isClosed) return;
    const wasOpen = this.#isOpen;
    this.#close();
    if (wasOpen) this.#options.res.close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#held = [];
    this.#heldBytes = 0;
    this.#blockedTimer?.cancel();
    this.#options.onClosed();
  }

  /** Within a cork. */
  #handHeld(): void {
    while (this.#blockedBytes === 0) {
      const bytes = this.#held.shift();
      if (bytes === undefined) return;
      this.#heldBytes -= bytes.length;
      if (this.#options.res.write(bytes)) continue;
      this.#blockedBytes = bytes.length;
      this.#watch(this.#options.clock.nowMs() + this.#options.idleSeconds * 1000);
    }
  }

  #drain(): boolean {
    if (this.#isClosed) return true;
    this.#blockedBytes = 0;
    this.#blockedTimer?.cancel();
    this.#options.res.cork(() => this.#handHeld());
    if (this.#blockedBytes === 0) this.#options.onDrained();
    return true;
  }

  #watch(untilMs: number): void {
    const { clock, res } = this.#options;
    this.#blockedTimer?.cancel();
    this.#blockedTimer = clock.at(Math.min(untilMs, clock.nowMs() + BLOCKED_CHECK_MS), () => {
      if (clock.nowMs() >= untilMs) this.cut();
      else if (!this.#isClosed) {
        res.resume();
        this.#watch(untilMs);
      }
    });
  }
}
