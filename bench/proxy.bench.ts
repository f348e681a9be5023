/** What the proxy adds: the same requests to a plain HTTP server, and through the gateway, in turn. */
import autocannon from "autocannon";
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";
import { cpuMs } from "./kit/cpu.ts";
import { median } from "./kit/statistics.ts";

const CONNECTIONS = 20;
const MAX_ADDED_MS = 0.5;
const MIN_THROUGHPUT = 0.8;
const BODY = JSON.stringify({
  text: "The quick brown fox jumps over the lazy dog.",
  model_id: "eleven_flash_v2_5",
});

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
  const seconds = bench.pick(6, 1);
  const rounds = bench.pick(3, 1);
  bench.method(
    `autocannon, ${CONNECTIONS} connections, ${seconds} s each, direct and through the gateway in turn, ${rounds} rounds, medians; the vendor is a plain Node HTTP`,
    "server in a process of its own that answers after 20 ms (a vendor takes longer), and once at once, where all three share two cores.",
  );
  for (const workMs of [20, 0]) {
    await using vendor = await bench.start<NoCommands>("vendor", { workMs });
    await using gateway = await bench.startGateway("voicewire", vendor.port);
    for (const each of CASES) {
      await compare(bench, each, {
        vendor: vendor.port,
        gateway: gateway.port,
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
    readonly vendor: number;
    readonly gateway: number;
    readonly pid: number;
    readonly workMs: number;
    readonly seconds: number;
    readonly rounds: number;
  },
): Promise<void> {
  const p50 = { direct: [] as number[], proxied: [] as number[] };
  const rate = { direct: [] as number[], proxied: [] as number[] };
  let cpuUs = 0;
  for (let round = 0; round < run.rounds; round += 1) {
    for (const way of ["direct", "proxied"] as const) {
      const before = cpuMs(run.pid);
      const result = await autocannon({
        url: `http://127.0.0.1:${way === "direct" ? run.vendor : run.gateway}${path}`,
        method,
        connections: CONNECTIONS,
        duration: run.seconds,
        ...(method === "POST" ? { body: BODY, headers: { "content-type": "application/json" } } : {}),
      });
      if (result.non2xx > 0 || result.errors > 0)
        bench.note(`${way}: ${result.non2xx} refused, ${result.errors} failed`);
      if (way === "proxied") cpuUs = ((cpuMs(run.pid) - before) * 1000) / Math.max(1, result.requests.total);
      rate[way].push(result.requests.average);
      // By Little's law, for autocannon counts whole milliseconds: with so many always open, the mean time of one.
      p50[way].push((CONNECTIONS * 1000) / result.requests.average);
    }
  }
  const added = median(p50.proxied) - median(p50.direct);
  const ratio = median(rate.proxied) / median(rate.direct);
  const isTarget = run.workMs > 0;
  bench.row({
    figure: `Proxy ${figure}, vendor takes ${run.workMs} ms`,
    measured: `${added.toFixed(2)} ms added, ${Math.round(median(rate.proxied))} requests/s, ${cpuUs.toFixed(0)} us CPU each`,
    baseline: `${Math.round(median(rate.direct))} requests/s (direct)`,
    ratio: ratio.toFixed(2),
    target: isTarget ? `<= ${MAX_ADDED_MS} ms, >= ${MIN_THROUGHPUT}x` : "",
    isOk: isTarget ? added <= MAX_ADDED_MS && ratio >= MIN_THROUGHPUT : null,
  });
}
