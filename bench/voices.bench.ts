/** The embedded voice: how soon it is heard through the gateway, and how fast it speaks in each kind of format. */
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";
import { cpuMs } from "./kit/cpu.ts";
import type { Fixture } from "./kit/fixture.ts";
import { monotonicMs } from "./kit/monotonic.ts";
import { percentile } from "./kit/statistics.ts";

const TARGET_FIRST_FRAME_MS = 60;
const TARGET_REAL_TIME = 15;
const SENTENCE = "Good morning, and thank you for calling.";
const PARAGRAPH =
  "The ship left the harbour in the early morning, while the town was still asleep. Nobody saw it go but the " +
  "keeper of the lighthouse, who wrote the hour into his book and went to bed. Three weeks later a letter came. ";

/** How many seconds of audio a response's bytes are. */
const FORMATS: readonly { readonly format: string; readonly seconds: (audio: Buffer) => number }[] = [
  { format: "ulaw_8000", seconds: (audio) => audio.length / 8000 },
  { format: "pcm_24000", seconds: (audio) => audio.length / 48_000 },
  { format: "opus_48000_64", seconds: (audio) => lastGranule(audio) / 48_000 },
  { format: "mp3_44100_128", seconds: (audio) => (audio.length * 8) / 128_000 },
];

runBench(async (bench) => {
  const turns = bench.pick(25, 5);
  bench.method(
    `The embedded service in a process of its own. First frame: from just before \`speak\` is written to the first frame at the client, one`,
    `session, ${turns} sentences one after the other with pauses, after five that are not counted. Speed: seconds of audio of a long text per`,
    "second of CPU of the whole service process (all threads), so x real time of one core; one request at a time.",
  );
  await using service = await bench.start<NoCommands>("service", { distUrl: bench.options.distUrl });
  for (const { events, label } of [
    { events: "&events=none", label: "audio only" },
    { events: "", label: "with timing" },
  ]) {
    await firstFrame(bench, { service, turns, events, label });
  }
  for (const { format, seconds } of FORMATS) await speed(bench, { service, format, seconds });
});

async function firstFrame(
  bench: Bench,
  run: {
    readonly service: Fixture<NoCommands>;
    readonly turns: number;
    readonly events: string;
    readonly label: string;
  },
): Promise<void> {
  await using gateway = await bench.startGateway("voicewire", run.service.port);
  await using load = await bench.startLoad();
  await load.ask("open", {
    group: "caller",
    port: gateway.port,
    count: 1,
    path: `/live/voices?format=ulaw_8000${run.events}`,
    rampMs: 0,
    wantsText: true,
  });
  const { samples, failed } = await load.ask("turns", {
    group: "caller",
    rounds: run.turns + 5,
    text: bench.pick(SENTENCE, "Good morning."),
    voiceId: null,
    deadlineMs: 20_000,
    pauseMs: 200,
  });
  if (failed > 0) bench.note(`voices: ${failed} turns had no frame or no end in time`);
  const waits = samples
    .filter(({ round }) => round >= 5)
    .map(({ sentMs, firstFrameMs }) => firstFrameMs - sentMs);
  const p50 = percentile(waits, 0.5);
  bench.row({
    figure: `voices: speak -> first frame, warm, ${run.label}, p50 / p99 (n=${waits.length})`,
    measured: `${p50.toFixed(1)} / ${percentile(waits, 0.99).toFixed(1)} ms`,
    baseline: "",
    ratio: "",
    target: `p50 <= ${TARGET_FIRST_FRAME_MS} ms`,
    isOk: p50 <= TARGET_FIRST_FRAME_MS,
  });
}

async function speed(
  bench: Bench,
  run: {
    readonly service: Fixture<NoCommands>;
    readonly format: string;
    readonly seconds: (audio: Buffer) => number;
  },
): Promise<void> {
  const base = `http://127.0.0.1:${run.service.port}`;
  const voice = await firstVoice(base);
  const text = PARAGRAPH.repeat(bench.pick(5, 1));
  const url = `${base}/v1/text-to-speech/${voice}/stream?output_format=${run.format}`;
  // The first request of a format loads its encoder and compiles its way.
  await synthesize(url, PARAGRAPH);
  const requests = bench.pick(3, 1);
  const [beganMs, beganCpuMs] = [monotonicMs(), cpuMs(run.service.pid)];
  let audioSeconds = 0;
  for (let count = 0; count < requests; count += 1) audioSeconds += run.seconds(await synthesize(url, text));
  const cpuSeconds = (cpuMs(run.service.pid) - beganCpuMs) / 1000;
  const wallSeconds = (monotonicMs() - beganMs) / 1000;
  const realTime = audioSeconds / cpuSeconds;
  bench.row({
    figure: `voices: speed per core, ${run.format}`,
    measured: `${realTime.toFixed(1)}x (${(audioSeconds / wallSeconds).toFixed(1)}x by the wall clock)`,
    baseline: "",
    ratio: "",
    target: `>= ${TARGET_REAL_TIME}x`,
    isOk: realTime >= TARGET_REAL_TIME,
  });
}

async function synthesize(url: string, text: string): Promise<Buffer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text }),
  });
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200)
    throw new Error(`Service answered ${response.status}: ${body.toString("utf8", 0, 300)}`);
  return body;
}

async function firstVoice(base: string): Promise<string> {
  const response = await fetch(`${base}/v1/voices`);
  const { voices } = (await response.json()) as { voices: { voice_id: string }[] };
  const id = voices[0]?.voice_id;
  if (id === undefined) throw new Error("Service has no voices: expected at least one");
  return id;
}

/** Position at the end of the last Ogg page: samples at 48 kHz (RFC 3533 section 6, RFC 7845 section 4). */
function lastGranule(ogg: Buffer): number {
  const page = ogg.lastIndexOf("OggS");
  return page < 0 ? 0 : Number(ogg.readBigUInt64LE(page + 6));
}
