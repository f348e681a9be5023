/** The bench of the scripted services, in its short form: it asks each of them, and everything is said. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { SERVICES } from "../../src/upstream/services/services.ts";

const ROOT = new URL("../..", import.meta.url).pathname;

it("npm run bench -- services --short: a figure for each service, and no word lost", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["bench/run.mjs", "services", "--short"], {
    cwd: ROOT,
    timeout: 120_000,
  });
  for (const name of ["the first upstream", ...Object.keys(SERVICES)])
    expect(stdout).toContain(`first audio of ${name},`);
  expect(stdout.match(/difference of .* LU at most/g)).toHaveLength(2);
  expect(stdout.match(/goes on; words lost, doubled *\| 0, 0 \(/g)).toHaveLength(2);
}, 150_000);
