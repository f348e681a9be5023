/** D2: good sessions beside hostile connections of each kind: how late their frames are, and what memory stays. */
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
import { BEAT_MS } from "./kit/hostile-crowd.ts";
import { FLOOD_MESSAGES, HOSTILE_KINDS } from "./kit/hostile-kinds.ts";
import { type MemorySnapshot, megabytes } from "./kit/memory.ts";
import { wait } from "./kit/monotonic.ts";
import { requireConnections } from "./kit/open-files.ts";
import { median } from "./kit/statistics.ts";

const TARGET_LATENESS = 1.2;
const TARGET_MEMORY = 1.05;
type Kind = keyof typeof HOSTILE_KINDS;
const KINDS = Object.keys(HOSTILE_KINDS) as Kind[];

interface Size {
  readonly sessions: number;
  readonly hostile: number;
  /** Sessions begin over this time, and the hostile ones come over it, ms. */
  readonly sessionsRampMs: number;
  readonly hostileRampMs: number;
  /** From the last session, and from the last hostile one, to the window, ms. */
  readonly sessionsSettleMs: number;
  readonly hostileSettleMs: number;
  /** Windows beside the hostile ones and without them, s. */
  readonly besideSeconds: number;
  readonly aloneSeconds: number;
  /** From their leaving to the window without them: sessions that are left live on for 5 s. */
  readonly awayMs: number;
}

interface Attack extends Seen {
  readonly kind: Kind;
  readonly attackers: AttackCounters;
  /** Longest stall of the gateway's event loop, ms. */
  readonly stallMs: number;
  readonly before: MemorySnapshot;
  readonly after: MemorySnapshot;
}

runBench(async (bench) => {
  const size: Size = {
    sessions: bench.pick(500, 20),
    hostile: bench.pick(3000, 60),
    sessionsRampMs: bench.pick(10_000, 500),
    hostileRampMs: bench.pick(3000, 1000),
    sessionsSettleMs: bench.pick(8000, 500),
    hostileSettleMs: bench.pick(3000, 500),
    besideSeconds: bench.pick(13, 1),
    aloneSeconds: bench.pick(6, 1),
    awayMs: bench.pick(7000, 200),
  };
  bench.method(
    `${size.sessions} sessions with a token and a listener each (ulaw_8000, 20 ms, lead ${LEAD_MS} ms, events=none), utterances back to back. A gateway with keys and no limits of a subject, its other`,
    `settings the defaults. ${size.hostile} hostile connections of one kind come over ${size.hostileRampMs / 1000} s; the sessions are watched for ${size.besideSeconds} s; all leave by a reset; the next kind comes.`,
    `A connection that the gateway ends comes back within ${(3 * BEAT_MS) / 1000} s. Floods: ${FLOOD_MESSAGES} messages of each connection at once, each second. Kinds with a token: floods,`,
    "listeners that read nothing, joined and gone, and a request's body. Lateness: as in `p4`, but the grid of each session is hung anew, in the",
    "calm second before each window without hostile ones, on its earliest frame there: a pause of the speech is late once only. Baseline: the median of the windows of",
    `${size.aloneSeconds} s without them, before and between the kinds. Memory: resident, garbage collected, while the good sessions speak: ${(size.awayMs / 1000 + size.aloneSeconds).toFixed(0)} s after a kind has left, beside before it came.`,
  );
  using keys = new TestKeys();
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port, {
    keysFile: keys.path,
    ...NO_LIMITS,
  });
  await using load = await bench.startLoad();
  await using hostile = await bench.start<HostileCommands>("hostile", {});
  requireConnections("gateway", gateway.pid, size.hostile + size.sessions * (1 + UPSTREAM_REQUESTS));
  requireConnections("process of the hostile clients", hostile.pid, size.hostile);
  const parts: GoodParts = { gateway, load, hostile };
  await openGoodSessions(parts, {
    name: "d2",
    sessions: size.sessions,
    rampMs: size.sessionsRampMs,
    settleMs: size.sessionsSettleMs,
    spokenSeconds: spokenSeconds(size),
  });
  const alone = [await watchAlone(parts, size.aloneSeconds)];
  const attacks: Attack[] = [];
  for (const kind of KINDS) {
    const before = await gateway.memory();
    const beside = await attack(parts, kind, size);
    await wait(size.awayMs);
    alone.push(await watchAlone(parts, size.aloneSeconds));
    attacks.push({ ...beside, before, after: await gateway.memory() });
  }
  report(bench, { size, alone, attacks });
});

/** Longer than the run: a session that has nothing more to say would be early for ever. */
function spokenSeconds(size: Size): number {
  const kindMs = size.hostileRampMs + size.hostileSettleMs + size.awayMs;
  const kindSeconds = kindMs / 1000 + size.besideSeconds + size.aloneSeconds + 10;
  return (size.sessionsRampMs + size.sessionsSettleMs) / 1000 + kindSeconds * KINDS.length + 60;
}

async function attack(parts: GoodParts, kind: Kind, size: Size): Promise<Omit<Attack, "before" | "after">> {
  const { gateway, hostile } = parts;
  const token = goodToken();
  await gateway.startStallWatch();
  await hostile.ask("attack", {
    kind,
    port: gateway.port,
    count: size.hostile,
    rampMs: size.hostileRampMs,
    lifeMs: 2 * (size.hostileRampMs + size.hostileSettleMs + size.besideSeconds * 1000) + 10_000,
    token,
    badToken: withoutProof(token),
    sessions: size.sessions,
    sessionName: "d2",
  });
  await wait(size.hostileRampMs + size.hostileSettleMs);
  const seen = await watchGood(parts, size.besideSeconds);
  const attackers = await hostile.ask("attackers", kind);
  const stallMs = await gateway.stopStallWatch();
  await hostile.ask("leave", undefined);
  if (attackers.connections < size.hostile)
    throw new Error(
      `Hostile connections (${kind}) can't be made: ${attackers.connections} came, ${attackers.failed} failed`,
    );
  return { ...seen, kind, attackers, stallMs };
}

/** The same token with a signature that does not hold. */
function withoutProof(token: string): string {
  const [head = "", claims = "", signature = ""] = token.split(".");
  return [head, claims, [...signature].reverse().join("")].join(".");
}

interface Outcome {
  readonly size: Size;
  readonly alone: readonly Seen[];
  readonly attacks: readonly Attack[];
}

function report(bench: Bench, { size, alone, attacks }: Outcome): void {
  const aloneP99Ms = median(alone.map(({ lateness }) => lateness.p99Ms));
  bench.note(
    `D2 alone: lateness p99 of each window ${alone.map(({ lateness }) => lateness.p99Ms.toFixed(1)).join(", ")} ms; ` +
      `delay p99 ${median(alone.map(({ delayP99Ms }) => delayP99Ms)).toFixed(1)} ms; server ` +
      `${median(alone.map(({ window }) => serverCores(window))).toFixed(2)} cores`,
  );
  for (const one of attacks) {
    const { kind, window, lateness, before, after } = one;
    bench.note(noteOf(one, size));
    bench.row({
      figure: `D2 frame lateness p99, ${size.sessions} sessions beside ${size.hostile} that ${HOSTILE_KINDS[kind]}`,
      measured: `${lateness.p99Ms.toFixed(1)} ms`,
      baseline: `${aloneP99Ms.toFixed(1)} ms (alone)`,
      // Alone, nothing may be late at all.
      ratio: aloneP99Ms > 0 ? (lateness.p99Ms / aloneP99Ms).toFixed(2) : "",
      target: `<= ${TARGET_LATENESS}x, or ${ON_TIME_MS} ms`,
      isOk:
        window.open === size.sessions &&
        lateness.frames > 0 &&
        lateness.p99Ms <= Math.max(ON_TIME_MS, TARGET_LATENESS * aloneP99Ms),
    });
    bench.row({
      figure: `D2 server memory after ${size.hostile} that ${HOSTILE_KINDS[kind]}`,
      measured: `${megabytes(after.rssBytes)} MB`,
      baseline: `${megabytes(before.rssBytes)} MB (before)`,
      ratio: (after.rssBytes / before.rssBytes).toFixed(2),
      target: `<= ${TARGET_MEMORY}x`,
      isOk: after.rssBytes <= TARGET_MEMORY * before.rssBytes,
    });
  }
}

function noteOf(one: Attack, { sessions }: Size): string {
  const { kind, window, lateness, delayP99Ms, attackers, stallMs, before, after } = one;
  const came = (100 * window.frames) / (sessions * 50 * window.seconds);
  const statuses = Object.entries(attackers.statuses).map(([status, count]) => `${count} x ${status}`);
  return (
    `D2 ${kind}: lateness p50 / max ${lateness.p50Ms.toFixed(1)} / ${lateness.maxMs.toFixed(1)} ms, delay p99 ${delayP99Ms.toFixed(1)} ms; ` +
    `${window.open} of ${sessions} sessions open, ${came.toFixed(1)}% of their frames came; hostile: ${attackers.connected} connected at the end, ` +
    `${attackers.connections} connections made, ${attackers.ended} ended, ${attackers.failed} failed, answers ${statuses.join(", ") || "none"}, ${attackers.writes} writes; ` +
    `gateway's longest stall ${stallMs.toFixed(0)} ms; cores: server ${serverCores(window).toFixed(2)}, load ${window.loadCores.toFixed(2)}, ` +
    `hostile ${window.otherCores.toFixed(2)}; taken by the host ${window.stolenCores.toFixed(2)}; heap ${megabytes(before.heapBytes)} -> ${megabytes(after.heapBytes)} MB`
  );
}
