/** The text pipeline on a token stream: preparing, cutting and finding words, in bytes of UTF-8 per second of CPU. */
import { type Bench, runBench } from "./kit/bench.ts";
import { median } from "./kit/statistics.ts";
import { PARAGRAPHS } from "./kit/text-samples.ts";

type SegmenterModule = typeof import("../src/text/segmenter.ts");
type WordsModule = typeof import("../src/text/words.ts");

/** What the bench uses of src/text/prepare. */
interface Preparer {
  push(text: string): string;
  end(): string;
}
interface PreparerModule {
  readonly TextPreparer: new (options: {
    readonly clean: readonly string[];
    readonly replacements: readonly object[];
  }) => Preparer;
}

interface Pipeline {
  readonly Segmenter: SegmenterModule["Segmenter"];
  readonly WordScanner: WordsModule["WordScanner"];
  /** null: the build has none. */
  readonly TextPreparer: PreparerModule["TextPreparer"] | null;
}

/** About four characters a token is what language models come to. */
const TOKEN_CHARACTERS = 4;
/** Characters of one utterance: everything starts afresh with the next. */
const UTTERANCE_CHARACTERS = 4000;
const TARGET_BYTES_PER_SECOND = 2_000_000;
const CLEAN = ["markdown", "emoji", "urls", "code"];
const REPLACEMENTS = [
  { from: "voicewire", to: "voice wire", ignore_case: true },
  { from: "km", to: "kilometres" },
];

runBench(async (bench) => {
  const megabytes = bench.pick(4, 0.1);
  const rounds = bench.pick(5, 2);
  const pipeline = await loadPipeline(bench);
  bench.method(
    `Texts of ${UTTERANCE_CHARACTERS} characters in tokens of ${TOKEN_CHARACTERS}, ${megabytes} MB of UTF-8 a round, ${rounds} rounds, interleaved with the baseline, medians; bytes per second of the`,
    `process's CPU. ${pipeline.TextPreparer === null ? "This build has no TextPreparer: left out. " : "TextPreparer (every cleaning on, two replacements) -> "}Segmenter -> WordScanner over what is to be spoken. Baseline: Intl.Segmenter`,
    "over the whole text at once, sentences and words, which is less work: it holds nothing back and need not be right at any split.",
  );
  for (const [language, paragraphs] of Object.entries(PARAGRAPHS)) {
    measure(bench, { language, texts: utterances(paragraphs, megabytes * 1e6), pipeline, rounds });
  }
});

async function loadPipeline(bench: Bench): Promise<Pipeline> {
  const load = (path: string): Promise<unknown> => import(new URL(path, bench.options.distUrl).href);
  const { Segmenter } = (await load("text/segmenter.js")) as SegmenterModule;
  const { WordScanner } = (await load("text/words.js")) as WordsModule;
  const preparing = await load("text/prepare/text-preparer.js").catch((thrown: unknown) => {
    if ((thrown as { code?: unknown }).code === "ERR_MODULE_NOT_FOUND") return null;
    throw thrown;
  });
  return { Segmenter, WordScanner, TextPreparer: (preparing as PreparerModule | null)?.TextPreparer ?? null };
}

interface Utterance {
  readonly text: string;
  readonly tokens: readonly string[];
}

/** As many as there are `bytes` of UTF-8 in, each beginning somewhere else. */
function utterances(paragraphs: readonly string[], bytes: number): Utterance[] {
  const made: Utterance[] = [];
  let total = 0;
  for (let first = 0; total < bytes; first += 1) {
    let text = "";
    for (let index = first; text.length < UTTERANCE_CHARACTERS; index += 1)
      text += `${paragraphs[index % paragraphs.length]}\n\n`;
    const characters = [...text].slice(0, UTTERANCE_CHARACTERS);
    const tokens: string[] = [];
    for (let at = 0; at < characters.length; at += TOKEN_CHARACTERS)
      tokens.push(characters.slice(at, at + TOKEN_CHARACTERS).join(""));
    made.push({ text: characters.join(""), tokens });
    total += Buffer.byteLength(characters.join(""));
  }
  return made;
}

function measure(
  bench: Bench,
  run: {
    readonly language: string;
    readonly texts: readonly Utterance[];
    readonly pipeline: Pipeline;
    readonly rounds: number;
  },
): void {
  const { language, texts, pipeline } = run;
  const bytes = texts.reduce((total, { text }) => total + Buffer.byteLength(text), 0);
  const own: number[] = [];
  const plain: number[] = [];
  let found = { segments: 0, words: 0 };
  // The first round compiles.
  for (let round = 0; round <= run.rounds; round += 1) {
    const ours = bytesPerCpuSecond(bytes, () => {
      found = speakAll(texts, pipeline);
    });
    const theirs = bytesPerCpuSecond(bytes, () => segmentAll(texts, language));
    if (round === 0) continue;
    own.push(ours);
    plain.push(theirs);
  }
  bench.note(
    `text ${language}: ${texts.length} texts, ${(bytes / 1e6).toFixed(2)} MB, ${found.segments} segments, ${found.words} words; ` +
      `alone, MB/s: ${stageRates(texts, pipeline, bytes)}`,
  );
  const rate = median(own);
  bench.row({
    figure: `text pipeline, tokens of ${TOKEN_CHARACTERS} characters, ${language}`,
    measured: `${(rate / 1e6).toFixed(2)} MB/s a core`,
    baseline: `${(median(plain) / 1e6).toFixed(2)} MB/s (Intl.Segmenter, whole texts)`,
    ratio: (rate / median(plain)).toFixed(2),
    target: `>= ${TARGET_BYTES_PER_SECOND / 1e6} MB/s`,
    isOk: rate >= TARGET_BYTES_PER_SECOND,
  });
}

function bytesPerCpuSecond(bytes: number, work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (bytes * 1e6) / (user + system);
}

function speakAll(texts: readonly Utterance[], pipeline: Pipeline): { segments: number; words: number } {
  let [segments, words] = [0, 0];
  for (const { tokens } of texts) {
    const preparer = newPreparer(pipeline);
    const segmenter = new pipeline.Segmenter();
    const scanner = new pipeline.WordScanner();
    for (const token of tokens) {
      const spoken = preparer === null ? token : preparer.push(token);
      if (spoken === "") continue;
      segments += segmenter.push(spoken).length;
      words += scanner.push(spoken).length;
    }
    const rest = preparer?.end() ?? "";
    segments += segmenter.push(rest).length + segmenter.end().length;
    words += scanner.push(rest).length + scanner.endWord().length;
  }
  return { segments, words };
}

function newPreparer({ TextPreparer }: Pipeline): Preparer | null {
  return TextPreparer === null ? null : new TextPreparer({ clean: CLEAN, replacements: REPLACEMENTS });
}

/** Each stage alone on the same tokens, to see where the time goes; bytes per second of CPU. */
function stageRates(texts: readonly Utterance[], pipeline: Pipeline, bytes: number): string {
  const perStage: [string, (utterance: Utterance) => void][] = [
    [
      "cutting",
      ({ tokens }) => {
        const segmenter = new pipeline.Segmenter();
        for (const token of tokens) segmenter.push(token);
        segmenter.end();
      },
    ],
    [
      "words",
      ({ tokens }) => {
        const scanner = new pipeline.WordScanner();
        for (const token of tokens) scanner.push(token);
        scanner.endWord();
      },
    ],
  ];
  if (pipeline.TextPreparer !== null) {
    perStage.unshift([
      "preparing",
      ({ tokens }) => {
        const preparer = newPreparer(pipeline);
        for (const token of tokens) preparer?.push(token);
        preparer?.end();
      },
    ]);
  }
  return perStage
    .map(([name, stage]) => {
      const rate = bytesPerCpuSecond(bytes, () => texts.forEach(stage));
      return `${name} ${(rate / 1e6).toFixed(2)}`;
    })
    .join(", ");
}

function segmentAll(texts: readonly Utterance[], language: string): void {
  let pieces = 0;
  const sentences = new Intl.Segmenter(language, { granularity: "sentence" });
  const words = new Intl.Segmenter(language, { granularity: "word" });
  for (const { text } of texts) {
    for (const piece of sentences.segment(text)) pieces += piece.index >= 0 ? 1 : 0;
    for (const piece of words.segment(text)) pieces += piece.isWordLike === true ? 1 : 0;
  }
  if (pieces === 0)
    throw new Error(`Intl.Segmenter found nothing in ${language}: expected sentences and words`);
}
