/** What the simulation asks the cluster's own code: sizes of its messages, and how soon a node that is lost is noticed. */
import { MemoryHub } from "../../../src/cluster/bus/memory-bus.ts";
import { NodeRegistry } from "../../../src/cluster/bus/node-registry.ts";
import type { RelayWriter } from "../../../src/cluster/relay/relay-format.ts";
import { RelayLink } from "../../../src/cluster/relay/relay-link.ts";
import { encodeReplica } from "../../../src/cluster/takeover/replica-format.ts";
import type { Delivery } from "../../../src/delivery/listener.ts";
import { FakeClock } from "../../../test/helpers/fake-clock.ts";

/** Bytes on the bus. */
export interface RelaySizes {
  /** Of a message, beside its records. */
  readonly head: number;
  /** A batch of frames to one connection. */
  readonly batch: number;
  /** An event that goes with it. */
  readonly event: number;
  /** The same batch to one more connection at that node. */
  readonly again: number;
  /** A client that comes, has its `hello` and goes. */
  readonly visit: number;
}

const INCARNATION = "00000000-0000-4000-8000-000000000000";

/** What a client's node tells its owner of it, about as long as it is, and a `hello` of the length that was counted. */
const FACTS = { path: "/live/".padEnd(200, "x") };
const HELLO = "x".repeat(851);

/** Writes into the relay's own link and counts what it publishes. */
export function relaySizes(frameBytes: number, frames: number, eventBytes: number): RelaySizes {
  let published = 0;
  const link = new RelayLink({
    from: INCARNATION,
    publish: (bytes) => {
      published = bytes.length;
    },
    maxMessageBytes: 1024 * 1024,
    windowBytes: Number.MAX_SAFE_INTEGER,
    onRecord: () => undefined,
    onRoom: () => undefined,
    onLost: (error) => {
      throw error;
    },
  });
  const sizeOf = (...records: ((to: RelayLink) => void)[]): number => {
    for (const write of records) write(link);
    link.flush();
    return published;
  };
  const batch: readonly Delivery[] = Array.from({ length: frames }, () => new Uint8Array(frameBytes));
  const other: readonly Delivery[] = [...batch];
  const withEvent: readonly Delivery[] = [...batch, new Uint8Array(eventBytes)];
  const one = sizeOf((to) => to.deliver(1, batch, "utf16"));
  const two = sizeOf(
    (to) => to.deliver(1, batch, "utf16"),
    (to) => to.deliver(2, other, "utf16"),
  );
  const again = sizeOf(
    (to) => to.deliver(1, batch, "utf16"),
    (to) => to.deliver(2, batch, "utf16"),
  );
  const record = two - one;
  const write = (act: (writer: RelayWriter) => void): number =>
    sizeOf((to) => to.write(act)) - (one - record);
  const sizes = {
    head: one - record,
    batch: record,
    event: sizeOf((to) => to.deliver(1, withEvent, "utf16")) - one,
    again: again - one,
    visit:
      write((writer) => writer.open(1, FACTS)) +
      write((writer) => writer.text(1, HELLO)) +
      write((writer) => writer.closed(1, 1000)),
  };
  link.close();
  return sizes;
}

/** Bytes of what a node tells its buddy. */
export interface ReplicaSizes {
  readonly head: number;
  /** A session in which nothing is spoken, without its connections. */
  readonly session: number;
  readonly connection: number;
  /** Of a connection that has gone. */
  readonly token: number;
}

export function replicaSizes(): ReplicaSizes {
  const sizeOf = (connections: number | null, gone = 0): number => {
    const connection = { token: INCARNATION, listenerId: "l100", holder: "", openIds: [], currentId: null };
    const session = {
      id: "session-00000000",
      number: 100,
      epoch: "c0000000000",
      sentMs: 100_000,
      utterances: [],
      connections: Array.from({ length: connections ?? 0 }, () => connection),
      disconnected: Array.from({ length: gone }, () => connection.token),
    };
    const sessions = connections === null ? [] : [session];
    const parts = { from: INCARNATION, seq: 100_000, records: new Uint8Array(), sessions, ended: [] };
    return encodeReplica(parts).length;
  };
  const [head, empty] = [sizeOf(null), sizeOf(0)];
  const [connection, token] = [sizeOf(1) - empty, sizeOf(0, 1) - empty];
  return { head, session: empty - head, connection, token };
}

export interface RegistryTimes {
  readonly heartbeatMs: number;
  readonly heartbeatBytes: number;
  /** From a node's last heartbeat until every other one takes it for gone: of one that hangs, and of one that has died. */
  readonly goneMs: number;
  readonly diedMs: number;
}

const WATCHED_MS = 10_000;
const STEP_MS = 10;

/** Two nodes in one process on a clock that is turned by hand; one hangs, and later it dies. */
export async function registryTimes(): Promise<RegistryTimes> {
  const clock = new FakeClock();
  const hub = new MemoryHub({ clock });
  const join = async (name: string) => {
    const bus = hub.open();
    const facts = {
      url: `wss://${name}.voice.example.com`,
      load: 0.123,
      isDraining: false,
      buddy: null,
      machine: "",
    };
    const registry = await NodeRegistry.join(bus, {
      name,
      facts,
      onReplaced: () => undefined,
      clock: bus.clock,
    });
    return { bus, registry };
  };
  const [watcher, watched] = [await join("gateway-000"), await join("gateway-001")];
  let heartbeats = 0;
  let heartbeatBytes = 0;
  const counting = await watcher.bus.subscribe("node.heartbeat", (bytes) => {
    heartbeats += 1;
    heartbeatBytes += bytes.length;
  });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      clock.advance(STEP_MS);
      // The bus delivers in microtasks, the tables answer in some more.
      for (let turn = 0; turn < 20; turn += 1) await null;
    }
  };
  await pass(WATCHED_MS);
  counting.close();
  const untilGone = async (): Promise<number> => {
    let passedMs = 0;
    while (watcher.registry.find("gateway-001")?.state !== "gone" && passedMs < WATCHED_MS) {
      await pass(STEP_MS);
      passedMs += STEP_MS;
    }
    return passedMs;
  };
  watched.bus.hang();
  const goneMs = await untilGone();
  watched.bus.wake();
  await pass(WATCHED_MS);
  // To the others a process that has died and one that is cut off are the same: nobody answers for it.
  watched.bus.cut();
  const diedMs = await untilGone();
  await watched.bus.close();
  await watcher.bus.close();
  const rounds = heartbeats / 2;
  return { heartbeatMs: WATCHED_MS / rounds, heartbeatBytes: heartbeatBytes / heartbeats, goneMs, diedMs };
}
