/** The file of the audit log, on real files. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createFileLog } from "../../../src/cli/log.ts";
import { AuditLines } from "../../helpers/audit-lines.ts";

it("a file log writes each line at once, for its owner alone, in a folder that it makes", () => {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-file-log-"));
  const path = join(folder, "new", "audit.jsonl");
  const told = new AuditLines();
  createFileLog(path, told.log).info({ audit: "admitted" }, "Admitted");
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ audit: "admitted", msg: "Admitted" });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(told.lines).toEqual([]);
  rmSync(folder, { recursive: true });
});

it("a file log on a full disk fails nobody who writes to it, and says so once", () => {
  const told = new AuditLines();
  const log = createFileLog("/dev/full", told.log);
  for (let line = 0; line < 3; line += 1) log.info({ audit: "ended" }, "Ended");
  expect(told.lines).toEqual([{ detail: expect.stringContaining("ENOSPC") }]);
  expect(log.lostLines).toBe(3);
});

it("a file log that can be written again says how many lines are missing", () => {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-file-log-"));
  const path = join(folder, "audit.fifo");
  execFileSync("mkfifo", [path]);
  const openReader = () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const told = new AuditLines();
  // A pipe without a reader can't be written.
  const first = openReader();
  const log = createFileLog(path, told.log);
  closeSync(first);
  for (let line = 0; line < 2; line += 1) log.info({ audit: "ended" }, "Ended");
  const second = openReader();
  log.info({ audit: "ended" }, "Ended");
  expect(told.lines).toEqual([{ detail: expect.stringContaining("EPIPE") }, { lost_lines: 2 }]);
  expect(log.lostLines).toBe(2);
  closeSync(second);
  rmSync(folder, { recursive: true });
});

it("a file log that can't be opened is refused as a setting", () => {
  expect(() => createFileLog(tmpdir(), new AuditLines().log)).toThrow(
    "Setting audit-log: the file can't be written",
  );
});
