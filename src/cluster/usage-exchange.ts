/**
 * What the nodes say to one another once a second of what is used at each: by keys, tenants and tokens, for their limits; and of the
 * upstream, of which each may have a share. A limit may be exceeded by what one second brings at each node.
 */
import type { Clock, Timer } from "../kit/clock.ts";
import { type Logger, silentLog } from "../kit/log.ts";
import type { Bus, BusHandle } from "./bus/bus.ts";
import { BUS_VERSION } from "./bus/heartbeat.ts";
import type { NodeRegistry, NodeView } from "./bus/node-registry.ts";
import { upstreamShares } from "./upstream-shares.ts";

/** What is counted here, and what others have counted, for somebody who knows what it means. */
export interface UsageSource {
  /** Some of what has changed since the last call, as JSON; null: nothing. */
  changes(): object | null;
  /** All that is held is said again. */
  repeat(): void;
  /** `value`: what `changes` of the other side gave. */
  heard(node: string, value: unknown): void;
  forget(node: string): void;
}

export interface SharedUpstream {
  /** Most requests that all nodes have open at once. */
  readonly total: number;
  stats(): { readonly open: number; readonly queued: number };
  limitOpen(max: number): void;
}

export interface UsageExchangeOptions {
  readonly bus: Bus;
  readonly nodes: Pick<NodeRegistry, "incarnation" | "nodes" | "findProcess" | "onChange">;
  readonly clock: Clock;
  readonly log?: Logger;
  readonly usage: UsageSource;
  /** null: each node has its own bound. */
  readonly upstream: SharedUpstream | null;
}

interface UpstreamUse {
  readonly open: number;
  readonly queued: number;
}

interface Said {
  readonly from: string;
  readonly upstream: UpstreamUse;
  readonly usage: unknown;
}

const SUBJECT = "usage";
const PERIOD_MS = 1000;
/** In one second: what is left is said in the next. */
const MAX_MESSAGES = 20;
/** A node that has just joined does not know of all others at once, and hears nobody whom it does not know. */
const REPEATS = 3;
const NOTHING: UpstreamUse = { open: 0, queued: 0 };

export class UsageExchange {
  readonly #options: UsageExchangeOptions;
  /** What each process said of itself last. */
  readonly #uses = new Map<string, UpstreamUse>();
  #handles: readonly BusHandle[] = [];
  #timer: Timer | null = null;
  #repeats = 0;

  private constructor(options: UsageExchangeOptions) {
    this.#options = options;
  }

  /** Rejects as the bus does. */
  static async open(options: UsageExchangeOptions): Promise<UsageExchange> {
    const exchange = new UsageExchange(options);
    const { bus, nodes } = options;
    exchange.#handles = [
      await bus.subscribe(SUBJECT, (bytes) => exchange.#heard(bytes)),
      nodes.onChange((node) => exchange.#nodeChanged(node)),
      bus.onState((state) => {
        if (state === "up") exchange.#repeats = REPEATS;
      }),
    ];
    exchange.#turn();
    return exchange;
  }

  /** Idempotent. */
  close(): void {
    for (const handle of this.#handles) handle.close();
    this.#timer?.cancel();
    this.#timer = null;
  }

  #turn(): void {
    const { clock } = this.#options;
    this.#timer = clock.at(clock.nowMs() + PERIOD_MS, () => this.#turn());
    if (this.#repeats > 0) {
      this.#repeats -= 1;
      this.#options.usage.repeat();
    }
    this.#say();
    this.#shareUpstream();
  }

  #say(): void {
    const { bus, nodes, usage, upstream } = this.#options;
    if (bus.state !== "up") return;
    const { open, queued } = upstream?.stats() ?? NOTHING;
    this.#uses.set(nodes.incarnation, { open, queued });
    try {
      // Also where nothing has changed: who says nothing counts for nothing.
      for (let messages = 0; messages < MAX_MESSAGES; messages += 1) {
        const changes = usage.changes();
        if (changes === null && messages > 0) return;
        const said: Said = { from: nodes.incarnation, upstream: { open, queued }, usage: changes };
        bus.publish(SUBJECT, new TextEncoder().encode(JSON.stringify(said)));
      }
    } catch (thrown) {
      // Counts are said again; what was taken of rates in this second is not.
      (this.#options.log ?? silentLog).debug({ err: thrown }, "What is used here was not said");
    }
  }

  #heard(bytes: Uint8Array): void {
    const said = readSaid(bytes);
    const { nodes, usage } = this.#options;
    if (said === undefined || said.from === nodes.incarnation) return;
    if (nodes.findProcess(said.from)?.version !== BUS_VERSION) return;
    this.#uses.set(said.from, said.upstream);
    usage.heard(said.from, said.usage);
  }

  #nodeChanged({ incarnation, state }: NodeView): void {
    const { usage } = this.#options;
    if (state === "alive") this.#repeats = REPEATS;
    if (state !== "gone" && state !== "left") return;
    usage.forget(incarnation);
    // Who is only cut off still asks the upstream, until its lease ends.
    if (state === "left") this.#uses.delete(incarnation);
  }

  #shareUpstream(): void {
    const { bus, nodes, upstream } = this.#options;
    if (upstream === null) return;
    const { total } = upstream;
    const present = new Set([nodes.incarnation, ...nodes.nodes.map(({ incarnation }) => incarnation)]);
    const names = [...present].sort();
    if (bus.state !== "up") {
      // The others may ask for as much as they like: an equal share is left.
      upstream.limitOpen(Math.max(1, Math.floor(total / names.length)));
      return;
    }
    for (const name of this.#uses.keys()) if (!present.has(name)) this.#uses.delete(name);
    const uses = names.map((name) => this.#uses.get(name) ?? NOTHING);
    const own = names.indexOf(nodes.incarnation);
    const shares = upstreamShares(
      total,
      uses.map(({ open, queued }) => open + queued),
    );
    // What others have open beyond their share ends soon, and is theirs until then.
    const others = uses.reduce((sum, { open }, index) => (index === own ? sum : sum + open), 0);
    upstream.limitOpen(Math.max(1, Math.min(shares[own] ?? 1, total - others)));
  }
}

/** Undefined for what is none: of another program, or of a version to come. */
function readSaid(bytes: Uint8Array): Said | undefined {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
  if (!isRecord(value) || typeof value.from !== "string" || !isRecord(value.upstream)) return undefined;
  const { open, queued } = value.upstream;
  if (!isCount(open) || !isCount(queued)) return undefined;
  return { from: value.from, upstream: { open, queued }, usage: value.usage };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
