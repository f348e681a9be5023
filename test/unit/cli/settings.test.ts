import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { settingFlags, settingsFrom } from "../../../src/cli/settings.ts";
import { SETTINGS, type Setting } from "../../../src/config.ts";
import { GatewayError } from "../../../src/errors.ts";

interface Given {
  readonly flags?: Record<string, string>;
  readonly switches?: Record<string, boolean>;
  readonly env?: Record<string, string>;
  readonly file?: string;
}

function resolve({ flags = {}, switches = {}, env = {}, file }: Given = {}) {
  return settingsFrom({
    flags: new Map(Object.entries(flags)),
    switches: new Map(Object.entries(switches)),
    env,
    readFile: (path) => {
      if (file === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
      return file;
    },
  });
}

function failure(given: Given): GatewayError {
  try {
    resolve(given);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("Expected settingsFrom to throw");
}

const ROWS: readonly Setting[] = SETTINGS;
const INTEGERS = ROWS.filter((row) => row.kind === "integer");

describe("settingsFrom()", () => {
  test("gives every row of the table its default", () => {
    const { config, origins } = resolve();
    for (const row of ROWS) {
      expect(config).toHaveProperty(row.key, row.default);
      expect(origins.get(row.key)).toBe("default");
    }
    expect(Object.keys(config)).toHaveLength(ROWS.length);
  });

  test("takes a switch as a flag, from the environment and from a file", () => {
    expect(resolve({ switches: { "rtp-listen-only": true } }).config.rtpListenOnly).toBe(true);
    expect(resolve({ env: { VOICEWIRE_RTP_LISTEN_ONLY: "true" } }).config.rtpListenOnly).toBe(true);
    const file = '{"rtpListenOnly":true,"rtpPeers":"10.0.0.0/8"}';
    const { config } = resolve({ env: { VOICEWIRE_CONFIG: "f" }, file });
    expect([config.rtpListenOnly, config.rtpPeers]).toEqual([true, "10.0.0.0/8"]);
    expect(failure({ env: { VOICEWIRE_RTP_LISTEN_ONLY: "maybe" } }).message).toContain(
      "expected true or false",
    );
  });

  test("prefers flag to environment to file to default", () => {
    const file = '{"port": 3}';
    const env = { VOICEWIRE_PORT: "2", VOICEWIRE_CONFIG: "v.json" };
    expect(resolve({ flags: { port: "1" }, env, file }).config.port).toBe(1);
    expect(resolve({ env, file }).config.port).toBe(2);
    expect(resolve({ env: { VOICEWIRE_CONFIG: "v.json" }, file }).config.port).toBe(3);
    expect(resolve({ flags: { config: "v.json" }, file }).config.port).toBe(3);
    const { origins } = resolve({
      flags: { host: "::1" },
      env: { VOICEWIRE_PORT: "2", VOICEWIRE_CONFIG: "f" },
      file: '{"leadMs":1}',
    });
    expect(["host", "port", "leadMs", "graceMs"].map((key) => origins.get(key))).toEqual([
      "flag",
      "environment",
      "file",
      "default",
    ]);
  });

  test("takes a program's options by key, refuses what the table does not have, and reads no environment unasked", () => {
    const { config, origins } = settingsFrom({ options: { port: 0, logLevel: "warn", host: undefined } });
    expect([config.port, config.logLevel, config.host]).toEqual([0, "warn", "127.0.0.1"]);
    expect(["port", "host"].map((key) => origins.get(key))).toEqual(["option", "default"]);
    expect(() => settingsFrom({ options: { prot: 0 } })).toThrow(
      'unknown setting "prot"; did you mean "port"?',
    );
    expect(() => settingsFrom({ options: { upstreamUrl: "ftp://x" } })).toThrow(
      "Setting upstreamUrl (option)",
    );
  });

  test("reads the vendor's own key variable after ours, and an empty variable as unset", () => {
    expect(resolve({ env: { ELEVENLABS_API_KEY: "b" } }).config.upstreamKey).toBe("b");
    const both = { VOICEWIRE_UPSTREAM_KEY: "a", ELEVENLABS_API_KEY: "b" };
    expect(resolve({ env: both }).config.upstreamKey).toBe("a");
    expect(resolve({ env: { VOICEWIRE_UPSTREAM_KEY: "", ELEVENLABS_API_KEY: "b" } }).config.upstreamKey).toBe(
      "b",
    );
    expect(resolve({ env: { VOICEWIRE_PORT: "" } }).config.port).toBe(8080);
  });

  test.each(INTEGERS.map((row) => [row.key, row] as const))(
    "%s takes its bounds and refuses one below and one above",
    (key, row) => {
      const { min = 0, max = 0 } = row;
      expect(resolve({ flags: { [row.flag]: String(min) } }).config).toHaveProperty(key, min);
      expect(resolve({ env: { [row.env]: String(max) } }).config).toHaveProperty(key, max);
      for (const value of [min - 1, max + 1]) {
        const error = failure({ env: { [row.env]: String(value) } });
        expect(error.code).toBe("invalid_config");
        expect(error.field).toBe(key);
        expect(error.message).toBe(
          `Setting ${key} (${row.env}): "${value}", expected an integer from ${min} to ${max}`,
        );
      }
    },
  );

  test("ops-port is a port, from text or JSON, or off", () => {
    expect(resolve({ flags: { "ops-port": "off" } }).config.opsPort).toBe("off");
    expect(resolve({ env: { VOICEWIRE_OPS_PORT: "65535" } }).config.opsPort).toBe(65_535);
    const file = (opsPort: unknown) => ({ flags: { config: "f" }, file: JSON.stringify({ opsPort }) });
    expect(resolve(file(9090)).config.opsPort).toBe(9090);
    expect(resolve(file("off")).config.opsPort).toBe("off");
    for (const wrong of ["no", "-1", "65536", 80.5, false]) {
      expect(failure(file(wrong)).message).toContain("expected `off` or an integer from 0 to 65535");
    }
  });

  test.each([
    [{ flags: { port: "http" } }, 'Setting port (flag --port): "http", expected an integer from 0 to 65535'],
    [{ flags: { port: "" } }, 'Setting port (flag --port): "", expected an integer from 0 to 65535'],
    [{ flags: { config: "f" }, file: '{"port": 80.5}' }, "Setting port (file f): 80.5, expected an integer"],
    [{ flags: { config: "f" }, file: '{"host": 7}' }, "Setting host (file f): 7, expected a text"],
    [
      { flags: { config: "f" }, file: '{"prot": 80}' },
      'file "f": unknown setting "prot"; did you mean "port"?',
    ],
    [{ flags: { config: "f" }, file: "[]" }, 'Settings file "f": expected one JSON object'],
    [
      { flags: { config: "f" }, file: '{"port": 80,\n "host": "::1" x}' },
      'Settings file "f" can\'t be used: it is no JSON from line 2, column 16 on',
    ],
    [
      { flags: { config: "f" }, file: '{"upstreamKey": sk-secret}' },
      'Settings file "f" can\'t be used: it is no JSON',
    ],
    [{ flags: { config: "nope.json" } }, "no such file or directory, open 'nope.json'"],
    [{ env: { VOICEWIRE_LOG_LEVEL: "loud" } }, '"loud", expected one of silent, error, warn, info, debug'],
    [
      { flags: { "upstream-url": "ftp://x" } },
      "(flag): an entry that is no URL, expected `embedded` alone, or http(s) URLs with commas",
    ],
    [
      { env: { VOICEWIRE_UPSTREAM_URL: "localhost" } },
      "(environment): an entry that is no URL, expected `embedded`",
    ],
  ])("refuses %j with name, value and what is allowed", (given: Given, message) => {
    const error = failure(given);
    expect(error.code).toBe("invalid_config");
    expect(error.message).toContain(message);
  });

  test("never shows a secret's value", () => {
    const error = failure({ flags: { config: "f" }, file: '{"upstreamKey": 12345}' });
    expect(error.message).toContain("upstreamKey");
    expect(error.message).not.toContain("12345");
  });

  test("never quotes a file that is no JSON, since a secret may stand in it", () => {
    const error = failure({ flags: { config: "f" }, file: '{"upstreamKey": sk-12345}' });
    expect(inspect(error, { depth: null })).not.toMatch(/sk-1|12345/);
  });

  test("takes a number in the file where the choices are digits", () => {
    expect(resolve({ flags: { config: "f" }, file: '{"opusBitrateKbps": 32}' }).config.opusBitrateKbps).toBe(
      "32",
    );
  });
});

test("settingFlags() has a flag with range and default for each row, and only those asked for", () => {
  const flags = settingFlags();
  expect(flags.map((flag) => flag.name)).toEqual(ROWS.map((row) => row.flag));
  expect(flags.find((flag) => flag.name === "port")?.about).toContain("0-65535; default 8080");
  expect(settingFlags(["voice"]).map((flag) => flag.name)).toEqual(["voice"]);
});
