/**
 * Sessions that change their node: what other nodes would need of this one's, and what this one goes on with of theirs when
 * they die or drain.
 */
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type { Bus, BusHandle } from "../bus/bus.ts";
import { isLiving, type NodeRegistry, type NodeView } from "../bus/node-registry.ts";
import { handedOver, shuttingDown } from "../come-back.ts";
import type { Placement } from "../placement.ts";
import type { SessionOwners } from "../session-owners.ts";
import { chooseBuddy } from "./buddy.ts";
import { decodeReplica, encodeReplica, type ReplicaMessage, type SessionUpdate } from "./replica-format.ts";
import { type Replica, Replicas, replicaOf, toldWhole } from "./replicas.ts";
import { type KeptSession, Replicator } from "./replicator.ts";

/** This node's sessions. */
export interface NodeSessions {
  /** Load balancers are to send nobody here any more. */
  leave(): void;
  [Symbol.iterator](): Iterator<KeptSession>;
  readonly count: number;
  has(sessionId: string): boolean;
  find(sessionId: string): KeptSession | undefined;
  /** Throws where there is no room for it. */
  open(sessionId: string): void;
  /** Another node owns it: it ends here. */
  end(sessionId: string, error: GatewayError): void;
}

export interface TakeoverOptions {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Logger;
  readonly sessions: NodeSessions;
  readonly nodes: NodeRegistry;
  readonly owners: SessionOwners;
  readonly placement: Placement;
  /** Somebody is here who asks for the session. */
  readonly isAwaited: (sessionId: string) => boolean;
}

/** Text of other nodes' sessions that is kept here, UTF-16 code units: 10,000 sessions with 6,000 characters each. */
const MAX_REPLICA_CHARS = 64 * 1024 * 1024;
/** The other node reads and writes an entry, each of which may take its store 2 s, and opens the session. */
const HAND_OVER_MS = 5000;
/** Sessions that are claimed at once: the store answers some thousand a second. */
const TAKEN_AT_ONCE = 64;

export class Takeover {
  readonly #options: TakeoverOptions;
  readonly #replicator: Replicator;
  readonly #replicas: Replicas;
  #handle: BusHandle | null = null;
  /** Given to this node by others, until they are opened. */
  readonly #received = new Map<string, Replica>();
  /** Sessions on their way from here to another node: this one's, and those of nodes that are gone. */
  readonly #passedOn = new Map<string, Promise<void>>();
  /** Processes whose sessions go on now: that they are gone may be said again meanwhile. */
  readonly #leaving = new Set<string>();
  #takenOver = 0;

  private constructor(options: TakeoverOptions, replicator: Replicator, replicas: Replicas) {
    this.#options = options;
    this.#replicator = replicator;
    this.#replicas = replicas;
  }

  /** Rejects as the bus does. */
  static async open(options: TakeoverOptions): Promise<Takeover> {
    const { incarnation } = options.nodes;
    const shared = { ...options, incarnation };
    const replicator = await Replicator.open({ ...shared, sessions: () => options.sessions });
    try {
      const replicas = await Replicas.open({ ...shared, maxChars: MAX_REPLICA_CHARS });
      return new Takeover(options, replicator, replicas);
    } catch (thrown) {
      replicator.close();
      throw thrown;
    }
  }

  /** From now on others may give their sessions to this node. Rejects as the bus does. */
  async serve(): Promise<void> {
    const { bus, nodes } = this.#options;
    this.#handle = await bus.answer(subjectOf(nodes.incarnation), (bytes) => this.#receive(bytes));
  }

  /** Another node would go on with the sessions of this one. */
  get hasBuddy(): boolean {
    return this.#replicator.buddy !== null;
  }

  /** Told of all that another node would need to go on with a session. */
  get keeper(): Pick<Replicator, "changed" | "connected" | "disconnected" | "passed" | "sending"> {
    return this.#replicator;
  }

  /** How many sessions of other nodes have gone on here with their speech. */
  get takenOver(): number {
    return this.#takenOver;
  }

  /** What is kept here of other nodes' sessions. */
  get kept(): Replicas["sizes"] {
    return this.#replicas.sizes;
  }

  /** The nodes have changed. */
  chooseBuddy(): void {
    const { nodes } = this.#options;
    const buddy = chooseBuddy(nodes.incarnation, nodes.nodes, this.#replicator.buddy);
    this.#replicator.choose(buddy);
    nodes.update({ buddy });
  }

  /** The node lives. Where it tells another one of its sessions now, what it told this one grows old. */
  heard({ incarnation, facts }: NodeView): void {
    if (facts.buddy !== this.#options.nodes.incarnation) this.#replicas.forget(incarnation);
  }

  /** A session is opened here: what another node had of it. */
  formerOf(sessionId: string): Replica | null {
    const former = this.#received.get(sessionId) ?? this.#inherited(sessionId);
    if (former !== null) this.#takenOver += 1;
    return former;
  }

  /** A session has ended here. */
  ended(sessionId: string): void {
    this.#replicator.ended(sessionId);
  }

  /**
   * Before somebody who asks for a session is told where it is: one of a node that is gone goes on first. One that is on its way
   * arrives first, since whoever opened it here would take it from the node that has its speech.
   */
  async settle(sessionId: string): Promise<void> {
    await this.#passedOn.get(sessionId);
    if (this.#isHeir(sessionId)) await this.#takeOver(sessionId);
  }

  /** Its sessions go on, here or where a new session would be opened. */
  async processGone(incarnation: string): Promise<void> {
    if (this.#leaving.has(incarnation)) return;
    this.#leaving.add(incarnation);
    try {
      await this.#goOnWithAllOf(incarnation);
    } finally {
      this.#leaving.delete(incarnation);
    }
  }

  async #goOnWithAllOf(incarnation: string): Promise<void> {
    const ids = this.#replicas.of(incarnation);
    if (ids.length > 0) {
      this.#options.log.warn({ sessions: ids.length }, "A node is gone: its sessions go on");
    }
    for (let from = 0; from < ids.length; from += TAKEN_AT_ONCE) {
      await Promise.all(ids.slice(from, from + TAKEN_AT_ONCE).map((id) => this.#goOnWith(id)));
    }
    this.#replicas.forget(incarnation);
  }

  /**
   * Gives a session of this node to its buddy, which goes on with it; its clients are told to come back. Where there is no
   * other node, it ends.
   */
  async handOver(sessionId: string): Promise<void> {
    const { bus, sessions } = this.#options;
    const session = sessions.find(sessionId);
    const { buddy } = this.#replicator;
    if (session === undefined) return;
    if (buddy === null || bus.state !== "up") {
      sessions.end(sessionId, shuttingDown());
      return;
    }
    this.#replicator.tellNow();
    await this.#onItsWay(sessionId, this.#giveAway(session, buddy));
  }

  /** Idempotent. */
  close(): void {
    this.#handle?.close();
    this.#replicator.close();
    this.#replicas.close();
  }

  #messageOf(session: SessionUpdate): Uint8Array {
    const { incarnation: from } = this.#options.nodes;
    return encodeReplica({ from, seq: 0, records: new Uint8Array(), sessions: [session], ended: [] });
  }

  /** It has ended here, and goes on with what the buddy was told of it. */
  #asTold(sessionId: string): Uint8Array {
    const { incarnation: from } = this.#options.nodes;
    return encodeReplica({ from, seq: 0, records: new Uint8Array(), sessions: [], ended: [sessionId] });
  }

  async #giveAway(session: KeptSession, buddy: string): Promise<void> {
    const { bus, log, owners, sessions } = this.#options;
    const { id } = session;
    const given = this.#messageOf(this.#replicator.wholeOf(session));
    const entry = owners.letGo(id);
    sessions.end(id, handedOver());
    try {
      const isTooLarge = given.length > bus.maxMessageBytes;
      await this.#give(isTooLarge ? this.#asTold(id) : given, buddy);
    } catch (thrown) {
      log.warn({ err: thrown, session: id }, "Another node did not take a session: its speech is lost");
      if (entry !== undefined) await bus.owners.release(entry).catch(() => false);
    }
  }

  async #give(message: Uint8Array, to: string): Promise<void> {
    await this.#options.bus.request(subjectOf(to), message, { timeoutMs: HAND_OVER_MS });
  }

  /** Another node gives a session to this one. */
  async #receive(bytes: Uint8Array): Promise<Uint8Array> {
    const message = decodeReplica(bytes);
    const replica = message === undefined ? undefined : (replicaOf(message) ?? this.#toldOf(message));
    if (message === undefined || replica === undefined) {
      throw new GatewayError("bus_refused", "The session that is given can't be read: another version?");
    }
    await this.#options.owners.takeFrom(replica.id, message.from);
    try {
      this.#openWith(replica.id, replica);
    } catch (thrown) {
      this.#releaseUnopened(replica.id);
      throw thrown;
    }
    return new Uint8Array();
  }

  #toldOf({ from, ended: [id] }: ReplicaMessage): (Replica & { readonly id: string }) | undefined {
    if (id === undefined || this.#replicas.ownerOf(id) !== from) return undefined;
    const replica = this.#replicas.take(id);
    return replica === undefined ? undefined : { id, ...replica };
  }

  #openWith(sessionId: string, replica: Replica): void {
    this.#received.set(sessionId, replica);
    try {
      this.#options.sessions.open(sessionId);
    } finally {
      this.#received.delete(sessionId);
    }
  }

  #inherited(sessionId: string): Replica | null {
    return this.#isHeir(sessionId) ? (this.#replicas.take(sessionId) ?? null) : null;
  }

  /** Its owner is gone, and this node was told of it. */
  #isHeir(sessionId: string): boolean {
    const owner = this.#replicas.ownerOf(sessionId);
    return owner !== undefined && !isLiving(this.#options.nodes.findProcess(owner));
  }

  /** Nobody has come for it yet, so it may go on anywhere: one node need not carry what two did. */
  async #goOnWith(sessionId: string): Promise<void> {
    const { isAwaited, placement } = this.#options;
    const to = isAwaited(sessionId) ? null : placement.choose(sessionId, { mayOpen: true });
    const replica = to === null ? undefined : this.#replicas.take(sessionId);
    if (to === null || replica === undefined) {
      placement.opening += 1;
      await this.#takeOver(sessionId);
      placement.opening -= 1;
      return;
    }
    await this.#onItsWay(sessionId, this.#passOn(sessionId, replica, to));
  }

  async #onItsWay(sessionId: string, passing: Promise<void>): Promise<void> {
    this.#passedOn.set(sessionId, passing);
    try {
      await passing;
    } finally {
      this.#passedOn.delete(sessionId);
    }
  }

  /** It goes on here where the other node does not take it. */
  async #passOn(sessionId: string, replica: Replica, to: string): Promise<void> {
    const { log, owners, sessions } = this.#options;
    try {
      const { isHere } = await owners.claim(sessionId);
      if (!isHere || sessions.has(sessionId)) return;
      const entry = owners.letGo(sessionId);
      try {
        await this.#give(this.#messageOf(toldWhole(sessionId, replica)), to);
      } catch (thrown) {
        log.warn({ err: thrown, session: sessionId }, "Another node did not take a session: it goes on here");
        if (entry !== undefined && (await owners.keep(sessionId, entry))) this.#openWith(sessionId, replica);
      }
    } catch (thrown) {
      this.#lose(sessionId, thrown);
    }
  }

  async #takeOver(sessionId: string): Promise<void> {
    const { owners, sessions } = this.#options;
    try {
      const { isHere } = await owners.claim(sessionId);
      if (isHere && !sessions.has(sessionId)) sessions.open(sessionId);
    } catch (thrown) {
      this.#lose(sessionId, thrown);
    }
  }

  /** Whoever comes next opens it, without its speech. */
  #lose(sessionId: string, thrown: unknown): void {
    const message = "A session of a node that is gone was lost";
    this.#options.log.warn({ err: thrown, session: sessionId }, message);
    this.#releaseUnopened(sessionId);
  }

  #releaseUnopened(sessionId: string): void {
    const { owners, sessions } = this.#options;
    if (!sessions.has(sessionId)) owners.release(sessionId);
  }
}

function subjectOf(incarnation: string): string {
  return `hand-over.${incarnation}`;
}
