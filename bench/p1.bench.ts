/** P1: server CPU per delivered 20 ms mu-law frame with many live sessions, upstream reading included. */
import {
  type Bench,
  type Contestant,
  coresNote,
  measureWindow,
  othersUsPerFrame,
  runBench,
  usPerFrame,
  type Window,
} from "./kit/bench.ts";
import { median } from "./kit/statistics.ts";
import { STEADY_GROUP, type SteadySize, speakSteadily } from "./kit/steady-speech.ts";

const LEAD_MS = 300;
/** A frame with times may cost so many times one without. */
const TARGET_TIMED_RATIO = 1.35;

interface Mode {
  readonly label: string;
  /** Added to the query. */
  readonly query: string;
  /** In times of the baseline. */
  readonly targetRatio: number;
}

const MODES: readonly [Mode, Mode] = [
  { label: "plain stream, events=none", query: "&events=none", targetRatio: 0.35 },
  { label: "with timestamps, default events", query: "", targetRatio: 0.45 },
];

runBench(async (bench) => {
  const size = {
    sessions: bench.pick(1000, 50),
    utteranceSeconds: bench.pick(10, 2),
    settleSeconds: bench.pick(5, 1),
    windowSeconds: bench.pick(20, 2),
  };
  bench.method(
    `${size.sessions} sessions, each with one listener (ulaw_8000, 20 ms, lead ${LEAD_MS} ms), utterances of ${size.utteranceSeconds} s back to back,`,
    `begun over ${size.utteranceSeconds} s so that the upstream (4x real time) is read evenly; server CPU (user + system, all threads, /proc) over`,
    `${size.windowSeconds} s after ${size.utteranceSeconds + size.settleSeconds} s of warm-up, divided by the frames that the load client received; fresh processes for each run,`,
    `${bench.options.rounds} runs each, interleaved, medians. Baseline: ws + fetch + a timer for each session.`,
  );
  const [plain, timed] = MODES;
  const plainUs = await compare(bench, plain, size);
  const timedUs = await compare(bench, timed, size);
  bench.row({
    figure: "P1 CPU per frame, with timestamps against plain",
    measured: `${timedUs.toFixed(2)} us`,
    baseline: `${plainUs.toFixed(2)} us (plain)`,
    ratio: (timedUs / plainUs).toFixed(2),
    target: `<= ${TARGET_TIMED_RATIO}x`,
    isOk: timedUs / plainUs <= TARGET_TIMED_RATIO,
  });
});

/** The own CPU per frame, us. */
async function compare(bench: Bench, mode: Mode, size: SteadySize): Promise<number> {
  const runs = new Map<Contestant, Window[]>();
  for (let round = 0; round < bench.options.rounds; round += 1) {
    for (const contestant of bench.contestants) {
      const window = await measure(bench, { contestant, mode, size, round });
      runs.set(contestant, [...(runs.get(contestant) ?? []), window]);
    }
  }
  const ofAll = (contestant: Contestant, figure: (window: Window) => number): number =>
    median((runs.get(contestant) ?? []).map(figure));
  const own = ofAll("voicewire", usPerFrame);
  const baseline = ofAll("baseline", usPerFrame);
  bench.row({
    figure: `P1 CPU per frame, ${mode.label}`,
    measured: `${own.toFixed(2)} us`,
    baseline: `${baseline.toFixed(2)} us (ws + fetch + timer)`,
    ratio: (own / baseline).toFixed(2),
    target: `<= ${mode.targetRatio}x`,
    isOk: own / baseline <= mode.targetRatio,
  });
  if (!runs.has("against")) return own;
  const against = ofAll("against", usPerFrame);
  bench.row({
    figure: `P1 CPU per frame, ${mode.label}, against the other build`,
    measured: `${own.toFixed(2)} us`,
    baseline: `${against.toFixed(2)} us (other build)`,
    ratio: (own / against).toFixed(2),
    target: "",
    isOk: null,
  });
  const [ownPaced, againstPaced] = [ofAll("voicewire", paced), ofAll("against", paced)];
  bench.row({
    figure: "P1 the same, in times what load and upstream took for that frame",
    measured: ownPaced.toFixed(2),
    baseline: `${againstPaced.toFixed(2)} (other build)`,
    ratio: (ownPaced / againstPaced).toFixed(2),
    target: "",
    isOk: null,
  });
  return own;
}

/** Shared cores are slower at times: two builds compare better by how they stand to what did the same work beside both. */
function paced(window: Window): number {
  return usPerFrame(window) / othersUsPerFrame(window);
}

async function measure(
  bench: Bench,
  run: {
    readonly contestant: Contestant;
    readonly mode: Mode;
    readonly size: SteadySize;
    readonly round: number;
  },
): Promise<Window> {
  const { contestant, mode, size } = run;
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway(contestant, upstream.port);
  await using load = await bench.startLoad();
  const path = `/live/p1-{i}?format=ulaw_8000&lead_ms=${LEAD_MS}${mode.query}`;
  const failed = await speakSteadily(load, { port: gateway.port, path, size });
  const window = await bench.profiled(
    gateway,
    `p1-${contestant}-${mode.query === "" ? "timed" : "plain"}-${run.round}`,
    () =>
      measureWindow({
        serverPid: gateway.pid,
        load,
        group: STEADY_GROUP,
        seconds: size.windowSeconds,
        otherPid: upstream.pid,
      }),
  );
  bench.note(describe(window, { contestant, mode, sessions: size.sessions, failed }));
  return window;
}

function describe(
  window: Window,
  run: {
    readonly contestant: Contestant;
    readonly mode: Mode;
    readonly sessions: number;
    readonly failed: number;
  },
): string {
  const expected = run.sessions * 50 * window.seconds;
  return (
    `P1 ${run.contestant}, ${run.mode.label}: ${usPerFrame(window).toFixed(2)} us/frame, ` +
    `${window.frames} frames (${((100 * window.frames) / expected).toFixed(1)}% of ${Math.round(expected)}), ` +
    `${window.texts} text messages; ${coresNote(window)}; ` +
    `${window.open} connections open, ${run.failed} failed`
  );
}
