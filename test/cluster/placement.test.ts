/** Where new sessions go: src/cluster/placement.ts, alone and in three gateways that share a bus in memory. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BUS_VERSION, type NodeFacts } from "../../src/cluster/bus/heartbeat.ts";
import type { NodeRegistry, NodeState } from "../../src/cluster/bus/node-registry.ts";
import { Placement } from "../../src/cluster/placement.ts";
import { heartbeatsOf, startNodes, type TestNode } from "../helpers/cluster-nodes.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

const ANY = { mayOpen: true };
type Others = Record<string, Partial<NodeFacts> & { state?: NodeState }>;

/** Node "here" and others. */
function rig(others: Others, { sessions = 0 } = {}) {
  const clock = new FakeClock();
  const here = { sessions, frames: 0 };
  const nodes: Others = { here: {}, ...others };
  const views = Object.entries(nodes).map(([name, { state = "alive", ...facts }]) => ({
    name,
    incarnation: name,
    state,
    version: BUS_VERSION,
    facts: { url: "ws://node:8080", load: 0, isDraining: false, buddy: null, machine: "", ...facts },
  }));
  const placement = new Placement({
    nodes: {
      incarnation: "here" as NodeRegistry["incarnation"],
      nodes: views,
    },
    clock,
    sessions: () => here.sessions,
    frames: () => here.frames,
  });
  const choose = (id = "s") => placement.choose(id, ANY);
  return { clock, placement, here, views, choose };
}

describe("placement", () => {
  it("a node that is alone, or not loaded more than others by a margin, keeps new sessions", () => {
    expect(rig({}, { sessions: 5000 }).choose()).toBeNull();
    expect(rig({ b: { load: 0.5 } }, { sessions: 500 }).choose()).toBeNull();
    expect(rig({ b: { load: 0 } }, { sessions: 50 }).choose()).toBeNull();
  });

  it("goes to the node that is loaded less", () => {
    expect(rig({ b: { load: 0 } }, { sessions: 51 }).choose()).toBe("b");
    expect(rig({ b: { load: 0.2 }, c: { load: 0.1 } }, { sessions: 800 }).choose()).toBe("c");
  });

  it("heeds what is sent: few sessions with many listeners are a load, too", () => {
    const { clock, choose, here, placement } = rig({ b: { load: 0.4 } }, { sessions: 10 });
    expect(choose()).toBeNull();
    for (let slots = 0; slots < 40; slots += 1) {
      here.frames += 12_500;
      clock.advance(500);
    }
    expect(placement.load).toBeCloseTo(0.5, 2);
    expect(choose()).toBe("b");
  });

  it.each([
    ["drains", { isDraining: true }],
    ["does not listen yet", { url: "" }],
    ["is suspect", { state: "suspect" }],
    ["is gone", { state: "gone" }],
  ] as const)("sends nobody to a node that %s", (_name, facts) => {
    expect(rig({ b: { load: 0, ...facts } }, { sessions: 1000 }).choose()).toBeNull();
  });

  it("a node that drains sends new sessions elsewhere, whatever the loads are", () => {
    const { placement, choose } = rig({ b: { load: 1 } });
    placement.drain();
    expect(choose()).toBe("b");
    const alone = rig({ b: { isDraining: true } });
    alone.placement.drain();
    expect(alone.choose()).toBeNull();
  });

  it("counts what it sent to a node until that says so itself", () => {
    const { clock, choose, views } = rig({ b: { load: 0 } }, { sessions: 200 });
    const chosen = Array.from({ length: 300 }, (_, index) => choose(`s${index}`));
    expect(chosen.filter((node) => node === "b")).toHaveLength(150);
    clock.advance(1000);
    expect(choose("later")).toBeNull();
    const heard = (load: number): void => {
      for (const view of views) if (view.name === "b") view.facts = { ...view.facts, load };
    };
    heard(0.1);
    const more = Array.from({ length: 100 }, (_, index) => choose(`more${index}`));
    expect(more.filter((node) => node === "b")).toHaveLength(50);
    // These are not open there yet when it says how many it has.
    clock.advance(100);
    heard(0.1);
    expect(choose("last")).toBeNull();
  });

  it("sends whoever comes for the same session just after to the same node, also who may not open it", () => {
    const { clock, choose, here, placement } = rig({ b: { load: 0 } }, { sessions: 200 });
    expect(placement.choose("s", { mayOpen: false })).toBeNull();
    expect(choose("s")).toBe("b");
    here.sessions = 0;
    expect([choose("s"), placement.choose("s", { mayOpen: false })]).toEqual(["b", "b"]);
    expect(choose("another")).toBeNull();
    clock.advance(1000);
    expect(choose("s")).toBeNull();
  });
});

describe("sessions that all arrive at one of three gateways", () => {
  let upstream: FakeUpstream;
  beforeAll(async () => {
    upstream = await startFakeUpstream(speaking({ msPerChar: 5 }));
  });
  afterAll(async () => {
    await upstream.close();
  });

  /** Opens sessions at a node, some at a time; clients stay. */
  async function open({ gateway }: TestNode, from: number, count: number): Promise<TestClient[]> {
    const clients: TestClient[] = [];
    for (let at = from; at < from + count; at += 20) {
      const ids = Array.from({ length: Math.min(20, from + count - at) }, (_, index) => at + index);
      const some = ids.map((id) => TestClient.connect(gateway, `/live/placed-${id}?format=none`));
      clients.push(...(await Promise.all(some)));
      await Promise.all(clients.slice(at - from).map((client) => client.next("hello")));
    }
    return clients;
  }
  const sessionsOf = ({ gateway }: TestNode): number =>
    gateway.counters.sessionsOpened - gateway.counters.sessionsClosed;

  it("are spread, none goes to one that drains, and listeners find them from everywhere", async () => {
    // It drains for so long at least.
    await using nodes = await startNodes(upstream.url, { drainDelayMs: 5000 }, { count: 3 });
    const heard = await heartbeatsOf(nodes.hub);
    await until("the nodes know one another", () => heard.size === 3);
    const clients = await open(nodes.one, 0, 300);
    const counts = nodes.nodes.map(sessionsOf);
    expect(counts.reduce((sum, count) => sum + count)).toBe(300);
    // The margin is 50; nodes hear of one another twice a second.
    expect(Math.max(...counts) - Math.min(...counts), `sessions of each: ${counts}`).toBeLessThan(120);
    await using listener = await TestClient.connect(nodes.two.gateway, "/live/placed-299?role=listener");
    await listener.next("hello");
    clients[299]?.send({ type: "speak", text: "Hello.", voice_id: "v" });
    await listener.next("utterance.done");
    const [, , three] = nodes.nodes;
    if (three === undefined) throw new Error("No third node");
    const draining = three.gateway.drain();
    await until("it is known", () => heard.get(three.name)?.facts.isDraining === true);
    const before = three.gateway.counters.sessionsOpened;
    clients.push(...(await open(nodes.one, 300, 100)));
    expect(three.gateway.counters.sessionsOpened).toBe(before);
    for (const client of clients) client.socket.terminate();
    await draining;
  }, 60_000);
});
