/** Phone calls while three nodes are deployed one after the other, as a load balancer and an application see it. */
import { endNatsServers, NatsServer } from "../test/kit/nats-server.ts";
import { type Bench, runBench } from "./kit/bench.ts";
import { Speaker, TwilioEar } from "./kit/call-peers.ts";
import { Cluster, NODES } from "./kit/cluster.ts";
import { monotonicMs, wait } from "./kit/monotonic.ts";
import { percentile } from "./kit/statistics.ts";

const FRAME_MS = 20;
const MS_PER_CHAR = 60;
const SENTENCES = [
  "First it is said what has come in.",
  "Then it is said what went out.",
  "That is all for now.",
];
/** The load balancer asks so often, and the node waits for it that long. */
const NOTICE_MS = 500;
const DRAIN_DELAY_MS = 1000;
/** Longer than a call. */
const DRAIN_MS = 30_000;
/** From the start of speech to the caller's goodbye, beyond the speech itself. */
const GOODBYE_MS = 1500;
const SPEECH_MS = SENTENCES.reduce((sum, { length }) => sum + length * MS_PER_CHAR, 0);

interface Outcome {
  /** The gateway hung up. */
  readonly isDropped: boolean;
  /** Speech that did not come, or came twice, ms. */
  readonly offMs: number;
  /** The phone had nothing to play inside speech, ms. */
  readonly silentMs: number;
}

runBench(async (bench) => {
  const calls = bench.pick(500, 20);
  bench.method(
    `Three nodes and a nats-server. ${calls} Twilio calls are open at any time for as long as the deployment takes: each rings at a node that is ready, hears ${SENTENCES.length}`,
    `sentences (${(SPEECH_MS / 1000).toFixed(1)} s) that the application posts to other nodes, and hangs up; every second one's session is at another node. Meanwhile each node is drained, ended and started again, one after the other.`,
    "Dropped: the gateway hung up. Speech: what came against its length by the upstream. Silence: a phone that plays from the first frame on had nothing to play inside a sentence.",
  );
  await using upstream = await bench.startUpstream({ speed: 4, chunkMs: 100, msPerChar: MS_PER_CHAR });
  const nats = await NatsServer.start({ config: 'write_deadline: "2s"' });
  try {
    await using cluster = new Cluster(bench, {
      upstreamPort: upstream.port,
      nats,
      settings: { drainMs: DRAIN_MS, drainDelayMs: DRAIN_DELAY_MS, graceMs: 10_000, maxCalls: 4096 },
    });
    await cluster.startAll();
    await cluster.settle();
    report(bench, await deployUnderCalls(cluster, calls));
  } finally {
    await endNatsServers();
  }
});

async function deployUnderCalls(cluster: Cluster, atOnce: number): Promise<Outcome[]> {
  const balancer = new Balancer(cluster);
  const outcomes: Outcome[] = [];
  const open = new Set<Promise<void>>();
  let isDeploying = true;
  const callMs = SPEECH_MS + GOODBYE_MS;
  let next = 0;
  const ring = (): void => {
    const index = next;
    next += 1;
    const going = call(balancer, index)
      .then((outcome) => {
        outcomes.push(outcome);
      })
      .finally(() => open.delete(going));
    open.add(going);
  };
  const ringing = (async () => {
    while (isDeploying) {
      if (open.size < atOnce) ring();
      await wait(callMs / atOnce);
    }
  })();
  await wait(callMs);
  for (let number = 0; number < NODES; number += 1) {
    const drained = cluster.node(number).fixture.ask("drain", undefined);
    setTimeout(() => balancer.leave(number), NOTICE_MS);
    await drained;
    await cluster.end(number);
    await cluster.start(number);
    await cluster.settle();
    balancer.join(number);
  }
  isDeploying = false;
  await ringing;
  await Promise.all(open);
  return outcomes;
}

/** What rings goes to the nodes in turn, but for those that are not ready. */
class Balancer {
  readonly #cluster: Cluster;
  readonly #away = new Set<number>();
  #turn = 0;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  leave(number: number): void {
    this.#away.add(number);
  }

  join(number: number): void {
    this.#away.delete(number);
  }

  port(): number {
    for (let tries = 0; tries < NODES; tries += 1) {
      this.#turn = (this.#turn + 1) % NODES;
      const port = this.#cluster.ports()[this.#turn];
      if (!this.#away.has(this.#turn) && typeof port === "number") return port;
    }
    throw new Error("No node is ready");
  }
}

async function call(balancer: Balancer, index: number): Promise<Outcome> {
  const session = `deploy-${index}`;
  // Of every second call the session is at another node.
  const application = index % 2 === 0 ? null : await Speaker.join(balancer.port(), session);
  const ear = await TwilioEar.dial(balancer.port(), session, index);
  for (const text of SENTENCES) await say(balancer, session, text);
  const endMs = monotonicMs() + SPEECH_MS + GOODBYE_MS;
  while (monotonicMs() < endMs && !ear.isClosed) await wait(50);
  const isDropped = ear.isClosed;
  ear.close();
  application?.close();
  const inside = ear.gaps.filter(({ heardMs }) => !isBetweenSentences(heardMs));
  return {
    isDropped,
    offMs: Math.abs(ear.frames * FRAME_MS - SPEECH_MS),
    silentMs: inside.reduce((sum, { ms }) => sum + ms, 0),
  };
}

/** A session may move there. */
function isBetweenSentences(heardMs: number): boolean {
  let endMs = 0;
  for (const { length } of SENTENCES) {
    endMs += length * MS_PER_CHAR;
    if (Math.abs(heardMs - endMs) <= SENTENCES.length * FRAME_MS) return true;
  }
  return false;
}

/** The call may not have reached its session yet. */
async function say(balancer: Balancer, session: string, text: string): Promise<void> {
  for (let tries = 0; tries < 50; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${balancer.port()}/live/${session}/speak`, {
      method: "POST",
      body: JSON.stringify({ text, voice_id: "bench" }),
    });
    if (answer.status === 202) return;
    const said = await answer.text();
    if (answer.status !== 404 && answer.status !== 503) throw new Error(`speak: ${answer.status} ${said}`);
    await wait(50);
  }
  throw new Error(`Session ${session} was not found within 2.5 s`);
}

function report(bench: Bench, outcomes: readonly Outcome[]): void {
  const dropped = outcomes.filter(({ isDropped }) => isDropped).length;
  const off = outcomes.map(({ offMs }) => offMs);
  const silent = outcomes.map(({ silentMs }) => silentMs);
  const count = `${outcomes.length} calls`;
  bench.row({
    figure: `calls that a deployment of three nodes dropped (${count})`,
    measured: `${dropped}`,
    baseline: "",
    ratio: "",
    target: "0",
    isOk: dropped === 0,
  });
  const worstOff = Math.max(...off);
  bench.row({
    figure: `speech that they did not get or got twice: worst call (${count})`,
    measured: `${worstOff.toFixed(0)} ms`,
    baseline: "",
    ratio: "",
    target: `<= ${SENTENCES.length * FRAME_MS} ms: a frame is filled up for each sentence`,
    isOk: worstOff <= SENTENCES.length * FRAME_MS,
  });
  bench.row({
    figure: `silence inside their speech: p99 / worst call (${count})`,
    measured: `${percentile(silent, 0.99).toFixed(0)} / ${Math.max(...silent).toFixed(0)} ms`,
    baseline: "",
    ratio: "",
    target: "0 ms",
    isOk: Math.max(...silent) < 1,
  });
}
