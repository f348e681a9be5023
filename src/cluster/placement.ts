/**
 * Where a session is opened that is nowhere yet: here, unless this node drains, or another one is loaded less by a margin. Then it
 * goes to the better of two that are drawn: with more candidates, nodes that hear of one another late would all choose the same one.
 */
import type { Clock, Timer } from "../kit/clock.ts";
import type { NodeRegistry, NodeView } from "./bus/node-registry.ts";

export interface PlacementOptions {
  readonly nodes: Pick<NodeRegistry, "incarnation" | "nodes" | "update">;
  readonly clock: Clock;
  /** Sessions of this node. */
  readonly sessions: () => number;
  /** Frames that this node has sent to listeners, since its start. */
  readonly frames: () => number;
  /** 0 to 1. Default Math.random. */
  readonly random?: () => number;
}

/** So many sessions that speak with timing fill the event loop of one process, each with a listener who gets a frame each 20 ms. */
const SESSIONS_OF_A_FULL_NODE = 1000;
const FRAMES_OF_A_FULL_NODE = 50_000;
/** A node that is loaded less by this much is worth the relay: 50 sessions. */
const MARGIN = 0.05;
/** As often as heartbeats leave. */
const MEASURE_MS = 500;
/** How much of each measurement counts: a session that is sent ahead gets many frames at once. */
const SMOOTHING = 0.2;
/** So long a session that was sent to a node may be missing in what that says of itself, and others are sent after the first. */
const PLACED_MS = 1000;
const MAX_PLACED = 10_000;

interface Placed {
  readonly incarnation: string;
  readonly atMs: number;
}

export class Placement {
  readonly #options: PlacementOptions;
  /** Sessions that were sent to other nodes and may not be found there yet, the oldest first. */
  readonly #placed = new Map<string, Placed>();
  /** How many of them, by process. */
  readonly #sent = new Map<string, number>();
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
   * 0 is idle, 1 is full. Sessions are known at once, but cost only when they speak; frames are what costs, and sessions with many
   * listeners have more of them. How late the event loop is says nothing until it is too late.
   */
  get load(): number {
    const sessions = this.#options.sessions() / SESSIONS_OF_A_FULL_NODE;
    return Math.min(1, Math.max(sessions, this.#framesPerSecond / FRAMES_OF_A_FULL_NODE));
  }

  /**
   * The process that is to open the session, or has been asked to by somebody who came just now; null: this one, or nobody.
   */
  choose(sessionId: string, { mayOpen }: { readonly mayOpen: boolean }): string | null {
    const nowMs = this.#options.clock.nowMs();
    this.#forgetOld(nowMs);
    const before = this.#placed.get(sessionId);
    if (before !== undefined) return before.incarnation;
    const best = mayOpen ? this.#best() : null;
    if (best === null) return null;
    if (!this.#isDraining && best.load + MARGIN >= this.load) return null;
    const { incarnation } = best;
    if (this.#placed.size >= MAX_PLACED) return null;
    this.#placed.set(sessionId, { incarnation, atMs: nowMs });
    this.#sent.set(incarnation, (this.#sent.get(incarnation) ?? 0) + 1);
    return incarnation;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Idempotent. */
  close(): void {
    this.#timer.cancel();
  }

  #best(): { readonly incarnation: string; readonly load: number } | null {
    const { nodes } = this.#options;
    const others = nodes.nodes.filter(
      (node) => takesSessions(node) && node.incarnation !== nodes.incarnation,
    );
    const drawn = [this.#draw(others), this.#draw(others)].filter((node) => node !== undefined);
    const loads = drawn.map(({ incarnation, facts }) => ({
      incarnation,
      load: facts.load + this.#unheard(incarnation),
    }));
    return loads.sort((one, other) => one.load - other.load)[0] ?? null;
  }

  /** Takes one out. */
  #draw(others: NodeView[]): NodeView | undefined {
    const { random = Math.random } = this.#options;
    return others.splice(Math.floor(random() * others.length), 1)[0];
  }

  /** The load of what was sent there and is not in its heartbeats yet. */
  #unheard(incarnation: string): number {
    return (this.#sent.get(incarnation) ?? 0) / SESSIONS_OF_A_FULL_NODE;
  }

  #forgetOld(nowMs: number): void {
    for (const [sessionId, { incarnation, atMs }] of this.#placed) {
      if (nowMs - atMs < PLACED_MS) return;
      this.#placed.delete(sessionId);
      const left = (this.#sent.get(incarnation) ?? 0) - 1;
      if (left > 0) this.#sent.set(incarnation, left);
      else this.#sent.delete(incarnation);
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
      nodes.update({ load: this.load });
    });
  }
}

/** One of another version says that it drains. */
function takesSessions({ state, facts }: NodeView): boolean {
  return state === "alive" && !facts.isDraining;
}
