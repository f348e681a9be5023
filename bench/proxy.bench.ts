/** What the proxy adds: the same requests to a plain HTTP server, and through the gateway, in turn. */
import autocannon from "autocannon";
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";
import { cpuMs } from "./kit/cpu.ts";
import { median } from "./kit/statistics.ts";

/** For throughput; the time added is that of one request alone, or it would be that of waiting for nineteen others. */
const CONNECTIONS = 20;
const MAX_ADDED_MS = 0.5;
const MIN_THROUGHPUT = 0.8;
const BODY = JSON.stringify({
  text: "The quick brown fox jumps over the lazy dog.",
  model_id: "eleven_flash_v2_5",
});

const WAYS = ["direct", "relayed", "forwarded", "proxied"] as const;
type Way = (typeof WAYS)[number];

interface Case {
  readonly figure: string;
  readonly path: string;
  readonly method: "GET" | "POST";
}

const CASES: readonly Case[] = [
  { figure: "GET, 2 KB of JSON", path: "/v1/models", method: "GET" },
  { figure: "POST speech, 16 KB of audio", path: "/v1/text-to-speech/v", method: "POST" },
];

runBench(async (bench) => {
  const seconds = bench.pick(4, 1);
  const rounds = bench.pick(3, 1);
  bench.method(
    `autocannon, one connection and then ${CONNECTIONS}, ${seconds} s each, direct, through two controls and through the gateway in turn, ${rounds} rounds, medians; the vendor is a plain`,
    "Node HTTP server in a process of its own that answers after 20 ms (a vendor takes longer), and once at once, where all three share two cores. The controls:",
    "a Node process that hands on bytes and looks at none, and the least proxy that node:http makes (requests piped through a keep-alive agent).",
  );
  for (const workMs of [20, 0]) {
    await using vendor = await bench.start<NoCommands>("vendor", { workMs });
    await using gateway = await bench.startGateway("voicewire", vendor.port);
    await using relay = await bench.start<NoCommands>("relay", { vendorPort: vendor.port });
    await using forwarder = await bench.start<NoCommands>("forwarder", { vendorPort: vendor.port });
    for (const each of CASES) {
      await compare(bench, each, {
        ports: { direct: vendor.port, relayed: relay.port, forwarded: forwarder.port, proxied: gateway.port },
        pid: gateway.pid,
        workMs,
        seconds,
        rounds,
      });
    }
  }
});

async function compare(
  bench: Bench,
  { figure, path, method }: Case,
  run: {
    readonly ports: Readonly<Record<Way, number>>;
    readonly pid: number;
    readonly workMs: number;
    readonly seconds: number;
    readonly rounds: number;
  },
): Promise<void> {
  const aloneMs: Record<Way, number[]> = { direct: [], relayed: [], forwarded: [], proxied: [] };
  const rate: Record<Way, number[]> = { direct: [], relayed: [], forwarded: [], proxied: [] };
  let cpuUs = 0;
  for (let round = 0; round < run.rounds; round += 1) {
    for (const way of WAYS) {
      const ask = {
        url: `http://127.0.0.1:${run.ports[way]}${path}`,
        method,
        duration: run.seconds,
        ...(method === "POST" ? { body: BODY, headers: { "content-type": "application/json" } } : {}),
      };
      const alone = await autocannon({ ...ask, connections: 1 });
      // autocannon counts whole milliseconds: with one request at a time its rate tells the mean.
      aloneMs[way].push(1000 / alone.requests.average);
      const before = cpuMs(run.pid);
      const crowd = await autocannon({ ...ask, connections: CONNECTIONS });
      if (crowd.non2xx > 0 || crowd.errors > 0)
        bench.note(`${way}: ${crowd.non2xx} refused, ${crowd.errors} failed`);
      if (way === "proxied") cpuUs = ((cpuMs(run.pid) - before) * 1000) / Math.max(1, crowd.requests.total);
      rate[way].push(crowd.requests.average);
    }
  }
  const added = median(aloneMs.proxied) - median(aloneMs.direct);
  const control = (way: Way, name: string): string =>
    `${name}: ${(median(aloneMs[way]) - median(aloneMs.direct)).toFixed(2)} ms added, ${Math.round(median(rate[way]))} requests/s`;
  const ratio = median(rate.proxied) / median(rate.direct);
  const isTarget = run.workMs > 0;
  bench.row({
    figure: `Proxy ${figure}, vendor takes ${run.workMs} ms`,
    measured: `${added.toFixed(2)} ms added alone, ${Math.round(median(rate.proxied))} requests/s, ${cpuUs.toFixed(0)} us CPU each`,
    baseline: [
      `${Math.round(median(rate.direct))} requests/s (direct)`,
      control("relayed", "relay"),
      control("forwarded", "plain Node proxy"),
    ].join("; "),
    ratio: ratio.toFixed(2),
    target: isTarget ? `<= ${MAX_ADDED_MS} ms, >= ${MIN_THROUGHPUT}x` : "",
    isOk: isTarget ? added <= MAX_ADDED_MS && ratio >= MIN_THROUGHPUT : null,
  });
}
