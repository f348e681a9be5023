/** P9: how fast an interruption stops the frames to the client and the request upstream, beside a hundred streams. */
import { type Bench, type Contestant, runBench, speakMessage, speechText } from "./kit/bench.ts";
import { percentile } from "./kit/statistics.ts";

const TARGET_FRAME_MS = 10;
const TARGET_ABORT_MS = 3;
const BACKGROUND_UTTERANCE_SECONDS = 10;
/** At 4x real time the upstream still speaks when the interruption comes. */
const INTERRUPTED_SECONDS = 30;
const SPEAK_MS = 700;
const WATCH_MS = 400;

interface Latencies {
  readonly frames: number[];
  readonly receipts: number[];
  readonly aborts: number[];
  readonly failed: number;
}

runBench(async (bench) => {
  const size = {
    background: bench.pick(100, 20),
    interrupters: bench.pick(20, 5),
    rounds: bench.pick(20, 3),
  };
  bench.method(
    `${size.background} sessions speak all the time; ${size.interrupters} more say ${INTERRUPTED_SECONDS} s each, are interrupted after ${SPEAK_MS}-${2 * SPEAK_MS} ms and start anew,`,
    `${size.rounds} times each. From just before the client writes \`interrupt\`: to the last frame that it still receives (0 if none, watched`,
    `for ${WATCH_MS} ms), to the receipt, and to when the upstream fixture sees its connection end.`,
  );
  const own = await measure(bench, "voicewire", size);
  const baseline = await measure(bench, "baseline", size);
  const rows = [
    { what: "last frame received", of: own.frames, than: baseline.frames, target: TARGET_FRAME_MS },
    { what: "upstream sees the abort", of: own.aborts, than: baseline.aborts, target: TARGET_ABORT_MS },
    { what: "receipt received", of: own.receipts, than: baseline.receipts, target: null },
  ];
  for (const { what, of, than, target } of rows) {
    bench.row({
      figure: `P9 interrupt -> ${what}, p50 / p99 (n=${of.length})`,
      measured: `${pair(of)} ms`,
      baseline: `${pair(than)} ms (ws + fetch + timer)`,
      ratio: "",
      target: target === null ? "" : `p99 <= ${target} ms`,
      isOk: target === null ? null : own.failed === 0 && percentile(of, 0.99) <= target,
    });
  }
});

async function measure(
  bench: Bench,
  contestant: Contestant,
  size: { readonly background: number; readonly interrupters: number; readonly rounds: number },
): Promise<Latencies> {
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway(contestant, upstream.port);
  await using load = await bench.startLoad();
  const seconds = (size.rounds * (2 * SPEAK_MS + WATCH_MS)) / 1000 + 10;
  const message = speakMessage(speechText(BACKGROUND_UTTERANCE_SECONDS));
  await load.ask("open", {
    group: "background",
    port: gateway.port,
    count: size.background,
    path: "/live/p9-b{i}?format=ulaw_8000&events=none",
    rampMs: bench.pick(3000, 500),
    messages: Array.from({ length: Math.ceil(seconds / BACKGROUND_UTTERANCE_SECONDS) + 1 }, () => message),
  });
  await load.ask("open", {
    group: "interrupted",
    port: gateway.port,
    count: size.interrupters,
    path: "/live/p9-i{i}?format=ulaw_8000&events=none",
    rampMs: 200,
    wantsText: true,
  });
  const { samples, failed } = await load.ask("interrupts", {
    group: "interrupted",
    rounds: size.rounds,
    text: speechText(INTERRUPTED_SECONDS, { isKeyed: true }),
    voiceId: "bench",
    speakMs: SPEAK_MS,
    watchMs: WATCH_MS,
  });
  const records = await upstream.ask("records", undefined);
  const abortedAt = new Map(records.map((record) => [record.key, record.abortMs]));
  const since = samples.map((sample) => ({
    frame: sample.lastFrameMs === null ? 0 : sample.lastFrameMs - sample.sentMs,
    receipt: sample.receiptMs === null ? null : sample.receiptMs - sample.sentMs,
    abort: msBetween(sample.sentMs, abortedAt.get(sample.key)),
  }));
  const aborts = since.flatMap(({ abort }) => (abort === null ? [] : [abort]));
  const lost = samples.length - aborts.length;
  if (failed + lost > 0) {
    bench.note(
      `P9 ${contestant}: ${failed} utterances never began, ${lost} aborts never reached the upstream`,
    );
  }
  return {
    frames: since.map(({ frame }) => frame),
    receipts: since.flatMap(({ receipt }) => (receipt === null ? [] : [receipt])),
    aborts,
    failed: failed + lost,
  };
}

function msBetween(fromMs: number, toMs: number | null | undefined): number | null {
  return toMs === null || toMs === undefined ? null : toMs - fromMs;
}

function pair(samples: readonly number[]): string {
  return `${percentile(samples, 0.5).toFixed(2)} / ${percentile(samples, 0.99).toFixed(2)}`;
}
