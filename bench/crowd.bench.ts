/** Crowd: speaking sessions beside thousands of idle, slow and flooding connections at once. */
import { TestKeys } from "../test/helpers/key-file.ts";
import { type Bench, runBench } from "./kit/bench.ts";
import type { AttackCounters, HostileCommands } from "./kit/commands.ts";
import {
  type GoodParts,
  goodToken,
  LEAD_MS,
  NO_LIMITS,
  ON_TIME_MS,
  openGoodSessions,
  type Seen,
  serverCores,
  UPSTREAM_REQUESTS,
  watchAlone,
  watchGood,
} from "./kit/good-sessions.ts";
import { CROWD_FLOOD_MESSAGES, CROWD_KINDS, type CrowdKind } from "./kit/hostile-kinds.ts";
import { type MemorySnapshot, megabytes } from "./kit/memory.ts";
import { wait } from "./kit/monotonic.ts";
import { requireConnections } from "./kit/open-files.ts";

const NAME = "crowd";
const TARGET_LATENESS = 1.2;
const TARGET_MEMORY = 1.05;
const KINDS = Object.keys(CROWD_KINDS) as CrowdKind[];

interface Size {
  readonly sessions: number;
  readonly counts: Readonly<Record<CrowdKind, number>>;
  readonly sessionsRampMs: number;
  readonly crowdRampMs: number;
  /** From the last of those who come to the next window, ms. */
  readonly settleMs: number;
  readonly windowSeconds: number;
  /** From their leaving to the memory after it: what resumes their sessions is kept for 30 s. */
  readonly awayMs: number;
}

interface Outcome {
  readonly size: Size;
  readonly alone: Seen;
  readonly beside: Seen;
  readonly memory: Readonly<Record<"before" | "during" | "after", MemorySnapshot>>;
  readonly counters: ReadonlyMap<CrowdKind, AttackCounters>;
}

runBench(async (bench) => {
  const size: Size = {
    sessions: bench.pick(500, 20),
    counts: bench.pick({ idle: 10_000, slow: 500, flood: 200 }, { idle: 100, slow: 10, flood: 5 }),
    sessionsRampMs: bench.pick(10_000, 500),
    crowdRampMs: bench.pick(20_000, 1000),
    settleMs: bench.pick(8000, 500),
    windowSeconds: bench.pick(13, 1),
    awayMs: bench.pick(40_000, 200),
  };
  const people = KINDS.map((kind) => `${size.counts[kind]} that ${CROWD_KINDS[kind]}`).join(", ");
  const crowdCount = KINDS.reduce((sum, kind) => sum + size.counts[kind], 0);
  bench.method(
    `${size.sessions} sessions with a token and a listener each (ulaw_8000, 20 ms, lead ${LEAD_MS} ms), as in \`d2\`. Beside them at once ${people}:`,
    `the first ten to a session, the second on those that speak; floods: ${2 * CROWD_FLOOD_MESSAGES} messages of each connection at once, each second. One that the gateway ends comes back.`,
    `Windows of ${size.windowSeconds} s, without the crowd and beside it. Memory: resident, garbage collected, while the good sessions speak: before, beside it, and ${size.awayMs / 1000} s after it has left by resets.`,
  );
  using keys = new TestKeys();
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port, {
    keysFile: keys.path,
    ...NO_LIMITS,
  });
  await using load = await bench.startLoad();
  await using hostile = await bench.start<HostileCommands>("hostile", {});
  requireConnections("gateway", gateway.pid, crowdCount + size.sessions * (1 + UPSTREAM_REQUESTS));
  requireConnections("process of the crowd", hostile.pid, crowdCount);
  const parts: GoodParts = { gateway, load, hostile };
  await openGoodSessions(parts, {
    name: NAME,
    sessions: size.sessions,
    rampMs: size.sessionsRampMs,
    settleMs: size.settleMs,
    spokenSeconds: 120 + (size.sessionsRampMs + size.crowdRampMs + 2 * size.settleMs) / 1000,
  });
  const alone = await watchAlone(parts, size.windowSeconds);
  const before = await gateway.memory();
  for (const kind of KINDS) await hostile.ask("attack", attackOf(kind, size, gateway.port));
  await wait(size.crowdRampMs + size.settleMs);
  const beside = await watchGood(parts, size.windowSeconds);
  const counters = new Map<CrowdKind, AttackCounters>();
  for (const kind of KINDS) counters.set(kind, await hostile.ask("attackers", kind));
  const during = await gateway.memory();
  await hostile.ask("leave", undefined);
  await wait(size.awayMs);
  const after = await gateway.memory();
  for (const [kind, { connections, failed }] of counters)
    if (connections < size.counts[kind])
      throw new Error(`The crowd (${kind}) can't be made: ${connections} came, ${failed} failed`);
  report(bench, { size, alone, beside, memory: { before, during, after }, counters });
});

function attackOf(kind: CrowdKind, size: Size, port: number) {
  return {
    kind,
    port,
    count: size.counts[kind],
    rampMs: size.crowdRampMs,
    lifeMs: 2 * (size.crowdRampMs + size.settleMs + size.windowSeconds * 1000) + 10_000,
    token: goodToken(),
    badToken: "",
    sessions: size.sessions,
    sessionName: NAME,
  };
}

function report(bench: Bench, { size, alone, beside, memory, counters }: Outcome): void {
  const { before, during, after } = memory;
  const crowd = KINDS.map((kind) => `${size.counts[kind]} ${kind}`).join(", ");
  const [aloneMs, besideMs] = [alone.lateness.p99Ms, beside.lateness.p99Ms];
  for (const [kind, one] of counters) {
    const told = [...Object.entries(one.statuses), ...Object.entries(one.codes)];
    bench.note(
      `Crowd ${kind}: ${one.connected} connected at the end, ${one.connections} connections made, ${one.ended} ended, ${one.failed} failed; ` +
        `told ${told.map(([what, count]) => `${count} x ${what}`).join(", ") || "nothing"}`,
    );
  }
  const came = (100 * beside.window.frames) / (size.sessions * 50 * beside.window.seconds);
  bench.note(
    `Crowd: lateness p50 / max ${beside.lateness.p50Ms.toFixed(1)} / ${beside.lateness.maxMs.toFixed(1)} ms; ${beside.window.open} of ${size.sessions} sessions open, ` +
      `${came.toFixed(1)}% of their frames came; cores: server ${serverCores(beside.window).toFixed(2)} (alone ${serverCores(alone.window).toFixed(2)}), ` +
      `crowd ${beside.window.otherCores.toFixed(2)}, load ${beside.window.loadCores.toFixed(2)}`,
  );
  bench.row({
    figure: `Crowd: frame lateness p99, ${size.sessions} sessions beside ${crowd}`,
    measured: `${besideMs.toFixed(1)} ms`,
    baseline: `${aloneMs.toFixed(1)} ms (alone)`,
    // Alone, nothing may be late at all.
    ratio: aloneMs > 0 ? (besideMs / aloneMs).toFixed(2) : "",
    target: `<= ${TARGET_LATENESS}x, or ${ON_TIME_MS} ms`,
    isOk:
      beside.window.open === size.sessions &&
      beside.lateness.frames > 0 &&
      besideMs <= Math.max(ON_TIME_MS, TARGET_LATENESS * aloneMs),
  });
  const [aloneUs, besideUs] = [alone, beside].map(({ window }) => (window.cpuMs * 1000) / window.frames);
  bench.row({
    figure: `Crowd: server CPU per good frame, beside ${crowd}`,
    measured: `${(besideUs ?? 0).toFixed(1)} us`,
    baseline: `${(aloneUs ?? 0).toFixed(1)} us (alone)`,
    ratio: ((besideUs ?? 0) / (aloneUs ?? 1)).toFixed(2),
    target: "",
    isOk: null,
  });
  bench.row({
    figure: `Crowd: server memory after ${crowd}`,
    measured: `${megabytes(after.rssBytes)} MB (${megabytes(during.rssBytes)} MB beside them)`,
    baseline: `${megabytes(before.rssBytes)} MB (before)`,
    ratio: (after.rssBytes / before.rssBytes).toFixed(2),
    target: `<= ${TARGET_MEMORY}x`,
    isOk: after.rssBytes <= TARGET_MEMORY * before.rssBytes,
  });
}
