/** The simulation of a cluster: bench/simulate-cluster.mjs. */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
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
import {
  BUILT,
  buddiesOf,
  POLICIES,
  type SessionKinds,
  simulatePlacement,
  simulateTakeover,
} from "../../bench/kit/simulation/placement.ts";
import { listenersOfSessions } from "../../bench/kit/simulation/population.ts";
import { registryTimes, replicaSizes } from "../../bench/kit/simulation/real-cluster.ts";
import { simulateStorm } from "../../bench/kit/simulation/reconnects.ts";
import { simulate } from "../../bench/kit/simulation/report.ts";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { RelayLink } from "../../src/cluster/relay/relay-link.ts";
import { decodeReplica } from "../../src/cluster/takeover/replica-format.ts";
import { Replicator, ROUND_MS, replicaSubject } from "../../src/cluster/takeover/replicator.ts";
import type { Delivery } from "../../src/delivery/listener.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { SavedSession, SavedUtterance, SpeechReader } from "../../src/session/saved-session.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { watchedLog } from "../helpers/watched-log.ts";

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

  it("with one listener a session, or with all brought to its node, nothing is relayed", () => {
    for (const changed of [
      { ...SMALL, listeners: SMALL.sessions, affinity: 0 },
      { ...SMALL, affinity: 1, balanceFactor: SMALL.nodes },
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

  it("a balancer with a bound brings no more to a node than that, and the rest to as few others as it can", () => {
    const parameters = parametersWith({
      ...SMALL,
      sessions: 12,
      listeners: 1200,
      affinity: 1,
      balanceFactor: 1.1,
    });
    const listeners = Int32Array.of(1189, ...new Array<number>(11).fill(1));
    const topology = layOut(parameters, listeners, sizesOf(parameters), new Random(1));
    expect(topology.near).toBeGreaterThan(100);
    // 1.1 times the mean of 100, for the large session's node; those of others are all near.
    expect(topology.near).toBeLessThan(110 + 11 + 20);
    expect(topology.farCopies).toBeGreaterThanOrEqual(9);
    expect(topology.farCopies).toBeLessThanOrEqual(11);
  });

  it("the first far listener at a node costs what `far` measured between near and far, both nodes together", () => {
    // A session of 2 listeners, which speaks, at one of many nodes: the other listener is far.
    const parameters = {
      ...parametersWith({
        ...SMALL,
        nodes: 1000,
        sessions: 1,
        listeners: 2,
        affinity: 0,
        speaking: 1,
        calls: 0,
      }),
      sessionFrameUs: 10,
      listenerFrameUs: 2,
      farMoreUs: 1.5,
    };
    const topology = layOut(parameters, Int32Array.of(2), sizesOf(parameters), new Random(1));
    expect(topology.far).toBe(1);
    const us = (topology.cores.reduce((sum, cores) => sum + cores, 0) * 1e6) / 50;
    expect(us).toBeCloseTo(10 + 2 + 1.5, 6);
    expect(parametersWith({}).farMoreUs).toBeCloseTo(1.15, 2);
  });

  it("heartbeats go from each node to each, twice a second; each node tells one buddy, in rounds", async () => {
    const parameters = parametersWith(SMALL);
    const sizes = sizesOf(parameters);
    const listeners = listenersOfSessions(parameters.sessions, parameters.listeners, new Random(1));
    const topology = layOut(parameters, listeners, sizes, new Random(1));
    const registry = await registryTimes();
    const traffic = busTraffic({ parameters, topology, sizes, registry });
    const of = (kind: string): Traffic | undefined => traffic.find((one) => one.kind === kind);
    expect(of("heartbeats")).toMatchObject({ published: 24, delivered: 288 });
    expect(of("owner entries, written")).toMatchObject({ published: 100, delivered: 100 * 13 });
    const rounds = (12 * 1000) / ROUND_MS;
    expect(of("words and texts for buddies")?.published).toBeLessThanOrEqual(rounds);
    expect(of("words and texts for buddies")?.published).toBeGreaterThan(0.8 * rounds);
    // Each of 20,000 listeners comes and goes within 20 s.
    expect(of("who is there, for buddies")?.published).toBeCloseTo(2000);
    expect(totalOf(traffic).delivered).toBeCloseTo(traffic.reduce((sum, one) => sum + one.delivered, 0));
  });

  it("messages to buddies: as many and as large as the replicator itself sends", async () => {
    const counted = await countReplicas({ sessions: 100, seconds: 4, listeners: 30 });
    const parameters = {
      ...parametersWith({ nodes: 1, sessions: 100, listeners: 3000, speaking: 1, sessionSeconds: 1 }),
      tellsPerSecond: counted.records / (4 * 100),
      tellBytes: counted.recordBytes,
      natsHeadBytes: 0,
    };
    const listeners = new Int32Array(100).fill(30);
    const sizes = sizesOf(parameters);
    const topology = layOut(parameters, listeners, sizes, new Random(1));
    const traffic = busTraffic({ parameters, topology, sizes, registry: await registryTimes() });
    const words = traffic.find(({ kind }) => kind === "words and texts for buddies");
    expect(Math.abs((words?.published ?? 0) / (counted.messages / 4) - 1)).toBeLessThan(0.1);
    expect(Math.abs((words?.publishedBytes ?? 0) / (counted.bytes / 4) - 1)).toBeLessThan(0.1);
    // One client comes and goes.
    const joins = traffic.find(({ kind }) => kind === "who is there, for buddies");
    expect(Math.abs((joins?.publishedBytes ?? 0) / (3000 * counted.visitBytes) - 1)).toBeLessThan(0.1);
  });

  it("a node that hangs is gone when the registry says so, and one that has died is gone sooner", async () => {
    const { heartbeatMs, goneMs, diedMs } = await registryTimes();
    expect(heartbeatMs).toBe(500);
    expect(goneMs).toBeGreaterThanOrEqual(2500);
    expect(goneMs).toBeLessThanOrEqual(3250);
    expect(diedMs).toBeGreaterThanOrEqual(250);
    expect(diedMs).toBeLessThanOrEqual(1000);
  });

  it("buddies are at other machines", () => {
    for (const [node, buddy] of buddiesOf(40, 8).entries()) {
      expect(Math.floor(buddy / 8)).not.toBe(Math.floor(node / 8));
    }
  });

  it("the gateway's placement is evener than chance and than the least loaded, and moves few", () => {
    const [arrival, leastLoaded, built] = POLICIES.map((policy) => placed(policy, ONE_EACH));
    expect(built?.steady.most).toBeLessThan(arrival?.steady.most ?? 0);
    expect(built?.steady.most).toBeLessThan(leastLoaded?.steady.most ?? 0);
    expect(built?.movedShare).toBeGreaterThan(0);
    expect(built?.movedShare).toBeLessThan(0.2);
    expect(leastLoaded?.movedShare).toBeGreaterThan(0.5);
    expect(arrival?.movedShare).toBe(0);
  });

  it("evens out nodes that are more than full, too", () => {
    const built = placed(BUILT, FULL);
    expect(built.meanLoad).toBeGreaterThan(2);
    expect(built.steady.most).toBeLessThan(placed("arrival", FULL).steady.most);
  });

  it("a lost node's sessions bury its buddy, unless that gives them on", () => {
    const { sessions } = placed(BUILT, ONE_EACH);
    const lost = { first: 20, count: 1 };
    const [kept, given] = [false, true].map((givesOn) =>
      simulateTakeover(
        { nodes: 40, nodesPerMachine: 8, heartbeatMs: 500, kinds: ONE_EACH, sessions, lost, givesOn },
        new Random(1),
      ),
    );
    expect(kept?.lost).toBe(sessions.filter(({ node }) => node === 20).length);
    expect(kept?.withoutBuddy).toBe(0);
    expect(kept?.most).toBeGreaterThan(1.7);
    expect(given?.most).toBeLessThan(1.4);
  });

  it("sessions whose buddy was lost, too, are opened again where clients come", () => {
    const { sessions } = placed(BUILT, ONE_EACH);
    const ofLost = (nodesPerMachine: number) =>
      simulateTakeover(
        {
          ...{ nodes: 40, nodesPerMachine, heartbeatMs: 500, kinds: ONE_EACH, sessions, givesOn: true },
          lost: { first: 20, count: 20 },
        },
        new Random(1),
      );
    // Of two machines one is lost.
    expect(ofLost(20).withoutBuddy).toBe(0);
    // Of four machines two are lost.
    const two = ofLost(10);
    expect(two.withoutBuddy).toBeGreaterThan(0);
    expect(two.withoutBuddy).toBeLessThan(two.lost);
    expect(two.most).toBeLessThan(1.4);
  });
});

const ONE_EACH: SessionKinds = { costs: Float64Array.of(1), framesPerSecond: Float64Array.of(25) };
/** 500 sessions at a node send 125,000 frames a second. */
const FULL: SessionKinds = { costs: Float64Array.of(1), framesPerSecond: Float64Array.of(250) };

function placed(policy: (typeof POLICIES)[number], kinds: SessionKinds) {
  const input = { policy, nodes: 40, sessions: 20_000, sessionSeconds: 60, heartbeatMs: 500, kinds };
  return simulatePlacement(input, new Random(1));
}

const WORDS_PER_SECOND = 3;
/** Audio is made in pieces. */
const MADE_MS = 300;

/** A replicator on a clock that is turned by hand: sessions with words of one length, each from another time on. */
async function countReplicas({
  sessions: count,
  seconds,
  listeners,
}: {
  readonly sessions: number;
  readonly seconds: number;
  readonly listeners: number;
}) {
  const hub = new MemoryHub({ clock: systemClock });
  const clock = new FakeClock();
  const owner = hub.open();
  const sizes: number[] = [];
  let records = 0;
  await hub.open().subscribe(replicaSubject("buddy"), (bytes) => {
    sizes.push(bytes.length);
    records += decodeReplica(bytes)?.records.length ?? 0;
  });
  const wordMs = 1000 / WORDS_PER_SECOND;
  const connections = Array.from({ length: listeners }, (_, at) => ({
    token: randomUUID(),
    listenerId: `l${at}`,
    holder: "",
    openIds: [],
    currentId: null,
  }));
  let spoken: readonly SavedUtterance[] | null = null;
  const random = new Random(1);
  const sessions = Array.from({ length: count }, (_, at) => {
    const beganMs = random.below(1000);
    const heard = Array.from({ length: 40 }, (__, word) => ({ end: word, ms: beganMs + word * wordMs }));
    const utterance: SavedUtterance = {
      id: "u",
      command: { type: "text", text: "", voice_id: "v" },
      text: "",
      half: "",
      leftOut: 0,
      isEnded: false,
      subject: null,
      holder: "",
      startMs: 0,
      heardMs: 0,
      heard: [{ end: 0, ms: 0 }],
      marks: [],
    };
    let readMs = 0;
    return {
      id: `session-${`${at}`.padStart(8, "0")}`,
      epoch: "c0000000000",
      isClosed: false,
      sentMs: 1000,
      get renderedMs() {
        return Math.ceil(this.sentMs / MADE_MS + 1) * MADE_MS;
      },
      save(): SavedSession {
        return { sentMs: this.sentMs, utterances: spoken ?? [utterance], connections };
      },
      speechReader(): SpeechReader {
        return {
          readAll: () => {
            readMs = this.renderedMs;
            return { sentMs: this.sentMs, utterances: spoken ?? [utterance] };
          },
          readPlaces: () => {
            const made = heard.filter(({ ms }) => ms > readMs && ms <= this.renderedMs);
            readMs = this.renderedMs;
            return made.length === 0 ? [] : [{ id: "u", startMs: 0, heard: made }];
          },
        };
      },
    };
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const replicator = await Replicator.open({
    bus: owner,
    incarnation: "00000000-0000-4000-8000-000000000000",
    sessions: () => sessions,
    clock,
    log: watchedLog,
  });
  replicator.choose("buddy");
  await settle();
  sizes.length = 0;
  records = 0;
  // Each session sends a batch of 100 ms in a slot of its own.
  for (let ms = 0; ms < seconds * 1000; ms += 4) {
    for (const [at, session] of sessions.entries()) {
      if (ms % 100 !== (at % 25) * 4) continue;
      session.sentMs += 100;
      replicator.sending(session);
    }
    clock.advance(4);
    await settle();
  }
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const messages = sizes.length;
  const told = { records, recordBytes: (bytes - messages * replicaSizes().head) / records };
  // What waits for its round.
  clock.advance(ROUND_MS);
  await settle();
  sizes.length = 0;
  spoken = [];
  const [first] = sessions;
  const [comes] = connections;
  if (first === undefined || comes === undefined) throw new Error("There is nobody to come");
  replicator.connected(first, { ...comes, token: randomUUID() });
  await settle();
  replicator.disconnected(first, comes.token);
  await settle();
  replicator.close();
  return { messages, bytes, ...told, visitBytes: sizes.reduce((sum, size) => sum + size, 0) };
}

describe("clients that come back", () => {
  const storm = (changed: {
    clients?: number;
    joinMs?: number;
    refusedUntilMs?: number;
    heldUntilMs?: number;
  }) =>
    simulateStorm(
      {
        lostAtMs: new Float64Array(changed.clients ?? 100),
        heldUntilMs: new Float64Array(changed.clients ?? 100).fill(changed.heldUntilMs ?? 0),
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

  it("who comes before others know that the session's node has died waits until then, and once more", () => {
    const { p50Ms, lastMs, notBack } = storm({ heldUntilMs: 750 });
    expect(p50Ms).toBeGreaterThan(750 + 500);
    expect(lastMs).toBeLessThan(750 + 1010);
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
    expect([...stdout.matchAll(/^## /gm)]).toHaveLength(12);
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
    [["--balance-factor", "0.9"], "--balance-factor: expected 1 or more"],
    [["--listeners", "5"], "--listeners: expected one for each session"],
    [["--sessions", "1.5"], "--sessions is no whole number"],
    [["--colour", "1"], "Unknown option '--colour'"],
  ])("%j is refused", async (args, message) => {
    console.error = (line: string) => errors.push(line);
    expect(await main(args, RESULTS)).toBe(2);
    expect(errors[0]).toContain(message);
  });
});
