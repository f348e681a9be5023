/** The log of a long-running command: pino's JSON lines, or the same lines made readable on a terminal. */
import { mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import pino from "pino";
import type { AuditLog } from "../access/audit.ts";
import { GatewayError } from "../errors.ts";
import { type Logger, logWith } from "../kit/log.ts";
import { type Io, mayStyle, type Output } from "./io.ts";

/**
 * Logs to stderr, so that stdout stays for results. `level` is one of the setting's choices; each line has `facts`, where there
 * are any.
 */
export function createLog(
  io: Pick<Io, "stderr" | "env">,
  level: string,
  facts: object | null = null,
): Logger {
  const isForPeople = io.stderr.isTty;
  const destination = {
    write: (line: string) => io.stderr.write(isForPeople ? readable(line, io.stderr, io.env) : line),
  };
  const base = facts === null ? null : { ...facts };
  return pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

/**
 * JSON lines at the end of a file that only its owner can read: the audit log. Written at once, so that a crash loses none. Lines
 * that can't be written are lost, which is counted, and `log` says it: a full disk ends no call. Throws invalid_config where it can't be opened.
 */
export function createFileLog(path: string, log: Logger): AuditLog {
  const file = openToAppend(path);
  /** In all, and since it could be written. */
  let lostInAll = 0;
  let lostLines = 0;
  const write = (line: string): void => {
    try {
      writeSync(file, line);
    } catch (thrown) {
      const detail = thrown instanceof Error ? thrown.message : String(thrown);
      if (lostLines === 0)
        log.error({ detail }, "The audit log can't be written: its lines are lost until it can");
      lostLines += 1;
      lostInAll += 1;
      return;
    }
    if (lostLines > 0) log.warn({ lost_lines: lostLines }, "The audit log is written again");
    lostLines = 0;
  };
  const lines = pino({ level: "info", base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
  return {
    ...logWith(lines, {}),
    get lostLines() {
      return lostInAll;
    },
  };
}

function openToAppend(path: string): number {
  try {
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, "a", 0o600);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new GatewayError("invalid_config", `Setting audit-log: the file can't be written: ${why}`, {
      field: "audit-log",
      cause,
    });
  }
}

const LEVEL_NAMES: Readonly<Record<string, string>> = { 20: "debug", 30: "info", 40: "warn", 50: "error" };
const LEVEL_COLOURS: Readonly<Record<string, string>> = { warn: "\x1b[33m", error: "\x1b[31m" };

/** `12:00:01 warn  Service ended, starting it again  code=1 restarts=2`. */
function readable(line: string, output: Output, env: Io["env"]): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const name = LEVEL_NAMES[String(level)] ?? String(level);
  const colour = mayStyle(output, env) ? LEVEL_COLOURS[name] : undefined;
  const shownLevel = colour === undefined ? name.padEnd(5) : `${colour}${name.padEnd(5)}\x1b[0m`;
  const shownFields = Object.entries(fields)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  const clock = String(time).slice(11, 19);
  return `${clock} ${shownLevel} ${String(msg ?? "")}${shownFields === "" ? "" : `  ${shownFields}`}\n`;
}
