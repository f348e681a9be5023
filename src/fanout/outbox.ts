/**
 * One listener's way out. In step with its lane it costs a cork and the sends; behind (its socket is full) it
 * keeps cursors of its own into the frames and the events and catches up when the socket drains:
 *
 *   in step --socket holds outboxBytes/2--> behind --drained, `lossless`: sends the frames it missed-------> in step
 *                                             \------drained, others: a `gap` instead; every event it missed-> in step
 *   behind, and an event it needs has left the log --> closed with slow_consumer
 */
import { GatewayError } from "../errors.ts";
import type { Policy } from "../protocol/vocabulary.ts";
import type { Message } from "./lane.ts";
import type { Sink } from "./sink.ts";

export interface OutboxOptions {
  readonly sink: Sink;
  readonly policy: Policy;
  readonly maxOutboxBytes: number;
}

export interface Behind {
  frame: number;
  event: number;
  /** Behind because it came late, not because it reads slowly: it gets the frames before the lane's as well. */
  readonly isJoining: boolean;
}

export class Outbox {
  readonly #sink: Sink;
  readonly #maxOutboxBytes: number;
  readonly policy: Policy;
  /** Own cursors while behind; null in step with the lane. */
  behind: Behind | null = null;
  framesSent = 0;
  framesDropped = 0;
  #isClosed = false;
  #isFull = false;
  #batch: readonly Message[] = [];

  constructor(options: OutboxOptions) {
    this.#sink = options.sink;
    this.policy = options.policy;
    this.#maxOutboxBytes = options.maxOutboxBytes;
  }

  /** Sends a batch in one cork; true when the socket is too full to go on. */
  sendBatch(batch: readonly Message[]): boolean {
    if (this.#isClosed) return false;
    this.#batch = batch;
    this.#isFull = false;
    this.#sink.cork(this.#writeBatch);
    return this.#isFull && !this.#isClosed && this.#sink.bufferedBytes() > this.#maxOutboxBytes / 2;
  }

  /** Made once: a closure for each batch and listener would be garbage 10,000 times a second. */
  readonly #writeBatch = (): void => {
    for (const message of this.#batch) {
      const result = this.#sink.send(message.bytes, message.isFrame);
      if (result !== "sent") {
        this.#isFull = true;
        if (result === "dropped") {
          this.end(new GatewayError("slow_consumer", "Listener reads too slowly: its outbox is full"));
          return;
        }
      }
      if (message.isFrame) this.framesSent += 1;
    }
  };

  /** A message to this listener alone (hello, error, pong, gap). */
  sendText(json: string): void {
    if (this.#isClosed) return;
    if (this.#sink.send(json, false) === "dropped") {
      this.end(new GatewayError("slow_consumer", "Listener reads too slowly: its outbox is full"));
    }
  }

  /** Bytes to send at most before the socket is looked at again. */
  get stepBytes(): number {
    return this.#maxOutboxBytes / 4;
  }

  /** Whether a drained socket has enough room to go on. */
  hasRoom(): boolean {
    return !this.#isClosed && this.#sink.bufferedBytes() < this.#maxOutboxBytes / 4;
  }

  end(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#sink.end(error.closeCode, error.code);
  }
}
