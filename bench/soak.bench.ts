/**
 * An accelerated soak of the session engine: hours of calls on a clock that is turned by hand, with real encoders. It
 * fails where a rule is broken; how memory goes is in the table.
 */
import { FakeClock } from "../test/helpers/fake-clock.ts";
import { type Bench, runBench } from "./kit/bench.ts";
import { megabytes } from "./kit/memory.ts";
import { monotonicMs, wait } from "./kit/monotonic.ts";
import { Random } from "./kit/random.ts";
import { CALLS_AT_ONCE, SAMPLE_EVERY, type Sample, Soak, UTTERANCES_A_CALL } from "./kit/soak.ts";
import { CountingPool, createEngine, type Engine, loadModules } from "./kit/soak-engine.ts";
import { SoakUpstream } from "./kit/soak-upstream.ts";
import { slope } from "./kit/statistics.ts";

const SEED = 20_260;
/** Share of the samples at the beginning that the slope leaves out: code is compiled, buffers find their size. */
const WARM_UP = 0.2;
const TARGET_SLOPE_MB = 2;

runBench(async (bench) => {
  const utterances = bench.pick(50_000, 2000);
  bench.method(
    `The session engine without sockets, ${CALLS_AT_ONCE} sessions at a time of ${UTTERANCES_A_CALL} utterances each, ${utterances} in all (whole texts, token streams, dialogues), an upstream in`,
    "the process that answers at once and fails now and then, two of five utterances interrupted at a random point, one of ten of those resumed,",
    "listeners that join, leave, stall and change their format, Opus from the real encoder threads. The clock is turned by hand, so that nothing is waited for.",
    `Memory after forced collection every ${SAMPLE_EVERY} ends; slopes by linear regression without the first ${WARM_UP * 100}%. Rules: every utterance ends exactly once`,
    "(and once more for each time it was resumed), `seq` never falls, no error of the gateway's own, and at the end no session, timer, encoder, request or handle is left.",
  );
  // Worker threads open these two for good: they are not what is looked for at the end.
  for (const stream of [process.stdout, process.stderr]) stream.write("");
  const resourcesBefore = process.getActiveResourcesInfo();
  const modules = await loadModules(bench.options.distUrl);
  const random = new Random(SEED);
  const upstream = new SoakUpstream(random, {
    share: 0.01,
    error: () => new modules.GatewayError("upstream_failed", "Upstream failed: as the soak asked for"),
  });
  const pool = new CountingPool(await modules.createOpusPool({ workers: 1, bitrateKbps: 64 }));
  const clock = new FakeClock();
  const tally: { faults: number } = { faults: 0 };
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => {
      tally.faults += 1;
    },
  };
  const engine = createEngine(modules, { clock, upstream, pool, log });
  const soak = new Soak({ engine, clock, pool, random });
  const [beganMs, beganClockMs] = [monotonicMs(), clock.nowMs()];
  await soak.run(utterances);
  const minutes = (clock.nowMs() - beganClockMs) / 60_000;
  const realSeconds = (monotonicMs() - beganMs) / 1000;
  await soak.settle();
  if (tally.faults > 0) soak.tally.violate("errors in the log", String(tally.faults));
  checkTheEnd(soak, { engine, clock, pool, upstream });
  const { lentBytes } = engine.blocks;
  if (lentBytes > 0) soak.tally.violate("audio waits and nobody speaks", `${lentBytes} bytes`);
  engine.sessions.close(() => new modules.GatewayError("draining", "The soak is over"));
  engine.pacer.close();
  await pool.close();
  await wait(200);
  const left = difference(process.getActiveResourcesInfo(), resourcesBefore);
  if (left.length > 0) soak.tally.violate("handles are left", left.join(", "));
  tell(bench, { soak, pool, upstream, minutes, realSeconds, left });
  if (soak.tally.violationCount > 0)
    throw new Error(`Soak broke ${soak.tally.violationCount} rules:\n${soak.tally.violations.join("\n")}`);
});

function checkTheEnd(
  soak: Soak,
  parts: {
    readonly engine: Engine;
    readonly clock: FakeClock;
    readonly pool: CountingPool;
    readonly upstream: SoakUpstream;
  },
): void {
  const { tally } = soak;
  const { counters, sessions } = parts.engine;
  const { utterancesCancelled = 0 } = counters as unknown as { readonly utterancesCancelled?: number };
  const counted =
    counters.utterancesDone +
    counters.utterancesInterrupted +
    counters.utterancesFailed +
    utterancesCancelled;
  const rules: readonly [string, number, number][] = [
    ["ends (events) against queued and resumed", tally.ends, tally.queued + tally.resumed],
    ["ends (counters) against ends (events)", counted, tally.ends],
    ["ends as done", counters.utterancesDone, tally.endedAs("done")],
    ["ends as failed", counters.utterancesFailed, tally.endedAs("failed")],
    ["sessions opened and closed", counters.sessionsClosed, counters.sessionsOpened],
    ["sessions opened", counters.sessionsOpened, soak.callCount],
    ["sessions left", sessions.count, 0],
    ["connections opened and closed", counters.connectionsClosed, counters.connectionsOpened],
    ["connections opened", counters.connectionsOpened, tally.joins],
    ["timers left", parts.clock.pending, 0],
    ["encoders held", parts.pool.held, 0],
    ["upstream requests under way", parts.upstream.underWay, 0],
  ];
  for (const [rule, is, expected] of rules)
    if (is !== expected) tally.violate(rule, `${is}, expected ${expected}`);
}

/** What is in `after` and not in `before`, each as often as it is. */
function difference(after: readonly string[], before: readonly string[]): string[] {
  const left = [...before];
  return after.filter((name) => {
    const index = left.indexOf(name);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

function tell(
  bench: Bench,
  run: {
    readonly soak: Soak;
    readonly pool: CountingPool;
    readonly upstream: SoakUpstream;
    readonly minutes: number;
    readonly realSeconds: number;
    readonly left: readonly string[];
  },
): void {
  const { soak, pool, upstream } = run;
  const { tally, samples } = soak;
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts].map(([name, count]) => `${name} ${count}`).join(", ") || "none";
  bench.note(
    `soak: ${run.minutes.toFixed(0)} minutes on the clock of ${CALLS_AT_ONCE} sessions at a time, ${run.realSeconds.toFixed(0)} s in fact; ${soak.callCount} sessions, ` +
      `${tally.joins} connections, ${tally.stalls} stalls, ${pool.acquired} encoder cycles, ${upstream.opened} upstream requests (${upstream.aborted} aborted, ${upstream.failed} failed), ` +
      `${tally.frames} frames, ${tally.events} events`,
  );
  bench.note(`soak: commands refused, by code: ${list(tally.errors)}; ${tally.resumed} resumed`);
  bench.note(
    `soak: heap / resident MB: ${samples.map(({ ends, heapMb, rssMb }) => `${ends}: ${heapMb.toFixed(1)} / ${rssMb.toFixed(0)}`).join(", ")}`,
  );
  const broken = tally.violationCount;
  bench.row({
    figure: `soak: ${tally.queued} utterances, ${tally.ends} ends (${list(tally.ended)})`,
    measured: `${broken} rules broken, ${run.left.length} handles left`,
    baseline: "",
    ratio: "",
    target: "0, 0",
    isOk: broken === 0,
  });
  const counted = samples.slice(Math.floor(samples.length * WARM_UP));
  const last = counted.at(-1);
  for (const [what, read] of [
    ["heap", (sample: Sample) => sample.heapMb],
    ["resident memory", (sample: Sample) => sample.rssMb],
  ] as const) {
    const perUtterance = slope(counted.map((sample) => [sample.ends, read(sample)] as const));
    const slopeMb = perUtterance * 10_000;
    bench.row({
      figure: `soak: growth of the ${what} per 10,000 utterances (${counted.length} samples)`,
      measured: `${slopeMb.toFixed(2)} MB (at the end ${last === undefined ? "?" : megabytes(read(last) * 2 ** 20)})`,
      baseline: "",
      ratio: "",
      target: `<= ${TARGET_SLOPE_MB} MB`,
      isOk: counted.length < 3 ? null : slopeMb <= TARGET_SLOPE_MB,
    });
  }
}
