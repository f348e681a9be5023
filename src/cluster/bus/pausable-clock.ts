/** The clock of a node that may hang: while it hangs no timer runs; what fell due meanwhile runs when it wakes. */
import type { Clock, Timer } from "../../kit/clock.ts";

export class PausableClock implements Clock {
  readonly #clock: Clock;
  /** Actions that fell due while the node hung; null while it runs. */
  #due: Set<() => void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  at(atMs: number, action: () => void): Timer {
    const timer = this.#clock.at(atMs, () => {
      if (this.#due === null) action();
      else this.#due.add(action);
    });
    return {
      cancel: () => {
        timer.cancel();
        this.#due?.delete(action);
      },
    };
  }

  pause(): void {
    this.#due ??= new Set();
  }

  go(): void {
    const due = this.#due ?? [];
    this.#due = null;
    for (const action of due) action();
  }
}
