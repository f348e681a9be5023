/** What isolation does to speech: its gain in five noises, and how much of clean speech it keeps. */
import {
  denoise,
  isolationGain,
  isolationSpeech,
  NOISE_LEVELS_DB,
  NOISE_NAMES,
  type NoiseName,
  siSdr,
} from "../test/kit/isolation.ts";
import { type Bench, runBench } from "./kit/bench.ts";
import type { NoCommands } from "./kit/commands.ts";

const GAIN_DB = 8;
const KEPT_DB = 20;
/** English built-in voices, three of women and three of men. */
const VOICES = [
  "21m00Tcm4TlvDq8ikWAM",
  "pNInz6obpgDQGcFmaJgB",
  "bIHbv24MWmeRgasZH58o",
  "hpp4J3VqNfWAUOO0d1Us",
  "JBFqnCBsd6RMkjVDRZzb",
  "Xb7hH8MSUJpSbSDYk0k2",
] as const;

runBench(async (bench) => {
  const voices = VOICES.slice(0, bench.pick(VOICES.length, 1));
  bench.method(
    `${voices.length} built-in voices say two sentences; noise is added at a level below the speech's. Gain: SI-SDR after isolation less`,
    "SI-SDR before, both against the clean speech: the mean of the voices, and the lowest. The noises are the same each time.",
  );
  const speeches = await spokenBy(bench, voices);
  await keptRow(bench, speeches);
  for (const noise of NOISE_NAMES) {
    for (const snrDb of NOISE_LEVELS_DB) await gainRow(bench, speeches, { noise, snrDb });
  }
});

async function spokenBy(bench: Bench, voices: readonly string[]): Promise<Int16Array[]> {
  await using service = await bench.start<NoCommands>("service", { distUrl: bench.options.distUrl });
  const speeches: Int16Array[] = [];
  for (const voice of voices) speeches.push(await isolationSpeech(`http://127.0.0.1:${service.port}`, voice));
  return speeches;
}

async function keptRow(bench: Bench, speeches: readonly Int16Array[]): Promise<void> {
  const kept: number[] = [];
  for (const clean of speeches) kept.push(siSdr(clean, await denoise(clean)));
  bench.row({
    figure: `Isolation of clean speech, SI-SDR, mean / lowest (n=${kept.length})`,
    measured: `${meanOf(kept).toFixed(1)} / ${Math.min(...kept).toFixed(1)} dB`,
    baseline: "",
    ratio: "",
    target: `lowest >= ${KEPT_DB} dB`,
    isOk: Math.min(...kept) >= KEPT_DB,
  });
}

async function gainRow(
  bench: Bench,
  speeches: readonly Int16Array[],
  { noise, snrDb }: { readonly noise: NoiseName; readonly snrDb: number },
): Promise<void> {
  const gains: number[] = [];
  for (const clean of speeches) gains.push(await isolationGain(clean, noise, snrDb));
  bench.row({
    figure: `Isolation gain, ${noise}, SNR ${snrDb} dB, mean / lowest (n=${gains.length})`,
    measured: `${meanOf(gains).toFixed(1)} / ${Math.min(...gains).toFixed(1)} dB`,
    baseline: "",
    ratio: "",
    target: `mean >= ${GAIN_DB} dB`,
    isOk: meanOf(gains) >= GAIN_DB,
  });
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
