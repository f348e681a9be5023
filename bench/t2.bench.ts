/** T2: how well the receipt of an interruption says what was heard. */
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";
import { percentile } from "./kit/statistics.ts";
import { type Interruption, measurePlayout } from "./kit/truth-playout.ts";
import { TruthProxy } from "./kit/truth-proxy.ts";

const SESSIONS = 40;

runBench(async (bench) => {
  const interruptions = bench.pick(200, 20);
  bench.method(
    `${interruptions} utterances of four sentences in eight languages, each interrupted once 0.3 to 4.5 s after it began, ${SESSIONS} at once, in real time. A simulated`,
    "player begins 40 to 250 ms after its first frame and stops when the receipt comes; with acks it tells its position every 100 ms, without",
    "it says nothing. Words heard by the receipt (`heard.end`) minus words that were over in what was played, by the engine's own word events.",
  );
  await using service = await bench.start<NoCommands>("service", { distUrl: bench.options.distUrl });
  await using proxy = await TruthProxy.start(`http://127.0.0.1:${service.port}`, () => "");
  await using gateway = await bench.startGateway("voicewire", proxy.port);
  const gatewayUrl = `ws://127.0.0.1:${gateway.port}`;
  const sessions = Math.min(SESSIONS, interruptions);
  for (const { hasAcks, targetWords } of [
    { hasAcks: true, targetWords: 1 },
    { hasAcks: false, targetWords: 2 },
  ]) {
    const firstSeed = hasAcks ? 1 : 10_001;
    const plan = { proxy, gatewayUrl, interruptions, sessions, hasAcks, firstSeed };
    report(bench, await measurePlayout(plan), { hasAcks, targetWords });
  }
});

function report(
  bench: Bench,
  results: readonly Interruption[],
  of: { readonly hasAcks: boolean; readonly targetWords: number },
): void {
  const label = of.hasAcks ? "with acks" : "by estimate";
  const words = results.map(({ wordError }) => Math.abs(wordError));
  const worst = Math.max(...words);
  const shares = [0, 1, 2].map((n) => `${n}: ${words.filter((error) => error === n).length}`);
  bench.row({
    figure: `T2 heard, ${label}: error in words, p50 / p99 / worst (n=${words.length})`,
    measured: `${percentile(words, 0.5)} / ${percentile(words, 0.99)} / ${worst}`,
    baseline: "",
    ratio: "",
    target: `<= ${of.targetWords}`,
    isOk: worst <= of.targetWords,
  });
  const times = results.map(({ errorMs }) => Math.abs(errorMs));
  bench.row({
    figure: `T2 heard, ${label}: error in time, p50 / p99`,
    measured: `${percentile(times, 0.5).toFixed(0)} / ${percentile(times, 0.99).toFixed(0)} ms`,
    baseline: "",
    ratio: "",
    target: "",
    isOk: null,
  });
  const beyond = results.filter(({ errorMs, boundMs }) => Math.abs(errorMs) > boundMs);
  bench.note(
    `T2 ${label}: errors of ${shares.join(", ")} words; beyond the receipt's bound_ms: ${beyond.length}`,
  );
  for (const { errorMs, boundMs, source, delayMs } of beyond.slice(0, 3)) {
    bench.note(
      `T2 ${label}: ${errorMs.toFixed(0)} ms off, bound ${boundMs} ms, by ${source}, player ${delayMs.toFixed(0)} ms behind`,
    );
  }
}
