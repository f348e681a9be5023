/** How long to wait before the next try: growing, and spread so that a gateway's clients do not all come back at once. */

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

export interface BackoffOptions {
  /** Longest wait before the first try, ms; default 500. */
  readonly firstDelayMs?: number;
  /** Longest wait of all, ms; default 10 000. */
  readonly maxDelayMs?: number;
}

/** Wait before attempt 1, 2, 3, ..., ms: doubled each time up to the bound, the upper half by chance (`random`: 0-1). */
export function backoffMs(attempt: number, random: number, options: BackoffOptions = {}): number {
  const { firstDelayMs = FIRST_DELAY_MS, maxDelayMs = MAX_DELAY_MS } = options;
  const fullMs = Math.min(maxDelayMs, firstDelayMs * 2 ** (attempt - 1));
  return Math.round(fullMs * (0.5 + random / 2));
}
