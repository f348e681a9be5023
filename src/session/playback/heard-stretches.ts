/** Stretches of the timeline that were heard, and are not needed any more. */

/** null: its end is not known, or has not come. */
interface Ending {
  readonly endTicks: number | null;
}

/** Characters are forgotten so many together, of all else a quarter: what stands behind them is copied each time. */
export const HEARD_TOGETHER = 64;
/** Of each kind, for a listener that says that it is further behind: minutes of speech. */
const MAX_HEARD = 4096;

export function isHeard(stretch: Ending | undefined, ticks: number): boolean {
  return (stretch?.endTicks ?? Number.POSITIVE_INFINITY) < ticks;
}

/** Without what was heard before `ticks`, but for the last of that. `stretches`: rising. */
export function unheard<T extends Ending>(stretches: T[], ticks: number): T[] {
  const next = stretches.findIndex((stretch) => !isHeard(stretch, ticks));
  const from = Math.max((next < 0 ? stretches.length : next) - 1, stretches.length - MAX_HEARD);
  return from > 0 ? stretches.slice(from) : stretches;
}
