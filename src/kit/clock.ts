/** Time is injected everywhere: production reads the monotonic clock, tests turn a fake one by hand. */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Monotonic milliseconds, fractional, from an arbitrary origin. */
  nowMs(): number;
  /** Calls `action` once, no earlier than `atMs` on this clock. */
  at(atMs: number, action: () => void): Timer;
  /** Calls `action` when what runs now has ended; default: as a microtask. */
  soon?(action: () => void): void;
}

/** Calls `action` when what runs now has ended. */
export function soon(clock: Clock, action: () => void): void {
  if (clock.soon === undefined) queueMicrotask(action);
  else clock.soon(action);
}

/** Resolves no earlier than in `ms`. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.at(clock.nowMs() + ms, resolve);
  });
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  at(atMs, action) {
    const handle = setTimeout(action, Math.max(0, atMs - performance.now()));
    return { cancel: () => clearTimeout(handle) };
  },
};
