/** The clock of the simulation: time passes as it is told to, and timers run when that is asked for. */
import type { Clock, Timer } from "../../../src/kit/clock.ts";

interface StepTimer {
  readonly atMs: number;
  readonly action: () => void;
}

export class StepClock implements Clock {
  #nowMs = 0;
  #timers = new Set<StepTimer>();

  nowMs(): number {
    return this.#nowMs;
  }

  at(atMs: number, action: () => void): Timer {
    const timer = { atMs, action };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  pass(ms: number): void {
    this.#nowMs += ms;
  }

  /** Each timer that is due, once: those that they set wait for the next time. */
  runDue(): void {
    const due = [...this.#timers].filter(({ atMs }) => atMs <= this.#nowMs);
    for (const timer of due) this.#timers.delete(timer);
    for (const { action } of due) action();
  }
}
