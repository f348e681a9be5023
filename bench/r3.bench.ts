/** R3: a tenth of the listeners stops reading: what the others notice, and what the server holds for those that stopped. */
import { type Bench, measureWindow, runBench, speakMessage, speechText } from "./kit/bench.ts";
import type { GatewayCommands, GridSummary, LoadCommands } from "./kit/commands.ts";
import type { Fixture } from "./kit/fixture.ts";
import { megabytes } from "./kit/memory.ts";
import { wait } from "./kit/monotonic.ts";
import { median } from "./kit/statistics.ts";

const LEAD_MS = 300;
const BATCH_MS = 100;
const UTTERANCE_SECONDS = 10;
const TARGET_RATIO = 1.1;
/** The gateway's default for max-outbox-bytes, which its fixture does not change. */
const OUTBOX_BYTES = 262_144;

interface Form {
  readonly name: string;
  readonly sessions: number;
  readonly healthy: number;
  readonly troubled: number;
}

interface Size {
  /** From the first speech to the window: the stalled ones' buffers fill. */
  readonly fillSeconds: number;
  readonly seconds: number;
}

interface Outcome {
  readonly grid: GridSummary;
  /** Growth of the server's memory over the window. */
  readonly grownBytes: number;
}

runBench(async (bench) => {
  const size: Size = { fillSeconds: bench.pick(50, 3), seconds: bench.pick(30, 3) };
  const forms: Form[] = [
    { name: "one session", sessions: 1, healthy: bench.pick(450, 45), troubled: bench.pick(50, 5) },
    {
      name: `${bench.pick(50, 5)} sessions`,
      sessions: bench.pick(50, 5),
      healthy: bench.pick(450, 45),
      troubled: bench.pick(50, 5),
    },
  ];
  bench.method(
    `Nine of ten listeners take ulaw_8000, one of ten pcm_48000, all live, 20 ms, lead ${LEAD_MS} ms, events=none. The tenth never reads any audio, or (in the run`,
    `that it is held against) reads it all. After ${size.fillSeconds} s (the kernel takes about 4 MB for each before the gateway notices) the others are watched for ${size.seconds} s.`,
    "Delay: from when a frame of the nine tenths may leave (its playout by the server's playhead, less the lead) to its arrival; up to a batch of",
    `${BATCH_MS} ms is by design. Lateness as in \`scale\` is in the notes. Memory: growth of the server's resident memory from ${size.fillSeconds / 10} s to the end,`,
    `garbage collected, beside the sum of the outbox caps (${OUTBOX_BYTES} bytes each). Withheld: frames of the tenth that the gateway did not hand to their sockets`,
    `within the window; none withheld, and the run says nothing. ${bench.options.rounds} runs each, interleaved, fresh processes, medians.`,
  );
  for (const form of forms) await compare(bench, form, size);
});

async function compare(bench: Bench, form: Form, size: Size): Promise<void> {
  const calm: Outcome[] = [];
  const stalled: Outcome[] = [];
  for (let round = 0; round < bench.options.rounds; round += 1) {
    calm.push(await measure(bench, { form, size, isStalling: false }));
    stalled.push(await measure(bench, { form, size, isStalling: true }));
  }
  const p99 = (outcomes: readonly Outcome[]): number => median(outcomes.map(({ grid }) => grid.delayP99Ms));
  const ratio = p99(stalled) / p99(calm);
  const count = form.healthy + form.troubled;
  bench.row({
    figure: `R3 healthy listeners' delay p99, ${count} on ${form.name}, ${form.troubled} do not read`,
    measured: `${p99(stalled).toFixed(1)} ms`,
    baseline: `${p99(calm).toFixed(1)} ms (all read)`,
    ratio: ratio.toFixed(2),
    target: `<= ${TARGET_RATIO}x`,
    isOk: ratio <= TARGET_RATIO,
  });
  const grown = median(stalled.map(({ grownBytes }) => grownBytes));
  const grownCalm = median(calm.map(({ grownBytes }) => grownBytes));
  const caps = form.troubled * OUTBOX_BYTES;
  bench.row({
    figure: `R3 server memory while ${form.troubled} of ${count} do not read, ${form.name}`,
    measured: `${Math.round(grown)} bytes`,
    baseline: `${Math.round(grownCalm)} bytes (all read)`,
    ratio: "",
    target: `<= ${caps} bytes more (their caps)`,
    isOk: grown - grownCalm <= caps,
  });
}

async function measure(
  bench: Bench,
  run: { readonly form: Form; readonly size: Size; readonly isStalling: boolean },
): Promise<Outcome> {
  const { form, size } = run;
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  await using load = await bench.startLoad();
  await openAll(load, gateway.port, form);
  if (run.isStalling) await load.ask("stall", { group: "troubled" });
  const messages = utterances(size.fillSeconds + size.seconds);
  await load.ask("send", { group: "speakers", messages });
  // The server has found its size and nothing has piled up yet: the kernel takes the first half minute.
  await wait(size.fillSeconds * 100);
  const before = await gateway.memory();
  await wait(size.fillSeconds * 900);
  await load.ask("anchor", { group: "healthy" });
  const sentBefore = await sentFrames(gateway);
  const { seconds } = size;
  const window = await measureWindow({ serverPid: gateway.pid, load, group: "healthy", seconds });
  const sent = (await sentFrames(gateway)) - sentBefore;
  const lateness = await load.ask("lateness", { group: "healthy" });
  const grid = await load.ask("grid", { group: "healthy" });
  const troubled = await load.ask("counters", { group: "troubled" });
  const after = await gateway.memory();
  const grownBytes = after.rssBytes - before.rssBytes;
  const expected = form.troubled * 50 * window.seconds;
  const withheld = 1 - (sent - window.frames) / expected;
  bench.note(
    `R3 ${form.name}, ${run.isStalling ? `${form.troubled} do not read` : "all read"}: delay p99 ${grid.delayP99Ms.toFixed(1)} ms; lateness p50 ${lateness.p50Ms.toFixed(1)}, p99 ${lateness.p99Ms.toFixed(1)}, ` +
      `max ${lateness.maxMs.toFixed(1)} ms (n=${lateness.frames}); server ${megabytes(before.rssBytes)} -> ${megabytes(after.rssBytes)} MB; ` +
      `${(100 * withheld).toFixed(0)}% of the tenth's frames withheld; ${troubled.open} of ${form.troubled} still open; cores: server ` +
      `${(window.cpuMs / window.seconds / 1000).toFixed(2)}, load ${window.loadCores.toFixed(2)}`,
  );
  return { grid, grownBytes };
}

function utterances(seconds: number): string[] {
  const message = speakMessage(speechText(UTTERANCE_SECONDS));
  return Array.from({ length: Math.ceil(seconds / UTTERANCE_SECONDS) + 2 }, () => message);
}

async function openAll(load: Fixture<LoadCommands>, port: number, form: Form): Promise<void> {
  const session = `r3-{i%${form.sessions}}`;
  const open = (group: string, count: number, query: string) =>
    load.ask("open", {
      group,
      port,
      count,
      path: `/live/${session}?events=none&${query}`,
      rampMs: Math.min(2000, count * 4),
      ...(group === "healthy"
        ? { wantsText: true, grid: { leadMs: LEAD_MS, batchMs: BATCH_MS, isAnchored: true } }
        : {}),
    });
  await open("speakers", form.sessions, "role=speaker&format=none");
  const troubled = await open(
    "troubled",
    form.troubled,
    `role=listener&format=pcm_48000&policy=live&lead_ms=${LEAD_MS}`,
  );
  const healthy = await open("healthy", form.healthy, `role=listener&format=ulaw_8000&lead_ms=${LEAD_MS}`);
  if (troubled.failed + healthy.failed > 0)
    throw new Error(`Listeners can't connect: ${troubled.failed + healthy.failed} failed, expected none`);
}

async function sentFrames(gateway: Fixture<GatewayCommands>): Promise<number> {
  const response = await fetch(`${await gateway.ask("opsUrl", undefined)}/metrics`);
  const value = /^voicewire_frames_sent_total (\d+)/m.exec(await response.text())?.[1];
  if (value === undefined) throw new Error("Metrics have no voicewire_frames_sent_total: expected a number");
  return Number(value);
}
