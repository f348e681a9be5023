/**
 * P5: reading timestamp records against line split + JSON.parse + base64 decode, over the same pieces of
 * the same streams. `npm run bench -- ndjson`; kit/ndjson-rows.ts reads the last lines that it prints.
 */
import { StringDecoder } from "node:string_decoder";
import { bench, run, summary } from "mitata";
import { JsonLines } from "../src/upstream/parse/json-lines.ts";
import { readRecord } from "../src/upstream/parse/record.ts";

interface Stream {
  readonly name: string;
  readonly pieces: readonly Buffer[];
}

interface Shape {
  readonly name: string;
  /** Audio bytes and characters of one record. */
  readonly audioBytes: number;
  readonly characters: number;
  readonly records: number;
  /** Whether the upstream's normalization changed nothing, as in plain prose. */
  readonly isNormalizedSame: boolean;
  /** A dialogue's record carries voice segments, which go through JSON.parse. */
  readonly isDialogue?: boolean;
}

/** Bytes of one read from a socket. */
const PIECE_BYTES = 16 * 1024;

const SHAPES: readonly Shape[] = [
  { name: "ulaw_8000, 100 ms", audioBytes: 800, characters: 2, records: 200, isNormalizedSame: true },
  { name: "ulaw_8000, 1 s", audioBytes: 8000, characters: 15, records: 60, isNormalizedSame: true },
  {
    name: "ulaw_8000, 1 s, normalized",
    audioBytes: 8000,
    characters: 15,
    records: 60,
    isNormalizedSame: false,
  },
  { name: "pcm_24000, 1 s", audioBytes: 48_000, characters: 15, records: 60, isNormalizedSame: true },
  {
    name: "opus 64k, 6 s, normalized",
    audioBytes: 48_000,
    characters: 90,
    records: 20,
    isNormalizedSame: false,
  },
  {
    name: "dialogue, ulaw_8000, 1 s",
    audioBytes: 8000,
    characters: 15,
    records: 60,
    isNormalizedSame: true,
    isDialogue: true,
  },
];

const SEGMENT = {
  voice_id: "21m00Tcm4TlvDq8ikWAM",
  start_time_seconds: 0,
  end_time_seconds: 1,
  character_start_index: 0,
  character_end_index: 15,
  dialogue_input_index: 0,
};

function alignment(length: number, offset: number): object {
  const times = Array.from({ length: length + 1 }, (_, index) =>
    Number((offset + index * 0.0667).toFixed(3)),
  );
  return {
    characters: Array.from({ length }, (_, index) => "the quick brown fox"[index % 19]),
    character_start_times_seconds: times.slice(0, -1),
    character_end_times_seconds: times.slice(1),
  };
}

function stream(shape: Shape): Stream {
  const lines = Array.from({ length: shape.records }, (_, record) => {
    const audio = Buffer.from(
      Array.from({ length: shape.audioBytes }, (_, index) => (index * 31 + record) & 0xff),
    );
    const offset = (record * shape.characters) / 15;
    return `${JSON.stringify({
      audio_base64: audio.toString("base64"),
      alignment: alignment(shape.characters, offset),
      normalized_alignment: alignment(shape.characters + (shape.isNormalizedSame ? 0 : 1), offset),
      ...(shape.isDialogue === true ? { voice_segments: [SEGMENT] } : {}),
    })}\n`;
  });
  const bytes = Buffer.from(lines.join(""));
  const pieces = Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, index) =>
    bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
  );
  return { name: shape.name, pieces };
}

interface PlainRecord {
  readonly audio_base64: string;
  readonly alignment: { readonly characters: readonly string[] };
}

/** What anyone would write first: the baseline. */
function plain({ pieces }: Stream): number {
  // Measured faster than a streaming TextDecoder on Node 20: the baseline is to be the better of the two.
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let sum = 0;
  for (const piece of pieces) {
    const lines = (rest + decoder.write(piece)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const record = JSON.parse(line) as PlainRecord;
      sum += Buffer.from(record.audio_base64, "base64").length + record.alignment.characters.length;
    }
  }
  return sum;
}

function ours({ pieces }: Stream): number {
  let sum = 0;
  const parser = new JsonLines({
    onLine: (bytes, start, end) => {
      const record = readRecord(bytes, { start, end });
      sum += record.audio.length + (record.alignment?.characters.length ?? 0);
    },
  });
  for (const piece of pieces) parser.push(piece);
  parser.flush();
  return sum;
}

/** The same sum both ways: the work can't be optimised away, and neither reader may skip any of it. */
function check(input: Stream): void {
  if (ours(input) !== plain(input))
    throw new Error(`Readers differ: on ${input.name}, expected the same sum`);
}

const streams = SHAPES.map(stream);
for (const input of streams) {
  check(input);
  summary(() => {
    bench(`${input.name}: split + JSON.parse + base64`, () => plain(input));
    bench(`${input.name}: JsonLines + readRecord`, () => ours(input));
  });
}
const { benchmarks } = await run();
console.log("\nP5, target <= 0.70 (p50 of JsonLines + readRecord / p50 of the plain way)");
for (const input of streams) {
  const p50 = (suffix: string): number => {
    const trial = benchmarks.find((benchmark) => benchmark.alias === `${input.name}: ${suffix}`);
    return trial?.runs[0]?.stats?.p50 ?? Number.NaN;
  };
  const ratio = p50("JsonLines + readRecord") / p50("split + JSON.parse + base64");
  console.log(`  ${input.name.padEnd(28)} ${ratio.toFixed(2)}`);
}
