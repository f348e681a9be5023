/** What the live view shows of this process. Everything is read when somebody looks; nothing is kept for it. */
import type { Door } from "../../access/door.ts";
import { isListed } from "../../access/grants.ts";
import type { Clock } from "../../kit/clock.ts";
import type { LiveBudget, LiveSession, LiveUpstream, LiveView, OtherNode } from "../../protocol/live-view.ts";
import type { Session } from "../../session/session.ts";
import type { Sessions } from "../../session/sessions.ts";
import type { LiveSource, Look, OpenLook } from "./live-source.ts";
import { firstBudgets, firstRows } from "./merge-views.ts";
import { ProcessWatch } from "./process-figures.ts";

/** So many sessions are read in one turn of the event loop: audio of thousands does not wait for all of them. */
const READ_TOGETHER = 200;
/** There may be ten thousand keys: they are read again so often, ms. */
const BUDGETS_KEPT_MS = 1000;

export interface GatewaySourceOptions {
  readonly node: { readonly name: string; readonly version: string };
  readonly clock: Clock;
  readonly door: Pick<Door, "usage">;
  readonly sessions: Pick<Sessions, "count" | "has" | "get" | "isLeaving"> & Iterable<Session>;
  readonly upstreams: () => readonly LiveUpstream[];
  readonly otherNodes: () => readonly OtherNode[];
}

export class GatewaySource implements LiveSource {
  readonly #options: GatewaySourceOptions;
  readonly #process: ProcessWatch;
  #budgets: { readonly rows: readonly LiveBudget[]; readonly atMs: number } | null = null;

  constructor(options: GatewaySourceOptions) {
    this.#options = options;
    this.#process = new ProcessWatch(options.clock);
  }

  async look(look: Look): Promise<LiveView> {
    const { node, sessions, upstreams, otherNodes } = this.#options;
    const { rows, total, connections } = await this.#rows(look);
    return {
      nodes: [
        {
          ...node,
          ...this.#process.look(),
          is_draining: sessions.isLeaving,
          sessions: sessions.count,
          connections,
        },
      ],
      other_nodes: otherNodes(),
      upstreams: upstreams(),
      budgets: this.#budgetsNow(),
      sessions: { total, matching: rows.length, rows: firstRows(rows, look) },
    };
  }

  async open({ name, showsText }: OpenLook): Promise<ReturnType<typeof openedAt> | null> {
    const { sessions, node } = this.#options;
    return sessions.has(name) ? openedAt(node.name, sessions.get(name), showsText) : null;
  }

  close(): void {
    this.#process.close();
  }

  async #rows({ prefix, sessions: lists }: Look) {
    const { node, sessions } = this.#options;
    const rows: LiveSession[] = [];
    let [read, total, connections] = [0, 0, 0];
    for (const session of [...sessions]) {
      connections += session.connectionCount;
      if (!lists.every((list) => isListed(list, session.id))) continue;
      total += 1;
      if (!session.id.startsWith(prefix)) continue;
      rows.push({ ...session.view.row(), node: node.name });
      read += 1;
      if (read % READ_TOGETHER === 0) await nextTurn();
    }
    return { rows, total, connections };
  }

  #budgetsNow(): readonly LiveBudget[] {
    const { clock, door } = this.#options;
    const atMs = clock.nowMs();
    if (this.#budgets === null || atMs - this.#budgets.atMs >= BUDGETS_KEPT_MS)
      this.#budgets = { rows: firstBudgets(door.usage()), atMs };
    return this.#budgets.rows;
  }
}

function openedAt(node: string, session: Session, showsText: boolean) {
  const opened = session.view.open(showsText);
  return { ...opened, session: { ...opened.session, node } };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
