/** However the gateway is started, its Node has the same flags: dist/main.js, `npm start`, the container, the service. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { missingForSpeech, PATIENT } from "./cli/program.ts";

vi.setConfig(PATIENT);
const ROOT = join(import.meta.dirname, "..");
const MAIN = join(ROOT, "dist/main.js");
const missing = process.platform === "win32" ? "Windows starts programs otherwise" : missingForSpeech();

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const firstLineOf = (file: string): string => read(file).split("\n", 1)[0] ?? "";
const flagsIn = (command: string): string[] => command.split(" ").filter((word) => word.startsWith("--"));

const FLAGS = flagsIn(firstLineOf("src/main.ts"));

const FOLDER = mkdtempSync(join(tmpdir(), "voicewire-flags-"));
afterAll(() => rmSync(FOLDER, { recursive: true }));

/** Where a process writes the flags that it sets at run time, with its pid behind it. */
const FLAGS_FILE = join(FOLDER, "flags");
const TELLS_GROWTH = `
import { appendFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import v8 from "node:v8";
const set = v8.setFlagsFromString;
v8.setFlagsFromString = (flag) => { appendFileSync(${JSON.stringify(`${FLAGS_FILE}-`)} + process.pid, flag); set(flag); };
syncBuiltinESMExports();
`;

describe("flags of Node", () => {
  it("are the same in the program, in `npm start` and in the container", () => {
    expect(FLAGS.length).toBeGreaterThan(0);
    const { scripts } = JSON.parse(read("package.json")) as { scripts: { start: string } };
    expect(flagsIn(scripts.start)).toEqual(FLAGS);
    const entryPoint = /^ENTRYPOINT (\[.*\])$/m.exec(read("Dockerfile"))?.[1] ?? "[]";
    expect(JSON.parse(entryPoint)).toEqual(["node", ...FLAGS, "dist/main.js"]);
  });

  it.skipIf(missing !== undefined)(
    `are known to Node, and the built program starts itself with them${missing === undefined ? "" : ` (skipped: ${missing})`}`,
    () => {
      expect(flagsIn(firstLineOf("dist/main.js"))).toEqual(FLAGS);
      const asked = encodeURIComponent("console.log(process.execArgv.join(' '))");
      const { status, stdout, stderr } = spawnSync(MAIN, ["--version"], {
        encoding: "utf8",
        env: { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${asked}` },
      });
      expect([status, stderr]).toEqual([0, ""]);
      expect(stdout.split("\n")[0]).toBe(FLAGS.join(" "));
    },
  );

  it.skipIf(missing !== undefined || process.platform !== "linux")(
    "go to the speech service that it starts, too; each of the two lets its heap double between two walks",
    async () => {
      const gateway = spawn(MAIN, ["serve", "--port", "0"], {
        stdio: ["ignore", "pipe", "inherit"],
        env: {
          ...process.env,
          NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(TELLS_GROWTH)}`,
        },
      });
      try {
        let received = "";
        await new Promise<void>((resolve, reject) => {
          gateway.once("error", reject);
          gateway.once("exit", (code) => reject(new Error(`The gateway ended with ${code}`)));
          gateway.stdout.on("data", (data: Buffer) => {
            received += data;
            if (received.includes("http://")) resolve();
          });
        });
        const service = readFileSync(`/proc/${gateway.pid}/task/${gateway.pid}/children`, "utf8").trim();
        const command = readFileSync(`/proc/${service}/cmdline`, "utf8").split("\0");
        expect(command.slice(1, 1 + FLAGS.length)).toEqual(FLAGS);
        expect(command).toContain("service");
        for (const pid of [gateway.pid, service]) {
          expect(readFileSync(`${FLAGS_FILE}-${pid}`, "utf8")).toBe("--heap-growing-percent=100");
        }
      } finally {
        const ended = new Promise((resolve) => gateway.once("close", resolve));
        gateway.removeAllListeners("exit");
        gateway.kill("SIGTERM");
        await ended;
      }
    },
  );
});
