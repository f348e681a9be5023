/** What an answer says of how many requests may be open, and when to come again after it was one too many. */
import type { Permit } from "../governor.ts";
import { countOf, type ResponseHeaders } from "../headers.ts";
import { readRetryAfterMs } from "../vendors/refusal.ts";

/** Before the second, third, ... try where the upstream does not say; the last one stays, ms. */
const DELAYS_MS = [50, 100, 200, 400, 800, 1600];
/** An upstream that says 0 is not asked in a loop. */
const MIN_DELAY_MS = 50;

/** For the governor. */
export function informPermit(permit: Permit | null, status: number, headers: ResponseHeaders): void {
  if (status === 429) {
    permit?.turnAway();
    return;
  }
  const current = countOf(headers, "current-concurrent-requests");
  const maximum = countOf(headers, "maximum-concurrent-requests");
  if (current !== undefined && maximum !== undefined) permit?.learn(current, maximum);
  else if (status < 300) permit?.succeed();
}

/** How long to wait, ms, with a 429 in hand and `timesBefore` of them before it. */
export function turnedAwayDelayMs(headers: ResponseHeaders, timesBefore: number): number {
  const asked = readRetryAfterMs(headers);
  if (asked !== undefined) return Math.max(MIN_DELAY_MS, asked);
  return DELAYS_MS[Math.min(timesBefore, DELAYS_MS.length - 1)] ?? MIN_DELAY_MS;
}
