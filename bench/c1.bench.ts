/** C1: what a second worker costs: CPU of all processes of `serve` per delivered frame, two workers against one. */
import { type Bench, coresNote, measureWindow, runBench, usPerFrame, type Window } from "./kit/bench.ts";
import { ServedProgram } from "./kit/served-program.ts";
import { median } from "./kit/statistics.ts";
import { STEADY_GROUP, type SteadySize, speakSteadily } from "./kit/steady-speech.ts";

const LEAD_MS = 300;
const WORKERS = [1, 2] as const;
const TARGET_RATIO = 1.1;

runBench(async (bench) => {
  const size = {
    /** Of each worker: with fewer sessions a frame costs more in any process. */
    sessions: bench.pick(600, 40),
    utteranceSeconds: bench.pick(10, 2),
    settleSeconds: bench.pick(5, 1),
    windowSeconds: bench.pick(20, 2),
  };
  bench.method(
    `${size.sessions} sessions for each worker, with timestamps and the default events, each with one listener (ulaw_8000, 20 ms, lead ${LEAD_MS} ms),`,
    `utterances of ${size.utteranceSeconds} s back to back, begun over ${size.utteranceSeconds} s; CPU (user + system, all threads, /proc) of the program and`,
    `its workers over ${size.windowSeconds} s, divided by the frames that the load client received; fresh processes for each run,`,
    `${bench.options.rounds} runs each, interleaved, medians. The kernel spreads the connections, so each is at its session's worker.`,
  );
  const runs = new Map<number, Window[]>();
  for (let round = 0; round < bench.options.rounds; round += 1) {
    for (const workers of WORKERS) {
      runs.set(workers, [...(runs.get(workers) ?? []), await measure(bench, workers, size)]);
    }
  }
  const of = (workers: number): number => median((runs.get(workers) ?? []).map(usPerFrame));
  const [one, two] = [of(1), of(2)];
  bench.row({
    figure: "C1 CPU per frame, two workers",
    measured: `${two.toFixed(2)} us`,
    baseline: `${one.toFixed(2)} us (one worker)`,
    ratio: (two / one).toFixed(2),
    target: `<= ${TARGET_RATIO.toFixed(2)}x`,
    isOk: two / one <= TARGET_RATIO,
  });
});

async function measure(bench: Bench, workers: number, size: SteadySize): Promise<Window> {
  const { distUrl } = bench.options;
  await using upstream = await bench.startUpstream();
  await using program = await ServedProgram.start({ distUrl, upstreamPort: upstream.port, workers });
  await using load = await bench.startLoad();
  const path = `/live/c1-{i}?format=ulaw_8000&lead_ms=${LEAD_MS}`;
  const sessions = size.sessions * workers;
  const failed = await speakSteadily(load, { port: program.port, path, size: { ...size, sessions } });
  const window = await measureWindow({
    serverPid: program.pid,
    load,
    group: STEADY_GROUP,
    seconds: size.windowSeconds,
    otherPid: upstream.pid,
  });
  const expected = sessions * 50 * window.seconds;
  bench.note(
    `C1 workers ${workers}: ${usPerFrame(window).toFixed(2)} us/frame, ${window.frames} frames ` +
      `(${((100 * window.frames) / expected).toFixed(1)}% of ${Math.round(expected)}); ${coresNote(window)}; ` +
      `${window.open} connections open, ${failed} failed`,
  );
  return window;
}
