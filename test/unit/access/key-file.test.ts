/** The file of keys, read at the start and whenever it changes. */
import { chmodSync, renameSync, rmSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { KeyFile } from "../../../src/access/key-file.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import type { Logger } from "../../../src/kit/log.ts";
import { TestKeys } from "../../helpers/key-file.ts";
import { TEST_WATCH_MS } from "../../helpers/start-gateway.ts";
import { until } from "../../helpers/until.ts";

function open() {
  const keys = new TestKeys();
  const lines: string[] = [];
  const note = (_fields: object, message: string): void => {
    lines.push(message);
  };
  const log: Logger = { debug: note, info: note, warn: note, error: note };
  let changes = 0;
  const file = new KeyFile({
    path: keys.path,
    log,
    clock: systemClock,
    watchMs: TEST_WATCH_MS,
    onChange: () => {
      changes += 1;
    },
  });
  onTestFinished(() => {
    file.close();
    keys[Symbol.dispose]();
  });
  return { keys, file, lines, changes: () => changes };
}

const OTHER = { id: "other", hash: `sha256:${"1".repeat(64)}` };

describe("a key file", () => {
  it("has other keys soon after it was written, and after it was put in place of another", async () => {
    const { keys, file, changes } = open();
    keys.write({ keys: [OTHER] });
    await until("the new key", () => file.keys.find("other") !== undefined);
    expect(changes()).toBe(1);
    using next = new TestKeys();
    renameSync(next.path, keys.path);
    await until("the old keys", () => file.keys.find("other") === undefined);
    expect(changes()).toBe(2);
    next.writeText("");
  });

  it("keeps its keys while it is broken or gone, and mends", async () => {
    const { keys, file, lines, changes } = open();
    keys.writeText("{");
    await until("the broken file", () => file.isBroken);
    expect(file.keys.find("server")).toBeDefined();
    rmSync(keys.path);
    await until("the file that is gone", () => lines.filter((line) => line.includes("broken")).length > 1);
    keys.write({});
    await until("the mended file", () => !file.isBroken);
    expect(changes()).toBe(1);
  });

  it("warns where others may read it", async () => {
    const { keys, lines } = open();
    expect(lines).toEqual([]);
    chmodSync(keys.path, 0o644);
    keys.write({ keys: [OTHER] });
    chmodSync(keys.path, 0o644);
    await until("the warning", () => lines.includes("Others may read the key file: chmod 600"));
  });
});
