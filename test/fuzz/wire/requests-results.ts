/** What mutated requests came to: a row for each process. */
import type { SeededRow } from "./results-file.ts";

export interface RequestsRow extends SeededRow {
  readonly endpoints: number;
  readonly requests: number;
  /** By status; 0: cut off without an answer. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Memory before and after the last run. */
  readonly heapBeforeMb: number;
  readonly heapAfterMb: number;
}

export function sumOfRequests(earlier: RequestsRow, later: RequestsRow): RequestsRow {
  const statuses: Record<string, number> = { ...earlier.statuses };
  for (const [status, count] of Object.entries(later.statuses))
    statuses[status] = (statuses[status] ?? 0) + count;
  return {
    ...later,
    requests: earlier.requests + later.requests,
    statuses,
    seeds: [...earlier.seeds, ...later.seeds],
  };
}
