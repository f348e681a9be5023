/** Spans of the timeline that were heard, and are not needed any more. */

/** null: its end is not known, or has not come. */
interface Ending {
  readonly endTicks: number | null;
}

/** Characters are forgotten so many together, of all else a quarter: what stands behind them is copied each time. */
export const HEARD_TOGETHER = 64;
/** Of each kind, for a listener that says that it is further behind: minutes of speech. */
const MAX_HEARD = 4096;

export function isHeard(span: Ending | undefined, ticks: number): boolean {
  return (span?.endTicks ?? Number.POSITIVE_INFINITY) < ticks;
}

/** Without what was heard before `ticks`, but for the last of that. `spans`: rising. */
export function unheard<T extends Ending>(spans: T[], ticks: number): T[] {
  const next = spans.findIndex((span) => !isHeard(span, ticks));
  const from = Math.max((next < 0 ? spans.length : next) - 1, spans.length - MAX_HEARD);
  return from > 0 ? spans.slice(from) : spans;
}
