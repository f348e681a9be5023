/** Issue 2's load: 1,000 listeners on one session, and 500 live sessions, without late frames. */
import { type Bench, measureWindow, runBench, speakMessage, speechText } from "./kit/bench.ts";
import type { LatenessSummary, LoadCommands, NoCommands } from "./kit/commands.ts";
import type { Fixture } from "./kit/fixture.ts";

const LEAD_MS = 300;
const BATCH_MS = 100;
const TARGET_P99_MS = 20;
const UTTERANCE_SECONDS = 10;
const GRID = { leadMs: LEAD_MS, batchMs: BATCH_MS };

interface Running {
  readonly gateway: Fixture<NoCommands>;
  readonly load: Fixture<LoadCommands>;
  readonly seconds: number;
}

runBench(async (bench) => {
  const listeners = bench.pick(1000, 50);
  const sessions = bench.pick(500, 50);
  const seconds = bench.pick(30, 2);
  bench.method(
    `mu-law, 20 ms frames, lead ${LEAD_MS} ms, ${seconds} s of utterances of ${UTTERANCE_SECONDS} s back to back. Frame k of a listener is late by what it arrives after`,
    `first + k x 20 ms - (lead - batch of ${BATCH_MS} ms), the first lead's worth counted from the first frame; measured at the client, whose`,
    "own load is part of it. Frames on time count as 0.",
  );
  await withGateway(bench, seconds, async (running) => {
    await fanOut(running, listeners);
    await report(bench, running, `${listeners} listeners on one session`);
  });
  await withGateway(bench, seconds, async (running) => {
    await manySessions(running, sessions);
    await report(bench, running, `${sessions} live sessions`);
  });
});

async function withGateway(
  bench: Bench,
  seconds: number,
  measure: (running: Running) => Promise<void>,
): Promise<void> {
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  await using load = await bench.startLoad();
  await measure({ gateway, load, seconds });
}

async function fanOut({ gateway, load, seconds }: Running, listeners: number): Promise<void> {
  const { port } = gateway;
  const speakerPath = "/live/scale?role=speaker&format=none&events=none";
  await load.ask("open", { group: "speaker", port, count: 1, path: speakerPath, rampMs: 0 });
  await load.ask("open", {
    group: "listeners",
    port,
    count: listeners,
    path: `/live/scale?role=listener&format=ulaw_8000&events=none&lead_ms=${LEAD_MS}`,
    rampMs: Math.min(2000, listeners * 4),
    grid: GRID,
  });
  await load.ask("send", { group: "speaker", messages: utterances(seconds) });
}

async function manySessions({ gateway, load, seconds }: Running, sessions: number): Promise<void> {
  await load.ask("open", {
    group: "listeners",
    port: gateway.port,
    count: sessions,
    path: `/live/scale-{i}?format=ulaw_8000&events=none&lead_ms=${LEAD_MS}`,
    rampMs: Math.min(5000, sessions * 10),
    messages: utterances(seconds + 5),
    grid: GRID,
  });
}

function utterances(seconds: number): string[] {
  const message = speakMessage(speechText(UTTERANCE_SECONDS));
  return Array.from({ length: Math.ceil(seconds / UTTERANCE_SECONDS) + 1 }, () => message);
}

async function report(bench: Bench, { gateway, load, seconds }: Running, what: string): Promise<void> {
  await Promise.all([gateway.startStallWatch(), load.startStallWatch()]);
  const window = await measureWindow({ serverPid: gateway.pid, load, group: "listeners", seconds });
  const lateness = await load.ask("lateness", { group: "listeners" });
  const [gatewayStallMs, loadStallMs] = await Promise.all([gateway.stopStallWatch(), load.stopStallWatch()]);
  bench.note(
    `scale, ${what}: longest stall of the event loop: gateway ${gatewayStallMs.toFixed(0)} ms, load ` +
      `${loadStallMs.toFixed(0)} ms; cores: server ${(window.cpuMs / window.seconds / 1000).toFixed(2)}, load ` +
      `${window.loadCores.toFixed(2)}; ${window.open} connections open at the end`,
  );
  bench.row({
    figure: `scale: frame lateness, ${what}, p99 / max (n=${lateness.frames})`,
    measured: `${lateness.p99Ms.toFixed(1)} / ${lateness.maxMs.toFixed(1)} ms`,
    baseline: "",
    ratio: "",
    target: `p99 <= ${TARGET_P99_MS} ms`,
    isOk: isOnTime(lateness),
  });
}

function isOnTime(lateness: LatenessSummary): boolean {
  return lateness.frames > 0 && lateness.p99Ms <= TARGET_P99_MS;
}
