/** Three nodes on a nats-server: one is killed, hangs, is cut off and is deployed while a hundred sessions speak. */
import { endNatsServers, NatsServer } from "../test/kit/nats-server.ts";
import { type Bench, runBench } from "./kit/bench.ts";
import { Cluster, NODES } from "./kit/cluster.ts";
import { ClusterListener } from "./kit/cluster-listener.ts";
import { wait } from "./kit/monotonic.ts";
import { percentile } from "./kit/statistics.ts";

const MS_PER_CHAR = 60;
const WORDS = 44;

/** No two alike, so that each one that is lost or said twice is seen; all equally long. */
function textOf(session: number): string {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const letterOf = (number: number): string => letters.charAt(number % 26);
  const wordOf = (index: number): string =>
    `${letterOf(index)}${letterOf(index / 26)}${letterOf(session)}${letterOf(session / 26)}`;
  return Array.from({ length: WORDS }, (_, index) => wordOf(index)).join(" ");
}

interface Talk {
  readonly text: string;
  readonly owner: number;
  readonly near: ClusterListener;
  readonly far: ClusterListener;
}

/** Each session is opened at one node and spoken to from there; one listener is there and one at the next node. */
async function speak(cluster: Cluster, run: number, count: number): Promise<Talk[]> {
  const talks: Talk[] = [];
  for (let index = 0; index < count; index += 1) {
    const owner = index % NODES;
    const session = `run${run}-${index}`;
    const shared = { session, ports: cluster.ports };
    const near = new ClusterListener({ ...shared, node: owner, role: "both" });
    await until(() => near.isJoined);
    const far = new ClusterListener({ ...shared, node: (owner + 1) % NODES, role: "listener" });
    talks.push({ text: textOf(index), owner, near, far });
  }
  await until(() => talks.every(({ far }) => far.isJoined));
  for (const { near, text } of talks) near.send({ type: "speak", text, voice_id: "bench" });
  return talks;
}

async function until(isTrue: () => boolean, deadlineMs = 60_000): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!isTrue()) {
    if (performance.now() > endMs) throw new Error(`Not within ${deadlineMs} ms`);
    await wait(10);
  }
}

interface Loss {
  readonly lost: number;
  readonly doubled: number;
}

function lossOf({ words }: ClusterListener, text: string): Loss {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  let lost = 0;
  let doubled = 0;
  for (const word of text.split(" ")) {
    const count = counts.get(word) ?? 0;
    if (count === 0) lost += 1;
    doubled += Math.max(0, count - 1);
  }
  return { lost, doubled };
}

interface Trial {
  readonly name: string;
  readonly target: string;
  readonly targetMs: number;
  /** Whose listeners count: all, or those at other nodes than the session's. */
  readonly counts: "all" | "far";
  /** From when a listener waits: from what happens, or from when its own connection was closed. */
  readonly from: "act" | "break";
  /** Happens in the middle of a sentence; resolves when the node is there again. */
  act(number: number): Promise<void>;
}

async function measure(
  bench: Bench,
  {
    cluster,
    run,
    sessions,
  }: { readonly cluster: Cluster; readonly run: { number: number }; readonly sessions: number },
  trial: Trial,
): Promise<void> {
  const waits: number[] = [];
  let [lost, doubled, hit, unended] = [0, 0, 0, 0];
  // Each node once: every session loses its owner in one of the runs.
  for (let number = 0; number < NODES; number += 1) {
    await cluster.settle();
    run.number += 1;
    const talks = await speak(cluster, run.number, sessions);
    await wait(3000 + 500 * number);
    const fromMs = performance.now();
    const back = trial.act(number);
    await until(() => talks.every(({ near, far }) => near.isDone && far.isDone), 40_000).catch(
      () => undefined,
    );
    await back;
    for (const { text, owner, near, far } of talks) {
      if (owner === number) hit += 1;
      for (const listener of trial.counts === "all" ? [near, far] : [far]) {
        if (!listener.isDone) unended += 1;
        const loss = lossOf(listener, text);
        lost += loss.lost;
        doubled += loss.doubled;
        for (const { atMs, backMs } of listener.breaks) {
          if (atMs < fromMs) continue;
          const sinceMs = trial.from === "act" ? fromMs : atMs;
          waits.push(backMs === null ? Number.POSITIVE_INFINITY : backMs - sinceMs);
        }
      }
      near.close();
      far.close();
    }
  }
  bench.row({
    figure: `${trial.name}: next audio, p50 / p99 (${hit} sessions, ${waits.length} listeners)`,
    measured: `${ms(percentile(waits, 0.5))} / ${ms(percentile(waits, 0.99))} ms`,
    baseline: "",
    ratio: "",
    target: trial.target,
    isOk: percentile(waits, 0.99) <= trial.targetMs,
  });
  bench.row({
    figure: `${trial.name}: words lost / said twice / utterances without an end`,
    measured: `${lost} / ${doubled} / ${unended}`,
    baseline: "",
    ratio: "",
    target: "0 / 0 / 0",
    isOk: lost + doubled + unended === 0,
  });
}

function ms(value: number): string {
  return Number.isFinite(value) ? value.toFixed(0) : "never";
}

runBench(async (bench) => {
  const sessions = bench.pick(100, 6);
  bench.method(
    `Three nodes and a nats-server; ${sessions} sessions speak ${WORDS} words each, every one at the node where it was opened, with a listener there`,
    "and one at the next node. In the middle of it one node is killed (SIGKILL), hangs (SIGSTOP for 6 s), is cut off from nats-server for 6 s, or is",
    "deployed (drained and started again); each node once. Listeners come back to the next node after 0.1 s, and say where their audio ends.",
    "Next audio: from the kill (deployed: from the close) to the first frame at a listener whose connection broke. Words: whose audio came whole, by the events' times.",
    "Cut off: listeners at other nodes; those at the node that is cut off hear it to the end.",
  );
  await using upstream = await bench.startUpstream({ speed: 4, chunkMs: 100, msPerChar: MS_PER_CHAR });
  const nats = await NatsServer.start({ config: 'write_deadline: "2s"' });
  try {
    await using cluster = new Cluster(bench, {
      upstreamPort: upstream.port,
      nats,
      settings: { drainMs: 8000, graceMs: 10_000 },
    });
    await cluster.startAll();
    const on = { cluster, run: { number: 0 }, sessions };
    await measure(bench, on, {
      name: "killed",
      target: "p99 <= 4000 ms",
      targetMs: 4000,
      counts: "all",
      from: "act",
      act: async (number) => {
        process.kill(cluster.node(number).fixture.pid, "SIGKILL");
        await cluster.end(number);
        await wait(5000);
        await cluster.start(number);
      },
    });
    await measure(bench, on, {
      name: "hung",
      target: "p99 <= 6000 ms",
      targetMs: 6000,
      counts: "far",
      from: "act",
      act: async (number) => {
        const { pid } = cluster.node(number).fixture;
        process.kill(pid, "SIGSTOP");
        await wait(6000);
        process.kill(pid, "SIGCONT");
        await wait(2000);
      },
    });
    await measure(bench, on, {
      name: "cut off",
      target: "p99 <= 6000 ms",
      targetMs: 6000,
      counts: "far",
      from: "act",
      act: async (number) => {
        const { wire } = cluster.node(number);
        wire.cut();
        await wait(6000);
        wire.heal();
        await wait(4000);
      },
    });
    await measure(bench, on, {
      name: "deployed",
      target: "p99 <= 4000 ms",
      targetMs: 4000,
      counts: "all",
      from: "break",
      act: async (number) => {
        await cluster.node(number).fixture.ask("drain", undefined);
        await cluster.end(number);
        await wait(1000);
        await cluster.start(number);
      },
    });
  } finally {
    await endNatsServers();
  }
});
