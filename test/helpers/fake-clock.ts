/** A clock that a test turns by hand. */
import type { Clock, Timer } from "../../src/kit/clock.ts";

export class FakeClock implements Clock {
  #nowMs = 1000;
  #timers: { atMs: number; action: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  at(atMs: number, action: () => void): Timer {
    const timer = { atMs, action };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  /** Timers that have not run. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Lets `ms` pass while the event loop stands still: what is due by then runs late, with the next `advance`. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /** Lets `ms` pass; timers run in order, each at its own time. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const due = this.#timers.filter((timer) => timer.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.action();
    }
    this.#nowMs = endMs;
  }
}
