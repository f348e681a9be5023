/** Which node owns which session: src/cluster/session-owners.ts, over buses in memory. */
import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../src/cluster/bus/heartbeat.ts";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { NodeRegistry } from "../../src/cluster/bus/node-registry.ts";
import { SessionOwners } from "../../src/cluster/session-owners.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const FACTS: NodeFacts = { url: "ws://127.0.0.1:8080", load: 0, isDraining: false, buddy: null, machine: "" };

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function cluster() {
  const clock = new FakeClock();
  const hub = new MemoryHub({ clock });
  const join = async (name: string) => {
    const bus = hub.open();
    const nodes = await NodeRegistry.join(bus, {
      name,
      facts: FACTS,
      clock: bus.clock,
      onReplaced: () => undefined,
    });
    const lost: string[] = [];
    const onLost = (sessionId: string) => lost.push(sessionId);
    const owners = await SessionOwners.open({ bus, nodes, clock: bus.clock, onLost });
    await settle();
    return { bus, nodes, owners, lost };
  };
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      await settle();
    }
  };
  return { hub, join, pass };
}

describe("session owners", () => {
  it("who claims first owns it, and all nodes know", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    expect(await a.owners.claim("call-7.x")).toMatchObject({ node: "a", isHere: true });
    expect(await b.owners.claim("call-7.x")).toMatchObject({ node: "a", isHere: false });
    expect(await a.owners.claim("call-7.x")).toMatchObject({ node: "a", isHere: true });
    await settle();
    expect(b.owners.find("call-7.x")).toMatchObject({
      node: "a",
      incarnation: a.nodes.incarnation,
      isHere: false,
    });
    expect(b.owners.find("another")).toBeUndefined();
  });

  it("one of two nodes that claim at the same time owns the session", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    const [first, second] = await Promise.all([a.owners.claim("s"), b.owners.claim("s")]);
    expect(first.incarnation).toBe(second.incarnation);
    expect([first.isHere, second.isHere].filter(Boolean)).toHaveLength(1);
  });

  it("an ended session is free, and its next owner has a newer epoch", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    const before = await a.owners.claim("s");
    a.owners.release("s");
    await settle();
    expect(b.owners.find("s")).toBeUndefined();
    expect(await b.owners.lookUp("s")).toBeUndefined();
    const after = await b.owners.claim("s");
    expect(after.isHere).toBe(true);
    expect(after.epoch).toBeGreaterThan(before.epoch);
    expect(a.lost).toEqual([]);
  });

  it("a session that is opened again while its entry is being released stays owned", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    await a.owners.claim("s");
    a.owners.release("s");
    expect(await a.owners.claim("s")).toMatchObject({ isHere: true });
    await settle();
    expect(await b.owners.claim("s")).toMatchObject({ node: "a", isHere: false });
  });

  it("a session of a node that is gone is taken over, and the former owner ends it when it is back", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    const before = await a.owners.claim("s");
    a.bus.hang();
    await pass(2000);
    expect(await b.owners.claim("s")).toMatchObject({ node: "a" });
    await pass(1500);
    const after = await b.owners.claim("s");
    expect(after).toMatchObject({ node: "b", isHere: true });
    expect(after.epoch).toBeGreaterThan(before.epoch);
    expect(a.lost).toEqual([]);
    a.bus.wake();
    await pass(500);
    expect(a.lost).toEqual(["s"]);
    expect([b.owners.counts, a.owners.counts]).toEqual([
      { takeovers: 1, lost: 0 },
      { takeovers: 0, lost: 1 },
    ]);
    // It is no longer its own to release.
    a.owners.release("s");
    await settle();
    expect(b.owners.find("s")).toMatchObject({ node: "b" });
  });

  it("a session of a process that was started again under the same name is taken over", async () => {
    const { join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    await a.owners.claim("s");
    await a.bus.close();
    const again = await join("a");
    await pass(500);
    expect(await b.owners.claim("s")).toMatchObject({ node: "b", isHere: true });
    expect(await again.owners.claim("s")).toMatchObject({ node: "b", isHere: false });
  });

  it("a node that has just joined takes nothing from those that it has not heard yet", async () => {
    const { join } = await cluster();
    const a = await join("a");
    await a.owners.claim("s");
    // It does not answer whoever joins, and its lease holds.
    a.bus.hang();
    const b = await join("b");
    expect(b.nodes.find("a")).toBeUndefined();
    expect(await b.owners.claim("s")).toMatchObject({ node: "a", isHere: false });
  });

  /** Session "s" is at node a when both nodes lose the bus, and it all of its entries. */
  async function lostStore() {
    const { hub, join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    await a.owners.claim("s");
    await settle();
    for (const { bus } of [a, b]) bus.cut();
    await settle();
    hub.loseStore();
    return { a, b, pass };
  }

  it("where the store was lost, owners write their sessions again", async () => {
    const { hub, join, pass } = await cluster();
    const [a, b] = [await join("a"), await join("b")];
    await pass(500);
    await a.owners.claim("s");
    for (const { bus } of [a, b]) bus.cut();
    hub.loseStore();
    for (const { bus } of [a, b]) bus.heal();
    await pass(1500);
    expect(await b.owners.claim("s")).toMatchObject({ node: "a", isHere: false });
    expect(a.lost).toEqual([]);
  });

  it("where the store was lost, nobody takes the session of a node that comes back to it later", async () => {
    const { a, b, pass } = await lostStore();
    b.bus.heal();
    await pass(1000);
    const refused = { code: "bus_lost", retryAfterMs: 500 };
    await expect(b.owners.claim("s")).rejects.toMatchObject(refused);
    await expect(b.owners.lookUp("s")).rejects.toMatchObject(refused);
    expect(await b.owners.claim("another")).toMatchObject({ isHere: true });
    a.bus.heal();
    await pass(1000);
    expect(await b.owners.claim("s")).toMatchObject({ node: "a", isHere: false });
    expect(a.lost).toEqual([]);
  });

  it("where the store was lost, the session of a node that stays away is free once that is gone", async () => {
    const { b, pass } = await lostStore();
    b.bus.heal();
    await pass(4000);
    expect(await b.owners.claim("s")).toMatchObject({ node: "b", isHere: true });
  });

  it("where the store was lost, a session that its owner does not write again is free", async () => {
    const { a, b, pass } = await lostStore();
    a.owners.release("s");
    for (const { bus } of [a, b]) bus.heal();
    await pass(1000);
    await expect(b.owners.claim("s")).rejects.toMatchObject({ code: "bus_lost" });
    await pass(4500);
    expect(await b.owners.claim("s")).toMatchObject({ node: "b", isHere: true });
  });

  it("claims are refused while the bus is lost", async () => {
    const { join } = await cluster();
    const a = await join("a");
    a.bus.cut();
    await expect(a.owners.claim("s")).rejects.toMatchObject({ code: "bus_lost" });
  });
});
