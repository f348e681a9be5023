/** Clients that are sent away at the same moment come back one after the other. */

/** One machine takes a thousand clients and more in a second. */
const STEP_MS = 1;
/** The last one waits no longer, however many there are. */
const MAX_SPREAD_MS = 2000;

/** How much later than the first of `count` the one at `index` is to come back, ms. */
export function laterMs(index: number, count: number): number {
  return Math.floor(index * Math.min(STEP_MS, MAX_SPREAD_MS / count));
}
