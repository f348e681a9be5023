/** Nodes that find one another, hang, are cut off and leave: over buses in memory, with a clock that the test turns. */
import { describe, expect, it } from "vitest";
import {
  BUS_VERSION,
  decodeHeartbeat,
  encodeHeartbeat,
  HEARTBEATS,
  type NodeFacts,
} from "../../src/cluster/bus/heartbeat.ts";
import { type MemoryBus, MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { NodeRegistry } from "../../src/cluster/bus/node-registry.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { watchedLog } from "../helpers/watched-log.ts";

const FACTS: NodeFacts = { url: "ws://127.0.0.1:8080", load: 0, isDraining: false, buddy: null, machine: "" };
const LEASE_MS = 12_000;

interface TestNode {
  readonly bus: MemoryBus;
  readonly registry: NodeRegistry;
  /** "name state", as they came. */
  readonly seen: string[];
  /** Whether another has its name. */
  isReplaced: boolean;
}

/** Lets what was published arrive. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function cluster() {
  const clock = new FakeClock();
  const hub = new MemoryHub({ clock, leaseMs: LEASE_MS });
  const warnings: string[] = [];
  const log = { ...watchedLog, warn: (_facts: object, message: string) => warnings.push(message) };
  const join = async (name: string, facts: NodeFacts = FACTS): Promise<TestNode> => {
    const bus = hub.open();
    const joined: { -readonly [Key in keyof TestNode]?: TestNode[Key] } = {
      bus,
      seen: [],
      isReplaced: false,
    };
    const registry = await NodeRegistry.join(bus, {
      name,
      facts,
      clock: bus.clock,
      log,
      onReplaced: () => {
        node.isReplaced = true;
      },
    });
    const node = Object.assign(joined, { registry }) as TestNode;
    registry.onChange(({ name: changed, state }) => node.seen.push(`${changed} ${state}`));
    await settle();
    return node;
  };
  /** In steps, so that what is sent arrives in its time. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      await settle();
    }
  };
  return { clock, hub, join, pass, warnings };
}

const names = (node: TestNode): string[] => node.registry.nodes.map(({ name }) => name).sort();

describe("node registry", () => {
  it("nodes know one another, their facts and what changes in them", async () => {
    const { join, pass } = await cluster();
    const a = await join("a");
    await pass(500);
    const b = await join("b", { ...FACTS, url: "ws://b:8080", load: 0.5 });
    await pass(500);
    for (const node of [a, b]) expect(names(node)).toEqual(["a", "b"]);
    expect(a.registry.find("b")).toMatchObject({ state: "alive", facts: { url: "ws://b:8080", load: 0.5 } });
    b.registry.update({ load: 0.75 });
    await pass(500);
    expect(a.registry.find("b")?.facts).toEqual({
      url: "ws://b:8080",
      load: 0.75,
      isDraining: false,
      buddy: null,
      machine: "",
    });
    b.registry.update({ isDraining: true });
    // At once, without a heartbeat's time.
    await settle();
    expect(a.registry.find("b")?.facts.isDraining).toBe(true);
    b.registry.update({ buddy: a.registry.incarnation });
    await settle();
    expect(a.registry.find("b")?.facts.buddy).toBe(a.registry.incarnation);
    expect(a.registry.find("nobody")).toBeUndefined();
  });

  it("who joins knows the others at once, and hears of the end of one that it has not heard before", async () => {
    const { hub, join, pass } = await cluster();
    await join("a");
    await pass(700);
    const b = await join("b");
    expect(names(b)).toEqual(["a", "b"]);
    const ended = { name: "c", incarnation: "c-1", facts: FACTS, isLeaving: true };
    hub.open().publish(HEARTBEATS, encodeHeartbeat(ended));
    await settle();
    expect(b.seen).toContain("c left");
    expect(names(b)).toEqual(["a", "b"]);
  });

  it("a node that joins knows the others at once, and misses one that hangs before its next heartbeat", async () => {
    const { join, pass } = await cluster();
    const a = await join("a");
    await pass(600);
    const b = await join("b");
    await settle();
    expect(names(b)).toEqual(["a", "b"]);
    a.bus.hang();
    await pass(3500);
    expect(b.registry.find("a")?.state).toBe("gone");
  });

  it("a node that hangs is suspect, then gone, then alive again, and knows of nobody that he was away", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(1000);
    a.seen.length = 0;
    b.seen.length = 0;
    b.bus.hang();
    await pass(1250);
    expect(a.seen).toEqual([]);
    await pass(750);
    expect(a.seen).toEqual(["b suspect"]);
    await pass(1500);
    expect(a.seen).toEqual(["b suspect", "b gone"]);
    expect(a.registry.find("b")?.state).toBe("gone");
    b.bus.wake();
    await pass(500);
    expect(a.seen).toEqual(["b suspect", "b gone", "b alive"]);
    // What a said meanwhile had only to be read.
    expect(b.seen).toEqual([]);
  });

  it("a process that stood still does not blame the others before it has read what they sent", async () => {
    const { clock, join, pass } = await cluster();
    const [a] = [await join("a"), await join("b")];
    await pass(1000);
    a.seen.length = 0;
    clock.stall(10_000);
    clock.advance(0);
    expect(a.seen).toEqual([]);
    await pass(1000);
    expect(a.seen).toEqual([]);
  });

  it("a node that has died is forgotten when its lease is free, and not while it is renewed", async () => {
    const { hub, join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(1000);
    b.bus.hang();
    await pass(5000);
    expect(a.registry.find("b")?.state).toBe("gone");
    const lease = hub.leases.find("b");
    if (lease === undefined) throw new Error("No lease");
    // Its heartbeats do not come here, but it lives.
    hub.leases.write("b", lease.value, lease.epoch);
    await pass(LEASE_MS - 5000 + 500);
    expect(a.registry.find("b")?.state).toBe("gone");
    await pass(LEASE_MS);
    expect(a.registry.find("b")).toBeUndefined();
    expect(a.seen.at(-1)).toBe("b left");
  });

  it("a node that leaves is forgotten at once, its name is free, whichever is closed first and however often", async () => {
    const { hub, join, pass } = await cluster();
    const [a, b, c] = [await join("a"), await join("b"), await join("c")];
    await pass(1000);
    await Promise.all([b.registry.close(), b.registry.close(), b.bus.close()]);
    await b.registry.close();
    await settle();
    expect(names(a)).toEqual(["a", "c"]);
    await c.bus.close();
    await c.registry.close();
    await settle();
    expect(names(a)).toEqual(["a"]);
    expect(a.seen.filter((seen) => seen.endsWith("left"))).toEqual(["b left", "c left"]);
    expect(hub.leases.entries.map(({ key }) => key)).toEqual(["a"]);
    await join("b");
    await pass(500);
    expect(names(a)).toEqual(["a", "b"]);
  });

  it("a node that leaves while it renews its lease gives it back", async () => {
    const { clock, hub, join, pass } = await cluster();
    const a = await join("a");
    await pass(950);
    const before = hub.leases.find("a");
    // The renewal is written and has not been answered yet.
    clock.advance(50);
    expect(hub.leases.find("a")?.revision).not.toBe(before?.revision);
    await a.registry.close();
    expect(hub.leases.find("a")).toBeUndefined();
  });

  it("a name that a living node has is refused, and that node goes on", async () => {
    const { hub, join, pass } = await cluster();
    const a = await join("a");
    await pass(1000);
    await expect(join("a")).rejects.toMatchObject({ code: "node_name_taken" });
    await pass(5000);
    expect(a.isReplaced).toBe(false);
    expect(hub.leases.entries).toHaveLength(1);
    expect(a.registry.find("a")).toMatchObject({ state: "alive", incarnation: a.registry.incarnation });
  });

  it("the name of a process that has ended is free at once", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(1000);
    b.bus.cut();
    const again = await join("b");
    await pass(500);
    expect(a.registry.find("b")?.incarnation).toBe(again.registry.incarnation);
    // It comes back and finds its name with another.
    const left: (string | undefined)[] = [];
    await a.bus.subscribe("node.heartbeat", (bytes) => {
      const heartbeat = decodeHeartbeat(bytes);
      if (heartbeat?.isLeaving === true) left.push(heartbeat.incarnation);
    });
    b.bus.heal();
    await pass(2000);
    expect([b.isReplaced, again.isReplaced]).toEqual([true, false]);
    // A good-bye would take the name from the other.
    expect(left).toEqual([]);
    expect(a.registry.find("b")?.incarnation).toBe(again.registry.incarnation);
    expect(a.registry.find("b")?.state).toBe("alive");
  });

  /** `b` hangs so long that another process takes its name. */
  async function twoOfOneName() {
    const { join, pass } = await cluster();
    const b = await join("b");
    await pass(1000);
    b.bus.hang();
    const joining = join("b");
    await pass(3500);
    return { b, again: await joining, pass };
  }

  it("the name of a process that hangs is free when it counts as gone; when it wakes it is replaced", async () => {
    const { b, again, pass } = await twoOfOneName();
    b.bus.wake();
    await pass(2000);
    expect([b.isReplaced, again.isReplaced]).toEqual([true, false]);
  });

  it("two processes with one name do not take one another for their own past: sessions would go to and fro", async () => {
    const { b, again, pass } = await twoOfOneName();
    await pass(700);
    for (const { seen } of [b, again]) seen.length = 0;
    b.bus.wake();
    await pass(2000);
    expect(b.isReplaced).toBe(true);
    expect([b.seen, again.seen]).toEqual([[], []]);
    expect(again.registry.find("b")?.incarnation).toBe(again.registry.incarnation);
  });

  it("who is cut off judges nobody, and has its name again when it is back", async () => {
    const { hub, join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(1000);
    a.seen.length = 0;
    b.seen.length = 0;
    b.bus.cut();
    await pass(2 * LEASE_MS);
    expect(a.seen).toEqual(["b suspect", "b gone", "b left"]);
    expect(b.seen).toEqual([]);
    expect(hub.leases.find("b")).toBeUndefined();
    b.bus.heal();
    await pass(1500);
    expect(a.seen.at(-1)).toBe("b alive");
    expect(b.seen).toEqual([]);
    expect(b.isReplaced).toBe(false);
    expect(hub.leases.find("b")).toBeDefined();
  });

  it("a store that loses all it has gets each node's lease again", async () => {
    const { hub, join, pass } = await cluster();
    const nodes = [await join("a"), await join("b")];
    await pass(1000);
    hub.loseStore();
    await pass(1500);
    expect(hub.leases.entries.map(({ key }) => key).sort()).toEqual(["a", "b"]);
    expect(nodes.map(({ isReplaced }) => isReplaced)).toEqual([false, false]);
  });

  it("heartbeats that are none are passed over", async () => {
    const { hub, join, pass } = await cluster();
    const a = await join("a");
    await pass(500);
    const stranger = hub.open();
    const facts = { url: "ws://x", load: 0, isDraining: false, buddy: null, machine: "" };
    const good = { version: BUS_VERSION, name: "x", incarnation: "i", facts, isLeaving: false };
    for (const bad of [
      "",
      "{",
      "null",
      "[]",
      { ...good, version: "1" },
      { ...good, version: undefined },
      { ...good, name: "a b" },
      { ...good, name: 1 },
      { ...good, incarnation: "" },
      { ...good, facts: null },
      { ...good, facts: { ...facts, load: "1" } },
      { ...good, facts: { ...facts, load: null } },
      { ...good, facts: { ...facts, url: 7 } },
      { ...good, facts: { ...facts, url: "x".repeat(3000) } },
      { ...good, facts: { ...facts, isDraining: undefined } },
      { ...good, isLeaving: 0 },
    ]) {
      stranger.publish("node.heartbeat", Buffer.from(typeof bad === "string" ? bad : JSON.stringify(bad)));
    }
    stranger.publish("node.heartbeat", Buffer.from([0xff, 0xfe]));
    await settle();
    expect(names(a)).toEqual(["a"]);
    stranger.publish("node.heartbeat", Buffer.from(JSON.stringify({ ...good, later: "version" })));
    await settle();
    expect(names(a)).toEqual(["a", "x"]);
  });

  it("a node of another version is seen and logged once, whatever its facts are; nobody is sent there", async () => {
    const { hub, join, pass, warnings } = await cluster();
    const a = await join("a");
    await pass(500);
    const stranger = hub.open();
    const heartbeat = {
      version: BUS_VERSION + 1,
      name: "x",
      incarnation: "i",
      isLeaving: false,
      facts: "later",
    };
    for (let count = 0; count < 4; count += 1) {
      stranger.publish("node.heartbeat", Buffer.from(JSON.stringify(heartbeat)));
      await pass(500);
    }
    expect(a.registry.find("x")).toMatchObject({
      state: "alive",
      version: BUS_VERSION + 1,
      facts: { isDraining: true },
    });
    expect(warnings).toEqual([
      "A node speaks another version of the bus: its sessions can't be reached from here",
    ]);
    stranger.publish("node.heartbeat", Buffer.from(JSON.stringify({ ...heartbeat, isLeaving: true })));
    await settle();
    expect(names(a)).toEqual(["a"]);
  });

  it("names that are none are refused", async () => {
    const { join } = await cluster();
    for (const name of ["", "a.b", "a b", "ä", "a".repeat(65)]) {
      await expect(join(name), name).rejects.toMatchObject({ code: "invalid_config" });
    }
  });
});
