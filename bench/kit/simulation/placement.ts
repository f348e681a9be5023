/**
 * Which node a session goes to, and how even that is. Each simulated node has the gateway's own `Placement`, and its buddy is
 * chosen by the gateway's own `chooseBuddy`; nodes know of one another what the last heartbeats said.
 */
import { BUS_VERSION } from "../../../src/cluster/bus/heartbeat.ts";
import type { NodeRegistry, NodeView } from "../../../src/cluster/bus/node-registry.ts";
import { Placement, SESSIONS_OF_A_FULL_NODE } from "../../../src/cluster/placement.ts";
import { chooseBuddy } from "../../../src/cluster/takeover/buddy.ts";
import { Random } from "../random.ts";
import { StepClock } from "./step-clock.ts";

export const BUILT = "two choices with a margin: what the gateway does";
/** The others are not built: they show why this one was. */
export const POLICIES = ["arrival", "least loaded", BUILT] as const;
export type Policy = (typeof POLICIES)[number];

type Incarnation = NodeRegistry["incarnation"];

/** Sessions as they cost, each picked equally often. */
export interface SessionKinds {
  /** CPU, us a frame. */
  readonly costs: Float64Array;
  /** Frames a second that the session's node counts: those of its listeners at other nodes, too. */
  readonly framesPerSecond: Float64Array;
}

export interface PlacedSession {
  readonly node: number;
  /** Its place in the tables of SessionKinds. */
  readonly kind: number;
}

export interface ClusterInput {
  readonly nodes: number;
  readonly heartbeatMs: number;
  readonly kinds: SessionKinds;
}

/** Until a node's measured frames are those of now. */
const SETTLING_HEARTBEATS = 40;

class SimulatedCluster {
  readonly #clock = new StepClock();
  readonly #input: ClusterInput;
  readonly #ids: readonly Incarnation[];
  readonly #nodeOf: ReadonlyMap<string, number>;
  readonly #views: NodeView[];
  readonly #placements: readonly Placement[];
  readonly #sessions: Int32Array;
  readonly #framesPerSecond: Float64Array;
  readonly #frames: Float64Array;
  /** For "least loaded": sessions sent since the last heartbeats, by arrival node, then by node. */
  readonly #unheard: Int32Array;
  /** The load of each node by its last heartbeat. */
  readonly #told: Float64Array;
  #lastSession = 0;
  readonly costs: Float64Array;

  /** `random`: for the nodes that Placement draws. */
  constructor(input: ClusterInput, random: Random) {
    const { nodes } = input;
    this.#input = input;
    this.#ids = incarnations(nodes);
    this.#nodeOf = new Map(this.#ids.map((id, node) => [id, node]));
    this.#sessions = new Int32Array(nodes);
    this.#framesPerSecond = new Float64Array(nodes);
    this.#frames = new Float64Array(nodes);
    this.#unheard = new Int32Array(nodes * nodes);
    this.#told = new Float64Array(nodes);
    this.costs = new Float64Array(nodes);
    const views = this.#ids.map((incarnation) => viewOf(incarnation));
    this.#views = views;
    this.#placements = this.#ids.map(
      (incarnation, node) =>
        new Placement({
          nodes: { incarnation, nodes: views },
          clock: this.#clock,
          sessions: () => this.#sessions[node] ?? 0,
          frames: () => this.#frames[node] ?? 0,
          random: () => random.next(),
        }),
    );
  }

  /** All nodes measure and send their heartbeats, so much later. */
  heartbeat(afterMs: number): void {
    this.#clock.pass(afterMs);
    const { heartbeatMs } = this.#input;
    for (let node = 0; node < this.#frames.length; node += 1) {
      const sent = ((this.#framesPerSecond[node] ?? 0) * heartbeatMs) / 1000;
      this.#frames[node] = (this.#frames[node] ?? 0) + sent;
    }
    this.#clock.runDue();
    for (const [node, view] of this.#views.entries()) {
      if (view.state !== "alive") continue;
      const load = this.#placements[node]?.load ?? 0;
      this.#told[node] = load;
      this.#views[node] = { ...view, facts: { ...view.facts, load } };
    }
    this.#unheard.fill(0);
  }

  pass(ms: number): void {
    this.#clock.pass(ms);
  }

  lose(node: number): void {
    const view = this.#views[node];
    if (view !== undefined) this.#views[node] = { ...view, state: "gone" };
  }

  begin({ node, kind }: PlacedSession): void {
    this.#change(node, kind, 1);
  }

  end({ node, kind }: PlacedSession): void {
    this.#change(node, kind, -1);
  }

  /** Where a session is opened that is asked for at `arrival`. */
  choose(policy: Policy, arrival: number): number {
    if (policy === "arrival") return arrival;
    if (policy === "least loaded") return this.#leastLoaded(arrival);
    this.#lastSession += 1;
    const chosen = this.#placements[arrival]?.choose(`session-${this.#lastSession}`, { mayOpen: true });
    return this.#nodeOf.get(chosen ?? "") ?? arrival;
  }

  get meanLoad(): number {
    return this.#views.reduce((sum, { facts }) => sum + facts.load, 0) / this.#views.length;
  }

  close(): void {
    for (const placement of this.#placements) placement.close();
  }

  #change(node: number, kind: number, by: 1 | -1): void {
    const { costs, framesPerSecond } = this.#input.kinds;
    this.#sessions[node] = (this.#sessions[node] ?? 0) + by;
    this.#framesPerSecond[node] = (this.#framesPerSecond[node] ?? 0) + by * (framesPerSecond[kind] ?? 0);
    this.costs[node] = (this.costs[node] ?? 0) + by * (costs[kind] ?? 0);
  }

  /** As of the last heartbeats, with what `arrival` has sent since; `arrival` itself where no other has less. */
  #leastLoaded(arrival: number): number {
    const row = arrival * this.#ids.length;
    let best = arrival;
    let bestLoad = this.#placements[arrival]?.load ?? 0;
    // A plain loop over numbers: it runs once a session, over all nodes.
    for (let node = 0; node < this.#told.length; node += 1) {
      if (node === arrival) continue;
      const load =
        (this.#told[node] as number) + (this.#unheard[row + node] as number) / SESSIONS_OF_A_FULL_NODE;
      if (load >= bestLoad) continue;
      best = node;
      bestLoad = load;
    }
    this.#unheard[row + best] = (this.#unheard[row + best] ?? 0) + 1;
    return best;
  }
}

function incarnations(nodes: number): Incarnation[] {
  return Array.from(
    { length: nodes },
    (_, node): Incarnation => `00000000-0000-4000-8000-${String(node).padStart(12, "0")}`,
  );
}

function viewOf(incarnation: string, machine = ""): NodeView {
  const facts = { url: "ws://node:8080", load: 0, isDraining: false, buddy: null, machine };
  return { name: incarnation, incarnation, state: "alive", version: BUS_VERSION, facts };
}

/** How far the nodes are from even, as multiples of their mean. */
export interface Skew {
  readonly p99: number;
  readonly most: number;
}

export interface PlacementInput extends ClusterInput {
  readonly policy: Policy;
  readonly sessions: number;
  readonly sessionSeconds: number;
}

/** After three mean lives of sessions that come and go. */
export interface Placed {
  readonly steady: Skew;
  /** As heartbeats say it. */
  readonly meanLoad: number;
  /** Sessions of the last mean life that were opened at another node than the one where their first client arrived. */
  readonly movedShare: number;
  readonly sessions: readonly PlacedSession[];
}

const MEAN_LIVES = 3;
const OTHER_SEEDS = 2 ** 32;

/** From nothing to as many sessions as are wanted. */
export function simulatePlacement(input: PlacementInput, random: Random): Placed {
  const { policy, sessions, heartbeatMs, kinds } = input;
  // Its own numbers, so that the same sessions come with every policy.
  const cluster = new SimulatedCluster(input, new Random(random.below(OTHER_SEEDS)));
  const lifeMs = input.sessionSeconds * 1000;
  const steps = Math.ceil((MEAN_LIVES * lifeMs) / heartbeatMs);
  const perStep = (sessions * heartbeatMs) / lifeMs;
  const ending: PlacedSession[][] = Array.from({ length: steps + 1 }, () => []);
  let [opened, moved, due] = [0, 0, 0];
  for (let step = 0; step < steps; step += 1) {
    for (const session of ending[step] ?? []) cluster.end(session);
    ending[step] = [];
    const isLastLife = step >= steps - lifeMs / heartbeatMs;
    const arriving = Math.floor(due + perStep);
    due += perStep - arriving;
    const gapMs = heartbeatMs / (arriving + 1);
    for (let count = 0; count < arriving; count += 1) {
      cluster.pass(gapMs);
      const arrival = random.below(input.nodes);
      const session = { node: cluster.choose(policy, arrival), kind: random.below(kinds.costs.length) };
      cluster.begin(session);
      if (isLastLife) {
        opened += 1;
        if (session.node !== arrival) moved += 1;
      }
      const lifeSteps = Math.ceil((-Math.log(1 - random.next()) * lifeMs) / heartbeatMs);
      ending[Math.min(steps, step + lifeSteps)]?.push(session);
    }
    cluster.heartbeat(gapMs);
  }
  cluster.close();
  return {
    steady: skewOf(cluster.costs),
    meanLoad: cluster.meanLoad,
    movedShare: moved / Math.max(1, opened),
    sessions: ending[steps] ?? [],
  };
}

/** The buddy of each node. Between the numbers of nodes. */
export function buddiesOf(nodes: number, nodesPerMachine: number): Int32Array {
  const views = incarnations(nodes).map((incarnation, node) =>
    viewOf(incarnation, `machine-${Math.floor(node / nodesPerMachine)}`),
  );
  const nodeOf = new Map(views.map(({ incarnation }, node) => [incarnation, node]));
  return Int32Array.from(views, ({ incarnation }, node) => {
    return nodeOf.get(chooseBuddy(incarnation, views, null) ?? "") ?? node;
  });
}

export interface LossInput extends ClusterInput {
  /** Of simulatePlacement. */
  readonly sessions: readonly PlacedSession[];
  readonly nodesPerMachine: number;
  /** The nodes from this one on are lost, so many. */
  readonly lost: { readonly first: number; readonly count: number };
  /** The buddy asks for each session where it is to be opened, and hands it on. */
  readonly givesOn: boolean;
}

export interface Taken {
  /** Sessions of the lost nodes. */
  readonly lost: number;
  /** Of them, those whose buddy was lost, too: opened again where a client comes. */
  readonly withoutBuddy: number;
  /** Of the nodes that are left. */
  readonly most: number;
}

/** All sessions of the lost nodes are claimed within one heartbeat, so that nobody hears how full others have become. */
export function simulateTakeover(input: LossInput, random: Random): Taken {
  const { nodes, heartbeatMs, givesOn } = input;
  const { first, count } = input.lost;
  const isLost = (node: number): boolean => node >= first && node < first + count;
  const cluster = new SimulatedCluster(input, new Random(random.below(OTHER_SEEDS)));
  for (const session of input.sessions) cluster.begin(session);
  for (let beat = 0; beat < SETTLING_HEARTBEATS; beat += 1) cluster.heartbeat(heartbeatMs);
  for (let node = first; node < first + count; node += 1) cluster.lose(node);
  const buddies = buddiesOf(nodes, input.nodesPerMachine);
  // In no order: buddies work at the same time.
  const lost = shuffled(
    input.sessions.filter(({ node }) => isLost(node)),
    random,
  );
  let withoutBuddy = 0;
  for (const session of lost) {
    cluster.end(session);
    cluster.pass(heartbeatMs / (lost.length + 1));
    const buddy = buddies[session.node] ?? session.node;
    const isTaken = !isLost(buddy);
    if (!isTaken) withoutBuddy += 1;
    const at = isTaken ? buddy : livingNode(nodes, isLost, random);
    const node = isTaken && !givesOn ? at : cluster.choose(BUILT, at);
    cluster.begin({ node, kind: session.kind });
  }
  cluster.close();
  return {
    lost: lost.length,
    withoutBuddy,
    most: skewOf(cluster.costs.filter((_, node) => !isLost(node))).most,
  };
}

function livingNode(nodes: number, isLost: (node: number) => boolean, random: Random): number {
  for (;;) {
    const node = random.below(nodes);
    if (!isLost(node)) return node;
  }
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .sort((one, other) => one.at - other.at)
    .map(({ item }) => item);
}

export function skewOf(loads: Float64Array): Skew {
  const sorted = Float64Array.from(loads).sort();
  const mean = sorted.reduce((total, load) => total + load, 0) / sorted.length;
  const at = (fraction: number): number => sorted[Math.ceil(fraction * sorted.length) - 1] ?? 0;
  return mean === 0 ? { p99: 1, most: 1 } : { p99: at(0.99) / mean, most: at(1) / mean };
}
