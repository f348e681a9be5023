import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Run, renderResults } from "../../../bench/kit/results.ts";
import { run } from "../../../bench/runner.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "voicewire-results-"));
  vi.spyOn(console, "log").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

/** A bench that reports one row with this figure. */
function writeBench(name: string, measured: string): void {
  const row = { figure: `${name} figure`, measured, baseline: "", ratio: "", target: "", isOk: true };
  const script = `process.send(${JSON.stringify({ type: "row", row })}, () => process.disconnect());\n`;
  writeFileSync(join(folder, `${name}.bench.js`), script);
}

const bench = (...args: string[]) =>
  run({ names: ["a", "b"], args, outFolder: folder, resultsFolder: folder });
const page = () => readFileSync(join(folder, "results.md"), "utf8");

describe("npm run bench -- --write", () => {
  it("replaces the benches that ran and keeps the others", async () => {
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    writeBench("a", "1 us");
    writeBench("b", "2 us");
    expect(await bench("--write")).toBe(0);
    expect(page()).toContain("1 us");
    writeBench("a", "3 us");
    expect(await bench("a", "--write")).toBe(0);
    expect(page()).not.toContain("1 us");
    expect(page()).toContain("3 us");
    expect(page()).toContain("2 us");
    expect(page()).toContain("`npm run bench -- a` on CPU");
  });

  it("writes nothing of a short run", async () => {
    writeBench("a", "1 us");
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect(await bench("a", "--short", "--write")).toBe(0);
    expect(page).toThrow("ENOENT");
  });
});

describe("bench/results.md", () => {
  it("is what results.json says", () => {
    const textOf = (name: string): string =>
      readFileSync(new URL(`../../../bench/${name}`, import.meta.url), "utf8");
    expect(textOf("results.md")).toBe(renderResults(JSON.parse(textOf("results.json")) as Run[]));
  });
});
