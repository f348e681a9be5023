/**
 * Where a session is opened that is nowhere yet: here, unless this node drains, or another one is loaded less by a margin. Then it
 * goes to the better of two that are drawn: with more candidates, nodes that hear of one another late would all choose the same one.
 */
import type { Clock, Timer } from "../kit/clock.ts";
import { type NodeFacts, takesSessions } from "./bus/heartbeat.ts";
import type { NodeRegistry, NodeView } from "./bus/node-registry.ts";

export interface PlacementOptions {
  readonly nodes: Pick<NodeRegistry, "incarnation" | "nodes">;
  readonly clock: Clock;
  /** Sessions of this node. */
  readonly sessions: () => number;
  /** Frames that this node has sent to listeners, since its start. */
  readonly frames: () => number;
  /** 0 to 1. Default Math.random. */
  readonly random?: () => number;
}

/** So many sessions that speak with timing fill the event loop of one process, each with a listener who gets a frame each 20 ms. */
export const SESSIONS_OF_A_FULL_NODE = 1000;
const FRAMES_OF_A_FULL_NODE = 50_000;
/** A node that is loaded less by this much is worth the relay: 50 sessions. */
const MARGIN = 0.05;
/** As often as heartbeats leave. */
const MEASURE_MS = 500;
/** How much of each measurement counts: a session that is sent ahead gets many frames at once. */
const SMOOTHING = 0.2;
/** So long others are sent after the first who came for a session. */
const PLACED_MS = 1000;
const MAX_PLACED = 10_000;
/** So long a session takes until it is open at the node that it was sent to. */
const OPENING_MS = 200;

interface Placed {
  readonly incarnation: string;
  readonly atMs: number;
}

interface Sent {
  /** What the last heartbeat said. */
  facts: NodeFacts;
  /** When sessions were sent there that these facts do not count yet. */
  timesMs: number[];
}

export class Placement {
  /** Sessions that are about to be opened here, and are not counted yet. */
  opening = 0;
  readonly #options: PlacementOptions;
  /** Sessions that were sent to other nodes and may not be found there yet, the oldest first. */
  readonly #placed = new Map<string, Placed>();
  /** What was sent to each process and is not in its heartbeats. */
  readonly #sent = new Map<string, Sent>();
  #framesPerSecond = 0;
  #framesBefore: number;
  #isDraining = false;
  #timer: Timer;

  constructor(options: PlacementOptions) {
    this.#options = options;
    this.#framesBefore = options.frames();
    this.#timer = this.#measureSoon();
  }

  /**
   * 0 is idle, 1 is full; beyond that, too, one may be loaded less than another. Sessions are known at once, but cost only when
   * they speak. Frames are what costs, and sessions with many listeners have more of them. How late the event loop is says
   * nothing until it is too late.
   */
  get load(): number {
    const sessions = (this.#options.sessions() + this.opening) / SESSIONS_OF_A_FULL_NODE;
    return Math.max(sessions, this.#framesPerSecond / FRAMES_OF_A_FULL_NODE);
  }

  /**
   * The process that is to open the session, or has been asked to by somebody who came just now; null: this one, or nobody.
   */
  choose(sessionId: string, { mayOpen }: { readonly mayOpen: boolean }): string | null {
    const nowMs = this.#options.clock.nowMs();
    this.#forgetOld(nowMs);
    const before = this.#placed.get(sessionId);
    if (before !== undefined) return before.incarnation;
    const best = mayOpen ? this.#best(nowMs) : null;
    if (best === null) return null;
    if (!this.#isDraining && best.load + MARGIN >= this.load) return null;
    const { incarnation, facts } = best.node;
    if (this.#placed.size >= MAX_PLACED) return null;
    this.#placed.set(sessionId, { incarnation, atMs: nowMs });
    const sent = this.#sent.get(incarnation) ?? { facts, timesMs: [] };
    this.#sent.set(incarnation, sent);
    sent.timesMs.push(nowMs);
    return incarnation;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Idempotent. */
  close(): void {
    this.#timer.cancel();
  }

  #best(nowMs: number): { readonly node: NodeView; readonly load: number } | null {
    const { nodes } = this.#options;
    const others = nodes.nodes.filter(
      ({ state, facts, incarnation }) =>
        state === "alive" && takesSessions(facts) && incarnation !== nodes.incarnation,
    );
    const drawn = [this.#draw(others), this.#draw(others)].filter((node) => node !== undefined);
    const loads = drawn.map((node) => ({ node, load: node.facts.load + this.#unheard(node, nowMs) }));
    return loads.sort((one, other) => one.load - other.load)[0] ?? null;
  }

  /** Takes one out. */
  #draw(others: NodeView[]): NodeView | undefined {
    const { random = Math.random } = this.#options;
    return others.splice(Math.floor(random() * others.length), 1)[0];
  }

  /** The load of what was sent there and is not in its heartbeats yet. */
  #unheard({ incarnation, facts }: NodeView, nowMs: number): number {
    const sent = this.#sent.get(incarnation);
    if (sent === undefined) return 0;
    if (sent.facts !== facts) {
      sent.facts = facts;
      sent.timesMs = sent.timesMs.filter((timeMs) => nowMs - timeMs < OPENING_MS);
    }
    return sent.timesMs.length / SESSIONS_OF_A_FULL_NODE;
  }

  #forgetOld(nowMs: number): void {
    for (const [sessionId, { atMs }] of this.#placed) {
      if (nowMs - atMs < PLACED_MS) return;
      this.#placed.delete(sessionId);
    }
  }

  #measureSoon(): Timer {
    const { clock, frames, nodes } = this.#options;
    return clock.at(clock.nowMs() + MEASURE_MS, () => {
      this.#timer = this.#measureSoon();
      const framesNow = frames();
      const perSecond = ((framesNow - this.#framesBefore) * 1000) / MEASURE_MS;
      this.#framesBefore = framesNow;
      this.#framesPerSecond += (perSecond - this.#framesPerSecond) * SMOOTHING;
      if (this.#sent.size === 0) return;
      const present = new Set(nodes.nodes.map(({ incarnation }) => incarnation));
      for (const incarnation of this.#sent.keys()) {
        if (!present.has(incarnation)) this.#sent.delete(incarnation);
      }
    });
  }
}
