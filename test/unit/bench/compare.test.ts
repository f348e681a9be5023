import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { CommitBuild } from "../../../bench/kit/commit-build.ts";
import { compareBuilds, comparedNames, compareRows, renderCompared } from "../../../bench/kit/compare.ts";

const row = (figure: string, measured: string) => ({
  figure,
  measured,
  baseline: "",
  ratio: "",
  target: "",
  isOk: null,
});
const section = (measured: string, failure: string | null = null) => ({
  name: "p1",
  method: [],
  notes: [],
  rows: [row("CPU", measured)],
  failure,
});

describe("compareRows", () => {
  it("takes the median of each number over the rounds, and its ratio", () => {
    const first = [row("late (n=10)", "10 / 1,000 ms"), row("late (n=12)", "20 / 3,000 ms")];
    const second = [row("late (n=11)", "30 / 1,000 ms")];
    expect(compareRows(first, second)).toEqual([
      {
        figure: "late (n)",
        first: "15 / 2000 ms",
        second: "30 / 1000 ms",
        ratio: "2.00 / 0.50",
        scatter: "0.50-1.50 / 1.00-3.00",
      },
    ]);
  });

  it("leaves out what is a name, and says where only one of them has a figure", () => {
    expect(compareRows([row("a", "1 us, p99 4 ms")], [row("a", "2 us, p99 4 ms")])).toMatchObject([
      { second: "2 us, p99 4 ms", ratio: "2.00 / 1.00" },
    ]);
    expect(compareRows([row("old", "1 us")], [])).toMatchObject([
      { first: "1 us", second: "none", ratio: "" },
    ]);
  });
});

describe("compareBuilds", () => {
  it("runs both builds in turn, and begins each round with the other", async () => {
    const ran: number[] = [];
    const compared = await compareBuilds(["p1"], 2, (_, build) => {
      ran.push(build);
      return Promise.resolve(section(`${build + 1} us`));
    });
    expect(ran).toEqual([0, 1, 1, 0]);
    expect(renderCompared(compared, ["a", "b"])).toContain("| CPU    | 1 us | 2 us | 2.00");
  });

  it("fails with a bench that fails", async () => {
    await expect(
      compareBuilds(["p1"], 1, () => Promise.resolve(section("1 us", "exit code 1"))),
    ).rejects.toThrow("Bench p1 failed: exit code 1");
  });
});

describe("comparedNames", () => {
  it("refuses what is no bench, and what measures no build", () => {
    expect(comparedNames(["p9"], ["p1"])).toBe("No such bench: p9");
    expect(comparedNames(["ndjson"], ["ndjson"])).toContain("measures the source of this checkout");
    expect(comparedNames([], ["p1", "p3"])).toEqual(["p1", "p3"]);
  });
});

describe("CommitBuild", () => {
  it("builds a commit as it was, and leaves nothing behind", () => {
    const root = mkdtempSync(join(tmpdir(), "voicewire-repository-"));
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", root, ...args], { encoding: "utf8" }).trim();
    const commit = (said: string): string => {
      const build = `node -e "fs.mkdirSync('dist');fs.writeFileSync('dist/said','${said}')"`;
      writeFileSync(join(root, "package.json"), JSON.stringify({ scripts: { build } }));
      writeFileSync(join(root, "package-lock.json"), "{}");
      git("add", "package.json", "package-lock.json");
      git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", said);
      return git("rev-parse", "HEAD");
    };
    try {
      git("init", "-q");
      execFileSync("mkdir", [join(root, "node_modules")]);
      const first = commit("first");
      commit("second");
      const build = CommitBuild.make(root, first);
      const folder = fileURLToPath(new URL("..", build.distUrl));
      expect(readFileSync(new URL("said", build.distUrl), "utf8")).toBe("first");
      build[Symbol.dispose]();
      expect(existsSync(folder)).toBe(false);
      expect(git("worktree", "list").split("\n")).toHaveLength(1);
      expect(() => CommitBuild.make(root, "nothing")).toThrow();
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
