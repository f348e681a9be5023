/**
 * Record: what it costs a gateway to record all that its sessions do: CPU per frame, and bytes on the disk; and how long an hour
 * takes to be replayed.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Bench, coresNote, measureWindow, runBench, usPerFrame, type Window } from "./kit/bench.ts";
import { recordSpeech } from "./kit/hour-recording.ts";
import { median } from "./kit/statistics.ts";
import { STEADY_GROUP, type SteadySize, speakSteadily } from "./kit/steady-speech.ts";

const LEAD_MS = 300;
const KINDS = ["off", "keep", "hash"] as const;
type Kind = (typeof KINDS)[number];
/** Nothing is left out: all of the run fits. */
const FOLDER_MB = 16_384;
/** For an hour to be replayed. */
const TARGET_SECONDS = 60;

interface Recorded {
  readonly window: Window;
  /** Bytes that a second of speech takes. */
  readonly bytesPerSecond: number;
}

runBench(async (bench) => {
  const size = {
    sessions: bench.pick(300, 20),
    utteranceSeconds: bench.pick(10, 2),
    settleSeconds: bench.pick(5, 1),
    windowSeconds: bench.pick(20, 2),
    replayMinutes: bench.pick(60, 2),
  };
  bench.method(
    `${size.sessions} sessions with timestamps and the default events, each with one listener (ulaw_8000, 20 ms, lead ${LEAD_MS} ms), utterances of`,
    `${size.utteranceSeconds} s back to back: nothing recorded, all recorded, and all recorded with hashes in place of texts and audio. CPU (user + system, all`,
    `threads, /proc) over ${size.windowSeconds} s divided by the frames that the load client received; bytes of all files over the same time; fresh`,
    `processes for each run, ${bench.options.rounds} runs each, interleaved, medians. Replay: \`voicewire replay FILE\` from its start to its end, of`,
    `${size.replayMinutes} minutes of speech to two listeners (ulaw_8000, words), recorded on a clock that is turned; median of ${bench.options.rounds}.`,
  );
  await measureReplay(bench, size.replayMinutes);
  const runs: Record<Kind, Recorded[]> = { off: [], keep: [], hash: [] };
  for (let round = 0; round < bench.options.rounds; round += 1)
    for (const kind of KINDS) runs[kind].push(await measure(bench, kind, size));
  const usOf = (kind: Kind): number => median(runs[kind].map(({ window }) => usPerFrame(window)));
  for (const kind of ["keep", "hash"] as const) {
    const bytesPerSecond = median(runs[kind].map((run) => run.bytesPerSecond));
    bench.row({
      figure: `Record: CPU per frame, ${kind === "keep" ? "all recorded" : "recorded as hashes"}`,
      measured: `${usOf(kind).toFixed(2)} us, ${(bytesPerSecond / 1024).toFixed(1)} KB a second of speech`,
      baseline: `${usOf("off").toFixed(2)} us (not recorded)`,
      ratio: (usOf(kind) / usOf("off")).toFixed(2),
      target: "",
      isOk: null,
    });
  }
});

async function measureReplay(bench: Bench, minutes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-bench-replay-"));
  try {
    const file = await recordSpeech(folder, minutes);
    const main = fileURLToPath(new URL("main.js", bench.options.distUrl));
    const seconds: number[] = [];
    for (let round = 0; round < bench.options.rounds; round += 1) {
      const startMs = performance.now();
      // Fails where it is not byte-exact.
      await promisify(execFile)(process.execPath, [main, "replay", file]);
      seconds.push((performance.now() - startMs) / 1000);
    }
    bench.row({
      figure: `Record: ${minutes} minutes of speech replayed, byte-exact`,
      measured: `${median(seconds).toFixed(1)} s, ${(statSync(file).size / 1024 / 1024).toFixed(0)} MB`,
      baseline: "",
      ratio: "",
      target: `<= ${TARGET_SECONDS} s`,
      isOk: median(seconds) <= TARGET_SECONDS,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measure(bench: Bench, kind: Kind, size: SteadySize): Promise<Recorded> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-bench-record-"));
  try {
    await using upstream = await bench.startUpstream();
    await using gateway = await bench.startGateway("voicewire", upstream.port, {
      ...(kind === "off" ? {} : { record: folder, recordText: kind, recordFolderMb: FOLDER_MB }),
    });
    await using load = await bench.startLoad();
    const path = `/live/record-{i}?format=ulaw_8000&lead_ms=${LEAD_MS}`;
    const failed = await speakSteadily(load, { port: gateway.port, path, size });
    const before = bytesIn(folder);
    const window = await measureWindow({
      serverPid: gateway.pid,
      load,
      group: STEADY_GROUP,
      seconds: size.windowSeconds,
      otherPid: upstream.pid,
    });
    const bytes = bytesIn(folder) - before;
    if (kind !== "off" && bytes === 0) throw new Error("Nothing was recorded");
    bench.note(
      `Record ${kind}: ${usPerFrame(window).toFixed(2)} us/frame, ${window.frames} frames; ${coresNote(window)}; ` +
        `${window.open} connections open, ${failed} failed`,
    );
    return { window, bytesPerSecond: bytes / (window.seconds * size.sessions) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function bytesIn(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}
