/** What crosses the bus in a second, by kind. */
import { ROUND_MS } from "../../../src/cluster/takeover/replicator.ts";
import type { Random } from "../random.ts";
import type { Parameters } from "./parameters.ts";
import { type RegistryTimes, type RelaySizes, relaySizes, replicaSizes } from "./real-cluster.ts";

/** 20 ms of mu-law. */
export const FRAME_BYTES = 160;
const FRAME_MS = 20;
export const FRAMES_PER_SECOND = 1000 / FRAME_MS;
/** A session with the default lead of 300 ms sends every 100 ms (src/session/playback/playback-clock.ts). */
const BATCH_MS = 100;
export const BATCHES_PER_SECOND = 1000 / BATCH_MS;
/** Sessions wake in slots (src/delivery/pacer.ts): what they send in one slot leaves in one message for each node. */
const SLOT_MS = 4;
const SLOTS = BATCH_MS / SLOT_MS;
/** A node says what it has read when it was an eighth of the window (src/cluster/relay/relay-link.ts, src/cluster/cluster.ts). */
const READ_REPORT_BYTES = (4 * 1024 * 1024) / 8;
/** Nodes that the balancer looks at for a client whose own is full. */
const MAX_CHOICES = 100;
/** A record of 8 bytes in a message of its own. */
const READ_REPORT_RECORD_BYTES = 13;

/**
 * Counted at nats-server 2.9 with one and with three nodes (test/cluster/nats-traffic.test.ts): messages and bytes that the
 * server reads, that it answers, and that it passes on to each node, which all watch who owns what.
 */
export const OWNER_WRITES = {
  claim: { read: 1, readBytes: 106, answered: 1, answeredBytes: 42, eachNode: 1, eachNodeBytes: 106 },
  release: { read: 3, readBytes: 184, answered: 3, answeredBytes: 483, eachNode: 1, eachNodeBytes: 72 },
  /** A node's own, once a second. */
  renew: { read: 2, readBytes: 146, answered: 2, answeredBytes: 357, eachNode: 0, eachNodeBytes: 0 },
} as const;

export interface Traffic {
  readonly kind: string;
  /** A second, as nats-server reads and sends them. */
  readonly published: number;
  readonly delivered: number;
  readonly publishedBytes: number;
  readonly deliveredBytes: number;
}

/** Where sessions and listeners are, and what that costs. */
export interface Topology {
  /** Listeners at their session's node. */
  readonly near: number;
  /** Listeners elsewhere. */
  readonly far: number;
  /** Pairs of a session and another node with a listener of it. */
  readonly farCopies: number;
  /** CPU of each node for sound, in cores. */
  readonly cores: Float64Array;
  /** What is relayed in 100 ms. */
  readonly batchBytes: number;
  readonly batchMessages: number;
}

/** Sizes of a batch with the events that go with it. */
export function sizesOf(parameters: Parameters): RelaySizes {
  return relaySizes(FRAME_BYTES, BATCH_MS / FRAME_MS, parameters.eventBytes);
}

/**
 * Each session is opened where its first client arrives. The balancer brings others there, unless the node is full for it;
 * who comes another way arrives at a random node. Then every session that speaks sends one batch.
 */
export function layOut(
  parameters: Parameters,
  listeners: Int32Array,
  sizes: RelaySizes,
  random: Random,
): Topology {
  const { nodes, speaking, affinity, calls } = parameters;
  const owners = Int32Array.from(listeners, () => random.below(nodes));
  const balancer = new Balancer(parameters, listeners, owners, random);
  /** Slots in which a node has something for another, as bits. */
  const slots = new Int32Array(nodes * nodes);
  const cores = new Float64Array(nodes);
  const farAt = new Int32Array(nodes);
  const eventShare = (parameters.eventsPerSecond * BATCH_MS) / 1000;
  const batchRecord = sizes.batch + eventShare * sizes.event;
  const us = (microseconds: number): number => (microseconds * FRAMES_PER_SECOND) / 1e6;
  let [near, far, farCopies, batchBytes] = [0, 0, 0, 0];
  for (let session = 0; session < listeners.length; session += 1) {
    const owner = owners[session] ?? 0;
    const isSpeaking = random.chance(speaking);
    const isCall = random.chance(calls);
    const slot = 1 << random.below(SLOTS);
    const farNodes: number[] = [];
    let overflowNode = random.below(nodes);
    // The first one has opened the session where it arrived.
    let here = 1;
    for (let other = 1; other < (listeners[session] ?? 0); other += 1) {
      const isBrought = random.chance(affinity);
      const node = isBrought ? balancer.choose(owner, overflowNode) : random.below(nodes);
      if (isBrought && node !== owner) overflowNode = node;
      if (node === owner) here += 1;
      else {
        if (farAt[node] === 0) farNodes.push(node);
        farAt[node] = (farAt[node] ?? 0) + 1;
      }
    }
    near += here;
    farCopies += farNodes.length;
    if (isSpeaking) {
      const call = isCall ? parameters.callFrameUs : 0;
      add(cores, owner, us(parameters.sessionFrameUs + call + (here - 1) * parameters.listenerFrameUs));
    }
    for (const node of farNodes) {
      const count = farAt[node] ?? 0;
      farAt[node] = 0;
      far += count;
      if (!isSpeaking) continue;
      const link = owner * nodes + node;
      slots[link] = (slots[link] ?? 0) | slot;
      batchBytes += batchRecord + (count - 1) * sizes.again;
      // Measured for both nodes together: half of what is beyond a near listener's is the owner's.
      const { listenerFrameUs, farMoreUs, farNextFactor } = parameters;
      const beyond = us(farMoreUs + listenerFrameUs * (count - 1) * (farNextFactor - 1));
      add(cores, owner, beyond / 2);
      add(cores, node, us(listenerFrameUs * count) + beyond / 2);
    }
  }
  let batchMessages = 0;
  for (const bits of slots) batchMessages += bitsIn(bits);
  batchBytes += batchMessages * sizes.head;
  return { near, far, farCopies, cores, batchBytes, batchMessages };
}

/**
 * A balancer that hashes sessions, with a bound for each node. It brings what is beyond that to another node, the same one for
 * a session until that is full, too.
 */
class Balancer {
  /** Clients that it has brought to each node, or will bring to it as their first choice. */
  readonly #brought: Float64Array;
  readonly #most: number;
  /** The share of a node's own that is more than the bound. */
  readonly #overflow: Float64Array;
  readonly #random: Random;

  constructor(parameters: Parameters, listeners: Int32Array, owners: Int32Array, random: Random) {
    const { nodes, affinity, balanceFactor } = parameters;
    const wanted = new Float64Array(nodes);
    for (const [session, owner] of owners.entries()) {
      add(wanted, owner, 1 + affinity * ((listeners[session] ?? 1) - 1));
    }
    const most = (balanceFactor * wanted.reduce((sum, count) => sum + count, 0)) / nodes;
    this.#most = most;
    this.#overflow = wanted.map((count) => Math.max(0, 1 - most / count));
    this.#brought = wanted.map((count) => Math.min(most, count));
    this.#random = random;
  }

  /** `other`: where the session's last client that was too much went. */
  choose(owner: number, other: number): number {
    if (!this.#random.chance(this.#overflow[owner] ?? 0)) return owner;
    let node = other;
    for (let tries = 0; tries < MAX_CHOICES && (this.#brought[node] ?? 0) >= this.#most; tries += 1) {
      node = this.#random.below(this.#brought.length);
    }
    add(this.#brought, node, 1);
    return node;
  }
}

function add(values: Float64Array, at: number, more: number): void {
  values[at] = (values[at] ?? 0) + more;
}

function bitsIn(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count += 1;
  return count;
}

export interface BusInput {
  readonly parameters: Parameters;
  readonly topology: Topology;
  readonly sizes: RelaySizes;
  readonly registry: RegistryTimes;
}

export function busTraffic({ parameters, topology, sizes, registry }: BusInput): readonly Traffic[] {
  const { nodes, natsHeadBytes } = parameters;
  /** Each message to one node. */
  const single = (kind: string, messages: number, bytes: number): Traffic => {
    const withHeads = bytes + messages * natsHeadBytes;
    return {
      kind,
      published: messages,
      delivered: messages,
      publishedBytes: withHeads,
      deliveredBytes: withHeads,
    };
  };
  const relayedBytes = topology.batchBytes * BATCHES_PER_SECOND;
  const reports = relayedBytes / READ_REPORT_BYTES;
  const goesPerSecond = topology.far / parameters.sessionSeconds;
  const heartbeats = (nodes * 1000) / registry.heartbeatMs;
  const sessionsPerSecond = parameters.sessions / parameters.sessionSeconds;
  return [
    single("relayed sound and events", topology.batchMessages * BATCHES_PER_SECOND, relayedBytes),
    single("relay: how far it was read", reports, reports * (sizes.head + READ_REPORT_RECORD_BYTES)),
    // Each comes, has its hello and goes: three messages.
    single("far clients that come and go", 3 * goesPerSecond, goesPerSecond * (sizes.visit + 3 * sizes.head)),
    toAll("heartbeats", heartbeats, registry.heartbeatBytes + natsHeadBytes, nodes),
    stored("leases of nodes", OWNER_WRITES.renew, nodes, parameters),
    stored("owner entries, written", OWNER_WRITES.claim, sessionsPerSecond, parameters),
    stored("owner entries, released", OWNER_WRITES.release, sessionsPerSecond, parameters),
    single("words and texts for buddies", ...wordsFor(parameters)),
    single("who is there, for buddies", ...connectionsFor(parameters)),
  ];
}

function toAll(kind: string, messages: number, bytes: number, nodes: number): Traffic {
  return {
    kind,
    published: messages,
    delivered: messages * nodes,
    publishedBytes: messages * bytes,
    deliveredBytes: messages * bytes * nodes,
  };
}

function stored(
  kind: string,
  write: (typeof OWNER_WRITES)[keyof typeof OWNER_WRITES],
  perSecond: number,
  { nodes, natsHeadBytes }: Parameters,
): Traffic {
  const delivered = write.answered + write.eachNode * nodes;
  const deliveredBytes = write.answeredBytes + write.eachNodeBytes * nodes;
  return {
    kind,
    published: perSecond * write.read,
    delivered: perSecond * delivered,
    publishedBytes: perSecond * (write.readBytes + write.read * natsHeadBytes),
    deliveredBytes: perSecond * (deliveredBytes + delivered * natsHeadBytes),
  };
}

/** Messages and bytes a second. A node tells its one buddy in rounds: what comes within one is one message. */
function wordsFor({ nodes, sessions, speaking, tellsPerSecond, tellBytes }: Parameters): [number, number] {
  const tells = (sessions * speaking * tellsPerSecond) / nodes;
  if (tells === 0) return [0, 0];
  // A round begins in the first slot that has something to tell.
  const slotsWaited = 1 / -Math.expm1((-tells * SLOT_MS) / 1000) - 1;
  const messages = 1000 / (ROUND_MS + SLOT_MS * slotsWaited);
  return [nodes * messages, nodes * (messages * replicaSizes().head + tells * tellBytes)];
}

/** Whenever a client comes or goes, the buddy is told; who goes is named alone. */
function connectionsFor({ listeners, sessionSeconds }: Parameters): [number, number] {
  const { head, session, connection, token } = replicaSizes();
  const perSecond = listeners / sessionSeconds;
  return [2 * perSecond, perSecond * (2 * (head + session) + connection + token)];
}

export function totalOf(traffic: readonly Traffic[]): Traffic {
  const sum = (read: (one: Traffic) => number): number =>
    traffic.reduce((total, one) => total + read(one), 0);
  return {
    kind: "together",
    published: sum((one) => one.published),
    delivered: sum((one) => one.delivered),
    publishedBytes: sum((one) => one.publishedBytes),
    deliveredBytes: sum((one) => one.deliveredBytes),
  };
}
