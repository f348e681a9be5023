/** Which sessions are shown, in which order; and one view of what several processes have. */
import {
  type LiveBudget,
  type LiveSession,
  type LiveUpstream,
  type LiveView,
  MAX_BUDGETS,
  type RowOrder,
} from "../../protocol/live-view.ts";
import type { Look } from "./live-source.ts";

/** Above it a bound is nearly used up, as the audit log has it. */
const LOW_SHARE = 0.8;

const RANKS: Readonly<Record<Exclude<RowOrder, "name">, (row: LiveSession) => number>> = {
  lag: ({ lag_ms }) => lag_ms,
  age: ({ age_s }) => age_s,
  underruns: ({ underruns }) => underruns,
  drops: ({ dropped_frames }) => dropped_frames,
};

/** The worst ones first; of those that are alike, by name, so that rows keep their places. */
export function firstRows(rows: LiveSession[], { order, rows: most }: Look): readonly LiveSession[] {
  const byName = (one: LiveSession, other: LiveSession): number => (one.name < other.name ? -1 : 1);
  const rank = order === "name" ? null : RANKS[order];
  rows.sort(rank === null ? byName : (one, other) => rank(other) - rank(one) || byName(one, other));
  return rows.slice(0, most);
}

/** The budgets that are nearest to their limits. */
export function firstBudgets(budgets: readonly Omit<LiveBudget, "is_low">[]): readonly LiveBudget[] {
  const shareOf = ({ used, limit }: Pick<LiveBudget, "used" | "limit">): number => used / Math.max(1, limit);
  return budgets
    .map((budget) => ({ ...budget, is_low: shareOf(budget) >= LOW_SHARE }))
    .sort((one, other) => shareOf(other) - shareOf(one))
    .slice(0, MAX_BUDGETS);
}

/** Merges the views of one machine's workers. Each worker is a node with sessions of its own. */
export function mergeViews(views: readonly LiveView[], look: Look): LiveView {
  const sum = (of: (sessions: LiveView["sessions"]) => number): number =>
    views.reduce((total, { sessions }) => total + of(sessions), 0);
  const own = new Set(views.flatMap(({ nodes }) => nodes.map(({ name }) => name)));
  const others = views.flatMap(({ other_nodes }) => other_nodes).filter(({ name }) => !own.has(name));
  return {
    nodes: views.flatMap(({ nodes }) => nodes),
    other_nodes: [...new Map(others.map((node) => [node.name, node])).values()],
    upstreams: mergeUpstreams(views.flatMap(({ upstreams }) => upstreams)),
    budgets: mergeBudgets(views.flatMap(({ budgets }) => budgets)),
    sessions: {
      total: sum(({ total }) => total),
      matching: sum(({ matching }) => matching),
      rows: firstRows(
        views.flatMap(({ sessions }) => sessions.rows),
        look,
      ),
    },
  };
}

/** Each worker has a share of the requests that may be open. One that finds it ill is enough. */
function mergeUpstreams(upstreams: readonly LiveUpstream[]): readonly LiveUpstream[] {
  const merged = new Map<string, LiveUpstream>();
  for (const one of upstreams) {
    const before = merged.get(one.name);
    merged.set(one.name, before === undefined ? one : added(before, one));
  }
  return [...merged.values()];
}

function added(one: LiveUpstream, other: LiveUpstream): LiveUpstream {
  return {
    name: one.name,
    is_healthy: one.is_healthy && other.is_healthy,
    open: one.open + other.open,
    queued: one.queued + other.queued,
    limit: one.limit + other.limit,
    requests: one.requests + other.requests,
    failovers: one.failovers + other.failovers,
    errors_last_minute: one.errors_last_minute + other.errors_last_minute,
  };
}

/** Each worker knows what the others have used: the one that has heard most is nearest. */
function mergeBudgets(budgets: readonly LiveBudget[]): readonly LiveBudget[] {
  const merged = new Map<string, LiveBudget>();
  for (const budget of budgets) {
    const name = `${budget.of} ${budget.what}`;
    if (budget.used >= (merged.get(name)?.used ?? 0)) merged.set(name, budget);
  }
  return firstBudgets([...merged.values()]);
}
