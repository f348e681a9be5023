/** What the simulation of a cluster is given: figures that were measured, each with its source, and what is assumed. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { CONNECTION_QUEUE } from "../../../src/cli/serve/connection-queue.ts";
import { SETTINGS } from "../../../src/config.ts";

interface Parameter {
  readonly value: number;
  readonly unit: string;
  readonly about: string;
}

interface MeasuredParameter extends Parameter {
  readonly source: string;
}

/** What the gateway takes where nothing is set. */
export function defaultOf(name: string): number {
  const setting = SETTINGS.find(({ key }) => key === name);
  if (typeof setting?.default !== "number") throw new TypeError(`No setting ${name}`);
  return setting.default;
}

/** The figure as results.json has it, in the first number of its text. */
function measured(
  results: URL,
  bench: string,
  figure: RegExp,
  column: "measured" | "baseline" | "ratio",
): number {
  const runs = JSON.parse(readFileSync(results, "utf8")) as {
    name: string;
    rows: { figure: string; measured: string; baseline: string; ratio: string }[];
  }[];
  const row = runs.find(({ name }) => name === bench)?.rows.find((one) => figure.test(one.figure));
  const value = Number.parseFloat(row?.[column] ?? "");
  if (!Number.isFinite(value)) throw new Error(`bench/results.json has no figure ${figure} of ${bench}`);
  return value;
}

/** The figure that bounds.md, beside results.json, states under a heading: of benches that results.json does not hold. */
function stated(results: URL, heading: string, figure: RegExp): number {
  const page = readFileSync(new URL("bounds.md", results), "utf8");
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}:`));
  const value = Number.parseFloat(figure.exec(section ?? "")?.[1] ?? "");
  if (!Number.isFinite(value)) throw new Error(`bench/bounds.md states no figure ${figure} under ${heading}`);
  return value;
}

/** The bench lets so many clients join with tokens. */
const JOINS_PER_SECOND = 5000;

/** A session with its one listener is measured, near and far: what is between them is the listener's. */
function farMoreUs(results: URL): number {
  const of = (column: "measured" | "baseline"): number =>
    measured(results, "far", /CPU .* 1 listener each/, column);
  return Math.max(0, Math.round(100 * (of("measured") - of("baseline"))) / 100);
}

function measuredParameters(results: URL) {
  const joinCores = stated(results, "D1", /([\d.]+) cores, against/);
  return {
    sessionFrameUs: {
      value: measured(results, "p1", /with timestamps/, "measured"),
      unit: "us",
      about: "CPU of a session and its first listener, a frame",
      source: "`p1`, with timestamps",
    },
    listenerFrameUs: {
      value: measured(results, "p2", /bare uWebSockets/, "measured"),
      unit: "us",
      about: "CPU of each further listener, a frame",
      source: "`p2`",
    },
    callFrameUs: {
      value: stated(results, "Calls", /^Measured: \+([\d.]+) us/m),
      unit: "us",
      about: "CPU that a Twilio call adds, a frame",
      source: "`calls`, in bench/bounds.md",
    },
    farMoreUs: {
      value: farMoreUs(results),
      unit: "us",
      about: "a node's first far listener, beyond a near one, a frame",
      source: "`far`: both nodes, one listener each",
    },
    farNextFactor: {
      value: measured(results, "far", /CPU .* 100 listeners each/, "ratio"),
      unit: "x",
      about: "each further far listener there, against a near one",
      source: "`far`: both nodes, 100 listeners each",
    },
    joinUs: {
      value: Math.round((1e6 * joinCores) / JOINS_PER_SECOND),
      unit: "us",
      about: "CPU of a client that joins with a token",
      source: `\`d1\`, in bench/bounds.md: ${joinCores} cores, 5,000 joins/s`,
    },
    acceptQueue: {
      value: CONNECTION_QUEUE,
      unit: "",
      about: "connections that wait at a node to be accepted",
      source: "src/cli/serve/connection-queue.ts",
    },
    natsDeliveryUs: {
      value: measured(results, "p2", /against nats-server/, "baseline"),
      unit: "us",
      about: "CPU of nats-server, a message that it delivers",
      source: "`p2`: over WebSockets, so rather too much",
    },
    sessionKb: {
      value: stated(results, "P7", /([\d.]+) KB with timing/),
      unit: "KB",
      about: "memory of a live session with times",
      source: "`p7`, in bench/bounds.md",
    },
    eventsPerSecond: {
      value: 2.7,
      unit: "/s",
      about: "events of a listener by default, while it is spoken",
      source: "counted: 34 s of the built-in voice",
    },
    eventBytes: {
      value: 355,
      unit: "bytes",
      about: "one of them",
      source: "counted: 34 s of the built-in voice",
    },
    tellsPerSecond: {
      value: 4.8,
      unit: "/s",
      about: "entries that a buddy is sent of a session that speaks",
      source: "counted: 30 s of the built-in voice",
    },
    tellBytes: {
      value: 41,
      unit: "bytes",
      about: "one of them, with words to come and texts",
      source: "counted: 30 s of the built-in voice",
    },
    natsHeadBytes: {
      value: 64,
      unit: "bytes",
      about: "subject and framing of a message on the bus",
      source: "src/cluster/bus/send-window.ts",
    },
  } as const satisfies Record<string, MeasuredParameter>;
}

const ASSUMED = {
  seed: { value: 1, unit: "", about: "of the random numbers: the same seed, the same output" },
  sessions: { value: 100_000, unit: "", about: "sessions at once" },
  listeners: { value: 1_000_000, unit: "", about: "listeners of all sessions together" },
  nodes: { value: 200, unit: "", about: "gateway processes, a core each" },
  nodesPerMachine: { value: 8, unit: "", about: "of them on one machine" },
  speaking: { value: 0.5, unit: "", about: "share of the sessions that speak at a time" },
  calls: { value: 0.2, unit: "", about: "share of the sessions that are phone calls" },
  affinity: {
    value: 0.9,
    unit: "",
    about: "share of the listeners that the balancer brings to their session's node",
  },
  balanceFactor: {
    value: 1.1,
    unit: "x",
    about: "most that it brings to one node, against the mean, where that is bounded",
  },
  sessionSeconds: { value: 300, unit: "s", about: "mean life of a session" },
  fill: { value: 0.7, unit: "", about: "share of a core that a node may use" },
  natsCores: { value: 12, unit: "", about: "cores of all nats-servers together" },
  natsGbps: { value: 30, unit: "Gbit/s", about: "network of all nats-servers together, each way" },
  livenessMs: { value: 15_000, unit: "ms", about: "until a node that hangs is killed by its liveness probe" },
  busDownMs: { value: 1000, unit: "ms", about: "how long nats-server is away when it is started again" },
} as const satisfies Record<string, Parameter>;

export type MeasuredKey = keyof ReturnType<typeof measuredParameters>;
export type AssumedKey = keyof typeof ASSUMED;
export type Parameters = { readonly [K in MeasuredKey | AssumedKey]: number };

export interface ParameterTables {
  readonly measured: Readonly<Record<string, MeasuredParameter>>;
  readonly assumed: Readonly<Record<string, Parameter>>;
}

/** `results`: bench/results.json. */
export function parameterTables(results: URL): ParameterTables {
  return { measured: measuredParameters(results), assumed: ASSUMED };
}

export const flagOf = (key: string): string =>
  key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);

/** The tables with what the flags change; a text says what is wrong with them. */
export function readParameters(
  { measured: figures, assumed }: ParameterTables,
  args: readonly string[],
): Parameters | string {
  const all = { ...figures, ...assumed };
  const options = Object.fromEntries(
    Object.keys(all).map((key) => [flagOf(key), { type: "string" as const }]),
  );
  let values: Record<string, string | undefined>;
  try {
    values = parseArgs({ args: [...args], options }).values;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
  const read: Record<string, number> = {};
  for (const [key, { value }] of Object.entries(all)) {
    const text = values[flagOf(key)];
    const number = text === undefined ? value : Number(text);
    if (text === "" || !Number.isFinite(number) || number < 0) return `--${flagOf(key)} is not a number`;
    read[key] = number;
  }
  const parameters = read as Parameters;
  return complaintOf(parameters) ?? parameters;
}

/** Beyond these the simulation would run for minutes, or has nothing to say. */
function complaintOf(parameters: Parameters): string | null {
  const { sessions, listeners, nodes, nodesPerMachine } = parameters;
  for (const key of ["sessions", "listeners", "nodes", "nodesPerMachine", "acceptQueue"] as const) {
    if (!Number.isInteger(parameters[key])) return `--${flagOf(key)} is no whole number`;
  }
  for (const key of ["speaking", "calls", "affinity", "fill"] as const) {
    if (parameters[key] > 1) return `--${key} is a share: 0 to 1`;
  }
  if (sessions < 1 || sessions > 1_000_000) return "--sessions: expected 1 to 1000000";
  if (listeners < sessions || listeners > 5_000_000)
    return "--listeners: expected one for each session, 5000000 at most";
  if (nodesPerMachine < 1) return "--nodes-per-machine: expected 1 or more";
  if (nodes < 4 || nodes > 1000 || nodes <= nodesPerMachine)
    return "--nodes: expected 4 to 1000, on two machines at least";
  if (parameters.balanceFactor < 1) return "--balance-factor: expected 1 or more";
  if (parameters.sessionSeconds < 1) return "--session-seconds: expected 1 or more";
  return null;
}
