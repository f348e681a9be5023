/**
 * A gateway as one node of several: its place among them, the sessions that it owns, and clients whose session another owns.
 * Everything that is asked of other nodes goes through here.
 */
import { GatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { NodeFigures } from "../metrics/prometheus.ts";
import type { PlaceAsking, SessionPlace } from "../session/place.ts";
import type { Bus, BusHandle, BusState } from "./bus/bus.ts";
import { BUS_VERSION } from "./bus/heartbeat.ts";
import { isLiving, NodeRegistry, type NodeState, type NodeView } from "./bus/node-registry.ts";
import { ClaimedTokens } from "./claimed-tokens.ts";
import { Placement } from "./placement.ts";
import { type ArrivedSocket, type OwnerConnection, Relay, type RelayHost } from "./relay/relay.ts";
import { SessionOwners } from "./session-owners.ts";
import { Standstill } from "./standstill.ts";
import { chooseBuddy } from "./takeover/buddy.ts";
import { decodeReplica, encodeReplica, type SessionUpdate } from "./takeover/replica-format.ts";
import { type Replica, Replicas, replicaOf, toldWhole } from "./takeover/replicas.ts";
import { type KeptSession, Replicator } from "./takeover/replicator.ts";
import { type SharedUpstream, UsageExchange, type UsageSource } from "./usage-exchange.ts";

export interface ClusterOptions {
  readonly bus: Bus;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of one client that wait at its node before the owner is told. */
  readonly slowBytes: number;
  readonly maxConnections: number;
  /** Frames that this node has sent to listeners, since its start. */
  readonly frames: () => number;
  /** This node's sessions. */
  readonly sessions: {
    [Symbol.iterator](): Iterator<KeptSession>;
    readonly count: number;
    has(sessionId: string): boolean;
    find(sessionId: string): KeptSession | undefined;
    /** Throws where there is no room for it. */
    open(sessionId: string): void;
    /** Another node owns it: it ends here. */
    end(sessionId: string, error: GatewayError): void;
  };
}

/** A session that begins here: its epoch, and what another node had of it. */
export interface OpenedSession {
  readonly epoch: string;
  readonly former: Replica | null;
}

/** Text of other nodes' sessions that is kept here, UTF-16 code units: 10,000 sessions with 6,000 characters each. */
const MAX_REPLICA_CHARS = 64 * 1024 * 1024;
/** The other node writes one entry and opens the session. */
const HAND_OVER_MS = 2000;
const MOVED_RETRY_MS = 200;
const MOVED_SPREAD_MS = 800;
/** Sessions that are claimed at once: the store answers some thousand a second. */
const TAKEN_AT_ONCE = 64;

const NO_TRAFFIC: NodeFigures["relay"] = { messagesIn: 0, bytesIn: 0, messagesOut: 0, bytesOut: 0 };

/** Bytes under way to one node: a second of 300 listeners' mu-law with its events, generously. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** As long as a node that is known may be silent. */
const UNHEARD_MS = 3000;

export class Cluster {
  readonly #options: ClusterOptions;
  readonly #nodes: NodeRegistry;
  readonly #owners: SessionOwners;
  readonly #replicator: Replicator;
  readonly #replicas: Replicas;
  /** Given to this node by others, until they are opened. */
  readonly #received = new Map<string, Replica>();
  /** Sessions of nodes that are gone, on their way from here to a third one. */
  readonly #passedOn = new Map<string, Promise<void>>();
  /** Sessions that are about to be opened here. */
  #takingOver = 0;
  #takenOver = 0;
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
  /** Sessions whose place is being found, and for how many. */
  readonly #entering = new Map<string, number>();
  #relay: Pick<Relay<never, never>, "sizes" | "traffic" | "connect" | "nodeGone" | "close"> | null = null;

  private constructor(options: ClusterOptions, parts: ClusterParts) {
    this.#options = options;
    this.#nodes = parts.nodes;
    this.#owners = parts.owners;
    this.#replicator = parts.replicator;
    this.#replicas = parts.replicas;
    this.#tokens = new ClaimedTokens({ ...options, nodes: parts.nodes, wallMs: Date.now });
    this.#placement = new Placement({
      ...options,
      nodes: parts.nodes,
      sessions: () => options.sessions.count + this.#takingOver,
    });
    this.#standstill = new Standstill({ ...options, verify: () => parts.owners.verify() });
    this.#handles.push(parts.nodes.onChange((node) => this.#nodeChanged(node)));
    this.#chooseBuddy();
  }

  /** Rejects with node_name_taken, bus_lost, bus_refused. The bus is the caller's to close. */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const { bus, clock, log, nodeName: name, sessions } = options;
    let cluster: Cluster | null = null;
    const onReplaced = (): void => {
      log.error({ node: name }, "Another process has this node's name: no new sessions here");
      if (cluster !== null) cluster.#isReplaced = true;
    };
    const facts = { url: "", load: 0, isDraining: false, buddy: null };
    const load = (): number => (cluster === null ? 0 : cluster.#placement.load);
    const nodes = await NodeRegistry.join(bus, { name, facts, load, clock, log, onReplaced });
    const opened: { close(): void }[] = [];
    const open = async <Part extends { close(): void }>(opening: Promise<Part>): Promise<Part> => {
      const part = await opening;
      opened.push(part);
      return part;
    };
    try {
      const { incarnation } = nodes;
      const onLost = (sessionId: string): void => sessions.end(sessionId, movedAway());
      cluster = new Cluster(options, {
        nodes,
        owners: await open(SessionOwners.open({ bus, nodes, log, onLost })),
        replicator: await open(Replicator.open({ bus, incarnation, sessions: () => sessions, clock, log })),
        replicas: await open(Replicas.open({ bus, incarnation, maxChars: MAX_REPLICA_CHARS, log })),
      });
      return cluster;
    } catch (thrown) {
      for (const part of opened) part.close();
      await nodes.close();
      throw thrown;
    }
  }

  /** From now on clients that arrived at other nodes come to `host`. Rejects as the bus does. */
  async serve<Facts, Connection>(host: RelayHost<Facts, Connection>): Promise<void> {
    const { bus, slowBytes, maxConnections } = this.#options;
    const { incarnation } = this.#nodes;
    this.#handles.push(await bus.answer(handOverSubject(incarnation), (bytes) => this.#receive(bytes)));
    this.#relay = await Relay.open({
      bus,
      incarnation,
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

  /** How many sessions of other nodes have gone on here with their speech. */
  get takenOver(): number {
    return this.#takenOver;
  }

  /** Another node would go on with the sessions of this one. */
  get hasBuddy(): boolean {
    return this.#replicator.buddy !== null;
  }

  /** Told of all that another node would need to go on with a session. */
  get keeper(): Pick<Replicator, "changed" | "played" | "sent"> {
    return this.#replicator;
  }

  get busState(): BusState {
    return this.#options.bus.state;
  }

  get figures(): NodeFigures {
    const nodes = new Map<NodeState, number>();
    for (const { state } of this.nodes) nodes.set(state, (nodes.get(state) ?? 0) + 1);
    const { bus } = this.#options;
    return {
      ...(this.#relay?.sizes ?? { arrived: 0, hosted: 0 }),
      ...this.#owners.counts,
      owned: this.#owners.sizes.held,
      kept: this.#replicas.sizes,
      nodes,
      isBusUp: bus.state === "up",
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
   * released behind it. Gives what `enter` gives. Rejects with bus_lost, bus_timeout, both with a time after which it is worth
   * trying again, and with what `enter` throws.
   */
  async place<T>(sessionId: string, asking: PlaceAsking, enter: (place: SessionPlace) => T): Promise<T> {
    this.#entering.set(sessionId, (this.#entering.get(sessionId) ?? 0) + 1);
    try {
      return enter(await this.#placeOf(sessionId, asking));
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
    const former = this.#formerOf(sessionId);
    if (former !== null) this.#takenOver += 1;
    return { epoch, former };
  }

  #formerOf(sessionId: string): Replica | null {
    const received = this.#received.get(sessionId);
    if (received !== undefined) return received;
    return this.#isHeir(sessionId) ? (this.#replicas.take(sessionId) ?? null) : null;
  }

  #epochOf(sessionId: string): string {
    const epoch = this.#owners.heldEpoch(sessionId);
    if (epoch === undefined) throw movedAway();
    return nameOf(epoch);
  }

  /** A session has ended here. */
  ended(sessionId: string): void {
    this.#replicator.ended(sessionId);
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

  /**
   * Gives a session of this node to another one, which goes on with it; its clients are told to come back. Where there is no
   * other node, it ends.
   */
  async handOver(sessionId: string): Promise<void> {
    const { bus, log, sessions } = this.#options;
    const session = sessions.find(sessionId);
    const { buddy } = this.#replicator;
    if (session === undefined) return;
    if (buddy === null || bus.state !== "up") {
      sessions.end(sessionId, new GatewayError("draining", "Gateway is shutting down"));
      return;
    }
    const given = this.#replicator.wholeOf(session);
    const entry = this.#owners.letGo(sessionId);
    sessions.end(sessionId, movedAway());
    try {
      await this.#give(given, buddy);
    } catch (thrown) {
      log.warn(
        { err: thrown, session: sessionId },
        "Another node did not take a session: its speech is lost",
      );
      if (entry !== undefined) await bus.owners.release(entry).catch(() => false);
    }
  }

  async #give(given: SessionUpdate, to: string): Promise<void> {
    const { incarnation } = this.#nodes;
    await this.#options.bus.request(handOverSubject(to), encodeHandOver(incarnation, given), {
      timeoutMs: HAND_OVER_MS,
    });
  }

  /** Another node gives a session to this one. */
  async #receive(bytes: Uint8Array): Promise<Uint8Array> {
    const message = decodeReplica(bytes);
    const replica = message === undefined ? undefined : replicaOf(message);
    if (message === undefined || replica === undefined) {
      throw new GatewayError("bus_refused", "The session that is given can't be read: another version?");
    }
    await this.#owners.takeFrom(replica.id, message.from);
    try {
      this.#openWith(replica.id, replica);
    } catch (thrown) {
      this.#releaseUnopened(replica.id);
      throw thrown;
    }
    return new Uint8Array();
  }

  #openWith(sessionId: string, replica: Replica): void {
    this.#received.set(sessionId, replica);
    try {
      this.#options.sessions.open(sessionId);
    } finally {
      this.#received.delete(sessionId);
    }
  }

  /** Idempotent. The bus goes on. */
  async close(): Promise<void> {
    for (const handle of this.#handles) handle.close();
    this.#relay?.close(new GatewayError("draining", "Gateway is shutting down"));
    this.#replicator.close();
    this.#replicas.close();
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
    await this.#passedOn.get(sessionId);
    if (this.#isHeir(sessionId)) await this.#takeOver(sessionId);
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
    this.#releaseUnopened(sessionId);
  }

  #releaseUnopened(sessionId: string): void {
    if (!this.#options.sessions.has(sessionId)) this.#owners.release(sessionId);
  }

  #isAlive({ node, incarnation }: { readonly node: string; readonly incarnation: string }): boolean {
    const view = this.#nodes.find(node);
    return view?.incarnation === incarnation && isLiving(view);
  }

  #nodeChanged({ name, incarnation, state }: NodeView): void {
    const before = this.#incarnations.get(name);
    if (before !== undefined && before !== incarnation) this.#processGone(before);
    if (state === "gone" || state === "left") {
      this.#incarnations.delete(name);
      this.#processGone(incarnation);
    } else this.#incarnations.set(name, incarnation);
    this.#chooseBuddy();
  }

  #chooseBuddy(): void {
    const buddy = chooseBuddy(this.#nodes.incarnation, this.nodes, this.#replicator.buddy);
    this.#replicator.choose(buddy);
    this.#nodes.update({ buddy });
  }

  #processGone(incarnation: string): void {
    this.#relay?.nodeGone(incarnation);
    void this.#takeOverAll(incarnation);
  }

  /** Its owner is gone, and this node was told of it. */
  #isHeir(sessionId: string): boolean {
    const owner = this.#replicas.ownerOf(sessionId);
    return owner !== undefined && !isLiving(this.#nodes.findProcess(owner));
  }

  async #takeOverAll(incarnation: string): Promise<void> {
    const ids = this.#replicas.of(incarnation);
    if (ids.length > 0) {
      this.#options.log.warn({ sessions: ids.length }, "A node is gone: its sessions go on here");
    }
    for (let from = 0; from < ids.length; from += TAKEN_AT_ONCE) {
      await Promise.all(ids.slice(from, from + TAKEN_AT_ONCE).map((id) => this.#takeOverOrPassOn(id)));
    }
    this.#replicas.forget(incarnation);
  }

  /** Nobody has come for it yet: it goes on where a new session would be opened. One node need not carry what two did. */
  async #takeOverOrPassOn(sessionId: string): Promise<void> {
    const to = this.#entering.has(sessionId) ? null : this.#placement.choose(sessionId, { mayOpen: true });
    const replica = to === null ? undefined : this.#replicas.take(sessionId);
    if (to === null || replica === undefined) {
      this.#takingOver += 1;
      await this.#takeOver(sessionId);
      this.#takingOver -= 1;
      return;
    }
    const passing = this.#passOn(sessionId, replica, to);
    this.#passedOn.set(sessionId, passing);
    await passing;
    this.#passedOn.delete(sessionId);
  }

  /** It goes on here where the other node does not take it. */
  async #passOn(sessionId: string, replica: Replica, to: string): Promise<void> {
    const { log, sessions } = this.#options;
    try {
      const { isHere } = await this.#owners.claim(sessionId);
      if (!isHere || sessions.has(sessionId)) return;
      const entry = this.#owners.letGo(sessionId);
      try {
        await this.#give(toldWhole(sessionId, replica), to);
      } catch (thrown) {
        log.warn({ err: thrown, session: sessionId }, "Another node did not take a session: it goes on here");
        if (entry === undefined || !(await this.#owners.keep(sessionId, entry))) return;
        this.#openWith(sessionId, replica);
      }
    } catch (thrown) {
      this.#lose(sessionId, thrown);
    }
  }

  /** Where it can't go on here, whoever comes next opens it. */
  async #takeOver(sessionId: string): Promise<void> {
    try {
      const { isHere } = await this.#owners.claim(sessionId);
      if (isHere && !this.#options.sessions.has(sessionId)) this.#options.sessions.open(sessionId);
    } catch (thrown) {
      this.#lose(sessionId, thrown);
    }
  }

  #lose(sessionId: string, thrown: unknown): void {
    const message = "A session of a node that is gone was lost";
    this.#options.log.warn({ err: thrown, session: sessionId }, message);
    this.#releaseUnopened(sessionId);
  }
}

interface ClusterParts {
  readonly nodes: NodeRegistry;
  readonly owners: SessionOwners;
  readonly replicator: Replicator;
  readonly replicas: Replicas;
}

function handOverSubject(incarnation: string): string {
  return `hand-over.${incarnation}`;
}

function encodeHandOver(from: string, session: SessionUpdate): Uint8Array {
  return encodeReplica({ from, seq: 0, sessions: [session], ended: [], places: [], sent: [] });
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

/** It is retried by clients, which then find the session where it is. */
export function movedAway(): GatewayError {
  // Not all at once: a node that goes has thousands.
  const retryAfterMs = MOVED_RETRY_MS + Math.round(Math.random() * MOVED_SPREAD_MS);
  return new GatewayError("bus_lost", "Session is at another node: connect again", { retryAfterMs });
}
