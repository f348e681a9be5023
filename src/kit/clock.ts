/** Time is injected everywhere: production reads the monotonic clock, tests turn a fake one by hand. */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Monotonic milliseconds, fractional, from an arbitrary origin. */
  nowMs(): number;
  /** Calls `action` once, no earlier than `atMs` on this clock. */
  at(atMs: number, action: () => void): Timer;
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
