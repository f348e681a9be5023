/** Notices that a child process hangs: it is pinged each second, and has 5 seconds to answer. */
import type { Clock, Timer } from "../../kit/clock.ts";

const PING_EVERY_MS = 1000;
const MAX_SILENT_MS = 5000;
/**
 * A ping timer that fires later than this means that we did not run ourselves: the machine slept, or our event loop was
 * busy. The child's answer may be waiting unread, so that second does not count against it.
 */
const MAX_LATE_MS = 500;

export interface HangWatchOptions {
  readonly clock: Clock;
  readonly ping: () => void;
  /** Called once; the watch has stopped by then. */
  readonly onHang: () => void;
}

export class HangWatch {
  readonly #options: HangWatchOptions;
  /** Whether the last ping has no answer yet. */
  #isWaiting = false;
  /** Time without an answer in which we were awake. */
  #silentMs = 0;
  #timer: Timer;

  /** Pings at once. */
  constructor(options: HangWatchOptions) {
    this.#options = options;
    this.#timer = this.#ping();
  }

  /** The child has answered a ping, whichever. */
  answered(): void {
    this.#isWaiting = false;
    this.#silentMs = 0;
  }

  /** Idempotent. */
  stop(): void {
    this.#timer.cancel();
  }

  #ping(): Timer {
    const { clock, ping } = this.#options;
    this.#isWaiting = true;
    ping();
    const dueMs = clock.nowMs() + PING_EVERY_MS;
    return clock.at(dueMs, () => this.#onDue(dueMs));
  }

  #onDue(dueMs: number): void {
    const { clock, onHang } = this.#options;
    if (this.#isWaiting && clock.nowMs() - dueMs <= MAX_LATE_MS) this.#silentMs += PING_EVERY_MS;
    if (this.#silentMs >= MAX_SILENT_MS) onHang();
    else this.#timer = this.#ping();
  }
}
