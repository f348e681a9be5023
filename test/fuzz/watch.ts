/** Runs each target in a thread of its own, and saves the input at which one breaks, hangs or runs out of memory. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { keepFound } from "./corpus.ts";
import { type Fault, type Job, type Report, SLOT } from "./messages.ts";
import { writeRow } from "./results.ts";
import { MAX_JOINED_BYTES } from "./target.ts";
import { TARGETS } from "./targets.ts";

const PROGRESS_MS = 10_000;

export interface Bounds {
  /** An input that takes longer hangs: longer than any takes on a busy machine. */
  readonly hangMs: number;
  /** Of a thread's heap: an input that makes more of it breaks the target. */
  readonly maxHeapMb: number;
}
const BOUNDS: Bounds = { hangMs: 15_000, maxHeapMb: 512 };

interface WatchOptions {
  readonly args: readonly string[];
  /** test/fuzz. */
  readonly folder: string;
  readonly outFolder: string;
}

/** The process's exit code: 0 where no target broke. */
export async function watch({ args, folder, outFolder }: WatchOptions): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      inputs: { type: "string", default: "1000000" },
      seed: { type: "string", default: "1" },
      seconds: { type: "string", default: "Infinity" },
      list: { type: "boolean", default: false },
    },
  });
  const inputs = Number(values.inputs);
  const seed = Number(values.seed);
  const maxSeconds = Number(values.seconds);
  const unknown = positionals.find((name) => TARGETS[name] === undefined);
  if (
    unknown !== undefined ||
    !Number.isSafeInteger(inputs) ||
    !Number.isSafeInteger(seed) ||
    !(maxSeconds > 0) ||
    values.list
  ) {
    console.log(
      `npm run fuzz -- [TARGET...] [--inputs 1000000] [--seed 1] [--seconds 60]\n${Object.keys(TARGETS).join("\n")}`,
    );
    return values.list ? 0 : 2;
  }
  const names = positionals.length > 0 ? positionals : Object.keys(TARGETS);
  let broken = 0;
  for (const target of names) {
    const corpusFolder = join(folder, "corpus", target);
    const shared = new SharedArrayBuffer(SLOT.headerBytes + MAX_JOINED_BYTES);
    const outcome = await runTarget(
      { target, inputs, seed, maxSeconds, corpusFolder, shared },
      { workerPath: join(outFolder, "fuzz-worker.js"), bounds: BOUNDS },
    );
    if (outcome.kind === "done") {
      const { seconds, branches, slowestMs, heapBeforeMb, heapAfterMb } = outcome;
      const rate = Math.round(outcome.inputs / seconds);
      console.log(
        `${target}: ${outcome.inputs} inputs, ${rate}/s, ${branches} branches, slowest ${slowestMs.toFixed(1)} ms, ` +
          `heap ${heapBeforeMb} -> ${heapAfterMb} MB`,
      );
      writeRow(join(folder, "results.md"), outcome);
    } else {
      broken += 1;
      const path = outcome.input.length === 0 ? "(no single input)" : keepFound(corpusFolder, outcome.input);
      console.error(`${target}: BROKEN by ${path}\n${outcome.what}`);
    }
  }
  return broken === 0 ? 0 : 1;
}

export function runTarget(
  job: Job,
  { workerPath, bounds }: { readonly workerPath: string; readonly bounds: Bounds },
): Promise<Report | Fault> {
  const { hangMs, maxHeapMb } = bounds;
  const words = new Int32Array(job.shared, 0, 2);
  const current = (): Uint8Array =>
    new Uint8Array(job.shared, SLOT.headerBytes, Atomics.load(words, SLOT.length)).slice();
  return new Promise((resolve) => {
    const worker = new Worker(workerPath, {
      workerData: job,
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
    });
    let lastCount = -1;
    const hangTimer = setInterval(() => {
      const count = Atomics.load(words, SLOT.count);
      if (count !== lastCount) {
        lastCount = count;
        return;
      }
      finish({ kind: "fault", input: current(), what: `It hangs: nothing comes of it in ${hangMs} ms` });
    }, hangMs);
    const progressTimer = setInterval(() => {
      console.log(`${job.target}: ${Atomics.load(words, SLOT.count)} of ${job.inputs}`);
    }, PROGRESS_MS);
    const finish = (outcome: Report | Fault): void => {
      clearInterval(hangTimer);
      clearInterval(progressTimer);
      void worker.terminate().then(() => resolve(outcome));
    };
    worker.on("message", finish);
    worker.on("error", (error) => {
      finish({ kind: "fault", input: current(), what: String(error.stack ?? error) });
    });
  });
}
