/** The phrase cache: how soon and at what cost of CPU a phrase is there again, and whether it counts its memory right. */
import { PhraseCache } from "../src/upstream/cache/phrase-cache.ts";
import { createUpstream } from "../src/upstream/regional-upstream.ts";
import type { SpeechRequest, SynthesisChunk, Upstream } from "../src/upstream/types.ts";
import type { UpstreamClient } from "../src/upstream/upstream-client.ts";
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";
import { kilobytes, MemoryProbe } from "./kit/memory.ts";
import { percentile } from "./kit/statistics.ts";

const VOICE = "21m00Tcm4TlvDq8ikWAM";
const SENTENCE =
  "Good morning, and thank you for calling. All of our lines are busy now; please hold on for a moment.";
const FORMATS = ["ulaw_8000", "pcm_24000"] as const;

runBench(async (bench) => {
  const asks = bench.pick(200, 10);
  bench.method(
    `The client and the cache in one process, the embedded service in another. ${asks} times the same sentence with timing, one after the other, in turn without`,
    "the cache (baseline) and out of it, after as many that are not counted: from the request to its end, and CPU of the client's process (all threads).",
    "Memory: 2,000 phrases of three records of 1 s in ulaw_8000, heap and buffers after forced collections against what the cache counts.",
  );
  await using service = await bench.start<NoCommands>("service", { distUrl: bench.options.distUrl });
  const client = createUpstream({
    baseUrl: `http://127.0.0.1:${service.port}`,
    key: "",
    maxConnections: 4,
    maxQueued: 4,
    timeoutMs: 20_000,
    patienceMs: 20_000,
    failoverMs: 4000,
  });
  try {
    for (const outputFormat of FORMATS) await compare(bench, { client, outputFormat, asks });
  } finally {
    await client.close();
  }
  await memory(bench, bench.pick(2000, 50));
});

interface Cost {
  readonly waitsMs: number[];
  cpuUs: number;
}

async function compare(
  bench: Bench,
  run: { readonly client: UpstreamClient; readonly outputFormat: string; readonly asks: number },
): Promise<void> {
  const { client, outputFormat, asks } = run;
  const cache = new PhraseCache({ upstream: client, maxBytes: 16 * 1024 * 1024 });
  const request: SpeechRequest = {
    kind: "speech",
    voiceId: VOICE,
    text: SENTENCE,
    outputFormat,
    wantsTiming: true,
  };
  for (let ask = 0; ask < asks; ask += 1) await Promise.all([hear(client, request), hear(cache, request)]);
  const without: Cost = { waitsMs: [], cpuUs: 0 };
  const hits: Cost = { waitsMs: [], cpuUs: 0 };
  const perRound = 10;
  for (let round = 0; round < asks / perRound; round += 1) {
    await spend(without, client, { request, count: perRound });
    await spend(hits, cache, { request, count: perRound });
  }
  if (cache.stats().misses !== 1) throw new Error("The cache missed what it should have");
  const p50 = (cost: Cost): number => percentile(cost.waitsMs, 0.5);
  bench.row({
    figure: `phrase cache: request -> end, ${outputFormat}, hit, p50 / p99`,
    measured: `${p50(hits).toFixed(2)} / ${percentile(hits.waitsMs, 0.99).toFixed(2)} ms`,
    baseline: `${p50(without).toFixed(1)} ms`,
    ratio: (p50(hits) / p50(without)).toFixed(3),
    target: "",
    isOk: null,
  });
  bench.row({
    figure: `phrase cache: CPU a request, ${outputFormat}, hit`,
    measured: `${(hits.cpuUs / asks).toFixed(0)} us`,
    baseline: `${(without.cpuUs / asks).toFixed(0)} us`,
    ratio: (hits.cpuUs / without.cpuUs).toFixed(3),
    target: "",
    isOk: null,
  });
}

async function spend(
  cost: Cost,
  upstream: Upstream,
  { request, count }: { readonly request: SpeechRequest; readonly count: number },
): Promise<void> {
  const before = process.cpuUsage();
  for (let ask = 0; ask < count; ask += 1) {
    const beganMs = performance.now();
    await hear(upstream, request);
    cost.waitsMs.push(performance.now() - beganMs);
  }
  const { user, system } = process.cpuUsage(before);
  cost.cpuUs += user + system;
}

function hear(upstream: Upstream, request: SpeechRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    upstream.open(request, {
      head: () => undefined,
      chunk: ({ audio }) => {
        bytes += audio.byteLength;
      },
      end: () => (bytes > 0 ? resolve() : reject(new Error("Speech without audio"))),
      error: reject,
    });
  });
}

/** Answers at once with three records. */
function instantUpstream(): Upstream {
  const characters = Array.from("the quick brown");
  const record = (): SynthesisChunk => {
    const starts = characters.map((_, index) => index * 0.0667);
    const alignment = {
      characters: [...characters],
      character_start_times_seconds: starts,
      character_end_times_seconds: starts.map((start) => start + 0.0667),
    };
    return { audio: Buffer.alloc(8000, 7), alignment, normalizedAlignment: alignment, voiceSegments: [] };
  };
  return {
    open(_request, handlers) {
      queueMicrotask(() => {
        handlers.head({ requestId: "bench", characterCost: 15 });
        for (let count = 0; count < 3; count += 1) handlers.chunk(record());
        handlers.end();
      });
      return { pause: () => undefined, resume: () => undefined, abort: () => undefined };
    },
  };
}

async function memory(bench: Bench, phrases: number): Promise<void> {
  const probe = new MemoryProbe();
  const held = async (): Promise<number> => {
    const { heapBytes, externalBytes } = await probe.take();
    return heapBytes + externalBytes;
  };
  const cache = new PhraseCache({ upstream: instantUpstream(), maxBytes: 1024 * 1024 * 1024 });
  const before = await held();
  for (let index = 0; index < phrases; index += 1) {
    const text = `Phrase ${index}`;
    await hear(cache, { kind: "speech", voiceId: VOICE, text, outputFormat: "ulaw_8000", wantsTiming: true });
  }
  const perPhrase = ((await held()) - before) / phrases;
  const counted = cache.stats().bytes / phrases;
  bench.row({
    figure: "phrase cache: memory of a phrase of 3 s, counted / held",
    measured: `${kilobytes(counted)} / ${kilobytes(perPhrase)} KB`,
    baseline: "",
    ratio: (counted / perPhrase).toFixed(2),
    target: "counted >= held",
    isOk: counted >= perPhrase,
  });
  cache.close();
}
