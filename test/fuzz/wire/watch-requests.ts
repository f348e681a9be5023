/** `npm run fuzz -- requests`: every endpoint of the gateway and of the speech service, each a process of its own. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startCarrierEdge } from "../../unit/telephony/carrier-edge.ts";
import { startFuzzedGateway } from "./fuzzed-gateway.ts";
import { ObservedProcess } from "./observed-process.ts";
import { startQuickUpstream } from "./quick-upstream.ts";
import { RequestCrowd } from "./request-crowd.ts";
import { gatewaySeed, type RequestSeed, serviceSeeds } from "./request-seeds.ts";

const AT_ONCE = 32;
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
}

/** So many requests for each seed, in turns. */
export async function runRequests(
  observed: ObservedProcess,
  job: {
    readonly port: number;
    readonly seeds: readonly RequestSeed[];
    readonly inputs: number;
    readonly seed: number;
  },
): Promise<RequestsReport> {
  const crowd = new RequestCrowd(job.port, job.seed);
  const logged = observed.faults.length;
  const send = async (count: number): Promise<void> => {
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < count * job.seeds.length && observed.isAlive) {
        const seed = job.seeds[next % job.seeds.length];
        next += 1;
        if (seed !== undefined) await crowd.request(seed);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
  };
  await send(Math.ceil(job.inputs / 10));
  const heapBeforeMb = await observed.heapMb();
  await send(job.inputs - Math.ceil(job.inputs / 10));
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
  };
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
    options: { inputs: { type: "string", default: "100000" }, seed: { type: "string", default: "1" } },
  });
  const [inputs, seed] = [Number(values.inputs), Number(values.seed)];
  const main = join(folder, "../../dist/main.js");
  const reports: [string, RequestsReport][] = [];
  if (!positionals.includes("service")) {
    await using upstream = await startQuickUpstream();
    await using gateway = await startFuzzedGateway({ main, upstreamUrl: upstream.url });
    const job = { port: gateway.port, seeds: await gatewaySeeds(), inputs, seed };
    reports.push(["gateway", await runRequests(gateway.process, job)]);
  }
  if (!positionals.includes("gateway")) {
    await using service = await startFuzzedService(main);
    const seeds = serviceSeeds(join(folder, "../../docs/openapi.json"));
    const job = { port: Number(new URL(service.said).port), seeds, inputs, seed };
    reports.push(["service", await runRequests(service, job)]);
  }
  for (const [name, { sent, statuses, heapBeforeMb, heapAfterMb, faults }] of reports) {
    console.log(
      `${name}: ${sent} requests, heap ${heapBeforeMb} -> ${heapAfterMb} MB, ${JSON.stringify(statuses)}`,
    );
    if (faults.length > 0) console.error(`${name}: BROKEN\n${faults.join("\n")}`);
  }
  return reports.every(([, { faults }]) => faults.length === 0) ? 0 : 1;
}
