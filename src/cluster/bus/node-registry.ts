/**
 * The nodes of a cluster as one of them sees them, and its own place among them. A node's name is a lease, renewed each
 * second. Whether a node lives is decided by its heartbeats: servers do not notice a process that hangs, and say nothing of a
 * lease that expires. The lease confirms it: who is gone is forgotten once its lease is free.
 */
import { randomUUID } from "node:crypto";
import { GatewayError, toGatewayError } from "../../errors.ts";
import { type Clock, systemClock, type Timer } from "../../kit/clock.ts";
import { type Logger, silentLog } from "../../kit/log.ts";
import type { Bus, BusHandle, Entry } from "./bus.ts";
import { callSafely } from "./callbacks.ts";
import {
  BUS_VERSION,
  decodeHeartbeat,
  encodeHeartbeat,
  HEARTBEATS,
  isNodeName,
  type NodeFacts,
} from "./heartbeat.ts";

/**
 * "suspect": no heartbeat for 1.5 s. "gone": none for 3 s, or for 0.7 s and nobody answers under its subject. "left": it went
 * in order, or is forgotten.
 */
export type NodeState = "alive" | "suspect" | "gone" | "left";

export interface NodeView {
  readonly name: string;
  readonly incarnation: string;
  readonly state: NodeState;
  /** The version of the bus that it speaks: where that is another one, it is seen, and nothing else is done with it. */
  readonly version: number;
  readonly facts: NodeFacts;
}

/** It has its sessions: nobody else may go on with them. */
export function isLiving(view: NodeView | undefined): boolean {
  return view?.state === "alive" || view?.state === "suspect";
}

export interface NodeOptions {
  /** 1 to 64 letters, digits, `_` and `-`; unlike every other node's. */
  readonly name: string;
  readonly facts: NodeFacts;
  /** As it is at each heartbeat; default: that of `facts`. */
  readonly load?: () => number;
  /** Another node holds the name now, as after a long partition: this one has to stop. */
  readonly onReplaced: () => void;
  readonly clock?: Clock;
  readonly log?: Logger;
}

const HEARTBEAT_MS = 500;
/** Silent for so long, it is asked whether it is there: a process that has died has no one that answers. */
const ASK_AFTER_MS = 700;
const SUSPECT_AFTER_MS = 1500;
const GONE_AFTER_MS = 3000;
const RENEW_MS = 1000;
/** How often the others are looked at. */
const LOOK_MS = 250;
/** Others are not heard beyond that. */
const MAX_NODES = 1000;
const JOIN_TRIES = 5;

const pingSubject = (incarnation: string): string => `node.ping.${incarnation}`;

interface Peer {
  view: NodeView;
  heardAtMs: number;
  /** When its lease is looked up. */
  forgetAtMs: number;
  /** It is being asked whether it is there. */
  isAsked?: boolean;
}

export class NodeRegistry {
  readonly name: string;
  readonly incarnation = randomUUID();
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onReplaced: () => void;
  readonly #peers = new Map<string, Peer>();
  /** Buddies of the latest processes that were forgotten: some of their sessions may not have gone on yet. */
  readonly #buddies = new Map<string, string | null>();
  readonly #listeners = new Set<{ listener: (node: NodeView) => void }>();
  readonly #handles: BusHandle[] = [];
  readonly #timers = new Map<string, Timer>();
  readonly #load: () => number;
  #facts: NodeFacts;
  #lease: Entry | undefined;
  /** The renewal under way: a store that hangs answers late, so there is one at a time. */
  #renewing: Promise<void> | null = null;
  #lookedAtMs: number;
  /** Since when the bus is up. */
  #upAtMs: number;
  #closing: Promise<void> | null = null;

  private constructor(bus: Bus, options: NodeOptions) {
    if (!isNodeName(options.name)) {
      throw new GatewayError("invalid_config", "The node's name is not 1 to 64 letters, digits, _ or -");
    }
    this.name = options.name;
    this.#bus = bus;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLog;
    this.#facts = options.facts;
    this.#load = options.load ?? (() => this.#facts.load);
    this.#onReplaced = options.onReplaced;
    this.#lookedAtMs = this.#clock.nowMs();
    this.#upAtMs = this.#lookedAtMs;
  }

  /** Rejects with `node_name_taken` where a living node has the name, and as the bus does. */
  static async join(bus: Bus, options: NodeOptions): Promise<NodeRegistry> {
    const registry = new NodeRegistry(bus, options);
    try {
      await registry.#join();
    } catch (error) {
      await registry.close();
      throw error;
    }
    return registry;
  }

  /** All nodes that were heard and are not forgotten, this one among them once it has heard itself. */
  get nodes(): readonly NodeView[] {
    return [...this.#peers.values()].map(({ view }) => view);
  }

  find(name: string): NodeView | undefined {
    return this.#peers.get(name)?.view;
  }

  /** The process as it was heard last. */
  findProcess(incarnation: string): NodeView | undefined {
    for (const { view } of this.#peers.values()) if (view.incarnation === incarnation) return view;
    return undefined;
  }

  /** Who goes on with the process's sessions where that has died; undefined: nobody that is known. */
  heirOf(incarnation: string): NodeView | undefined {
    const buddy = this.findProcess(incarnation)?.facts.buddy ?? this.#buddies.get(incarnation) ?? null;
    return buddy === null ? undefined : this.findProcess(buddy);
  }

  /** Called when a node's state, URL or buddy changes, when it begins to drain, or when another process has its name. */
  onChange(listener: (node: NodeView) => void): BusHandle {
    const added = { listener };
    this.#listeners.add(added);
    return { close: () => this.#listeners.delete(added) };
  }

  /** The others know within half a second; of all but the load at once. */
  update(facts: Partial<NodeFacts>): void {
    const before = this.#facts;
    this.#facts = { ...before, ...facts };
    if (!isSameCourse(before, this.#facts)) this.#sendHeartbeat(false);
  }

  /** Says good-bye and gives the name back; the bus goes on. Any number of times. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #join(): Promise<void> {
    // Whoever finds our lease asks here whether we live: so this comes first.
    this.#handles.push(await this.#bus.answer(pingSubject(this.incarnation), () => new Uint8Array()));
    this.#lease = await this.#takeName();
    this.#handles.push(
      await this.#bus.subscribe(HEARTBEATS, (bytes) => this.#heard(bytes)),
      this.#bus.onState((state) => {
        if (state === "up") this.#hearAgain();
      }),
      this.#bus.onClose(() => this.close()),
    );
    this.#lookedAtMs = this.#clock.nowMs();
    this.#every(LOOK_MS, "look", () => this.#look());
    this.#every(RENEW_MS, "renew", () => this.#renewNow());
    this.#sendHeartbeat(false);
    this.#every(HEARTBEAT_MS, "heartbeat", () => this.#sendHeartbeat(false));
  }

  async #takeName(): Promise<Entry> {
    const value = new TextEncoder().encode(this.incarnation);
    for (let tries = 0; tries < JOIN_TRIES; tries += 1) {
      const { isOurs, entry } = await this.#bus.leases.claim(this.name, value);
      if (isOurs || this.#isMine(entry)) return entry;
      if (await this.#lives(entry)) break;
      const taken = await this.#bus.leases.takeOver(entry, value);
      if (taken !== undefined) return taken;
    }
    throw new GatewayError(
      "node_name_taken",
      `Node ${this.name}: another living node has this name, choose one for each (node-name)`,
    );
  }

  /** Who has ended does not answer; who hangs does not for as long as makes it gone. */
  async #lives(holder: Entry): Promise<boolean> {
    const incarnation = new TextDecoder().decode(holder.value);
    if (!isNodeName(incarnation)) return false;
    try {
      await this.#bus.request(pingSubject(incarnation), new Uint8Array(), { timeoutMs: GONE_AFTER_MS });
      return true;
    } catch (error) {
      const { code } = toGatewayError(error);
      if (code === "bus_no_answer" || code === "bus_timeout") return false;
      throw error;
    }
  }

  #isMine(entry: Entry): boolean {
    return new TextDecoder().decode(entry.value) === this.incarnation;
  }

  #renewNow(): void {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
  }

  async #renew(): Promise<void> {
    if (this.#lease === undefined) return;
    try {
      const renewed = await this.#bus.leases.renew(this.#lease, this.#lease.value);
      this.#lease = renewed ?? (await this.#claimAgain(this.#lease));
    } catch (error) {
      this.#log.debug({ err: error, node: this.name }, "The node's lease was not renewed: tried again");
    }
  }

  /** The lease has expired, was lost with the store, or was written by a call whose answer never came. */
  async #claimAgain(lease: Entry): Promise<Entry | undefined> {
    const { isOurs, entry } = await this.#bus.leases.claim(this.name, lease.value);
    if (isOurs || this.#isMine(entry)) return entry;
    if (this.#closing !== null) return undefined;
    this.#log.error({ node: this.name }, "Another node has this node's name now: this one stops");
    // Nothing is left to give back, and the name's good-bye is not ours to say.
    this.#lease = undefined;
    callSafely(this.#log, "replaced", this.#onReplaced);
    void this.close();
    return undefined;
  }

  #sendHeartbeat(isLeaving: boolean): void {
    const { name, incarnation } = this;
    const facts = { ...this.#facts, load: this.#load() };
    try {
      this.#bus.publish(HEARTBEATS, encodeHeartbeat({ name, incarnation, facts, isLeaving }));
    } catch (error) {
      this.#log.debug({ err: error, node: name }, "No heartbeat was sent");
    }
  }

  #heard(bytes: Uint8Array): void {
    const heartbeat = decodeHeartbeat(bytes);
    if (heartbeat === undefined) return;
    const { version, name, incarnation, facts, isLeaving } = heartbeat;
    if (name === this.name && incarnation !== this.incarnation) {
      // The lease says which of the two has the name. Believed, each would go on with the other's sessions in turns.
      this.#renewNow();
      return;
    }
    const known = this.#peers.get(name);
    if (isLeaving) {
      // Sessions of a node that was not heard before are found, too: their entries are read where they are needed.
      if (known === undefined) this.#changed({ version, name, incarnation, facts, state: "left" });
      else if (known.view.incarnation === incarnation) this.#forget(known);
      return;
    }
    if (known === undefined && this.#peers.size >= MAX_NODES) return;
    const heardAtMs = this.#clock.nowMs();
    const view: NodeView = { version, name, incarnation, facts, state: "alive" };
    if (version !== BUS_VERSION && known?.view.incarnation !== incarnation) this.#warnOfVersion(view);
    if (known !== undefined && known.view.incarnation !== incarnation) this.#noteBuddy(known.view);
    this.#peers.set(name, { view, heardAtMs, forgetAtMs: heardAtMs + this.#bus.leaseMs });
    const isSame = known?.view.state === "alive" && known.view.incarnation === incarnation;
    if (!isSame || !isSameCourse(known.view.facts, facts)) this.#changed(view);
    // Who has just come learns of this node now, and not at its next heartbeat: an end before that would go unnoticed. Of two
    // processes with one name it is said once, or their heartbeats would answer one another for ever.
    if (known === undefined && incarnation !== this.incarnation) this.#sendHeartbeat(false);
  }

  /** Once for each process. */
  #warnOfVersion({ name, version }: NodeView): void {
    const facts = { node: name, version, own: BUS_VERSION };
    this.#log.warn(
      facts,
      "A node speaks another version of the bus: its sessions can't be reached from here",
    );
  }

  /** Nobody was heard while the bus was lost: that is no fault of theirs. */
  #hearAgain(): void {
    this.#upAtMs = this.#clock.nowMs();
    this.#forgive(Number.POSITIVE_INFINITY);
    this.#sendHeartbeat(false);
  }

  #look(): void {
    const nowMs = this.#clock.nowMs();
    // This process itself stood still: what the others sent meanwhile has not been read yet.
    const stoodMs = nowMs - this.#lookedAtMs - LOOK_MS;
    this.#lookedAtMs = nowMs;
    if (stoodMs > LOOK_MS) this.#forgive(stoodMs);
    if (this.#bus.state !== "up") return;
    for (const peer of this.#peers.values()) {
      const silentMs = nowMs - peer.heardAtMs;
      // Known to have died: it stays gone until it is heard again.
      if (peer.view.state === "gone" && silentMs < GONE_AFTER_MS) continue;
      // Behind a loss of the bus others may come back to it later than this node.
      if (silentMs >= ASK_AFTER_MS && nowMs - this.#upAtMs >= GONE_AFTER_MS) void this.#ask(peer);
      const state = silentMs >= GONE_AFTER_MS ? "gone" : silentMs >= SUSPECT_AFTER_MS ? "suspect" : "alive";
      if (state !== peer.view.state) {
        peer.view = { ...peer.view, state };
        this.#changed(peer.view);
      }
      if (state === "gone" && nowMs >= peer.forgetAtMs) void this.#confirm(peer, nowMs);
    }
  }

  /** Who hangs does not answer in time, and is gone when it was silent for long enough. */
  async #ask(peer: Peer): Promise<void> {
    const asked = peer.view;
    if (peer.isAsked === true || asked.state === "gone") return;
    peer.isAsked = true;
    const subject = pingSubject(asked.incarnation);
    try {
      await this.#bus.request(subject, new Uint8Array(), { timeoutMs: GONE_AFTER_MS });
    } catch (thrown) {
      const isSilent = this.#clock.nowMs() - peer.heardAtMs >= ASK_AFTER_MS;
      const isDead = toGatewayError(thrown).code === "bus_no_answer" && isSilent;
      if (isDead && this.#peers.get(asked.name) === peer) this.#died(peer);
    } finally {
      peer.isAsked = false;
    }
  }

  #died(peer: Peer): void {
    if (peer.view.state === "gone") return;
    peer.view = { ...peer.view, state: "gone" };
    this.#changed(peer.view);
  }

  #forgive(ms: number): void {
    const nowMs = this.#clock.nowMs();
    for (const peer of this.#peers.values()) peer.heardAtMs = Math.min(nowMs, peer.heardAtMs + ms);
  }

  /** A node whose heartbeats do not come and whose lease is renewed is cut off from here alone: it stays gone. */
  async #confirm(peer: Peer, nowMs: number): Promise<void> {
    peer.forgetAtMs = nowMs + this.#bus.leaseMs;
    try {
      const lease = await this.#bus.leases.find(peer.view.name);
      if (lease === undefined && peer.view.state === "gone") this.#forget(peer);
    } catch (error) {
      this.#log.debug(
        { err: error, node: peer.view.name },
        "The lease of a node that is gone could not be read",
      );
    }
  }

  #forget(peer: Peer): void {
    if (this.#peers.get(peer.view.name) !== peer) return;
    this.#peers.delete(peer.view.name);
    this.#noteBuddy(peer.view);
    this.#changed({ ...peer.view, state: "left" });
  }

  #noteBuddy({ incarnation, facts }: NodeView): void {
    this.#buddies.set(incarnation, facts.buddy);
    for (const oldest of this.#buddies.keys()) {
      if (this.#buddies.size <= MAX_NODES) break;
      this.#buddies.delete(oldest);
    }
  }

  #changed(node: NodeView): void {
    for (const { listener } of [...this.#listeners]) callSafely(this.#log, "nodes", () => listener(node));
  }

  /** From one origin, so that late timers do not add up. */
  #every(periodMs: number, name: string, act: () => void, dueMs = this.#clock.nowMs() + periodMs): void {
    const timer = this.#clock.at(dueMs, () => {
      // Slots that were missed are left out.
      this.#every(periodMs, name, act, Math.max(dueMs + periodMs, this.#clock.nowMs()));
      act();
    });
    this.#timers.set(name, timer);
  }

  async #close(): Promise<void> {
    for (const timer of this.#timers.values()) timer.cancel();
    for (const handle of this.#handles) handle.close();
    if (this.#lease === undefined) return;
    this.#sendHeartbeat(true);
    await this.#renewing;
    try {
      // Another may have the name by now.
      const lease: Entry | undefined = this.#lease;
      if (lease !== undefined) await this.#bus.leases.release(lease);
    } catch (error) {
      // It expires by itself.
      this.#log.debug({ err: error, node: this.name }, "The node's lease was not given back");
    }
  }
}

/** What others act on at once. */
function isSameCourse(one: NodeFacts, other: NodeFacts): boolean {
  return one.isDraining === other.isDraining && one.buddy === other.buddy && one.url === other.url;
}
