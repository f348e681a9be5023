/** The HTTP side, by autocannon: how much a health check and a command without a socket cost the gateway. */
import autocannon from "autocannon";
import { type Bench, runBench } from "./kit/bench.ts";
import { cpuMs } from "./kit/cpu.ts";

runBench(async (bench) => {
  const seconds = bench.pick(8, 2);
  bench.method(
    `autocannon, 20 connections for ${seconds} s in the bench's own process; server CPU (all threads, /proc) for each request answered.`,
  );
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  for (const { figure, path, method } of [
    { figure: "GET /healthz", path: "/healthz", method: "GET" as const },
    {
      figure: "POST /live/{session}/interrupt (no such session)",
      path: "/live/nobody/interrupt",
      method: "POST" as const,
    },
    { figure: "GET / (the page)", path: "/", method: "GET" as const },
  ]) {
    await measure(bench, {
      url: `http://127.0.0.1:${gateway.port}${path}`,
      figure,
      method,
      seconds,
      pid: gateway.pid,
    });
  }
});

async function measure(
  bench: Bench,
  run: {
    readonly url: string;
    readonly figure: string;
    readonly method: "GET" | "POST";
    readonly seconds: number;
    readonly pid: number;
  },
): Promise<void> {
  const before = cpuMs(run.pid);
  const result = await autocannon({
    url: run.url,
    method: run.method,
    connections: 20,
    duration: run.seconds,
  });
  const spentUs = (cpuMs(run.pid) - before) * 1000;
  const answered = result.requests.total;
  bench.row({
    figure: `HTTP ${run.figure}`,
    measured: `${(spentUs / answered).toFixed(0)} us CPU, ${Math.round(result.requests.average)} requests/s, p99 ${result.latency.p99} ms`,
    baseline: "",
    ratio: "",
    target: "",
    isOk: null,
  });
}
