/** Runs one target's inputs: mutates those that reach new code, and watches over time and memory. */
import { parentPort, workerData } from "node:worker_threads";
import { readCorpus, writeKept } from "./corpus.ts";
import { Coverage, hits } from "./coverage.ts";
import type { Fault, Job, Report } from "./messages.ts";
import { SLOT } from "./messages.ts";
import { Mutator } from "./mutator.ts";
import { isDeclared, MAX_JOINED_BYTES, type Target } from "./target.ts";
import { TARGETS } from "./targets.ts";

/** Of an input of 16 kB at most: a parser that takes longer is no linear one. */
const MAX_MS = 100;
/** Tries of a slow input: memory may have been collected meanwhile. */
const TRIES = 5;
/** What the heap may grow by between the first tenth of the inputs and the last one, beside the corpus. */
const MAX_GROWTH_MB = 16;
const MAX_CORPUS_INPUTS = 3000;
const MEGABYTE = 1_048_576;

class FoundFault extends Error {
  readonly input: Buffer;

  constructor(input: Buffer, cause: unknown) {
    super(cause instanceof Error ? (cause.stack ?? cause.message) : String(cause));
    this.input = input;
  }
}

class Fuzzing {
  readonly #job: Job;
  readonly #target: Target;
  readonly #mutator: Mutator;
  readonly #coverage = new Coverage();
  readonly #corpus: Buffer[];
  /** Those of the corpus that were no error. */
  readonly #accepted: Buffer[] = [];
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  #slowestMs = 0;
  #slowestBytes = 0;
  /** The inputs since the target began; null where it has to begin anew, and where it never does. */
  #before: Buffer | null = null;
  /** The last input, by a declared error. */
  #isRefused = false;

  constructor(job: Job, target: Target) {
    this.#job = job;
    this.#target = target;
    this.#mutator = new Mutator(job.seed, target.words);
    this.#corpus = readCorpus(job.corpusFolder, target);
    this.#words = new Int32Array(job.shared, 0, 2);
    this.#bytes = new Uint8Array(job.shared, SLOT.headerBytes);
  }

  async run(): Promise<Report> {
    const { inputs, maxSeconds, target, corpusFolder } = this.#job;
    // What ran while the modules were loaded is none of an input's.
    hits.fill(0);
    for (const input of this.#corpus) {
      await this.#try(input);
      if (!this.#isRefused) this.#accepted.push(input);
    }
    const startedAt = performance.now();
    const warmUp = Math.floor(inputs / 10);
    let heapBeforeMb: number | null = null;
    let count = 0;
    for (let ms = 0; count < inputs && ms < maxSeconds * 1000; count += 1) {
      ms = performance.now() - startedAt;
      if (count >= warmUp || ms > maxSeconds * 100) heapBeforeMb ??= await heapMb();
      const input = this.#mutator.mutate(this.#pick(), this.#pick());
      const isNew = await this.#try(input);
      if (isNew && this.#corpus.length < MAX_CORPUS_INPUTS) this.#keep(Buffer.from(input));
    }
    const seconds = (performance.now() - startedAt) / 1000;
    const { branches } = this.#coverage;
    const kept = await this.#smallest();
    this.#corpus.length = 0;
    this.#accepted.length = 0;
    const heapAfterMb = await heapMb();
    heapBeforeMb ??= heapAfterMb;
    if (heapAfterMb - heapBeforeMb > MAX_GROWTH_MB) {
      throw new FoundFault(Buffer.alloc(0), `The heap has grown from ${heapBeforeMb} to ${heapAfterMb} MB`);
    }
    writeKept(corpusFolder, kept);
    const { slowestMs, slowestBytes } = { slowestMs: this.#slowestMs, slowestBytes: this.#slowestBytes };
    return {
      kind: "done",
      target,
      inputs: count,
      seconds,
      branches,
      slowestMs,
      slowestBytes,
      heapBeforeMb,
      heapAfterMb,
    };
  }

  #keep(input: Buffer): void {
    this.#corpus.push(input);
    if (!this.#isRefused) this.#accepted.push(input);
  }

  /**
   * Mostly the shorter of two: long inputs take long and rarely reach more. Every fourth time out of those that were no error: a
   * parser with many errors would hardly be passed by what was made out of refused inputs.
   */
  #pick(): Buffer {
    const isAny = this.#accepted.length === 0 || this.#mutator.next(4) > 0;
    const from = isAny ? this.#corpus : this.#accepted;
    const one = this.#mutator.pick(from) ?? Buffer.alloc(0);
    const other = this.#mutator.pick(from) ?? one;
    return other.length < one.length && this.#mutator.next(4) > 0 ? other : one;
  }

  /** Whether it reached new code. Throws FoundFault. */
  async #try(input: Buffer): Promise<boolean> {
    if (this.#before !== null) {
      const all = Buffer.concat([this.#before, input]);
      this.#before = all.length > MAX_JOINED_BYTES ? null : all;
    }
    this.#show(this.#before ?? input);
    Atomics.add(this.#words, SLOT.count, 1);
    const ms = await this.#timed(input);
    const isNew = this.#coverage.take({ countsTimes: true });
    if (ms > this.#slowestMs) await this.#confirm(input);
    return isNew;
  }

  /** `first`: the input that it begins with. */
  async #begin(first: Buffer): Promise<void> {
    if (this.#target.begin === undefined) return;
    await this.#target.begin();
    this.#before = first;
  }

  /** To who watches. */
  #show(input: Buffer): void {
    this.#bytes.set(input.subarray(0, MAX_JOINED_BYTES));
    this.#words[SLOT.length] = Math.min(input.length, MAX_JOINED_BYTES);
  }

  /** By the time of the processor: another program may have had the core. */
  async #confirm(input: Buffer): Promise<void> {
    let leastMs = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < TRIES && leastMs > this.#slowestMs; tries += 1) {
      const before = process.cpuUsage();
      await this.#timed(input);
      const { user, system } = process.cpuUsage(before);
      leastMs = Math.min(leastMs, (user + system) / 1000);
    }
    this.#coverage.take({ countsTimes: true });
    if (leastMs <= this.#slowestMs) return;
    this.#slowestMs = leastMs;
    this.#slowestBytes = input.length;
    if (leastMs > MAX_MS)
      throw new FoundFault(input, `An input of ${input.length} bytes takes ${leastMs} ms`);
  }

  async #timed(input: Buffer): Promise<number> {
    if (this.#before === null) await this.#begin(input);
    this.#isRefused = false;
    const before = performance.now();
    try {
      const running = this.#target.run(input);
      if (running !== undefined) await running;
    } catch (thrown) {
      if (!isDeclared(thrown)) throw new FoundFault(this.#before ?? input, thrown);
      this.#before = null;
      this.#isRefused = true;
    }
    return performance.now() - before;
  }

  /** The shortest inputs that reach all branches that the corpus reaches. */
  async #smallest(): Promise<Buffer[]> {
    const reached = new Coverage();
    const kept: Buffer[] = [];
    for (const input of [...this.#corpus].sort((a, b) => a.length - b.length)) {
      this.#before = null;
      await this.#timed(input);
      if (reached.take({ countsTimes: false })) kept.push(input);
    }
    return kept;
  }
}

/** Collections of garbage, the least of which counts: a decoder's 17 MB go with the second one, or some turns later. */
const COLLECTIONS = 5;

async function heapMb(): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let collection = 0; collection < COLLECTIONS; collection += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    least = Math.min(least, heapUsed + external);
  }
  return Math.round((least / MEGABYTE) * 10) / 10;
}

/** In a thread the asynchronous way waits for 10 ms (measured), and the decoders of uploads are opened by the thousand. */
function instantiateAtOnce(): void {
  const instantiate = WebAssembly.instantiate.bind(WebAssembly);
  const atOnce = async (source: unknown, imports?: WebAssembly.Imports): Promise<unknown> =>
    source instanceof WebAssembly.Module
      ? new WebAssembly.Instance(source, imports)
      : instantiate(source as BufferSource, imports);
  Object.assign(WebAssembly, { instantiate: atOnce });
}

instantiateAtOnce();
const job = workerData as Job;
const target = TARGETS[job.target];
if (target === undefined) throw new Error(`No target "${job.target}"`);
try {
  parentPort?.postMessage(await new Fuzzing(job, target).run());
} catch (thrown) {
  if (!(thrown instanceof FoundFault)) throw thrown;
  const fault: Fault = { kind: "fault", input: thrown.input, what: thrown.message };
  parentPort?.postMessage(fault);
}
