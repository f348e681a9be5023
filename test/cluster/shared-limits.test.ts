/** Limits that hold at all nodes together: of keys and tenants, of budgets, and of what is open upstream. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Caller } from "../../src/access/caller.ts";
import type { Grants } from "../../src/access/grants.ts";
import { type Key, type KeyLimits, readKeys } from "../../src/access/keys.ts";
import { Limits } from "../../src/access/limits/limits.ts";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { NodeRegistry } from "../../src/cluster/bus/node-registry.ts";
import { upstreamShares } from "../../src/cluster/upstream-shares.ts";
import { UsageExchange } from "../../src/cluster/usage-exchange.ts";
import { Governor } from "../../src/upstream/governor.ts";
import { startNodes } from "../helpers/cluster-nodes.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { knock } from "../helpers/knock.ts";
import { DEFAULTS, TestClient } from "../helpers/start-gateway.ts";

const FACTS = { url: "", load: 0, isDraining: false, buddy: null, machine: "" };
const ADDRESS = "192.0.2.1";

function keyWith(limits: KeyLimits, more: object = {}): Key {
  const entry = { id: "k", hash: `sha256:${"0".repeat(64)}`, limits, ...more };
  const key = readKeys(JSON.stringify({ keys: [entry] })).find("k");
  if (key === undefined) throw new Error("No key");
  return key;
}

/** Nodes of one cluster; each with its own limits and its own governor of the upstream. */
async function cluster({ count = 2, total = 0, tenant = {} as KeyLimits } = {}) {
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
    const limits = new Limits({
      settings: { ...DEFAULTS, addressLimits: "off" },
      clock,
      wallMs: () => clock.nowMs(),
      tenantLimits: () => tenant,
    });
    const governor = new Governor({ max: 1000, maxWaiting: 1000 });
    const upstream = {
      total,
      stats: () => ({ open: governor.held, queued: governor.waiting }),
      limitOpen: (max: number) => governor.limit(max),
    };
    const exchange = await UsageExchange.open({
      bus,
      nodes,
      clock: bus.clock,
      usage: limits.share(),
      upstream: total === 0 ? null : upstream,
    });
    return { bus, nodes, limits, governor, exchange };
  };
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const nodes = [];
  for (let index = 0; index < count; index += 1) nodes.push(await join(`n${index}`));
  await pass(1500);
  return { clock, hub, nodes, join, pass };
}

const codeOf = (act: () => unknown): string => {
  try {
    act();
    return "";
  } catch (thrown) {
    return (thrown as { code: string }).code;
  }
};

describe("what a key has at all nodes", () => {
  it("is bounded together: connections, sessions, utterances; what ends at one is free at another", async () => {
    const { nodes, pass } = await cluster();
    const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
    const caller = new Caller(keyWith({ connections: 3, sessions: 2, utterances: 1 }));
    const leave = a.limits.enter(caller, ADDRESS);
    a.limits.enter(caller, ADDRESS);
    a.limits.openSession(caller, ADDRESS);
    const said = a.limits.beginUtterance(caller);
    await pass(1000);
    b.limits.enter(caller, ADDRESS);
    b.limits.openSession(caller, ADDRESS);
    expect(codeOf(() => b.limits.enter(caller, ADDRESS))).toBe("connection_limit");
    expect(codeOf(() => b.limits.openSession(caller, ADDRESS))).toBe("session_limit");
    expect(codeOf(() => b.limits.beginUtterance(caller))).toBe("rate_limited");
    expect(b.limits.countOf(caller, "utterances")).toEqual({ count: 1, limit: 1 });
    leave();
    said();
    await pass(1000);
    expect(codeOf(() => b.limits.enter(caller, ADDRESS))).toBe("");
    expect(codeOf(() => b.limits.beginUtterance(caller))).toBe("");
  });

  it("a tenant's too, whichever of its keys; and is said again, so that what stays counts on", async () => {
    const { nodes, pass } = await cluster({ tenant: { connections: 1 } });
    const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
    const [one, other] = ["one", "other"].map((id) => new Caller({ ...keyWith({}), id, tenant: "acme" }));
    if (one === undefined || other === undefined) throw new Error("No caller");
    a.limits.enter(one, ADDRESS);
    for (const ms of [1000, 30_000, 30_000]) {
      await pass(ms);
      expect(codeOf(() => b.limits.enter(other, ADDRESS))).toBe("connection_limit");
    }
  });

  it("a node that joins later hears of it", async () => {
    const { nodes, join, pass } = await cluster();
    const caller = new Caller(keyWith({ connections: 1 }));
    nodes[0]?.limits.enter(caller, ADDRESS);
    await pass(5000);
    const late = await join("late");
    await pass(1500);
    expect(codeOf(() => late.limits.enter(caller, ADDRESS))).toBe("connection_limit");
  });

  it("the usage of a node that says nothing for 3 s does not count, and counts again when it is back", async () => {
    const { nodes, pass } = await cluster();
    const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
    const caller = new Caller(keyWith({ connections: 1 }));
    a.limits.enter(caller, ADDRESS);
    await pass(1000);
    a.bus.cut();
    await pass(400);
    expect(b.limits.countOf(caller, "connections")).toMatchObject({ count: 1 });
    await pass(3100);
    expect(b.limits.countOf(caller, "connections")).toMatchObject({ count: 0 });
    a.bus.heal();
    await pass(2000);
    expect(b.limits.countOf(caller, "connections")).toMatchObject({ count: 1 });
  });

  it("rates: what is spoken at each counts at all, and drains once", async () => {
    const { nodes, pass } = await cluster({ count: 3 });
    const caller = new Caller(keyWith({ characters_per_minute: 6000 }));
    const say = (node: number, characters: number) =>
      codeOf(() => nodes[node]?.limits.spend(caller, { characters, utterances: 1 }));
    expect([say(0, 3000), say(1, 2900)]).toEqual(["", ""]);
    await pass(1000);
    expect([say(2, 500), say(0, 500)]).toEqual(["rate_limited", "rate_limited"]);
    let spoken = 5900;
    for (let second = 0; second < 120; second += 1) {
      for (const node of [0, 1, 2]) if (say(node, 100) === "") spoken += 100;
      await pass(1000);
    }
    // 100 a second, and by how much one second may be over at two nodes more.
    expect(spoken).toBeGreaterThanOrEqual(6000 + 118 * 100);
    expect(spoken).toBeLessThanOrEqual(6000 + 121 * 100 + 2 * 100);
  });

  it("budgets: the characters of a token are spent once", async () => {
    const { nodes, pass } = await cluster();
    const grants: Grants = { sessions: ["*"], allow: ["speak"], characters: 1000 };
    const signer = keyWith({});
    const caller = new Caller(signer, {
      id: "t",
      subject: "ann",
      grants,
      signer,
      issuedMs: 0,
      expiresMs: 600_000,
    });
    nodes[0]?.limits.spend(caller, { characters: 700, utterances: 1 });
    await pass(1000);
    expect(codeOf(() => nodes[1]?.limits.spend(caller, { characters: 400, utterances: 1 }))).toBe(
      "budget_exhausted",
    );
    expect(codeOf(() => nodes[1]?.limits.spend(caller, { characters: 300, utterances: 1 }))).toBe("");
  });

  it("what can't be read is passed over", async () => {
    const { hub, nodes, pass } = await cluster();
    const [a] = nodes;
    const stranger = hub.open();
    const from = nodes[1]?.nodes.incarnation;
    const upstream = { open: 0, queued: 0 };
    for (const bad of [
      "",
      "{",
      "[]",
      "null",
      { from, upstream: {} },
      { from: 7, upstream, usage: null },
      { from: "nobody", upstream, usage: [{ id: "key k", counts: [9] }] },
      { from, upstream, usage: [{ id: "key k", counts: [-1] }] },
      { from, upstream, usage: [{ id: "key k", counts: "many" }] },
      { from, upstream, usage: [{ id: "key k", counts: [], taken: { opens: [1] } }] },
      { from, upstream, usage: { id: "key k" } },
    ]) {
      stranger.publish("usage", Buffer.from(typeof bad === "string" ? bad : JSON.stringify(bad)));
    }
    await pass(100);
    const caller = new Caller(keyWith({ connections: 1 }));
    expect(codeOf(() => a?.limits.enter(caller, ADDRESS))).toBe("");
  });
});

describe("shares of the upstream", () => {
  it("are what is wanted where that is less than an equal share, and never more than all in all", () => {
    expect(upstreamShares(90, [10, 200, 200])).toEqual([10, 40, 40]);
    expect(upstreamShares(90, [0, 0, 0])).toEqual([30, 30, 30]);
    expect(upstreamShares(10, [0, 100, 0])).toEqual([1, 10, 1]);
    expect(upstreamShares(100, [20, 30])).toEqual([45, 55]);
    const wanted = fc.array(fc.nat(500), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), wanted, (total, all) => {
        const shares = upstreamShares(total, all);
        const sum = shares.reduce((one, other) => one + other);
        // One each, whatever there is.
        expect(sum).toBeLessThanOrEqual(total + shares.length);
        expect(sum).toBeGreaterThanOrEqual(Math.min(total, sum));
        expect(Math.min(...shares)).toBeGreaterThanOrEqual(1);
      }),
    );
  });

  it("follow what is wanted: all nodes together never have more open than the total for longer than a second", async () => {
    const { nodes, pass } = await cluster({ count: 3, total: 30 });
    const permits: { release(): void }[][] = nodes.map(() => []);
    const ask = (node: number, count: number): void => {
      for (let asked = 0; asked < count; asked += 1) {
        const answers = { grant: () => undefined, turnOut: () => undefined };
        const permit = nodes[node]?.governor.request({ group: null, priority: 0 }, answers);
        if (permit != null) permits[node]?.push(permit);
      }
    };
    const held = () => nodes.map(({ governor }) => governor.held);
    const sum = () => held().reduce((one, other) => one + other);
    ask(0, 100);
    expect(held()).toEqual([10, 0, 0]);
    await pass(3000);
    // One for each of the others.
    expect(held()[0]).toBeGreaterThanOrEqual(28);
    ask(1, 100);
    await pass(2000);
    expect(sum()).toBeLessThanOrEqual(31);
    // What is open ends, a few each second; both ask for more.
    for (let second = 0; second < 20; second += 1) {
      for (const node of [0, 1]) for (const permit of permits[node]?.splice(0, 4) ?? []) permit.release();
      await pass(1000);
      expect(sum()).toBeLessThanOrEqual(32);
    }
    expect(Math.abs((held()[0] ?? 0) - (held()[1] ?? 0))).toBeLessThanOrEqual(4);
  });

  it("a node that is cut off leaves the others an equal share; they get the rest when its lease ends", async () => {
    const { nodes, pass } = await cluster({ count: 2, total: 20 });
    const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
    const ask = (node: typeof a): void => {
      for (let asked = 0; asked < 50; asked += 1) {
        node.governor.request(
          { group: null, priority: 0 },
          { grant: () => undefined, turnOut: () => undefined },
        );
      }
    };
    ask(a);
    await pass(3000);
    a.bus.cut();
    await pass(5000);
    ask(b);
    await pass(3000);
    expect(b.governor.held).toBeLessThanOrEqual(2);
    await pass(20_000);
    expect(b.governor.held).toBe(20);
  });
});

describe("two gateways", () => {
  it("let a key have as many connections as it may, wherever they come", async () => {
    const fake = await startFakeUpstream(speaking({ msPerChar: 5 }));
    using keys = new TestKeys({ server: { limits: { connections: 2 } } });
    {
      await using nodes = await startNodes(fake.url, { keysFile: keys.path });
      const headers = { authorization: `Bearer ${keys.key}` };
      const clients = await Promise.all(
        nodes.nodes.map(({ gateway, name }) => TestClient.connect(gateway, `/live/${name}`, { headers })),
      );
      const deadlineMs = performance.now() + 15_000;
      let codes: string[] = [];
      while (!(codes[0] === "connection_limit" && codes[1] === "connection_limit")) {
        if (performance.now() > deadlineMs) throw new Error(`A third is taken: ${codes}`);
        const tried = nodes.nodes.map(({ gateway }) => knock(`${gateway.wsUrl}/live/x`, { headers }));
        codes = (await Promise.all(tried)).map(({ code }) => code);
      }
      for (const client of clients) client.socket.terminate();
    }
    await fake.close();
  });

  it("ask the upstream for no more than upstream-total together", async () => {
    // It never answers.
    const hangs = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(hangs, "listening");
    const { port } = hangs.address() as AddressInfo;
    {
      await using nodes = await startNodes(`http://127.0.0.1:${port}`, { upstreamTotal: 4 });
      const stateOf = async (opsUrl: string | null) => {
        const answer = await fetch(`${opsUrl}/readyz`);
        return ((await answer.json()) as { upstream: { open: number; queued: number } }).upstream;
      };
      const [one, two] = nodes.nodes;
      for (let asked = 0; asked < 8; asked += 1) {
        fetch(`${one?.gateway.url}/v1/voices`).catch(() => undefined);
      }
      let open = 0;
      let queued = 0;
      const deadlineMs = performance.now() + 15_000;
      while (open < 4 && performance.now() < deadlineMs) {
        ({ open, queued } = await stateOf(one?.gateway.opsUrl ?? null));
        expect(open).toBeLessThanOrEqual(4);
      }
      // 8, and the gateway's own looks at its upstream.
      expect([open, queued >= 4]).toEqual([4, true]);
      fetch(`${two?.gateway.url}/v1/voices`).catch(() => undefined);
      expect((await stateOf(two?.gateway.opsUrl ?? null)).open).toBeLessThanOrEqual(2);
    }
    hangs.closeAllConnections();
    hangs.close();
  });
});
