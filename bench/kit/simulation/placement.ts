/**
 * Which node a session goes to, and how even that is. Nodes know of one another what the last heartbeats said, and each knows
 * where it has placed sessions itself since. src/cluster has no placement and no buddies yet: these stand in for them.
 */
import type { Random } from "../random.ts";

export const POLICIES = ["arrival", "least loaded", "two choices"] as const;
export type Policy = (typeof POLICIES)[number];

/** A node asks of all others how full they are; `own`: what it has placed there since the last heartbeats. */
type Choose = (arrival: number, loadOf: (node: number) => number, nodes: number, random: Random) => number;

const CHOOSE: Readonly<Record<Policy, Choose>> = {
  arrival: (arrival) => arrival,
  "least loaded": (_, loadOf, nodes) => {
    let best = 0;
    for (let node = 1; node < nodes; node += 1) if (loadOf(node) < loadOf(best)) best = node;
    return best;
  },
  "two choices": (_, loadOf, nodes, random) => {
    const [first, second] = [random.below(nodes), random.below(nodes)];
    return loadOf(second) < loadOf(first) ? second : first;
  },
};

/** What the nodes know of one another between two heartbeats. */
class LoadViews {
  readonly loads: Float64Array;
  readonly #heard: Float64Array;
  /** By arrival node, then by node. */
  readonly #own: Float64Array;

  constructor(loads: Float64Array) {
    this.loads = loads;
    this.#heard = Float64Array.from(loads);
    this.#own = new Float64Array(loads.length ** 2);
  }

  heartbeat(): void {
    this.#heard.set(this.loads);
    this.#own.fill(0);
  }

  end(node: number, weight: number): void {
    this.loads[node] = (this.loads[node] ?? 0) - weight;
  }

  /** Places a session that arrives at a random node. */
  place(policy: Policy, weight: number, random: Random): number {
    const nodes = this.loads.length;
    const arrival = random.below(nodes);
    const row = arrival * nodes;
    const loadOf = (node: number): number => (this.#heard[node] ?? 0) + (this.#own[row + node] ?? 0);
    const node = CHOOSE[policy](arrival, loadOf, nodes, random);
    this.loads[node] = (this.loads[node] ?? 0) + weight;
    this.#own[row + node] = (this.#own[row + node] ?? 0) + weight;
    return node;
  }
}

/** How far the nodes are from even, as multiples of their mean. */
export interface Skew {
  readonly p99: number;
  readonly most: number;
}

export interface Placed {
  /** After three mean lives of sessions that come and go. */
  readonly steady: Skew;
  /** A machine was lost, and its sessions came to the others within one heartbeat. */
  readonly afterLoss: Skew;
}

export interface PlacementInput {
  readonly policy: Policy;
  readonly nodes: number;
  /** The first so many are lost. */
  readonly lostNodes: number;
  readonly sessions: number;
  readonly sessionSeconds: number;
  readonly heartbeatMs: number;
  /** What sessions cost, each picked as often as any other. */
  readonly weights: Float64Array;
}

const MEAN_LIVES = 3;

export function simulatePlacement(input: PlacementInput, random: Random): Placed {
  const { policy, nodes, lostNodes } = input;
  const views = new LoadViews(new Float64Array(nodes));
  const lost = comeAndGo(input, views, random).filter(({ node }) => node < lostNodes);
  const survivors = new LoadViews(views.loads.slice(lostNodes));
  for (const { weight } of lost) survivors.place(policy, weight, random);
  return { steady: skewOf(views.loads), afterLoss: skewOf(survivors.loads) };
}

interface PlacedSession {
  readonly node: number;
  readonly weight: number;
}

/** From nothing to as many sessions as are wanted; gives those that live at the end. */
function comeAndGo(input: PlacementInput, views: LoadViews, random: Random): readonly PlacedSession[] {
  const { policy, sessions, weights, heartbeatMs } = input;
  const lifeMs = input.sessionSeconds * 1000;
  const steps = Math.ceil((MEAN_LIVES * lifeMs) / heartbeatMs);
  const ending: PlacedSession[][] = Array.from({ length: steps + 1 }, () => []);
  let due = 0;
  for (let step = 0; step < steps; step += 1) {
    for (const { node, weight } of ending[step] ?? []) views.end(node, weight);
    ending[step] = [];
    views.heartbeat();
    for (due += (sessions * heartbeatMs) / lifeMs; due >= 1; due -= 1) {
      const weight = weights[random.below(weights.length)] ?? 0;
      const node = views.place(policy, weight, random);
      const lifeSteps = Math.ceil((-Math.log(1 - random.next()) * lifeMs) / heartbeatMs);
      ending[Math.min(steps, step + lifeSteps)]?.push({ node, weight });
    }
  }
  return ending[steps] ?? [];
}

export function skewOf(loads: Float64Array): Skew {
  const sorted = Float64Array.from(loads).sort();
  const mean = sorted.reduce((total, load) => total + load, 0) / sorted.length;
  const at = (fraction: number): number => sorted[Math.ceil(fraction * sorted.length) - 1] ?? 0;
  return mean === 0 ? { p99: 1, most: 1 } : { p99: at(0.99) / mean, most: at(1) / mean };
}
