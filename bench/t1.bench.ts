/** T1: how true the times are that the gateway tells, where the upstream's timing has faults. */
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";
import { percentile } from "./kit/statistics.ts";
import { TruthProxy } from "./kit/truth-proxy.ts";
import {
  measureTiming,
  mixedKindOf,
  TIMING_FAULTS,
  type TimingError,
  type TimingReport,
} from "./kit/truth-timing.ts";

interface Target {
  readonly meanMs: number;
  readonly p99Ms: number;
}

/** Where the upstream gave times of all that was said. */
const TOLD: Target = { meanMs: 5, p99Ms: 5 };
/** Where they are found by listening, or by what is around them. */
const ESTIMATED: Target = { meanMs: 25, p99Ms: 150 };
const UNKNOWABLE = "missing, all";
/** Utterances from this seed on have no times, and are heard at the pace of speech. */
const UNTIMED_SEED = 1_000_000;
const LABELS = { exact: TOLD, scaled: TOLD, estimated: ESTIMATED };

runBench(async (bench) => {
  const utterances = bench.pick(500, 60);
  const untimed = bench.pick(80, 10);
  bench.method(
    `${utterances} utterances of 1 or 3 sentences (3-12 words) in eight languages, half of them as tokens, spoken by the embedded service,`,
    "most with a scripted fault of the alignment. Where each answer lies in what the listener got is found by its samples, and there the",
    "engine's own word events (and, for characters, the alignment before the fault) are the truth. Error: told minus true, of a word's or a",
    `letter's start. Their listeners get all as fast as it comes (pace=burst), which leaves little time to look for words without`,
    `times ("${UNKNOWABLE}"): ${untimed} utterances without any are heard as they are spoken (pace=realtime), too.`,
  );
  await using service = await bench.start<NoCommands>("service", { distUrl: bench.options.distUrl });
  await using proxy = await TruthProxy.start(
    `http://127.0.0.1:${service.port}`,
    (seed) => TIMING_FAULTS[kindOf(seed)] ?? "",
  );
  await using gateway = await bench.startGateway("voicewire", proxy.port);
  const gatewayUrl = `ws://127.0.0.1:${gateway.port}`;
  const report = await measureTiming({ proxy, gatewayUrl, utterances, sessions: 10, kindOf });
  const heard = await measureTiming({
    ...{ proxy, gatewayUrl, kindOf, utterances: untimed, sessions: 10 },
    ...{ firstSeed: UNTIMED_SEED, pace: "realtime" },
  });
  const { errors } = report;
  for (const what of ["word", "character"] as const) {
    const its = errors.filter((error) => error.what === what);
    errorRow(bench, `T1 ${what} starts, all`, its);
    errorRow(
      bench,
      `T1 ${what} starts, where there was timing`,
      its.filter(({ kind }) => kind !== UNKNOWABLE),
    );
  }
  const words = errors.filter(({ what }) => what === "word");
  for (const kind of Object.keys(TIMING_FAULTS)) {
    errorRow(
      bench,
      `T1 words, fault: ${kind}`,
      words.filter((error) => error.kind === kind),
      kind === UNKNOWABLE ? undefined : kind.startsWith("missing") ? ESTIMATED : TOLD,
    );
  }
  errorRow(
    bench,
    "T1 words without any times, heard as they are spoken",
    heard.errors.filter(({ what }) => what === "word"),
    ESTIMATED,
  );
  for (const [label, target] of Object.entries(LABELS)) {
    errorRow(
      bench,
      `T1 words labelled ${label}`,
      words.filter((error) => error.label === label),
      target,
    );
  }
  const both = [report, heard];
  const sum = (figure: (one: TimingReport) => number): number =>
    both.reduce((total, one) => total + figure(one), 0);
  countRow(
    bench,
    "T1 times that go back in their session",
    sum(({ backward }) => backward),
  );
  countRow(
    bench,
    "T1 stretches of samples without a character",
    sum(({ holes }) => holes),
  );
  countRow(
    bench,
    "T1 places where the characters told are not the text",
    sum(({ untold }) => untold),
  );
  countRow(
    bench,
    "T1 utterances failed or not found in what was heard",
    sum(({ broken }) => broken.length),
  );
  for (const { backward, holes, longestBackMs, longestHoleMs, broken } of both) {
    if (backward > 0) bench.note(`T1: the longest step back is ${longestBackMs.toFixed(3)} ms`);
    if (holes > 0) bench.note(`T1: the longest hole is ${longestHoleMs.toFixed(2)} ms`);
    for (const line of broken.slice(0, 5)) bench.note(`T1 broken: ${line}`);
  }
  bench.note(
    `T1: ${sum(({ withoutTruth }) => withoutTruth)} words without an event of the engine were not compared`,
  );
});

function kindOf(seed: number): string {
  return seed < UNTIMED_SEED ? mixedKindOf(seed) : UNKNOWABLE;
}

function errorRow(bench: Bench, figure: string, errors: readonly TimingError[], target?: Target): void {
  const sizes = errors.map(({ errorMs }) => Math.abs(errorMs));
  const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  const p99 = percentile(sizes, 0.99);
  const isMeasured = target !== undefined && sizes.length > 0;
  bench.row({
    figure: `${figure}, mean / p50 / p99 (n=${sizes.length})`,
    measured: `${[mean, percentile(sizes, 0.5), p99].map((ms) => ms.toFixed(1)).join(" / ")} ms`,
    baseline: "",
    ratio: "",
    target: target === undefined ? "" : `mean <= ${target.meanMs}, p99 <= ${target.p99Ms} ms`,
    isOk: isMeasured ? mean <= target.meanMs && p99 <= target.p99Ms : null,
  });
}

function countRow(bench: Bench, figure: string, count: number): void {
  bench.row({ figure, measured: String(count), baseline: "", ratio: "", target: "0", isOk: count === 0 });
}
