/**
 * How long clients take to answer: each socket gets a ping when it opens and every 20 s, by one timer for all. Each tick
 * takes its share of them, so that thousands of pings do not delay audio.
 */
import type { Clock, Timer } from "../../kit/clock.ts";

const TICK_MS = 1000;
/** So many ticks until a socket's next ping. */
const SHARES = 20;
const STAMP_BYTES = 8;

interface PingedSocket {
  ping(message: Uint8Array): unknown;
}

interface RoundTripsOptions<S> {
  readonly clock: Clock;
  readonly onRoundTrip: (ms: number, socket: S) => void;
}

export class RoundTrips<S extends PingedSocket> {
  readonly #options: RoundTripsOptions<S>;
  readonly #shares: readonly Set<S>[] = Array.from({ length: SHARES }, () => new Set<S>());
  /** When the last ping left that was not answered, and its socket's share. */
  readonly #sockets = new Map<S, { share: Set<S>; sentMs: number | null }>();
  #nextShare = 0;
  #tick = 0;
  #timer: Timer | null = null;

  constructor(options: RoundTripsOptions<S>) {
    this.#options = options;
  }

  opened(socket: S): void {
    const share = this.#shares[this.#nextShare];
    if (share === undefined) return;
    this.#nextShare = (this.#nextShare + 1) % SHARES;
    share.add(socket);
    this.#sockets.set(socket, { share, sentMs: null });
    this.#ping(socket);
    if (this.#timer === null) this.#awaitTick();
  }

  /** Pongs that answer none of these pings count for nothing: the library sends pings, too, and a client may send any pong. */
  answered(socket: S, message: ArrayBuffer): void {
    const known = this.#sockets.get(socket);
    if (known === undefined || known.sentMs === null || message.byteLength !== STAMP_BYTES) return;
    if (new DataView(message).getFloat64(0) !== known.sentMs) return;
    this.#options.onRoundTrip(this.#options.clock.nowMs() - known.sentMs, socket);
    known.sentMs = null;
  }

  /** Idempotent. */
  closed(socket: S): void {
    this.#sockets.get(socket)?.share.delete(socket);
    this.#sockets.delete(socket);
    if (this.#sockets.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #awaitTick(): void {
    const { clock } = this.#options;
    this.#timer = clock.at(clock.nowMs() + TICK_MS, () => {
      for (const socket of this.#shares[this.#tick] ?? []) this.#ping(socket);
      this.#tick = (this.#tick + 1) % SHARES;
      // A ping may end its socket, and that was the last one.
      if (this.#sockets.size > 0) this.#awaitTick();
    });
  }

  #ping(socket: S): void {
    const known = this.#sockets.get(socket);
    if (known === undefined) return;
    const stamp = new DataView(new ArrayBuffer(STAMP_BYTES));
    known.sentMs = this.#options.clock.nowMs();
    stamp.setFloat64(0, known.sentMs);
    socket.ping(new Uint8Array(stamp.buffer));
  }
}
