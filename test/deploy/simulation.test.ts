/** The simulation of a cluster: bench/simulate-cluster.mjs. */
import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import { Random } from "../../bench/kit/random.ts";
import { busTraffic, layOut, sizesOf, type Traffic, totalOf } from "../../bench/kit/simulation/bus-load.ts";
import { main } from "../../bench/kit/simulation/main.ts";
import {
  type AssumedKey,
  type Parameters,
  parameterTables,
  readParameters,
} from "../../bench/kit/simulation/parameters.ts";
import { POLICIES, simulatePlacement } from "../../bench/kit/simulation/placement.ts";
import { listenersOfSessions } from "../../bench/kit/simulation/population.ts";
import { registryTimes } from "../../bench/kit/simulation/real-cluster.ts";
import { simulateStorm } from "../../bench/kit/simulation/reconnects.ts";
import { simulate } from "../../bench/kit/simulation/report.ts";
import { RelayLink } from "../../src/cluster/relay/relay-link.ts";
import type { Delivery } from "../../src/delivery/listener.ts";

const RESULTS = new URL("../../bench/results.json", import.meta.url);
const TABLES = parameterTables(RESULTS);

function parametersWith(changed: Partial<Record<AssumedKey, number>>): Parameters {
  const read = readParameters(TABLES, []);
  if (typeof read === "string") throw new Error(read);
  return { ...read, ...changed };
}

const SMALL = { sessions: 2000, listeners: 20_000, nodes: 12, nodesPerMachine: 4, sessionSeconds: 20 };

describe("simulation of a cluster", () => {
  it("the same seed gives the same output, another seed another one", async () => {
    const textOf = async (seed: number): Promise<string> =>
      JSON.stringify(await simulate(parametersWith({ ...SMALL, seed }), TABLES));
    const first = await textOf(1);
    expect(await textOf(1)).toBe(first);
    expect(await textOf(2)).not.toBe(first);
  });

  it("listeners: as many as asked for, one for each session at least, max-listeners at most", () => {
    const counts = listenersOfSessions(500, 1_500_000, new Random(1));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1_500_000);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...counts)).toBe(10_000);
    expect(() => listenersOfSessions(2, 20_001, new Random(1))).toThrow(/max-listeners/);
  });

  it("relayed bytes: what the relay's own link publishes for the same batches", () => {
    const parameters = parametersWith({});
    const sizes = sizesOf(parameters);
    let published = 0;
    const link = new RelayLink({
      from: "00000000-0000-4000-8000-000000000000",
      publish: (bytes) => {
        published = bytes.length;
      },
      maxMessageBytes: 1024 * 1024,
      windowBytes: 1024 * 1024,
      onRecord: () => undefined,
      onRoom: () => undefined,
      onLost: () => undefined,
    });
    const batches = Array.from({ length: 20 }, (): readonly Delivery[] => [
      ...Array.from({ length: 5 }, () => new Uint8Array(160)),
      new Uint8Array(parameters.eventBytes),
    ]);
    for (const batch of batches)
      for (let connection = 1; connection <= 7; connection += 1) link.deliver(connection, batch, "utf16");
    link.flush();
    link.close();
    expect(published).toBe(sizes.head + 20 * (sizes.batch + sizes.event + 6 * sizes.again));
  });

  it("with one listener a session, or with all that follow, nothing is relayed", () => {
    for (const changed of [
      { ...SMALL, listeners: SMALL.sessions, follow: 0 },
      { ...SMALL, follow: 1, followMost: SMALL.listeners },
    ]) {
      const parameters = parametersWith(changed);
      const listeners = listenersOfSessions(parameters.sessions, parameters.listeners, new Random(1));
      const topology = layOut(parameters, listeners, sizesOf(parameters), new Random(1));
      expect(topology.near).toBe(parameters.listeners);
      expect([topology.far, topology.farCopies, topology.batchMessages, topology.batchBytes]).toEqual([
        0, 0, 0, 0,
      ]);
    }
  });

  it("no more than a bounded number of one session's listeners follow", () => {
    const parameters = parametersWith({ ...SMALL, sessions: 1, listeners: 1000, follow: 1, followMost: 100 });
    const topology = layOut(parameters, Int32Array.of(1000), sizesOf(parameters), new Random(1));
    expect(topology.near).toBeGreaterThanOrEqual(101);
    // Others arrive there by chance.
    expect(topology.near).toBeLessThan(101 + 900 / 6);
  });

  it("heartbeats go from each node to each, twice a second; what a buddy is told of sessions in one slot goes in one message", async () => {
    const parameters = parametersWith(SMALL);
    const sizes = sizesOf(parameters);
    const listeners = listenersOfSessions(parameters.sessions, parameters.listeners, new Random(1));
    const topology = layOut(parameters, listeners, sizes, new Random(1));
    const registry = await registryTimes();
    const traffic = busTraffic({ parameters, topology, sizes, registry }, new Random(2));
    const of = (kind: string): Traffic | undefined => traffic.find((one) => one.kind === kind);
    expect(of("heartbeats")).toMatchObject({ published: 24, delivered: 288 });
    expect(of("owner entries, written")).toMatchObject({ published: 100, delivered: 100 * 13 });
    // Each of 12 nodes has some 80 sessions that speak, in each of the 25 slots of 100 ms.
    const { published = 0 } = of("positions for buddy nodes") ?? {};
    expect(published).toBeLessThanOrEqual(10 * 12 * 25);
    expect(published).toBeGreaterThan(0.9 * 10 * 12 * 25);
    expect(totalOf(traffic).delivered).toBeCloseTo(traffic.reduce((sum, one) => sum + one.delivered, 0));
  });

  it("a node that hangs or has died is gone when the registry says so", async () => {
    const { heartbeatMs, goneMs, diedMs } = await registryTimes();
    expect(heartbeatMs).toBe(500);
    expect(goneMs).toBeGreaterThanOrEqual(2500);
    expect(goneMs).toBeLessThanOrEqual(3250);
    expect(diedMs).toBeGreaterThanOrEqual(200);
    expect(diedMs).toBeLessThanOrEqual(1000);
  });

  it("two choices are evener than the least loaded, most of all after a loss", () => {
    const [, leastLoaded, twoChoices] = POLICIES.map((policy) =>
      simulatePlacement(
        {
          policy,
          nodes: 40,
          lostNodes: 8,
          sessions: 20_000,
          sessionSeconds: 60,
          heartbeatMs: 500,
          weights: Float64Array.of(1),
        },
        new Random(1),
      ),
    );
    expect(twoChoices?.afterLoss.most).toBeLessThan(1.2);
    expect(leastLoaded?.afterLoss.most).toBeGreaterThan(1.5);
    expect(twoChoices?.steady.most).toBeLessThan(leastLoaded?.steady.most ?? 0);
  });
});

describe("clients that come back", () => {
  const storm = (changed: { clients?: number; joinMs?: number; refusedUntilMs?: number }) =>
    simulateStorm(
      {
        lostAtMs: new Float64Array(changed.clients ?? 100),
        nodes: 4,
        joinMs: changed.joinMs ?? 0.2,
        acceptQueue: 512,
        refusedUntilMs: changed.refusedUntilMs ?? 0,
      },
      new Random(1),
    );

  it("few are back after their first wait, between 0.25 and 0.5 s", () => {
    const { clients, p50Ms, lastMs, inTimeShare, unanswered, notBack } = storm({});
    expect({ clients, inTimeShare, unanswered, notBack }).toEqual({
      clients: 100,
      inTimeShare: 1,
      unanswered: 0,
      notBack: 0,
    });
    expect(p50Ms).toBeGreaterThan(250);
    expect(lastMs).toBeLessThan(510);
  });

  it("too many for the queue are not answered at first, and come back when there is room", () => {
    const { unanswered, mostWaiting, notBack, lastMs } = storm({ clients: 20_000 });
    expect(unanswered).toBeGreaterThan(0);
    expect(mostWaiting).toBeLessThanOrEqual(512);
    expect(notBack).toBe(0);
    // Four nodes with 5,000 joins a second each.
    expect(lastMs).toBeGreaterThanOrEqual(250 + 1000);
  });

  it("while the bus is away they are refused, and wait longer each time", () => {
    const { p50Ms, notBack } = storm({ refusedUntilMs: 2000 });
    expect(p50Ms).toBeGreaterThan(2000);
    expect(notBack).toBe(0);
  });

  it("who is refused ten times gives up", () => {
    expect(storm({ refusedUntilMs: 600_000 })).toMatchObject({ notBack: 100, inTimeShare: 0 });
  });
});

describe("bench/simulate-cluster.mjs", () => {
  it("prints every table, twice the same", () => {
    const program = new URL("../../bench/simulate-cluster.mjs", import.meta.url).pathname;
    const args = ["--sessions", "500", "--listeners", "4000", "--nodes", "12", "--session-seconds", "10"];
    const run = () => spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });
    const { status, stdout } = run();
    expect(status).toBe(0);
    expect([...stdout.matchAll(/^## /gm)]).toHaveLength(11);
    expect(run().stdout).toBe(stdout);
  });
});

describe("arguments of the simulation", () => {
  const errors: string[] = [];
  const { error } = console;
  afterEach(() => {
    console.error = error;
    errors.length = 0;
  });

  it.each([
    [["--nodes", "many"], "--nodes is not a number"],
    [["--nodes", "3"], "--nodes: expected 4 to 1000"],
    [["--speaking", "2"], "--speaking is a share"],
    [["--listeners", "5"], "--listeners: expected one for each session"],
    [["--sessions", "1.5"], "--sessions is no whole number"],
    [["--colour", "1"], "Unknown option '--colour'"],
  ])("%j is refused", async (args, message) => {
    console.error = (line: string) => errors.push(line);
    expect(await main(args, RESULTS)).toBe(2);
    expect(errors[0]).toContain(message);
  });
});
