/** Nodes count time by the monotonic clock: one whose wall clock jumps loses no lease and takes nobody for gone. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { Epochs } from "../../src/cluster/bus/epochs.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const CLUSTER = fileURLToPath(new URL("../../src/cluster", import.meta.url));
/** Who reads the wall clock, and what for. */
const READERS: Readonly<Record<string, string>> = {
  "bus/epochs.ts": "once, where epochs begin",
  "cluster.ts": "when tokens expire, and the name of an epoch that nobody compares",
};

it("nothing between nodes waits by the wall clock", () => {
  const files = readdirSync(CLUSTER, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const readers = files.filter((file) =>
    /Date\.now|new Date/.test(readFileSync(join(CLUSTER, file), "utf8")),
  );
  expect(readers.sort()).toEqual(Object.keys(READERS).sort());
});

it("epochs grow, however the wall clock jumps between two nodes and behind their beginning", () => {
  const clock = new FakeClock();
  const now = Date.now();
  const [ahead, behind] = [new Epochs(clock, now + 3_600_000), new Epochs(clock, now - 3_600_000)];
  const first = ahead.next();
  behind.see(first);
  const second = behind.next();
  expect(second).toBeGreaterThan(first);
  clock.advance(10);
  expect(behind.next()).toBeGreaterThan(second);
});
