/** However the gateway is started, its Node has the same flags: dist/main.js, `npm start`, the container. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const MAIN = join(ROOT, "dist/main.js");

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const flagsIn = (command: string): string[] => [...command.matchAll(/--[\w-]+=\d+/g)].map(([flag]) => flag);

const FLAGS = flagsIn(read("src/main.ts").split("\n", 1)[0] ?? "");

describe("flags of Node", () => {
  it("are the same in the program, in `npm start` and in the container", () => {
    expect(FLAGS.length).toBeGreaterThan(0);
    const { scripts } = JSON.parse(read("package.json")) as { scripts: { start: string } };
    expect(flagsIn(scripts.start)).toEqual(FLAGS);
    const entryPoint = /^ENTRYPOINT (\[.*\])$/m.exec(read("Dockerfile"))?.[1] ?? "[]";
    expect(JSON.parse(entryPoint)).toEqual(["node", ...FLAGS, "dist/main.js"]);
  });

  it.skipIf(process.platform === "win32" || !existsSync(MAIN))(
    "are known to Node, and the program takes them from its own first line",
    () => {
      const direct = spawnSync(MAIN, ["--version"], { encoding: "utf8" });
      expect([direct.status, direct.stderr]).toEqual([0, ""]);
      const asked = spawnSync(process.execPath, [...FLAGS, "-p", "process.execArgv.join()"], {
        encoding: "utf8",
      });
      expect([asked.status, asked.stderr]).toEqual([0, ""]);
      expect(asked.stdout).toContain(FLAGS[0]);
    },
  );
});
