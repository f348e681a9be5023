/** The history with 10,000 items: how long a page, a search and one item take over HTTP. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";
import { percentile } from "./kit/statistics.ts";

type StoreModule = typeof import("../src/service/store/store.ts");

const PAGE_MS = 15;
const SEARCH_MS = 50;
const WORDS =
  "time year people way day man thing woman life child world school state family student group country problem hand part".split(
    " ",
  );

runBench(async (bench) => {
  const items = bench.pick(10_000, 200);
  const asks = bench.pick(300, 20);
  bench.method(
    `${items} items of 12 to 60 words with the times of every character, filled in beforehand; ${asks} requests each, one after the other, to the service in a`,
    "process of its own, from the request to the last byte of the answer: pages of 100 from places all over, a rare word, a word that every item has, none.",
    "Baseline: a bare Node HTTP server that sends as many constant bytes, asked in turn.",
  );
  const folder = await mkdtemp(join(tmpdir(), "voicewire-bench-"));
  try {
    const ids = await fill(bench, folder, items);
    await using service = await bench.start<NoCommands>("service", {
      distUrl: bench.options.distUrl,
      dataFolder: folder,
    });
    const base = `http://127.0.0.1:${service.port}/v1/history`;
    const place = (ask: number): string => ids[(ask * 7919) % ids.length] ?? "";
    const cases: readonly [figure: string, targetMs: number | null, url: (ask: number) => string][] = [
      [
        "list, a page of 100",
        PAGE_MS,
        (ask) => `${base}?page_size=100&start_after_history_item_id=${place(ask)}`,
      ],
      ["list, newest 100 of a voice", PAGE_MS, (ask) => `${base}?page_size=100&voice_id=v${ask % 5}`],
      ["search, a word of one item", SEARCH_MS, (ask) => `${base}?search=needle${(ask * 31) % items}x`],
      ["search, a word that no item has", SEARCH_MS, () => `${base}?search=nowhere`],
      ["search, a word of every item", SEARCH_MS, () => `${base}?search=e&page_size=100`],
      ["get one", null, (ask) => `${base}/${place(ask)}`],
    ];
    for (const [figure, targetMs, url] of cases) await measure(bench, { figure, targetMs, url, asks });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

async function measure(
  bench: Bench,
  run: {
    readonly figure: string;
    readonly targetMs: number | null;
    readonly url: (ask: number) => string;
    readonly asks: number;
  },
): Promise<void> {
  const { byteLength: bytes } = await (await fetch(run.url(1))).arrayBuffer();
  await using bare = await bench.start<NoCommands>("vendor", { workMs: 0, jsonBytes: bytes });
  const ms: number[] = [];
  const bareMs: number[] = [];
  for (let ask = 0; ask < run.asks; ask += 1) {
    ms.push(await timeOf(run.url(ask)));
    bareMs.push(await timeOf(`http://127.0.0.1:${bare.port}/`));
  }
  const p99 = percentile(ms, 0.99);
  bench.row({
    figure: `History ${run.figure}`,
    measured: `p50 ${percentile(ms, 0.5).toFixed(1)}, p99 ${p99.toFixed(1)} ms (${Math.round(bytes / 1024)} KB)`,
    baseline: `p50 ${percentile(bareMs, 0.5).toFixed(1)}, p99 ${percentile(bareMs, 0.99).toFixed(1)} ms (bare Node server)`,
    ratio: "",
    target: run.targetMs === null ? "" : `p99 <= ${run.targetMs} ms`,
    isOk: run.targetMs === null ? null : p99 <= run.targetMs,
  });
}

/** From the request to the last byte, ms. */
async function timeOf(url: string): Promise<number> {
  const began = performance.now();
  const answer = await fetch(url);
  await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
  return performance.now() - began;
}

/** Writes the items as the service would have; their ids. */
async function fill(bench: Bench, folder: string, items: number): Promise<string[]> {
  const { openStore } = (await import(
    new URL("service/store/store.js", bench.options.distUrl).href
  )) as StoreModule;
  const store = await openStore({ folder });
  const media = await store.media.put(Buffer.from("audio"));
  const ids: string[] = [];
  const nowUnix = Math.floor(Date.now() / 1000);
  for (let index = 0; index < items; index += 1) {
    const count = 12 + (index % 49);
    const words = Array.from({ length: count }, (_, word) => WORDS[(index * 7 + word * 3) % WORDS.length]);
    const text = `${words.join(" ")} needle${index}x.`;
    const characters = [...text];
    // As the engine gives them: to 0.1 ms.
    const times = characters.map((_, at) => Math.round(at * 613) / 10_000);
    const alignment = {
      characters,
      character_start_times_seconds: times,
      character_end_times_seconds: times.map((seconds) => Math.round(seconds * 10_000 + 613) / 10_000),
    };
    const { id } = store.history.add(
      {
        requestId: `r${index}`,
        voiceId: `v${index % 5}`,
        voiceName: "Nora",
        voiceCategory: "premade",
        modelId: "eleven_flash_v2_5",
        text,
        dateUnix: nowUnix - (items - index),
        characters: characters.length,
        contentType: "audio/mpeg",
        outputFormat: "mp3_44100_128",
        source: "TTS",
        settings: null,
        alignmentsJson: JSON.stringify({ alignment, normalized_alignment: alignment }),
        dialogue: null,
      },
      // One file for all: put on the disk once.
      { ...media, release: () => undefined },
    );
    ids.push(id);
  }
  await store.close();
  return ids;
}
