import { pbkdf2 } from "node:crypto";
import { writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { systemClock } from "../../../src/kit/clock.ts";
import { FileWatch } from "../../../src/kit/file-watch.ts";
import { temporaryFolder } from "../../cli/program.ts";
import { until } from "../../helpers/until.ts";

const WATCH_MS = 20;

/** Node asks for the state of files in these threads, and is told late. Resolves when they are free again. */
async function keepThreadsBusy(): Promise<void> {
  const jobs = Array.from(
    { length: 12 },
    () => new Promise<void>((resolve) => pbkdf2("a", "b", 300_000, 32, "sha256", () => resolve())),
  );
  await Promise.all(jobs);
}

it("tells of a change that came before the first state of the file was known", async () => {
  using folder = temporaryFolder();
  const file = folder.file("keys.json");
  writeFileSync(file, "old");
  const busy = keepThreadsBusy();
  let isWritten = false;
  let isTold = false;
  const onChange = (): void => {
    isTold ||= isWritten;
  };
  const watch = new FileWatch({ files: [file], clock: systemClock, watchMs: WATCH_MS, onChange });
  await new Promise((resolve) => setTimeout(resolve, 3 * WATCH_MS));
  writeFileSync(file, "new");
  isWritten = true;
  await busy;
  await until("the change is told", () => isTold);
  watch.close();
  expect(isTold).toBe(true);
});
