/**
 * Shares the event loop between connections that have brought more messages than are handled at once. The server library
 * hands a socket all that one read has brought, up to 512 KB: ten thousand small messages in a row, and nobody else's is
 * read before the last of them. So a connection handles what takes DIRECT_MS; what comes beyond is only copied into its inbox
 * (inbox.ts), and here all inboxes are handled one after the other, in rounds between which the event loop reads everybody's
 * sockets.
 *
 * Reading can't be stopped: this library has no pause for a WebSocket, and goes on with the next 512 KB where they have come
 * by then. Keeping a message costs about a microsecond; only an inbox's bound ends the reading of a client that goes on.
 */
import type { ByteRoom } from "../../kit/byte-room.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Counters } from "../../metrics/counters.ts";

/** So much of the event loop a connection that brings many messages may take at once, ms. */
const DIRECT_MS = 4;
/** So long is handled between two looks at the sockets, ms. */
const ROUND_MS = 6;
/** So long one of several connections is handled before the next one is, ms. */
const SLICE_MS = 1;

/** A connection whose messages wait. */
export interface Waiting {
  /** Handles the next message, and more of them until `endMs`. Returns the time, ms. */
  work(endMs: number): number;
  /** Whether messages wait still, and nothing holds them. */
  readonly isDue: boolean;
  /** Forgets them. */
  drop(): void;
}

export interface FairSchedulerOptions {
  readonly clock: Clock;
  readonly counters: Counters;
  /** Before each message that is handled, and often while many are kept: what is due to others leaves. Must not throw. */
  readonly between: () => void;
  /** Calls once, when all sockets have been read that had something; default setImmediate. */
  readonly later?: (round: () => void) => void;
  /** For what waits of all connections together. */
  readonly room: ByteRoom;
}

/** All connections of a gateway whose messages wait. */
export class FairScheduler {
  readonly counters: Counters;
  readonly between: () => void;
  readonly #clock: Clock;
  readonly #later: (round: () => void) => void;
  readonly #room: ByteRoom;
  /** In the order in which they come to their turn. */
  readonly #waiting = new Set<Waiting>();
  #waitingBytes = 0;
  #isRoundDue = false;

  constructor(options: FairSchedulerOptions) {
    const { clock, counters, between, later = setImmediate, room } = options;
    this.#clock = clock;
    this.#room = room;
    this.counters = counters;
    this.between = between;
    this.#later = later;
  }

  /** Bytes of all messages that wait. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Whether so many bytes more may wait: many connections, each within its bound, are bounded together. */
  hasRoomFor(bytes: number): boolean {
    return this.#room.hasRoomFor(bytes);
  }

  /** So many bytes more wait, or so many less. */
  waits(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#room.take(bytes);
  }

  /** How much one connection may handle at once, ms: the more wait, the less, or a hundred of them would be as bad as none waiting. */
  get directMs(): number {
    return DIRECT_MS / (1 + this.#waiting.size);
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  /** Messages of it wait: it comes to its turn behind those that wait already. */
  add(waiting: Waiting): void {
    this.#waiting.add(waiting);
    this.#roundSoon();
  }

  /** Nothing of it waits any more. */
  remove(waiting: Waiting): void {
    this.#waiting.delete(waiting);
  }

  /** Forgets all that waits: the gateway closes. */
  close(): void {
    for (const waiting of this.#waiting) waiting.drop();
  }

  #roundSoon(): void {
    if (this.#isRoundDue) return;
    this.#isRoundDue = true;
    this.#later(this.#round);
  }

  readonly #round = (): void => {
    this.#isRoundDue = false;
    let nowMs = this.nowMs();
    const endMs = nowMs + ROUND_MS;
    // Who goes to the end of the line is met again in the same round, while there is time.
    for (const waiting of this.#waiting) {
      this.#waiting.delete(waiting);
      nowMs = waiting.work(Math.min(endMs, nowMs + SLICE_MS));
      if (waiting.isDue) this.#waiting.add(waiting);
      if (nowMs >= endMs) break;
    }
    if (this.#waiting.size > 0) this.#roundSoon();
  };
}
