import { expect, test } from "vitest";
import { createLog } from "../../../src/cli/log.ts";
import { memoryIo } from "./memory-io.ts";

test("createLog() writes JSON lines to stderr, from its level on", () => {
  const io = memoryIo([]);
  const log = createLog(io, "warn");
  log.info({}, "quiet");
  log.warn({ port: 1 }, "loud");
  expect(io.stdout.text).toBe("");
  expect(JSON.parse(io.stderr.text)).toMatchObject({ level: 40, msg: "loud", port: 1 });
});

test("createLog() writes for people on a terminal, without colours where NO_COLOR is set", () => {
  const plain = memoryIo([], { env: { NO_COLOR: "1" } });
  plain.stderr.isTty = true;
  createLog(plain, "info").warn({ port: 1, reason: "signal SIGKILL" }, "Service ended");
  expect(plain.stderr.text).toMatch(
    /^\d\d:\d\d:\d\d warn {2}Service ended {2}port=1 reason=signal SIGKILL\n$/,
  );
  const coloured = memoryIo([]);
  coloured.stderr.isTty = true;
  createLog(coloured, "info").warn({}, "x");
  expect(coloured.stderr.text).toContain("\x1b[33mwarn");
});

test("createLog() at silent writes nothing", () => {
  const io = memoryIo([]);
  createLog(io, "silent").error({}, "x");
  expect(io.stderr.text).toBe("");
});
