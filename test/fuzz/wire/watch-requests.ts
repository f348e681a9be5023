/** `npm run fuzz -- requests`: every endpoint of the gateway and of the speech service, each a process of its own. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startCarrierEdge } from "../../unit/telephony/carrier-edge.ts";
import { startFuzzedGateway } from "./fuzzed-gateway.ts";
import { ObservedProcess } from "./observed-process.ts";
import { startQuickUpstream } from "./quick-upstream.ts";
import { RequestCrowd } from "./request-crowd.ts";
import { gatewaySeed, type RequestSeed, serviceSeeds } from "./request-seeds.ts";
import { type RequestsRow, sumOfRequests } from "./requests-results.ts";
import { ResultsFile } from "./results-file.ts";

/** Few enough that no answer is late for the others' sake; those that wait for what never comes are beside them. */
const ASKING = 32;
const MAX_GROWTH_MB = 24;

/** A request for each route of the gateway, but for its sockets. */
export async function gatewaySeeds(): Promise<RequestSeed[]> {
  await using edge = await startCarrierEdge();
  return edge.edge.routes
    .filter(({ method }) => method !== "ws")
    .map(({ method, pattern }) => gatewaySeed(method, pattern));
}

export interface RequestsReport {
  readonly sent: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly heapBeforeMb: number;
  readonly heapAfterMb: number;
  readonly faults: readonly string[];
  readonly cost: RequestCost;
}

/** On average. */
export interface RequestCost {
  /** Time of the processor that the fuzzer takes, and what answers it for the gateway, ms. */
  readonly ownCpuMs: number;
  /** And the process that is asked, ms. */
  readonly itsCpuMs: number;
  readonly perSecond: number;
  /** The share of requests whose answer did not come soon. */
  readonly waited: number;
}

/** So many requests for each seed, in turns. */
export async function runRequests(
  observed: ObservedProcess,
  job: {
    readonly port: number;
    readonly seeds: readonly RequestSeed[];
    readonly inputs: number;
    readonly seed: number;
    /** It ends after so many seconds, whatever is left; default: it does not. */
    readonly maxSeconds?: number;
  },
): Promise<RequestsReport> {
  const { maxSeconds = Number.POSITIVE_INFINITY } = job;
  const crowd = new RequestCrowd(job.port, job.seed);
  const logged = observed.faults.length;
  const beganMs = performance.now();
  const endMs = beganMs + maxSeconds * 1000;
  const ownBefore = ownCpuMs();
  const itsBefore = observed.cpuMs();
  const send = async (count: number): Promise<void> => {
    let asked = 0;
    const next = (): RequestSeed | null => {
      if (asked >= count * job.seeds.length || !observed.isAlive || performance.now() > endMs) return null;
      const seed = job.seeds[asked % job.seeds.length];
      asked += 1;
      return seed ?? null;
    };
    await crowd.ask(next, ASKING);
  };
  await send(Math.ceil(job.inputs / 10));
  const heapBeforeMb = await observed.heapMb();
  await send(job.inputs - Math.ceil(job.inputs / 10));
  const cost = {
    ownCpuMs: (ownCpuMs() - ownBefore) / crowd.sent,
    itsCpuMs: (observed.cpuMs() - itsBefore) / crowd.sent,
    perSecond: (1000 * crowd.sent) / (performance.now() - beganMs),
    waited: crowd.waited / crowd.sent,
  };
  const faults = [...crowd.faults, ...observed.faults.slice(logged)];
  if (!observed.isAlive) faults.push("the process has ended");
  const heapAfterMb = observed.isAlive ? await observed.heapMb() : 0;
  if (heapAfterMb - heapBeforeMb > MAX_GROWTH_MB)
    faults.push(`the heap has grown from ${heapBeforeMb} to ${heapAfterMb} MB`);
  return {
    sent: crowd.sent,
    statuses: Object.fromEntries(crowd.statuses),
    heapBeforeMb,
    heapAfterMb,
    faults,
    cost,
  };
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export function startFuzzedService(main: string): Promise<ObservedProcess> {
  return ObservedProcess.start({
    main,
    args: ["service", "--port", "0", "--log-level", "error"],
    ready: /Speech service on (http:\S+)/,
  });
}

/** The process's exit code: 0 where every endpoint held. `folder`: test/fuzz. */
export async function watchRequests(args: readonly string[], folder: string): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      inputs: { type: "string", default: "100000" },
      seed: { type: "string" },
      minutes: { type: "string", default: "Infinity" },
    },
  });
  const results = new ResultsFile<RequestsRow>(join(folder, "wire/requests.json"));
  const main = join(folder, "../../dist/main.js");
  const jobOf = (name: string): { inputs: number; seed: number; maxSeconds: number } => ({
    inputs: Number(values.inputs),
    seed: values.seed === undefined ? results.newSeed(name) : Number(values.seed),
    maxSeconds: 60 * Number(values.minutes),
  });
  const runs: Readonly<Record<string, () => Promise<[readonly RequestSeed[], RequestsReport]>>> = {
    gateway: async () => {
      await using upstream = await startQuickUpstream();
      await using gateway = await startFuzzedGateway({ main, upstreamUrl: upstream.url });
      const seeds = await gatewaySeeds();
      const { port } = gateway;
      return [seeds, await runRequests(gateway.process, { port, seeds, ...jobOf("gateway") })];
    },
    service: async () => {
      await using service = await startFuzzedService(main);
      const seeds = serviceSeeds(join(folder, "../../docs/openapi.json"));
      const port = Number(new URL(service.said).port);
      return [seeds, await runRequests(service, { port, seeds, ...jobOf("service") })];
    },
  };
  let isHeld = true;
  for (const [name, run] of Object.entries(runs)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    const { seed } = jobOf(name);
    const [seeds, report] = await run();
    const { sent, statuses, heapBeforeMb, heapAfterMb, faults, cost } = report;
    console.log(
      `${name}: ${sent} requests, heap ${heapBeforeMb} -> ${heapAfterMb} MB, ${JSON.stringify(statuses)}`,
    );
    console.log(
      `${name}: ${cost.perSecond.toFixed(0)} requests/s, each ${cost.itsCpuMs.toFixed(3)} ms of its processor and ` +
        `${cost.ownCpuMs.toFixed(3)} ms of the fuzzer's, ${(100 * cost.waited).toFixed(1)} % wait`,
    );
    if (faults.length > 0) {
      isHeld = false;
      console.error(`${name}: BROKEN\n${faults.join("\n")}`);
      continue;
    }
    results.add(
      { name, endpoints: seeds.length, requests: sent, statuses, heapBeforeMb, heapAfterMb, seeds: [seed] },
      sumOfRequests,
    );
  }
  return isHeld ? 0 : 1;
}
