/** From the token that completes a sentence to the upstream having the request for that sentence in hand. */
import { Segmenter } from "../src/text/segmenter.ts";
import { type Bench, runBench, speakMessage, speechText } from "./kit/bench.ts";
import type { GatewayOptions, NoCommands } from "./kit/commands.ts";
import type { Fixture } from "./kit/fixture.ts";
import { percentile } from "./kit/statistics.ts";

const TARGET_P99_MS = 2;
const BACKGROUND_UTTERANCE_SECONDS = 10;
const BACKGROUND_SESSIONS = 100;
/** Tokens as a language model sends them; the last one shows that the sentence before it has ended. */
const TOKENS = [
  "1s {key}",
  " The",
  " quick",
  " brown",
  " fox",
  " jumps",
  " over",
  " it",
  " today",
  ".",
  " Then",
];
/** What the baseline and the floor are asked: they take no tokens, and the baseline plays in real time. */
const WHOLE = ["0.04s {key} The quick brown fox jumps over it today."];
/** Rounds that are not counted: they open the connection and compile the way. */
const WARM_UP = 50;

/** Who stands between client and upstream: our gateway, the one that one writes by hand, or next to nothing. */
type Between = "voicewire" | "baseline" | "floor";

runBench(async (bench) => {
  const rounds = bench.pick(1000, 50);
  checkTokens();
  bench.method(
    `One session, ${rounds} utterances one after the other (after ${WARM_UP} that are not counted), each in ${TOKENS.length} tokens. From just before the client writes the token that`,
    "completes the sentence to when the upstream fixture has read the whole request (CLOCK_MONOTONIC in both), the network's way included;",
    `alone, and beside ${bench.pick(BACKGROUND_SESSIONS, 10)} sessions that speak all the time. Baseline, alone: ws + fetch, which is sent the whole sentence at once and asks at once.`,
    "Floor, alone: uWebSockets.js + undici with nothing between, asked in the same way: what the network's ways and three processes on the machine's cores take.",
    "In the gateway: what its own waterfall (`utterance.done`) says of the same requests, without the network and the two other processes.",
  );
  const background = bench.pick(BACKGROUND_SESSIONS, 10);
  const baseline = await measure(bench, { between: "baseline", rounds, background: 0 });
  const floor = await measure(bench, { between: "floor", rounds, background: 0 });
  const alone = await measure(bench, { between: "voicewire", rounds, background: 0 });
  const beside = await measure(bench, { between: "voicewire", rounds, background });
  reportFloor(bench, floor);
  report(bench, alone, { name: "alone", baseline });
  report(bench, beside, { name: `${background} live sessions`, baseline: null });
});

/** What is timed has to be the token that completes the sentence, not one before or after it. */
function checkTokens(): void {
  const segmenter = new Segmenter();
  const cuts = TOKENS.map((token) => segmenter.push(token.replace("{key}", "k1")).length);
  if (cuts.at(-1) !== 1 || cuts.slice(0, -1).some((count) => count > 0))
    throw new Error(`Tokens cut at [${cuts.join(", ")}]: expected one segment, at the last token`);
}

/** Waits in ms, and the rounds that had none. */
interface Waits {
  readonly waits: readonly number[];
  /** The gateway's own part of each. */
  readonly gateway: readonly number[];
  readonly lost: number;
}

async function measure(
  bench: Bench,
  run: { readonly between: Between; readonly rounds: number; readonly background: number },
): Promise<Waits> {
  const isAskedWhole = run.between !== "voicewire";
  // A second of audio at a time: an utterance's whole response is one write.
  await using upstream = await bench.startUpstream({ speed: 10, chunkMs: 100 });
  await using gateway = await startBetween(bench, run.between, upstream.port);
  await using load = await bench.startLoad();
  if (run.background > 0) {
    const message = speakMessage(speechText(BACKGROUND_UTTERANCE_SECONDS));
    await load.ask("open", {
      group: "background",
      port: gateway.port,
      count: run.background,
      path: "/live/boundary-{i}?format=ulaw_8000&events=none",
      rampMs: bench.pick(5000, 500),
      messages: Array.from({ length: 30 }, () => message),
    });
  }
  await load.ask("open", {
    group: "speaker",
    port: gateway.port,
    count: 1,
    // As fast as it is made, so that the next utterance does not wait for this one to be heard.
    path: "/live/boundary?format=ulaw_8000&events=none&pace=burst",
    rampMs: 0,
    wantsText: true,
  });
  const { samples, failed } = await load.ask("boundaries", {
    group: "speaker",
    rounds: run.rounds + WARM_UP,
    tokens: isAskedWhole ? WHOLE : TOKENS,
    isSpeak: isAskedWhole,
    voiceId: "bench",
    pauseMs: 5,
    deadlineMs: 10_000,
  });
  const records = await upstream.ask("records", undefined);
  const requestedAt = new Map(records.map((record) => [record.key, record.firstByteMs]));
  const counted = samples.filter(({ key }) => Number(key) >= WARM_UP);
  const gatewayWaits = counted.flatMap(({ gatewayMs }) => (gatewayMs === null ? [] : [gatewayMs]));
  const waits = counted.flatMap(({ key, sentMs }) => {
    const atMs = requestedAt.get(key);
    return atMs === undefined ? [] : [atMs - sentMs];
  });
  const lost = run.rounds - waits.length;
  if (failed + lost > 0)
    bench.note(`boundary: ${failed} utterances did not end in time, ${lost} requests were not seen`);
  if (waits.some((ms) => ms < 0)) throw new Error("A request came before its token: expected after it");
  return { waits, gateway: gatewayWaits, lost };
}

function startBetween(bench: Bench, between: Between, upstreamPort: number): Promise<Fixture<NoCommands>> {
  if (between !== "floor") return bench.startGateway(between, upstreamPort);
  const { distUrl } = bench.options;
  const options: GatewayOptions = { upstreamUrl: `http://127.0.0.1:${upstreamPort}`, distUrl };
  return bench.start<NoCommands>("direct", options);
}

function reportFloor(bench: Bench, { waits }: Waits): void {
  bench.row({
    figure: `boundary: text -> request upstream with uWebSockets.js + undici alone, p50 / p99 (n=${waits.length})`,
    measured: shown(waits),
    baseline: "",
    ratio: "",
    target: "",
    isOk: null,
  });
}

function report(
  bench: Bench,
  measured: Waits,
  run: { readonly name: string; readonly baseline: Waits | null },
): void {
  const { waits, lost } = measured;
  const p99 = percentile(waits, 0.99);
  const { baseline } = run;
  bench.row({
    figure: `boundary: token that ends a sentence -> request upstream, ${run.name}, p50 / p99 (n=${waits.length})`,
    measured: shown(waits),
    baseline: baseline === null ? "" : shown(baseline.waits),
    ratio: baseline === null ? "" : (p99 / percentile(baseline.waits, 0.99)).toFixed(2),
    target: baseline === null ? "" : `p99 <= ${TARGET_P99_MS} ms`,
    isOk: baseline === null ? null : lost === 0 && p99 <= TARGET_P99_MS,
  });
  const own = measured.gateway;
  bench.row({
    figure: `boundary: of that in the gateway, sentence cut -> request written, ${run.name}, p50 / p99 (n=${own.length})`,
    measured: shown(own),
    baseline: "",
    ratio: "",
    target: `p99 <= ${TARGET_P99_MS} ms`,
    isOk: own.length === waits.length && percentile(own, 0.99) <= TARGET_P99_MS,
  });
}

function shown(waits: readonly number[]): string {
  return `${percentile(waits, 0.5).toFixed(2)} / ${percentile(waits, 0.99).toFixed(2)} ms`;
}
