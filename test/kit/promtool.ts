/** Prometheus' own tool, which reads rules and evaluates them against recorded series. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const isInstalled = spawnSync("promtool", ["--version"], { stdio: "ignore" }).error === undefined;

/** In CI its absence fails. */
export const isPromtoolMissing = !isInstalled && process.env.CI === undefined;
/** For the names of what is left out. */
export const IF_PROMTOOL_MISSING = isPromtoolMissing ? " (skipped: promtool is not installed)" : "";

export interface PromtoolResult {
  readonly status: number | null;
  readonly errors: string;
}

/** `rules`: the text of a file of rules, YAML or JSON. */
export function checkRules(rules: string): PromtoolResult {
  return promtool(["check", "rules", "rules.json"], { "rules.json": rules });
}

/** `files`: what `config`, a prometheus.yml, names. */
export function checkConfig(config: string, files: Readonly<Record<string, string>>): PromtoolResult {
  return promtool(["check", "config", "prometheus.yml"], { ...files, "prometheus.yml": config });
}

/** `tests`: its `rule_files` name `rules.yml`. */
export function testRules(rules: string, tests: object): PromtoolResult {
  const files = { "rules.yml": rules, "tests.json": JSON.stringify(tests) };
  return promtool(["test", "rules", "tests.json"], files);
}

function promtool(args: readonly string[], files: Readonly<Record<string, string>>): PromtoolResult {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-promtool-"));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: folder, encoding: "utf8" });
    // What it says on stdout of a success is no error.
    return { status, errors: status === 0 ? stderr : `${stdout}${stderr}` };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
