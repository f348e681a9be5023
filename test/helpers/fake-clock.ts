/** A clock that a test turns by hand. */
import type { Clock, Timer } from "../../src/kit/clock.ts";

export class FakeClock implements Clock {
  #nowMs = 1000;
  /** In the order in which they were set. */
  #timers: FakeTimer[] = [];

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
      const due = this.#nextUntil(endMs);
      if (due === null) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.action();
    }
    this.#nowMs = endMs;
  }

  /** Of those for the same time, the one that was set first. */
  #nextUntil(endMs: number): FakeTimer | null {
    let next: FakeTimer | null = null;
    for (const timer of this.#timers) {
      if (timer.atMs <= endMs && (next === null || timer.atMs < next.atMs)) next = timer;
    }
    return next;
  }
}

interface FakeTimer {
  readonly atMs: number;
  readonly action: () => void;
}
