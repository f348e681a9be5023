/** Traces: what it costs to keep every trace: CPU of a span alone, and of a gateway's frames with a collector and without. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../src/kit/clock.ts";
import { createSampler } from "../src/tracing/sampler.ts";
import { Tracer } from "../src/tracing/tracer.ts";
import { type Bench, coresNote, measureWindow, runBench, usPerFrame, type Window } from "./kit/bench.ts";
import { ServedProgram } from "./kit/served-program.ts";
import { median } from "./kit/statistics.ts";
import { STEADY_GROUP, type SteadySize, speakSteadily } from "./kit/steady-speech.ts";

const LEAD_MS = 300;
const TARGET_SPAN_US = 25;
const TARGET_RATIO = 1.03;
const KINDS = ["none", "all"] as const;

runBench(async (bench) => {
  const size = {
    /** In each of the two gateways. */
    sessions: bench.pick(300, 40),
    /** As a turn of an agent: the shorter, the more spans a frame. */
    utteranceSeconds: 3,
    settleSeconds: bench.pick(5, 1),
    windowSeconds: bench.pick(60, 2),
    spans: bench.pick(200_000, 2000),
  };
  bench.method(
    `A span: ${size.spans} requests with nine attributes and an event each, in a row, CPU of the process divided by their number.`,
    "Frames: two gateways side by side, one that keeps every trace and one that keeps none, so that both run on the same machine; each has",
    `${size.sessions} sessions with timestamps and the default events, each with one listener (ulaw_8000, 20 ms, lead ${LEAD_MS} ms), utterances of`,
    `${size.utteranceSeconds} s back to back, each with one request to the upstream; a collector takes all. CPU (user + system, all`,
    `threads, /proc) over ${size.windowSeconds} s divided by the frames that its load client received; fresh processes for each of`,
    `${bench.options.rounds} runs, medians; the ratio is the median of the runs' ratios.`,
  );
  const spanUs = costOfSpan(size.spans);
  bench.row({
    figure: "Traces: CPU of a span",
    measured: `${spanUs.toFixed(1)} us`,
    baseline: "",
    ratio: "",
    target: `<= ${TARGET_SPAN_US} us`,
    isOk: spanUs <= TARGET_SPAN_US,
  });
  const runs: { readonly without: number; readonly traced: number }[] = [];
  for (let round = 0; round < bench.options.rounds; round += 1) {
    const [none, all] = await Promise.all(KINDS.map((kept) => measure(bench, kept, size)));
    if (none === undefined || all === undefined) throw new Error("A gateway was not measured");
    runs.push({ without: usPerFrame(none), traced: usPerFrame(all) });
  }
  const without = median(runs.map((run) => run.without));
  const traced = median(runs.map((run) => run.traced));
  const ratio = median(runs.map((run) => run.traced / run.without));
  bench.row({
    figure: "Traces: CPU per frame, all kept",
    measured: `${traced.toFixed(2)} us`,
    baseline: `${without.toFixed(2)} us (none kept)`,
    ratio: ratio.toFixed(2),
    target: `<= ${TARGET_RATIO.toFixed(2)}x`,
    isOk: ratio <= TARGET_RATIO,
  });
});

/** CPU, us. */
function costOfSpan(count: number): number {
  let bytes = 0;
  const tracer = new Tracer({
    clock: systemClock,
    sampler: createSampler("always_on", undefined),
    wallMs: Date.now,
    deliver: (json) => {
      bytes += json.length;
    },
  });
  const one = (index: number): void => {
    const startMs = systemClock.nowMs();
    const span = tracer.begin(null, {
      name: "tts request",
      kind: "client",
      startMs,
      attributes: {
        "gen_ai.operation.name": "tts",
        "gen_ai.output.type": "speech",
        "gen_ai.provider.name": "elevenlabs",
        "vw.voice_id": "21m00Tcm4TlvDq8ikWAM",
        "vw.output_format": "ulaw_8000",
        "vw.characters": index,
        "vw.try": 1,
      },
    });
    span?.set({ "vw.request_id": "request", "vw.characters_billed": index });
    span?.event("first_byte", startMs);
    span?.end(systemClock.nowMs());
  };
  for (let index = 0; index < count / 10; index += 1) one(index);
  const before = process.cpuUsage();
  for (let index = 0; index < count; index += 1) one(index);
  const { user, system } = process.cpuUsage(before);
  if (bytes === 0) throw new Error("No span was made");
  return (user + system) / count;
}

async function measure(bench: Bench, kept: (typeof KINDS)[number], size: SteadySize): Promise<Window> {
  await using collector = await startCollector();
  await using upstream = await bench.startUpstream();
  await using program = await ServedProgram.start({
    distUrl: bench.options.distUrl,
    upstreamPort: upstream.port,
    workers: 1,
    env:
      kept === "all" ? { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "1000" } : {},
  });
  await using load = await bench.startLoad();
  const path = `/live/traces-{i}?format=ulaw_8000&lead_ms=${LEAD_MS}`;
  const failed = await speakSteadily(load, { port: program.port, path, size });
  const { bytes: bytesBefore } = collector.taken;
  const window = await measureWindow({
    serverPid: program.pid,
    load,
    group: STEADY_GROUP,
    seconds: size.windowSeconds,
    otherPid: upstream.pid,
  });
  const bytes = collector.taken.bytes - bytesBefore;
  if (kept === "all" && collector.taken.bytes === 0) throw new Error("The collector got nothing");
  bench.note(
    `Traces ${kept}: ${usPerFrame(window).toFixed(2)} us/frame, ${window.frames} frames; collector got ${bytes} bytes; ` +
      `${coresNote(window)}; ${window.open} connections open, ${failed} failed`,
  );
  return window;
}

/** Takes whatever comes. */
async function startCollector() {
  const taken = { bytes: 0 };
  const server = createServer((req, res) => {
    req.on("data", (piece: Buffer) => {
      taken.bytes += piece.length;
    });
    req.on("end", () => res.setHeader("content-type", "application/json").end("{}"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    taken,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
