/**
 * A gateway as one node of several: its place among them, the sessions that it owns, and clients whose session another owns.
 * Everything that is asked of other nodes goes through here.
 */
import { hostname } from "node:os";
import { GatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { NodeFigures } from "../metrics/prometheus.ts";
import type { PlaceAsking, SessionPlace } from "../session/place.ts";
import type { Bus, BusHandle } from "./bus/bus.ts";
import { BUS_VERSION } from "./bus/heartbeat.ts";
import { isLiving, NodeRegistry, type NodeState, type NodeView } from "./bus/node-registry.ts";
import { ClaimedTokens } from "./claimed-tokens.ts";
import { movedAway, shuttingDown } from "./come-back.ts";
import { Placement } from "./placement.ts";
import { type ArrivedSocket, type OwnerConnection, Relay, type RelayHost } from "./relay/relay.ts";
import { SessionOwners } from "./session-owners.ts";
import { Standstill } from "./standstill.ts";
import type { Replica } from "./takeover/replicas.ts";
import { type NodeSessions, Takeover } from "./takeover/takeover.ts";
import { type SharedUpstream, UsageExchange, type UsageSource } from "./usage-exchange.ts";

export interface ClusterOptions {
  readonly bus: Bus;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of one client that wait at its node before the owner gets to know. */
  readonly slowBytes: number;
  readonly maxConnections: number;
  /** Frames that this node has sent to listeners, since its start. */
  readonly frames: () => number;
  readonly sessions: NodeSessions;
}

/** A session that begins here: its epoch, and what another node had of it. */
interface OpenedSession {
  readonly epoch: string;
  readonly former: Replica | null;
}

const NO_TRAFFIC: NodeFigures["relay"] = { messagesIn: 0, bytesIn: 0, messagesOut: 0, bytesOut: 0 };

/** Bytes under way to one node: a second of 300 listeners' mu-law with its events, generously. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** As long as a node that is known may be silent. */
const UNHEARD_MS = 3000;

/** The part of a cluster that sockets, players and calls use. */
export type LiveCluster = Pick<Cluster, "known" | "place" | "connect" | "serve" | "isCutOff">;

export class Cluster {
  readonly #options: ClusterOptions;
  readonly #nodes: NodeRegistry;
  readonly #owners: SessionOwners;
  readonly #takeover: Takeover;
  readonly #tokens: ClaimedTokens;
  readonly #placement: Placement;
  readonly #standstill: Standstill;
  readonly #refused = { session: 0, token: 0 };
  #usage: UsageExchange | null = null;
  #isReplaced = false;
  readonly #handles: BusHandle[] = [];
  /** Processes that clients were sent to before they were heard. */
  readonly #expected = new Map<string, Timer>();
  /** Which process had a node's name when it was heard last. */
  readonly #incarnations = new Map<string, string>();
  readonly #entering: Map<string, number>;
  #relay: Pick<Relay<never, never>, "sizes" | "traffic" | "connect" | "nodeGone" | "close"> | null = null;

  private constructor(options: ClusterOptions, parts: ClusterParts) {
    this.#options = options;
    this.#nodes = parts.nodes;
    this.#owners = parts.owners;
    this.#takeover = parts.takeover;
    this.#entering = parts.entering;
    this.#tokens = new ClaimedTokens({ ...options, nodes: parts.nodes, wallMs: Date.now });
    this.#placement = parts.placement;
    this.#standstill = new Standstill({ ...options, verify: () => parts.owners.verify() });
    this.#handles.push(parts.nodes.onChange((node) => this.#nodeChanged(node)));
    parts.takeover.chooseBuddy();
  }

  /** Rejects with node_name_taken, bus_lost, bus_refused. The bus is the caller's to close. */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const { bus, clock, log, nodeName: name, sessions } = options;
    let cluster: Cluster | null = null;
    const onReplaced = (): void => {
      log.error({ node: name }, "Another process has this node's name: no new sessions here");
      if (cluster !== null) cluster.#isReplaced = true;
      sessions.leave();
    };
    const facts = { url: "", load: 0, isDraining: false, buddy: null, machine: hostname() };
    let placement: Placement | null = null;
    const load = (): number => placement?.load ?? 0;
    const nodes = await NodeRegistry.join(bus, { name, facts, load, clock, log, onReplaced });
    const opened: { close(): void }[] = [];
    const open = async <Part extends { close(): void }>(opening: Promise<Part>): Promise<Part> => {
      const part = await opening;
      opened.push(part);
      return part;
    };
    try {
      const onLost = (sessionId: string): void => sessions.end(sessionId, movedAway());
      placement = new Placement({ ...options, nodes, sessions: () => sessions.count });
      opened.push(placement);
      const owners = await open(SessionOwners.open({ bus, nodes, clock, log, onLost }));
      const entering = new Map<string, number>();
      const isAwaited = (sessionId: string): boolean => entering.has(sessionId);
      const takeover = await open(Takeover.open({ ...options, nodes, owners, placement, isAwaited }));
      cluster = new Cluster(options, { nodes, owners, placement, takeover, entering });
      return cluster;
    } catch (thrown) {
      for (const part of opened) part.close();
      await nodes.close();
      throw thrown;
    }
  }

  /** From now on clients that arrived at other nodes come to `host`. Rejects as the bus does. */
  async serve<Facts, Connection>(host: RelayHost<Facts, Connection>): Promise<void> {
    const { bus, clock, slowBytes, maxConnections } = this.#options;
    await this.#takeover.serve();
    this.#relay = await Relay.open({
      bus,
      clock,
      incarnation: this.#nodes.incarnation,
      host,
      windowBytes: WINDOW_BYTES,
      slowBytes,
      maxConnections,
    });
  }

  /** From now on nodes say what is used at each. Rejects as the bus does. */
  async shareUsage(usage: UsageSource, upstream: SharedUpstream | null): Promise<void> {
    const nodes = this.#nodes;
    this.#usage = await UsageExchange.open({ ...this.#options, nodes, usage, upstream });
  }

  get nodes(): readonly NodeView[] {
    return this.#nodes.nodes;
  }

  get takeover(): Pick<Takeover, "takenOver" | "hasBuddy" | "handOver"> {
    return this.#takeover;
  }

  /** Gets all that another node would need to go on with a session. */
  get keeper(): Takeover["keeper"] {
    return this.#takeover.keeper;
  }

  /** Whether nats-server is reached: a node that started alone has its bus before that. */
  get isBusReached(): boolean {
    return this.#options.bus.isReached;
  }

  /** Other nodes are not reached: they may go on with this node's sessions. */
  get isCutOff(): boolean {
    return this.#options.bus.state !== "up";
  }

  get figures(): NodeFigures {
    const nodes = new Map<NodeState, number>();
    for (const { state } of this.nodes) nodes.set(state, (nodes.get(state) ?? 0) + 1);
    const { bus } = this.#options;
    return {
      ...(this.#relay?.sizes ?? { arrived: 0, hosted: 0 }),
      ...this.#owners.counts,
      owned: this.#owners.sizes.held,
      kept: this.#takeover.kept,
      nodes,
      isBusUp: bus.isReached,
      waitingBytes: bus.waitingBytes,
      usedTokens: this.#tokens.held,
      refused: this.#refused,
      relay: this.#relay?.traffic ?? NO_TRAFFIC,
    };
  }

  /** As far as it is known here; undefined: it has to be asked for. */
  known(sessionId: string): SessionPlace | undefined {
    if (this.#options.sessions.has(sessionId)) return "here";
    const owner = this.#owners.find(sessionId);
    return owner === undefined || owner.isHere || !this.#isAlive(owner)
      ? undefined
      : { owner: owner.incarnation };
  }

  /**
   * Calls `enter` with where the session is. Where it is nowhere and whoever asks may open it, that is where it is to be opened: here it
   * is claimed for this node, another one claims it itself when they come. `enter` opens it at once or not at all: a claim is
   * released behind it. Rejects with bus_lost, bus_timeout, both with a time after which it is worth
   * trying again, and with what `enter` throws.
   */
  async place(sessionId: string, asking: PlaceAsking, enter: (place: SessionPlace) => void): Promise<void> {
    this.#entering.set(sessionId, (this.#entering.get(sessionId) ?? 0) + 1);
    try {
      enter(await this.#placeOf(sessionId, asking));
    } finally {
      this.#entered(sessionId);
    }
  }

  /** This process stood still, and does not know yet which sessions are still its own: it says nothing meanwhile. */
  isHeld(nowMs: number): boolean {
    return this.#standstill.isHeld(nowMs);
  }

  /** A session is opened here; its epoch is as `hello` names it. Throws bus_lost where this node does not own it. */
  opened(sessionId: string): OpenedSession {
    const epoch = this.#epochOf(sessionId);
    return { epoch, former: this.#takeover.formerOf(sessionId) };
  }

  #epochOf(sessionId: string): string {
    const epoch = this.#owners.heldEpoch(sessionId);
    if (epoch === undefined) throw movedAway();
    return nameOf(epoch);
  }

  /** A session has ended here. */
  ended(sessionId: string): void {
    this.#takeover.ended(sessionId);
    this.#owners.release(sessionId);
  }

  /** See access/other-nodes.ts. */
  async claimToken(name: string, untilMs: number): Promise<boolean> {
    let isClaimed = false;
    try {
      isClaimed = await this.#tokens.claimToken(name, untilMs);
      return isClaimed;
    } finally {
      if (!isClaimed) this.#refused.token += 1;
    }
  }

  releaseToken(name: string): void {
    this.#tokens.releaseToken(name);
  }

  /** A client has arrived whose session that process owns. Throws bus_lost, node_version. */
  connect(owner: string, facts: object, socket: ArrivedSocket): OwnerConnection {
    if (this.#relay === null) throw new TypeError("Cluster does not serve yet");
    const node = this.#nodes.findProcess(owner);
    if (node !== undefined && node.version !== BUS_VERSION) throw otherVersion(node);
    if (node === undefined) this.#expect(owner);
    return this.#relay.connect(owner, facts, socket);
  }

  get nodeName(): string {
    return this.#nodes.name;
  }

  /** The living process that has this name; undefined: there is none. */
  processOf(nodeName: string): string | undefined {
    const node = this.#nodes.find(nodeName);
    return node?.state === "alive" ? node.incarnation : undefined;
  }

  /** Where clients reach this node. */
  listensAt(url: string): void {
    this.#nodes.update({ url });
  }

  drain(): void {
    this.#placement.drain();
    this.#nodes.update({ isDraining: true });
  }

  /** Idempotent. The bus goes on. */
  async close(): Promise<void> {
    for (const handle of this.#handles) handle.close();
    this.#relay?.close(shuttingDown());
    this.#takeover.close();
    this.#owners.close();
    this.#tokens.close();
    this.#usage?.close();
    this.#placement.close();
    for (const timer of this.#expected.values()) timer.cancel();
    this.#standstill.close();
    await this.#nodes.close();
  }

  async #placeOf(sessionId: string, asking: PlaceAsking): Promise<SessionPlace> {
    try {
      return await this.#find(sessionId, asking);
    } catch (thrown) {
      this.#refused.session += 1;
      throw thrown;
    }
  }

  async #find(sessionId: string, asking: PlaceAsking): Promise<SessionPlace> {
    if (this.#isReplaced) throw replaced();
    await this.#takeover.settle(sessionId);
    const chosen = asking.mayMove ? this.#placement.choose(sessionId, asking) : null;
    const isClaimed = asking.mayOpen && chosen === null;
    const owner = isClaimed ? await this.#owners.claim(sessionId) : await this.#owners.lookUp(sessionId);
    if (owner === undefined) return chosen === null ? "here" : { owner: chosen };
    return owner.isHere ? "here" : { owner: owner.incarnation };
  }

  /** Its lease stands and it was never heard: one that is never heard at all has to be given up by somebody. */
  #expect(owner: string): void {
    if (this.#expected.has(owner)) return;
    const { clock } = this.#options;
    const timer = clock.at(clock.nowMs() + UNHEARD_MS, () => {
      this.#expected.delete(owner);
      if (this.#nodes.findProcess(owner) === undefined) this.#relay?.nodeGone(owner);
    });
    this.#expected.set(owner, timer);
  }

  /** Whoever was to open a session that was claimed for this node has, or was refused, or has gone. */
  #entered(sessionId: string): void {
    const others = (this.#entering.get(sessionId) ?? 1) - 1;
    if (others > 0) {
      this.#entering.set(sessionId, others);
      return;
    }
    this.#entering.delete(sessionId);
    if (!this.#options.sessions.has(sessionId)) this.#owners.release(sessionId);
  }

  #isAlive({ node, incarnation }: { readonly node: string; readonly incarnation: string }): boolean {
    const view = this.#nodes.find(node);
    return view?.incarnation === incarnation && isLiving(view);
  }

  #nodeChanged(node: NodeView): void {
    const { name, incarnation, state } = node;
    const before = this.#incarnations.get(name);
    if (before !== undefined && before !== incarnation) this.#processGone(before);
    if (state === "gone" || state === "left") {
      this.#incarnations.delete(name);
      this.#processGone(incarnation);
    } else {
      this.#incarnations.set(name, incarnation);
      this.#takeover.heard(node);
    }
    this.#takeover.chooseBuddy();
  }

  #processGone(incarnation: string): void {
    this.#relay?.nodeGone(incarnation);
    void this.#takeover.processGone(incarnation);
  }
}

interface ClusterParts {
  readonly nodes: NodeRegistry;
  readonly owners: SessionOwners;
  readonly placement: Placement;
  readonly takeover: Takeover;
  /** Sessions whose place is being found, and for how many. */
  readonly entering: Map<string, number>;
}

/** Epochs are microseconds since 1970. */
function nameOf(epoch: number): string {
  return `c${epoch.toString(36)}`;
}

function replaced(): GatewayError {
  const message = "Another process has this node's name: sessions are at other nodes";
  return new GatewayError("bus_lost", message, { retryAfterMs: 5000 });
}

function otherVersion({ version }: NodeView): GatewayError {
  const message = `Session's node speaks version ${version} of the bus, this one ${BUS_VERSION}: come back when all are updated`;
  return new GatewayError("node_version", message, { retryAfterMs: 5000 });
}
