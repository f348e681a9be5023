/** Far listeners: what it costs, and how much later it is, to hear a session that is at another node. */
import { endNatsServers, NatsServer } from "../test/kit/nats-server.ts";
import { type Bench, measureWindow, runBench, speakMessage, speechText } from "./kit/bench.ts";
import type { ClusterNodeCommands, ClusterNodeOptions, LatenessSummary } from "./kit/commands.ts";
import type { Fixture } from "./kit/fixture.ts";
import { wait } from "./kit/monotonic.ts";
import { median } from "./kit/statistics.ts";

const LEAD_MS = 300;
const BATCH_MS = 100;
/** Until both nodes know each other. */
const KNOWN_MS = 2000;

interface Form {
  readonly sessions: number;
  readonly listeners: number;
  readonly target: number;
}

interface Run {
  /** CPU of both nodes per delivered frame, us. */
  readonly us: number;
  readonly lateness: LatenessSummary;
}

runBench(async (bench) => {
  const seconds = bench.pick(
    { utterance: 10, settle: 5, window: 20 },
    { utterance: 2, settle: 2, window: 2 },
  );
  const forms: readonly Form[] = [
    { sessions: bench.pick(300, 10), listeners: 1, target: 2 },
    { sessions: bench.pick(10, 2), listeners: 100, target: 1.05 },
  ];
  bench.method(
    `Two nodes and a nats-server. All sessions are opened at one node, and their speakers are there; their listeners (ulaw_8000, 20 ms, lead ${LEAD_MS} ms,`,
    `default events) are all there (near) or all at the other node (far). CPU of both nodes over ${seconds.window} s, divided by the frames delivered;`,
    `fresh processes for each run, ${bench.options.rounds} runs each, interleaved, medians. Added delay: p99 of the frames' lateness, far less near.`,
  );
  const nats = await NatsServer.start({ config: 'write_deadline: "2s"' });
  try {
    for (const form of forms) await compare(bench, { form, seconds, natsUrl: nats.url });
  } finally {
    await endNatsServers();
  }
});

interface Plan {
  readonly form: Form;
  readonly seconds: { readonly utterance: number; readonly settle: number; readonly window: number };
  readonly natsUrl: string;
}

async function compare(bench: Bench, plan: Plan): Promise<void> {
  const runs: { near: Run[]; far: Run[] } = { near: [], far: [] };
  for (let round = 0; round < bench.options.rounds; round += 1) {
    for (const where of ["near", "far"] as const)
      runs[where].push(await measure(bench, { ...plan, where, round }));
  }
  const [near, far] = [median(runs.near.map(({ us }) => us)), median(runs.far.map(({ us }) => us))];
  const { listeners, sessions, target } = plan.form;
  const label = `${sessions} sessions, ${listeners} listener${listeners === 1 ? "" : "s"} each`;
  bench.row({
    figure: `Far listeners: CPU per frame of both nodes, ${label}`,
    measured: `${far.toFixed(2)} us`,
    baseline: `${near.toFixed(2)} us (near)`,
    ratio: (far / near).toFixed(2),
    target: `<= ${target.toFixed(2)}x`,
    isOk: far / near <= target,
  });
  const p99 = (all: readonly Run[]): number => median(all.map(({ lateness }) => lateness.p99Ms));
  const addedMs = p99(runs.far) - p99(runs.near);
  bench.row({
    figure: `Far listeners: lateness p99, ${label}`,
    measured: `${p99(runs.far).toFixed(1)} ms`,
    baseline: `${p99(runs.near).toFixed(1)} ms (near)`,
    ratio: "",
    target: "<= 5 ms more",
    isOk: addedMs <= 5,
  });
}

async function measure(
  bench: Bench,
  { form, seconds, natsUrl, where, round }: Plan & { readonly where: "near" | "far"; readonly round: number },
): Promise<Run> {
  const name = `${where}-${form.listeners}-${round}`;
  await using upstream = await bench.startUpstream();
  const start = (node: string): Promise<Fixture<ClusterNodeCommands>> =>
    bench.start<ClusterNodeCommands>("cluster-node", {
      upstreamUrl: `http://127.0.0.1:${upstream.port}`,
      distUrl: bench.options.distUrl,
      natsUrl,
      nodeName: `${node}-${name}`,
    } satisfies ClusterNodeOptions);
  await using load = await bench.startLoad();
  // Alone, it opens all sessions itself.
  await using owner = await start("owner");
  const total = seconds.utterance + seconds.settle + seconds.window;
  const message = speakMessage(speechText(seconds.utterance));
  await load.ask("open", {
    group: "speakers",
    port: owner.port,
    count: form.sessions,
    path: `/live/${name}-{i}?role=speaker&format=none&events=none`,
    rampMs: 1000,
    messages: Array.from({ length: Math.ceil(total / seconds.utterance) + 2 }, () => message),
  });
  await using other = await start("other");
  await wait(KNOWN_MS);
  const { failed } = await load.ask("open", {
    group: "listeners",
    port: where === "near" ? owner.port : other.port,
    count: form.sessions * form.listeners,
    path: `/live/${name}-{i%${form.sessions}}?role=listener&format=ulaw_8000&lead_ms=${LEAD_MS}`,
    rampMs: seconds.utterance * 1000,
    grid: { leadMs: LEAD_MS, batchMs: BATCH_MS, settleMs: 1000 },
  });
  await wait(seconds.settle * 1000);
  const window = await measureWindow({
    serverPid: owner.pid,
    load,
    group: "listeners",
    seconds: seconds.window,
    otherPid: other.pid,
  });
  const lateness = await load.ask("lateness", { group: "listeners" });
  const us = ((window.cpuMs / 1000 + window.otherCores * window.seconds) * 1e6) / window.frames;
  bench.note(
    `Far listeners, ${name}: ${us.toFixed(2)} us/frame, ${window.frames} frames, ${window.open} open, ${failed} failed; ` +
      `lateness p99 ${lateness.p99Ms.toFixed(1)} ms; cores: owner ${(window.cpuMs / window.seconds / 1000).toFixed(2)}, other ${window.otherCores.toFixed(2)}, load ${window.loadCores.toFixed(2)}`,
  );
  return { us, lateness };
}
