/** Runs the simulation and says what came of it, as tables in Markdown. */
import { Random } from "../random.ts";
import {
  BATCHES_PER_SECOND,
  busTraffic,
  FRAME_BYTES,
  FRAMES_PER_SECOND,
  layOut,
  sizesOf,
  type Topology,
  type Traffic,
  totalOf,
} from "./bus-load.ts";
import { flagOf, type Parameters, type ParameterTables } from "./parameters.ts";
import {
  BUILT,
  type Placed,
  POLICIES,
  type Policy,
  type SessionKinds,
  simulatePlacement,
  simulateTakeover,
  skewOf,
} from "./placement.ts";
import { listenersOfSessions } from "./population.ts";
import { type RegistryTimes, type RelaySizes, registryTimes } from "./real-cluster.ts";
import { type Storm, type StormInput, simulateStorm } from "./reconnects.ts";
import { number, percent, seconds, table, times, whole } from "./table.ts";

export interface Section {
  /** Of the block in docs/capacity.md that holds it. */
  readonly name: string;
  readonly title: string;
  readonly markdown: string;
}

/** Everything of one way in which listeners come. */
interface Run {
  readonly parameters: Parameters;
  readonly topology: Topology;
  readonly traffic: readonly Traffic[];
  /** Mean of the nodes, and the fullest. */
  readonly meanCores: number;
  readonly mostCores: number;
}

/** Of a WebSocket message of 126 bytes and more. */
const SOCKET_HEAD_BYTES = 4;
/** At least so much of a node's core is left for joins, or a storm would never end. */
const LEAST_FREE = 0.05;

const OTHER_SEED = 1_000_000;
/** A balancer that brings to one node whatever belongs there. */
const UNBOUNDED = { balanceFactor: Number.POSITIVE_INFINITY };

export async function simulate(parameters: Parameters, tables: ParameterTables): Promise<readonly Section[]> {
  const registry = await registryTimes();
  const sizes = sizesOf(parameters);
  const listeners = listenersOfSessions(
    parameters.sessions,
    parameters.listeners,
    new Random(parameters.seed),
  );
  const run = (changed: Partial<Parameters>): Run =>
    runOnce({ ...parameters, ...changed }, listeners, sizes, registry);
  const runs = [run({ affinity: 0 }), run(UNBOUNDED)] as const;
  const placements = placementsOf(parameters, listeners, registry);
  return [
    { name: "formula", title: "Formula", markdown: formula(parameters, sizes) },
    { name: "measured", title: "Figures", markdown: figuresTable(tables, parameters) },
    { name: "assumed", title: "Assumptions", markdown: assumptionsTable(tables, parameters) },
    { name: "costs", title: "What each costs", markdown: costsTable(parameters, sizes) },
    { name: "population", title: "Sessions and their listeners", markdown: populationTable(listeners) },
    { name: "bus", title: "The bus, by kind", markdown: busTables(runs) },
    { name: "nodes", title: "The bus, by number of nodes", markdown: nodesTable(parameters, run) },
    {
      name: "placement",
      title: "Placement",
      markdown: placementTable(placements),
    },
    {
      name: "takeover",
      title: "Sessions of lost nodes",
      markdown: takeoverTable(parameters, placements, registry),
    },
    { name: "losses", title: "Losses", markdown: lossesTable(runs, registry) },
    { name: "parts", title: "What breaks first", markdown: partsTable([...runs, run({})]) },
    { name: "example", title: "Worked example", markdown: exampleTable(runs[1], sizes) },
  ];
}

function runOnce(
  parameters: Parameters,
  listeners: Int32Array,
  sizes: RelaySizes,
  registry: RegistryTimes,
): Run {
  // Not the numbers that the listeners were drawn with: where sessions are would follow from how large they are.
  const random = new Random(parameters.seed + OTHER_SEED);
  const topology = layOut(parameters, listeners, sizes, random);
  const traffic = busTraffic({ parameters, topology, sizes, registry });
  const total = topology.cores.reduce((sum, cores) => sum + cores, 0);
  const meanCores = total / parameters.nodes;
  return { parameters, topology, traffic, meanCores, mostCores: meanCores * skewOf(topology.cores).most };
}

// ---- Tables

function textOf(parameters: Parameters, key: string, unit: string): string {
  const value = parameters[key as keyof Parameters];
  const text = Number.isInteger(value) ? whole(value) : String(value);
  return unit === "" ? text : `${text} ${unit}`;
}

function figuresTable({ measured }: ParameterTables, parameters: Parameters): string {
  return table(
    ["figure", "value", "measured by", "flag"],
    Object.entries(measured).map(([key, { unit, about, source }]) => [
      about,
      textOf(parameters, key, unit),
      source,
      `\`--${flagOf(key)}\``,
    ]),
    4,
  );
}

function assumptionsTable({ assumed }: ParameterTables, parameters: Parameters): string {
  return table(
    ["assumed", "value", "flag"],
    Object.entries(assumed).map(([key, { unit, about }]) => [
      about,
      textOf(parameters, key, unit),
      `\`--${flagOf(key)}\``,
    ]),
    3,
  );
}

function costsTable(parameters: Parameters, sizes: RelaySizes): string {
  const { sessionFrameUs, listenerFrameUs, farMoreUs, farNextFactor, callFrameUs, fill } = parameters;
  const { eventsPerSecond } = parameters;
  const first =
    BATCHES_PER_SECOND * (sizes.batch + sizes.head + parameters.natsHeadBytes) +
    eventsPerSecond * sizes.event;
  const row = (name: string, us: number, memory: string, bus: string): string[] => [
    name,
    `${number(us)} us`,
    `${number((100 * us * FRAMES_PER_SECOND) / 1e6)} %`,
    whole((fill * 1e6) / (us * FRAMES_PER_SECOND)),
    memory,
    bus,
  ];
  return table(
    [
      "one that is spoken to",
      "CPU a frame",
      "of a core",
      `to a core at ${percent(fill)}`,
      "memory",
      "on the bus",
    ],
    [
      row("session, with its first listener", sessionFrameUs, `${parameters.sessionKb} KB`, ""),
      row("further listener at the session's node", listenerFrameUs, "", ""),
      row(
        "first listener at another node, both nodes",
        listenerFrameUs + farMoreUs,
        "",
        `${number(first / 1000)} KB/s`,
      ),
      row(
        "further listener at that node",
        listenerFrameUs * farNextFactor,
        "",
        `${number((BATCHES_PER_SECOND * sizes.again) / 1000)} KB/s`,
      ),
      row(
        "phone call (Twilio), a session of its own",
        sessionFrameUs + callFrameUs,
        `${parameters.sessionKb} KB`,
        "",
      ),
    ],
  );
}

function populationTable(listeners: Int32Array): string {
  const sorted = Float64Array.from(listeners).sort();
  const total = sorted.reduce((sum, count) => sum + count, 0);
  const at = (fraction: number): string => whole(sorted[Math.ceil(fraction * sorted.length) - 1] ?? 0);
  const top = sorted.slice(-Math.ceil(sorted.length / 1000)).reduce((sum, count) => sum + count, 0);
  return table(
    [
      "sessions",
      "listeners",
      "of the middle session",
      "p99",
      "most",
      "with the largest 0.1 % of the sessions",
    ],
    [[whole(sorted.length), whole(total), at(0.5), at(0.99), at(1), percent(top / total)]],
  );
}

function busTables(runs: readonly Run[]): string {
  return runs
    .map(({ parameters, traffic, topology }) => {
      const total = totalOf(traffic);
      const rows = [...traffic, total].map((one) => [
        one.kind,
        whole(one.published),
        whole(one.delivered),
        number(one.publishedBytes / 1e6),
        number(one.deliveredBytes / 1e6),
        number((one.delivered * parameters.natsDeliveryUs) / 1e6),
      ]);
      return [
        `${parameters.nodes} nodes, ${arrivalText(parameters)}: ${whole(topology.far)} far listeners.\n`,
        table(["kind", "messages/s in", "out", "MB/s in", "out", "cores of nats-server"], rows),
      ].join("\n");
    })
    .join("\n\n");
}

function arrivalText({ affinity }: Parameters): string {
  return affinity === 0
    ? "listeners arrive anywhere"
    : `the balancer brings ${percent(affinity)} of the listeners to their session's node`;
}

function nodesTable(parameters: Parameters, run: (changed: Partial<Parameters>) => Run): string {
  const { nodes } = parameters;
  const counts = [nodes / 4, nodes / 2, nodes, nodes * 2]
    .map(Math.round)
    .filter((count) => count >= 4 && count <= 1000);
  const rows = counts.map((count) => {
    const cells = [0, parameters.affinity].flatMap((affinity) => {
      const { traffic, meanCores } = run({ nodes: count, affinity, ...UNBOUNDED });
      const { delivered, deliveredBytes } = totalOf(traffic);
      return [percent(meanCores), whole(delivered), number(deliveredBytes / 1e6)];
    });
    return [String(count), ...cells];
  });
  const brought = percent(parameters.affinity);
  return table(
    [
      "nodes",
      "arrive anywhere: a node's core",
      "messages/s out",
      "MB/s out",
      `${brought} brought: a node's core`,
      "messages/s out",
      "MB/s out",
    ],
    rows,
  );
}

interface PlacementRun extends Placed {
  readonly policy: Policy;
  readonly counted: string;
  readonly kinds: SessionKinds;
}

function placementsOf(
  parameters: Parameters,
  listeners: Int32Array,
  { heartbeatMs }: RegistryTimes,
): readonly PlacementRun[] {
  const { nodes, sessions, sessionSeconds, speaking, affinity, sessionFrameUs, listenerFrameUs } = parameters;
  const kindsOf = (counts: Int32Array): SessionKinds => ({
    costs: Float64Array.from(counts, (count) => sessionFrameUs + affinity * (count - 1) * listenerFrameUs),
    framesPerSecond: Float64Array.from(counts, (count) => speaking * FRAMES_PER_SECOND * count),
  });
  const counted: readonly (readonly [string, SessionKinds])[] = [
    ["one each", kindsOf(Int32Array.of(1))],
    ["all", kindsOf(listeners)],
  ];
  return POLICIES.flatMap((policy) =>
    counted.map(([what, kinds]) => {
      const input = { policy, nodes, sessions, sessionSeconds, heartbeatMs, kinds };
      return { policy, counted: what, kinds, ...simulatePlacement(input, new Random(parameters.seed)) };
    }),
  );
}

function placementTable(placements: readonly PlacementRun[]): string {
  const rows = placements.map(({ policy, counted, meanLoad, steady, movedShare }) => [
    policy,
    counted,
    meanLoad.toFixed(2),
    times(steady.p99),
    times(steady.most),
    percent(movedShare),
  ]);
  return table(
    ["placed by", "listeners", "mean load", "p99 node", "fullest node", "first client elsewhere"],
    rows,
    2,
  );
}

function takeoverTable(
  { nodes, nodesPerMachine, seed }: Parameters,
  placements: readonly PlacementRun[],
  { heartbeatMs }: RegistryTimes,
): string {
  const middle = Math.floor(nodes / 2 / nodesPerMachine) * nodesPerMachine;
  const losses = [
    ["a node", { first: middle, count: 1 }],
    ["a machine", { first: middle, count: Math.min(nodesPerMachine, nodes - middle) }],
  ] as const;
  const rows = losses.flatMap(([name, lost]) =>
    placements
      .filter(({ policy }) => policy === BUILT)
      .map(({ counted, kinds, sessions }) => {
        const [kept, given] = [false, true].map((givesOn) =>
          simulateTakeover(
            { nodes, nodesPerMachine, heartbeatMs, kinds, sessions, lost, givesOn },
            new Random(seed),
          ),
        );
        return [
          name,
          counted,
          whole(given?.lost ?? 0),
          percent((given?.withoutBuddy ?? 0) / Math.max(1, given?.lost ?? 0)),
          times(kept?.most ?? 1),
          times(given?.most ?? 1),
        ];
      }),
  );
  return table(
    [
      "lost",
      "listeners",
      "sessions",
      "their buddy is lost, too",
      "fullest, where buddies open all",
      "fullest, where they give on",
    ],
    rows,
    2,
  );
}

/** Clients that lose their connection at the same moment. */
interface Group {
  readonly clients: number;
  readonly lostAtMs: number;
  /** Others take their session's node for living until then. */
  readonly heldUntilMs?: number;
}

type Loss = Pick<StormInput, "lostAtMs" | "heldUntilMs" | "nodes" | "refusedUntilMs"> & {
  readonly name: string;
};

/** What becomes of a node: when its clients see it, and when the other nodes know. */
function lossesOf({ parameters, topology }: Run, { goneMs, diedMs }: RegistryTimes): readonly Loss[] {
  const { nodes, nodesPerMachine, livenessMs, busDownMs } = parameters;
  const clientsOf = (lost: number, ownMs: number, othersMs: number): readonly Group[] => [
    { clients: Math.round((lost * topology.near) / nodes), lostAtMs: ownMs, heldUntilMs: othersMs },
    // Clients there of sessions elsewhere, and clients elsewhere of sessions there.
    { clients: Math.round((lost * topology.far) / nodes), lostAtMs: ownMs },
    { clients: Math.round((lost * topology.far) / nodes), lostAtMs: othersMs },
  ];
  const lossOf = (name: string, lost: number, groups: readonly Group[], refusedUntilMs = 0): Loss => ({
    name,
    nodes: nodes - lost,
    refusedUntilMs,
    lostAtMs: listOf(groups, ({ lostAtMs }) => lostAtMs),
    heldUntilMs: listOf(groups, ({ heldUntilMs = 0 }) => heldUntilMs),
  });
  return [
    lossOf("a node is killed", 1, clientsOf(1, 0, diedMs)),
    lossOf("a node hangs", 1, clientsOf(1, livenessMs, goneMs)),
    lossOf("a machine's nodes are killed", nodesPerMachine, clientsOf(nodesPerMachine, 0, diedMs)),
    lossOf("nats-server starts again", 0, [{ clients: topology.far, lostAtMs: 0 }], busDownMs),
  ];
}

function listOf(groups: readonly Group[], read: (group: Group) => number): Float64Array {
  return Float64Array.from(groups.flatMap((group) => new Array<number>(group.clients).fill(read(group))));
}

function lossesTable(runs: readonly Run[], registry: RegistryTimes): string {
  const rows = runs.flatMap((run) => {
    const { affinity, joinUs, acceptQueue, seed } = run.parameters;
    const joinMs = joinUs / 1000 / Math.max(LEAST_FREE, 1 - run.meanCores);
    return lossesOf(run, registry).map(({ name, ...loss }) => {
      const storm = simulateStorm({ ...loss, joinMs, acceptQueue }, new Random(seed));
      return stormRow(name, affinity === 0 ? "0 %" : percent(affinity), storm);
    });
  });
  return table(
    ["lost", "brought", "clients", "back: p50", "p99", "last", "in time", "longest queue", "unanswered"],
    rows,
    2,
  );
}

function stormRow(name: string, who: string, storm: Storm): string[] {
  const last = storm.notBack === 0 ? seconds(storm.lastMs) : `${whole(storm.notBack)} gave up`;
  return [
    name,
    who,
    whole(storm.clients),
    seconds(storm.p50Ms),
    seconds(storm.p99Ms),
    last,
    percent(storm.inTimeShare),
    whole(storm.mostWaiting),
    whole(storm.unanswered),
  ];
}

/** What each part has to do, of what it can. */
function sharesOf({ parameters, traffic, meanCores, mostCores }: Run): ReadonlyMap<string, number> {
  const { nodes, nodesPerMachine, natsCores, natsGbps, natsDeliveryUs, fill, listeners, speaking } =
    parameters;
  const { delivered, deliveredBytes } = totalOf(traffic);
  const listenerBytes =
    FRAMES_PER_SECOND * (FRAME_BYTES + SOCKET_HEAD_BYTES) +
    parameters.eventsPerSecond * (parameters.eventBytes + SOCKET_HEAD_BYTES);
  const machineBytes = (nodesPerMachine / nodes) * (listeners * speaking * listenerBytes + deliveredBytes);
  return new Map([
    [`event loops, mean of ${nodes} nodes`, meanCores / fill],
    ["event loop of the fullest node", mostCores / fill],
    [`CPU of nats-server, ${natsCores} cores`, (delivered * natsDeliveryUs) / 1e6 / natsCores],
    [`network of nats-server, ${natsGbps} Gbit/s`, (deliveredBytes * 8) / 1e9 / natsGbps],
    ["network of a machine, 10 Gbit/s", (machineBytes * 8) / 1e9 / 10],
  ]);
}

function partsTable(runs: readonly Run[]): string {
  const shares = runs.map(sharesOf);
  const rows = [...(shares[0]?.keys() ?? [])].map((part) => [
    part,
    ...shares.map((share) => percent(share.get(part) ?? 0)),
  ]);
  const { affinity, balanceFactor } = runs.at(-1)?.parameters ?? { affinity: 0, balanceFactor: 0 };
  return table(
    [
      "part",
      "used, arrive anywhere",
      `used, ${percent(affinity)} brought`,
      `used, ${times(balanceFactor)} of the mean at most`,
    ],
    rows,
  );
}

/** A batch with its share of events, without the head of the message that it is in. */
function batchBytes({ eventsPerSecond }: Parameters, sizes: RelaySizes): number {
  return sizes.batch + (eventsPerSecond * sizes.event) / BATCHES_PER_SECOND;
}

function formula(parameters: Parameters, sizes: RelaySizes): string {
  const { sessionFrameUs, listenerFrameUs, callFrameUs, farMoreUs, farNextFactor, fill } = parameters;
  const parts = [
    ["sessions", sessionFrameUs],
    ["calls", callFrameUs],
    ["near", listenerFrameUs],
    ["far copies", listenerFrameUs + farMoreUs],
    ["far others", listenerFrameUs * farNextFactor],
  ] as const;
  const sum = parts.map(([what, us]) => `${what} x ${number(us)} us`).join(" + ");
  return [
    "```",
    `cores = speaking x ${FRAMES_PER_SECOND} x (${sum})`,
    `nodes = cores / ${fill}`,
    `bus   = far copies x speaking x ${BATCHES_PER_SECOND} batches/s, of ${whole(batchBytes(parameters, sizes))} bytes each`,
    "```",
  ].join("\n");
}

function exampleTable({ parameters, topology, traffic }: Run, sizes: RelaySizes): string {
  const { sessions, listeners, speaking, calls, fill, natsDeliveryUs } = parameters;
  const { sessionFrameUs, listenerFrameUs, callFrameUs, farMoreUs, farNextFactor } = parameters;
  const perFrame = (speaking * FRAMES_PER_SECOND) / 1e6;
  const farFirst = topology.farCopies;
  const farNext = topology.far - farFirst;
  const near = listeners - topology.far - sessions;
  const cores = [
    ["sessions", sessions, sessionFrameUs],
    ["of them calls, more", sessions * calls, callFrameUs],
    ["further listeners at the session's node", near, listenerFrameUs],
    ["first listeners at another node", farFirst, listenerFrameUs + farMoreUs],
    ["further listeners there", farNext, listenerFrameUs * farNextFactor],
  ] as const;
  const total = cores.reduce((sum, [, count, us]) => sum + count * us * perFrame, 0);
  const { delivered } = totalOf(traffic);
  const batches = farFirst * speaking * BATCHES_PER_SECOND;
  return table(
    ["step", "arithmetic", "gives"],
    [
      ...cores.map(([what, count, us]) => [
        what,
        `${whole(count)} x ${speaking} x ${FRAMES_PER_SECOND} x ${number(us)} us`,
        `${number(count * us * perFrame)} cores`,
      ]),
      ["nodes", `${number(total)} cores / ${fill}`, whole(Math.ceil(total / fill))],
      [
        "batches on the bus",
        `${whole(farFirst)} x ${speaking} x ${BATCHES_PER_SECOND}`,
        `${whole(batches)}/s`,
      ],
      [
        "their bytes",
        `${whole(batches)} x ${whole(batchBytes(parameters, sizes))}`,
        `${number((batches * batchBytes(parameters, sizes)) / 1e6)} MB/s`,
      ],
      [
        "cores of nats-server",
        `${whole(delivered)} messages/s x ${number(natsDeliveryUs)} us`,
        number((delivered * natsDeliveryUs) / 1e6),
      ],
    ],
  );
}
