/** P4: a thousand sessions in real time over minutes: how late frames are, whether the grid drifts, and none too early. */
import { type Bench, coresNote, measureWindow, runBench, speakMessage, speechText } from "./kit/bench.ts";
import type { GridSummary, LatenessSummary } from "./kit/commands.ts";
import { wait } from "./kit/monotonic.ts";

const LEAD_MS = 300;
const BATCH_MS = 100;
const DEFAULT_MINUTES = 10;
const UTTERANCE_SECONDS = 30;
const TARGET_P99_MS = 3;
/** The pacer's slot is 4 ms wide: a shift below one over the whole run is none that could be told from its steps. */
const TARGET_DRIFT_MS = 4;

runBench(async (bench) => {
  const sessions = bench.pick(1000, 50);
  const seconds = bench.pick((bench.options.minutes ?? DEFAULT_MINUTES) * 60, 10);
  const rampMs = bench.pick(10_000, 500);
  const settleMs = bench.pick(15_000, 1000);
  bench.method(
    `${sessions} sessions with a listener each (ulaw_8000, 20 ms, lead ${LEAD_MS} ms, events=none), begun over ${rampMs / 1000} s, utterances back to back for ${seconds} s.`,
    "The grid hangs on the server's own playhead, asked for with `ping` on each connection (the best of three): frame k is played at origin + k x 20 ms,",
    `late by what it arrives after that less (lead - batch of ${BATCH_MS} ms), early by what it arrives before that less the lead. Counted from ${settleMs / 1000} s on. Drift: least-`,
    "squares slope of arrival against the grid, one frame a batch, all sessions together, each about its own mean. Measured at the client, whose own waits are in the figure.",
    "Left alone: seconds in which the host took no more than 20 ms of the cores, nor in those before and behind them (proc(5): steal).",
  );
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  await using load = await bench.startLoad();
  await load.ask("open", {
    group: "sessions",
    port: gateway.port,
    count: sessions,
    path: `/live/p4-{i}?format=ulaw_8000&events=none&lead_ms=${LEAD_MS}`,
    rampMs,
    messages: utterances(seconds + settleMs / 1000),
    wantsText: true,
    grid: { leadMs: LEAD_MS, batchMs: BATCH_MS, isAnchored: true },
  });
  await wait(settleMs);
  const { anchored, worstRoundTripMs } = await load.ask("anchor", { group: "sessions" });
  if (anchored < sessions) throw new Error(`Sessions do not answer: ${anchored} of ${sessions} did`);
  await Promise.all([gateway.startStallWatch(), load.startStallWatch()]);
  const window = await measureWindow({
    serverPid: gateway.pid,
    load,
    group: "sessions",
    seconds,
    otherPid: upstream.pid,
  });
  const lateness = await load.ask("lateness", { group: "sessions" });
  const grid = await load.ask("grid", { group: "sessions" });
  const [gatewayStallMs, loadStallMs] = await Promise.all([gateway.stopStallWatch(), load.stopStallWatch()]);
  bench.note(
    `P4: longest stall of the event loop: gateway ${gatewayStallMs.toFixed(0)} ms, load ${loadStallMs.toFixed(0)} ms; ${coresNote(window)}; ` +
      `${((100 * window.frames) / (sessions * 50 * window.seconds)).toFixed(2)}% of the frames came; ${window.open} connections open; longest round trip of an anchor ${worstRoundTripMs.toFixed(2)} ms`,
  );
  report(bench, { lateness, grid, sessions });
});

/** Short enough to be one request each, and few enough for the queue. */
function utterances(seconds: number): string[] {
  const message = speakMessage(speechText(UTTERANCE_SECONDS));
  return Array.from({ length: Math.ceil(seconds / UTTERANCE_SECONDS) + 1 }, () => message);
}

function report(
  bench: Bench,
  run: { readonly lateness: LatenessSummary; readonly grid: GridSummary; readonly sessions: number },
): void {
  const { lateness, grid, sessions } = run;
  const minutes = (grid.spanMs / 60_000).toFixed(1);
  const driftMs = (grid.driftPpm * grid.spanMs) / 1e6;
  bench.row({
    figure: `P4 frame lateness, ${sessions} sessions, ${minutes} min, p50 / p99 / max (n=${lateness.frames})`,
    measured: `${lateness.p50Ms.toFixed(1)} / ${lateness.p99Ms.toFixed(1)} / ${lateness.maxMs.toFixed(1)} ms`,
    baseline: "",
    ratio: "",
    target: `p99 <= ${TARGET_P99_MS} ms`,
    isOk: lateness.frames > 0 && lateness.p99Ms <= TARGET_P99_MS,
  });
  const { undisturbed } = lateness;
  const { p99Ms } = undisturbed;
  bench.row({
    figure: `P4 the same in the seconds that the host left alone, ${((100 * undisturbed.frames) / lateness.frames).toFixed(0)}% of the frames, p99 / max`,
    measured: p99Ms === null ? "none" : `${p99Ms.toFixed(1)} / ${undisturbed.maxMs.toFixed(1)} ms`,
    baseline: "",
    ratio: "",
    target: `p99 <= ${TARGET_P99_MS} ms`,
    isOk: p99Ms === null ? null : p99Ms <= TARGET_P99_MS,
  });
  bench.row({
    figure: `P4 drift of the grid over ${minutes} min, all sessions (worst single one)`,
    measured: `${driftMs.toFixed(2)} ms, ${grid.driftPpm.toFixed(2)} ppm (${grid.worstDriftPpm.toFixed(1)} ppm)`,
    baseline: "",
    ratio: "",
    target: `0 (below ${TARGET_DRIFT_MS} ms)`,
    isOk: Math.abs(driftMs) < TARGET_DRIFT_MS,
  });
  bench.row({
    figure: "P4 frames before their lead (furthest)",
    measured: `${grid.earlyFrames} (${grid.earliestMs.toFixed(1)} ms)`,
    baseline: "",
    ratio: "",
    target: "0",
    isOk: grid.earlyFrames === 0,
  });
}
