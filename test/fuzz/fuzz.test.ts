/** Every target with its corpus, and with new inputs: no crash, no growth. `npm run fuzz` runs a million of each. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readCorpus } from "./corpus.ts";
import { Mutator } from "./mutator.ts";
import { isDeclared, MAX_JOINED_BYTES, type Target } from "./target.ts";
import { TARGETS } from "./targets.ts";

const CORPUS = fileURLToPath(new URL("corpus", import.meta.url));
/** Of each target, in each of two rounds: the heap after the second one is held against that after the first. */
const INPUTS = 150;
const GENERATED = 50;
const SEED = 20;
const MAX_GROWTH_BYTES = 8_388_608;

/** Inputs follow one another in what takes long to open, as `npm run fuzz` has it: opening was most of the time. */
class Inputs {
  readonly #target: Target;
  /** Since it was opened; null where it has to be opened anew. */
  #before: Buffer | null = null;

  constructor(target: Target) {
    this.#target = target;
  }

  async run(input: Buffer): Promise<void> {
    const before = this.#before;
    const all = before === null ? input : Buffer.concat([before, input]);
    this.#before = null;
    try {
      if (before === null) await this.#target.begin?.();
      await this.#target.run(Buffer.from(input));
      if (this.#target.begin !== undefined && all.length <= MAX_JOINED_BYTES) this.#before = all;
    } catch (thrown) {
      if (isDeclared(thrown)) return;
      const shown = all.toString("base64").slice(0, 2000);
      throw new Error(`Broken by (base64) ${shown}`, { cause: thrown });
    }
  }
}

async function runMutated(target: Target, corpus: readonly Buffer[], seed: number): Promise<void> {
  const mutator = new Mutator(seed, target.words);
  const inputs = new Inputs(target);
  const pick = (): Buffer => mutator.pick(corpus) ?? Buffer.alloc(0);
  for (let count = 0; count < INPUTS; count += 1) await inputs.run(mutator.mutate(pick(), pick()));
}

/** JSON of the format's own words, lines of them, and bytes. */
function inputsOf({ words = [] }: Target): fc.Arbitrary<Buffer> {
  const word = fc.oneof({ weight: 4, arbitrary: fc.constantFrom("", ...words) }, fc.string());
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      word,
      fc.oneof(fc.constant(null), fc.boolean(), fc.double(), fc.integer()),
      fc.dictionary(word, tie("tree"), { maxKeys: 6 }),
      fc.array(tie("tree"), { maxLength: 3 }),
    ),
  }));
  const line = fc.oneof(
    fc.dictionary(word, tree, { maxKeys: 6 }).map((value) => JSON.stringify(value)),
    fc.array(word, { maxLength: 8 }).map((parts) => parts.join("")),
  );
  return fc.oneof(
    fc.array(line, { maxLength: 4 }).map((lines) => Buffer.from(lines.join("\n"))),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  );
}

/** WebAssembly's memory goes with the second collection. */
async function heapBytes(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe.each(Object.entries(TARGETS))("%s", (name, target) => {
  const corpus = readCorpus(join(CORPUS, name), target);

  it("takes every input of its corpus", async () => {
    expect(corpus.length).toBeGreaterThan(0);
    for (const input of corpus) await new Inputs(target).run(input);
  });

  it(`takes new inputs, and the heap does not grow (seed ${SEED})`, async () => {
    await runMutated(target, corpus, SEED);
    const before = await heapBytes();
    await runMutated(target, corpus, SEED + 1);
    expect((await heapBytes()) - before).toBeLessThan(MAX_GROWTH_BYTES);
  });

  it("takes generated inputs", async () => {
    const inputs = new Inputs(target);
    await fc.assert(
      fc.asyncProperty(inputsOf(target), (input) => inputs.run(input)),
      { numRuns: GENERATED },
    );
  });
});
