/** examples/deploy/systemd/: as systemd itself checks it. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { environmentOf, textOf } from "./deploy-files.ts";

const UNIT = textOf("systemd/voicewire.service");
const ENVIRONMENT = environmentOf(textOf("systemd/voicewire.env"));
const isMissing =
  spawnSync("systemd-analyze", ["--version"], { stdio: "ignore" }).status !== 0 &&
  process.env.CI === undefined;

/** Values of all lines of that name. */
const valuesOf = (name: string): string[] =>
  [...UNIT.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value]) => value ?? "");

/** With the unit as its last argument: Node is where this machine has it. */
function analyze(args: readonly string[], unit = UNIT) {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-unit-"));
  const file = join(folder, "voicewire.service");
  writeFileSync(file, unit.replace("/usr/bin/node", process.execPath));
  const { status, stdout, stderr } = spawnSync("systemd-analyze", [...args, file], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  return { status, stdout, stderr };
}

describe.skipIf(isMissing)(
  `systemd-analyze${isMissing ? " (skipped: systemd is not installed)" : ""}`,
  () => {
    it("verify: finds nothing to say of the unit", () => {
      const { status, stderr } = analyze(["verify", "--man=no"]);
      // Of other units of this machine it may say something.
      expect(stderr.split("\n").filter((line) => line.includes("voicewire"))).toEqual([]);
      expect(status).toBe(0);
    });

    it("verify: finds a word that systemd does not know", () => {
      const { stderr } = analyze(["verify", "--man=no"], UNIT.replace("NoNewPrivileges", "NoNewPrivilege"));
      expect(stderr).toMatch(/Unknown key (?:name )?'NoNewPrivilege'/);
    });

    it("security: exposed no more than 2.0 of 10", () => {
      const { status, stdout } = analyze(["security", "--offline=yes", "--threshold=20", "--no-pager"]);
      expect(status, stdout).toBe(0);
    });
  },
);

describe("voicewire.service", () => {
  it("starts the program as dist/main.js says it has to be started", () => {
    expect(valuesOf("ExecStart")).toEqual([
      "/usr/bin/node --v8-pool-size=1 /opt/voicewire/dist/main.js serve",
    ]);
    expect(valuesOf("EnvironmentFile")).toEqual(["/etc/voicewire/voicewire.env"]);
  });

  it("lets the gateway end before the built-in voice, and longer than it drains", () => {
    expect(valuesOf("KillMode")).toEqual(["mixed"]);
    const minutes = Number(/^(\d+)min$/.exec(valuesOf("TimeoutStopSec")[0] ?? "")?.[1]);
    expect(minutes * 60_000).toBeGreaterThanOrEqual(Number(ENVIRONMENT.VOICEWIRE_DRAIN_MS) + 30_000);
  });

  it("is started again however often nats-server is not there yet", () => {
    expect(valuesOf("Restart")).toEqual(["on-failure"]);
    expect(valuesOf("StartLimitIntervalSec")).toEqual(["0"]);
  });

  it("keeps data where it may write", () => {
    expect(ENVIRONMENT.VOICEWIRE_DATA).toBe(`/var/lib/${valuesOf("StateDirectory")[0]}`);
  });

  it("may have a file for each session's connections", () => {
    expect(Number(valuesOf("LimitNOFILE")[0])).toBeGreaterThanOrEqual(65_536);
  });
});
