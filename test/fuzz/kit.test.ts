/** The fuzzer itself: it finds a fault behind several branches, a hang and a growing heap, and keeps what broke it. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";
import { afterAll, describe, expect, it } from "vitest";
import { keepFound, readCorpus, writeKept } from "./corpus.ts";
import { Coverage, hits } from "./coverage.ts";
import { type Fault, type Report, SLOT } from "./messages.ts";
import { Mutator } from "./mutator.ts";
import { writeRow } from "./results.ts";
import { cut, MAX_INPUT_BYTES, type Target, whole } from "./target.ts";
import { TARGETS } from "./targets.ts";
import { runTarget } from "./watch.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-fuzz-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("Coverage", () => {
  it("says whether a branch, or a number of times, is new", () => {
    // Targets of other files have left theirs.
    hits.fill(0);
    const coverage = new Coverage();
    const reach = (point: number, times: number): boolean => {
      hits[point] = times;
      return coverage.take({ countsTimes: true });
    };
    expect([reach(5, 1), reach(5, 1), reach(5, 2), reach(5, 40), reach(5, 90), reach(9, 1)]).toEqual([
      true,
      false,
      true,
      true,
      false,
      true,
    ]);
    expect(coverage.branches).toBe(2);
    expect(hits.every((times) => times === 0)).toBe(true);
  });
});

describe("counters", () => {
  /** What `f` returns for each input, and which counters it has changed. */
  async function counted(source: string, inputs: readonly number[]): Promise<[unknown, number[]][]> {
    const sourceFolder = join(folder, "src");
    mkdirSync(sourceFolder, { recursive: true });
    writeFileSync(join(sourceFolder, "f.ts"), source);
    const coverageFile = join(folder, "counters.mjs");
    writeFileSync(coverageFile, "export const hits = new Uint8Array(99);");
    const { countingPlugin } = (await import(new URL("instrument.mjs", import.meta.url).href)) as {
      countingPlugin(options: { sourceFolder: string; coverageFile: string }): Plugin;
    };
    const outfile = join(folder, "f.mjs");
    await build({
      stdin: {
        contents: `export { f } from "./src/f.ts"; export { hits } from "./counters.mjs";`,
        resolveDir: folder,
      },
      outfile,
      bundle: true,
      format: "esm",
      plugins: [countingPlugin({ sourceFolder, coverageFile })],
    });
    const made = (await import(outfile)) as { f(given: number): unknown; hits: Uint8Array };
    return inputs.map((input) => {
      made.hits.fill(0);
      return [made.f(input), [...made.hits].flatMap((times, point) => (times > 0 ? [point] : []))];
    });
  }

  it("stand at every branch, and change nothing of what the code does", async () => {
    const source = `
      const twice = (n: number): { n: number } => ({ n: n * 2 });
      export function f(given: number): unknown {
        if (given === 1) return "if";
        else if (given === 2) { return "else"; }
        const short = given === 3 && twice(given);
        for (let i = 0; i < given; i += 1) if (i > 50) return "loop";
        switch (given) {
          case 4: return "case";
          default: return short || (given === 5 ? "yes" : given > 5 ? "more" : "no");
        }
      }`;
    const found = await counted(source, [1, 2, 3, 4, 5, 6, 60, 0]);
    expect(found.map(([returned]) => returned)).toEqual([
      "if",
      "else",
      { n: 6 },
      "case",
      "yes",
      "more",
      "loop",
      "no",
    ]);
    // Each goes its own way.
    expect(new Set(found.map(([, points]) => points.join())).size).toBe(8);
  });
});

describe("watching", () => {
  /** What comes of a worker with this code, which has taken the input "bad". */
  function outcomeOf(code: string): Promise<Report | Fault> {
    const workerPath = join(folder, `worker-${Buffer.from(code).toString("hex").slice(0, 40)}.mjs`);
    writeFileSync(workerPath, code);
    const shared = new SharedArrayBuffer(SLOT.headerBytes + MAX_INPUT_BYTES);
    new Uint8Array(shared, SLOT.headerBytes).set(Buffer.from("bad"));
    new Int32Array(shared, 0, 2)[SLOT.length] = 3;
    const job = { target: "t", inputs: 1, seed: 1, maxSeconds: 60, corpusFolder: folder, shared };
    return runTarget(job, { workerPath, bounds: { hangMs: 1000, maxHeapMb: 24 } });
  }

  it.each([
    ["hangs", "for (;;);", "hangs"],
    [
      "runs out of memory",
      "const all = []; for (;;) all.push(new Array(1000).fill(0.5 + all.length));",
      "memory",
    ],
    ["throws outside of a target", "throw new RangeError('too deep')", "too deep"],
  ])("keeps the input at which a target %s", async (_, code, expected) => {
    const outcome = await outcomeOf(code);
    expect(outcome).toMatchObject({ kind: "fault", what: expect.stringContaining(expected) });
    expect(outcome.kind === "fault" && Buffer.from(outcome.input).toString()).toBe("bad");
  });
});

describe("Mutator", () => {
  it("makes the same inputs of the same seed, none too long", () => {
    const made = (): string[] => {
      const mutator = new Mutator(7, ["word"]);
      let input: Buffer = Buffer.from('{"a":[1,"b"]}');
      return Array.from({ length: 3000 }, () => {
        input = mutator.mutate(input, Buffer.from("other"));
        expect(input.length).toBeLessThanOrEqual(MAX_INPUT_BYTES);
        return input.toString("latin1");
      });
    };
    const first = made();
    expect(made()).toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(1000);
  });
});

describe("pieces", () => {
  it("make up the input, and are taken back", () => {
    const input = Buffer.from(Array.from({ length: 2000 }, (_, at) => at & 0xff));
    for (const pieces of [whole(input), cut(input)]) {
      const held: Buffer[] = [];
      const bytes: Buffer[] = [];
      for (const piece of pieces) {
        held.push(piece);
        bytes.push(Buffer.from(piece));
      }
      expect(Buffer.concat(bytes)).toEqual(input);
      expect(held.every((piece) => piece.every((byte) => byte === 0xaa))).toBe(true);
    }
  });
});

describe("corpus", () => {
  const target: Target = { seeds: ["seed"], run: () => undefined };

  it("keeps bytes as they are, within its bound, and what broke the target for good", () => {
    const bytes = Buffer.from([0, 10, 13, 34, 92, 127, 128, 255]);
    writeKept(folder, [bytes, Buffer.alloc(MAX_INPUT_BYTES)]);
    keepFound(folder, Buffer.from("broke"));
    writeKept(folder, [bytes]);
    expect(readCorpus(folder, target).map((input) => input.toString("latin1"))).toEqual([
      "seed",
      "broke",
      bytes.toString("latin1"),
    ]);
  });
});

describe("npm run fuzz", () => {
  it("lists every target", () => {
    const program = fileURLToPath(new URL("fuzz.mjs", import.meta.url));
    const { stdout, stderr } = spawnSync(process.execPath, [program, "--list"], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(stdout.split("\n")).toEqual(expect.arrayContaining(Object.keys(TARGETS)));
  });
});

describe("results", () => {
  it("hold one row for each target", () => {
    const path = join(folder, "results.md");
    const report = {
      kind: "done",
      target: "a",
      inputs: 1000,
      seconds: 2,
      branches: 3,
      slowestMs: 1.25,
      slowestBytes: 9,
      heapBeforeMb: 20,
      heapAfterMb: 21,
    } as const;
    for (const target of ["b", "a", "b"]) writeRow(path, { ...report, target });
    const rows = readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => /^\| [ab] /.test(line));
    expect(rows).toEqual([
      "| a | 1,000 | 500 | 3 | 1.3 ms (9 bytes) | 20.0, 21.0 MB |",
      "| b | 1,000 | 500 | 3 | 1.3 ms (9 bytes) | 20.0, 21.0 MB |",
    ]);
  });
});
