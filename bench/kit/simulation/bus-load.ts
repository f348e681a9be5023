/** What crosses the bus in a second, by kind. */
import type { Random } from "../random.ts";
import type { Parameters } from "./parameters.ts";
import { type RegistryTimes, type RelaySizes, relaySizes } from "./real-cluster.ts";

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
  /** The node of each session. */
  readonly owners: Int32Array;
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
 * Each listener arrives at a random node, and goes on to its session's if it follows redirects; then every session that speaks
 * sends one batch.
 */
export function layOut(
  parameters: Parameters,
  listeners: Int32Array,
  sizes: RelaySizes,
  random: Random,
): Topology {
  const { nodes, speaking, follow, followMost, calls } = parameters;
  const owners = Int32Array.from(listeners, () => random.below(nodes));
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
    // The first one has opened the session where it arrived.
    let here = 1;
    for (let other = 1; other < (listeners[session] ?? 0); other += 1) {
      const node = here <= followMost && random.chance(follow) ? owner : random.below(nodes);
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
      // The bound is for both nodes together: half of what is beyond a near listener's is the owner's.
      const { listenerFrameUs, farFactor, farNextFactor } = parameters;
      const beyond = us(listenerFrameUs * (farFactor - 1 + (count - 1) * (farNextFactor - 1)));
      add(cores, owner, beyond / 2);
      add(cores, node, us(listenerFrameUs * count) + beyond / 2);
    }
  }
  let batchMessages = 0;
  for (const bits of slots) batchMessages += bitsIn(bits);
  batchBytes += batchMessages * sizes.head;
  return { owners, near, far, farCopies, cores, batchBytes, batchMessages };
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

export function busTraffic(input: BusInput, random: Random): readonly Traffic[] {
  const { parameters, topology, sizes, registry } = input;
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
    replicas(input, random),
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

/** A node has one buddy, and tells it in one message of all its sessions that send in the same slot. */
function replicas({ parameters, topology, sizes }: BusInput, random: Random): Traffic {
  const { speaking, replicaBytes, natsHeadBytes } = parameters;
  const slots = new Set<number>();
  let positions = 0;
  for (const owner of topology.owners) {
    if (!random.chance(speaking)) continue;
    slots.add(owner * SLOTS + random.below(SLOTS));
    positions += 1;
  }
  const bytes = BATCHES_PER_SECOND * (positions * replicaBytes + slots.size * (sizes.head + natsHeadBytes));
  const messages = BATCHES_PER_SECOND * slots.size;
  return {
    kind: "positions for buddy nodes",
    published: messages,
    delivered: messages,
    publishedBytes: bytes,
    deliveredBytes: bytes,
  };
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
