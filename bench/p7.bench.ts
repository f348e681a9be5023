/** P7: memory of the gateway's process: what an idle listener costs, and what a live mu-law session with its ring costs. */
import { type Bench, runBench, speakMessage, speechText } from "./kit/bench.ts";
import type { GatewayOptions, LoadCommands, NoCommands } from "./kit/commands.ts";
import type { Fixture } from "./kit/fixture.ts";
import { kilobytes, type MemorySnapshot } from "./kit/memory.ts";
import { wait } from "./kit/monotonic.ts";

const TARGET_IDLE_BYTES = 4 * 1024;
const TARGET_LIVE_BYTES = 150 * 1024;
const UTTERANCE_SECONDS = 30;

interface Unit {
  readonly name: string;
  /** `{i}` is the unit's number. */
  readonly path: string;
  readonly messages?: readonly string[];
  /** Units that are there before the first snapshot, and those between the two. */
  readonly before: number;
  readonly count: number;
  /** From the last unit's opening to each snapshot, s: rings and buffers have filled by then. */
  readonly settleSeconds: number;
  readonly targetBytes: number;
  /** Whether the gateway that one writes by hand can do the same. */
  readonly hasBaseline?: boolean;
  /** Of the libraries alone, without a gateway. */
  readonly isFloor?: boolean;
}

/** Bytes for each unit. */
interface Growth {
  readonly rss: number;
  readonly heap: number;
  readonly external: number;
}

runBench(async (bench) => {
  const idle = {
    before: bench.pick(1000, 50),
    count: bench.pick(5000, 200),
    settleSeconds: bench.pick(3, 1),
    targetBytes: TARGET_IDLE_BYTES,
  };
  const live = {
    before: bench.pick(100, 10),
    count: bench.pick(400, 40),
    settleSeconds: bench.pick(15, 2),
    targetBytes: TARGET_LIVE_BYTES,
    messages: utterances(bench.pick(90, 10)),
    hasBaseline: true,
  };
  bench.method(
    "Growth of the gateway's process, garbage collected before each snapshot, between so many units and so many more, divided by the number of",
    "those; a fresh process for each kind. Resident memory is everything that the process holds: also what the server library allocates, and pages that",
    "the collector keeps in hand; heap and buffers are what live objects take. The target is held against the resident memory.",
    `Idle listeners are all on one session that says nothing: ${idle.before}, then ${idle.count} more. Live: a session with one listener each that`,
    `speaks all the time: ${live.before}, then ${live.count} more, looked at after ${live.settleSeconds} s, with its ring and the audio read ahead.`,
    "The last row is uWebSockets.js and undici alone, a connection each for a session: what is read is thrown away.",
    "Baseline: ws + fetch + a timer for each session, which reads 5 s ahead, too, and keeps nothing of what it has sent.",
  );
  const role = "role=listener";
  const units: Unit[] = [
    { ...idle, name: "idle listener, events only", path: `/live/p7?${role}&format=none` },
    { ...idle, name: "idle listener, no audio flowing", path: `/live/p7?${role}&format=ulaw_8000` },
    { ...live, name: "live mu-law session, events=none", path: "/live/p7-{i}?format=ulaw_8000&events=none" },
    { ...live, name: "live mu-law session, default events", path: "/live/p7-{i}?format=ulaw_8000" },
  ];
  for (const unit of units) await measure(bench, unit);
  const floor = { before: live.before, count: live.count, settleSeconds: 3, targetBytes: 0, isFloor: true };
  await measure(bench, { ...floor, name: "the live session's two connections alone", path: "/" });
});

/** Spoken back to back for so long. */
function utterances(seconds: number): string[] {
  const message = speakMessage(speechText(UTTERANCE_SECONDS));
  return Array.from({ length: Math.ceil(seconds / UTTERANCE_SECONDS) + 1 }, () => message);
}

async function measure(bench: Bench, unit: Unit): Promise<void> {
  const growth = await growthOf(bench, unit, unit.isFloor === true ? "connections" : "voicewire");
  const baseline = unit.hasBaseline === true ? await growthOf(bench, unit, "baseline") : null;
  report(bench, unit, { growth, baseline });
}

async function growthOf(
  bench: Bench,
  unit: Unit,
  kind: "voicewire" | "baseline" | "connections",
): Promise<Growth> {
  await using upstream = await bench.startUpstream();
  await using gateway =
    kind === "connections"
      ? await bench.start<NoCommands>("connections", {
          upstreamUrl: `http://127.0.0.1:${upstream.port}`,
          distUrl: bench.options.distUrl,
        } satisfies GatewayOptions)
      : await bench.startGateway(kind, upstream.port);
  await using load = await bench.startLoad();
  await load.ask("open", {
    group: "speaker",
    port: gateway.port,
    count: 1,
    path: "/live/p7?role=speaker&format=none&events=none",
    rampMs: 0,
  });
  await openUnits(load, { group: "before", port: gateway.port, unit, count: unit.before });
  await wait(unit.settleSeconds * 1000);
  const before = await gateway.memory();
  await openUnits(load, { group: "measured", port: gateway.port, unit, count: unit.count });
  await wait(unit.settleSeconds * 1000);
  return growthBetween(before, await gateway.memory(), unit.count);
}

function growthBetween(before: MemorySnapshot, after: MemorySnapshot, count: number): Growth {
  return {
    rss: (after.rssBytes - before.rssBytes) / count,
    heap: (after.heapBytes - before.heapBytes) / count,
    external: (after.externalBytes - before.externalBytes) / count,
  };
}

async function openUnits(
  load: Fixture<LoadCommands>,
  open: { readonly group: string; readonly port: number; readonly unit: Unit; readonly count: number },
): Promise<void> {
  const { path, messages } = open.unit;
  const { opened } = await load.ask("open", {
    group: open.group,
    port: open.port,
    count: open.count,
    path: path.replace("{i}", `${open.group}-{i}`),
    rampMs: open.count * 2,
    ...(messages === undefined ? {} : { messages }),
  });
  if (opened < open.count) throw new Error(`Connections can't open: ${opened} of ${open.count} are open`);
}

function report(
  bench: Bench,
  unit: Unit,
  { growth, baseline }: { readonly growth: Growth; readonly baseline: Growth | null },
): void {
  bench.row({
    figure: `P7 memory, ${unit.name} (n=${unit.count})`,
    measured: shown(growth),
    baseline: baseline === null ? "" : shown(baseline),
    ratio: baseline === null ? "" : (growth.rss / baseline.rss).toFixed(2),
    ...(unit.targetBytes > 0
      ? { target: `<= ${kilobytes(unit.targetBytes)} KB`, isOk: growth.rss <= unit.targetBytes }
      : { target: "", isOk: null }),
  });
}

function shown({ rss, heap, external }: Growth): string {
  return `${kilobytes(rss)} KB (heap ${kilobytes(heap)}, buffers ${kilobytes(external)})`;
}
