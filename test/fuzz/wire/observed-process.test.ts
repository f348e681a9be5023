/** A program that crashes while it is inspected has ended, and what it said is kept. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { until } from "../../helpers/until.ts";
import { ObservedProcess } from "./observed-process.ts";

it("an observed process ends when it crashes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-observed-"));
  const main = join(folder, "main.mjs");
  writeFileSync(
    main,
    'import { existsSync } from "node:fs"; console.log("Ready: here");' +
      'setInterval(() => { if (existsSync(process.argv[2])) throw new Error("on purpose"); }, 20);',
  );
  const sign = join(folder, "crash");
  try {
    await using observed = await ObservedProcess.start({ main, args: [sign], ready: /Ready: (\w+)/ });
    expect(observed.isAlive).toBe(true);
    writeFileSync(sign, "");
    await until("the end of the program", () => !observed.isAlive);
    expect(observed.faults.join("\n")).toContain("Error: on purpose");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);
