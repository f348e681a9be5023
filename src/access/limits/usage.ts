/** How much of their bounds keys and tenants use now, for operators. */
import { COUNTED, RATED } from "./meters.ts";
import type { ScopeCounts } from "./scope-counts.ts";
import type { Scope } from "./scopes.ts";

export interface Usage {
  /** Whose it is, as the audit log names them: `key app`, `tenant acme`. */
  readonly of: string;
  /** As the key file calls the bound; `characters`: in all. */
  readonly what: string;
  readonly used: number;
  readonly limit: number;
}

/** One of each bound of which something is used. */
export function usageOf(scope: Scope, counts: Pick<ScopeCounts, "countIn" | "rateState">): Usage[] {
  const { id, bounds, budget, meters } = scope;
  const usage: Usage[] = [];
  const add = (what: string, used: number, limit: number): void => {
    if (used > 0) usage.push({ of: id, what, used, limit });
  };
  for (const what of COUNTED) {
    const limit = bounds[what];
    if (limit !== undefined) add(what, counts.countIn(scope, what), limit);
  }
  for (const what of RATED) {
    const rate = bounds[what];
    if (rate === undefined) continue;
    const { limit, remaining } = counts.rateState(scope, what, rate);
    add(what, Math.round(limit - remaining), limit);
  }
  if (budget !== undefined) add("characters", meters.find(id)?.spent ?? 0, budget.characters);
  return usage;
}
