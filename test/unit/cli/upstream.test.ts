import { describe, expect, test } from "vitest";
import { chooseUpstream, openUpstream } from "../../../src/cli/serve/upstream.ts";
import { settingsFrom } from "../../../src/cli/settings.ts";
import type { ErrorCode } from "../../../src/errors.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

function configOf(env: Record<string, string>) {
  return settingsFrom({ flags: new Map(), env, readFile: () => "{}" }).config;
}

describe("chooseUpstream()", () => {
  test("is the embedded voice unless a URL or a region is set", () => {
    expect(chooseUpstream(configOf({})).kind).toBe("embedded");
    expect(chooseUpstream(configOf({ ELEVENLABS_API_KEY: "k" })).kind).toBe("embedded");
  });

  test.each([
    ["http://127.0.0.1:8090", "http://127.0.0.1:8090"],
    ["http://127.0.0.1:8090/", "http://127.0.0.1:8090"],
    ["https://api.elevenlabs.io/v1", "https://api.elevenlabs.io"],
    ["https://proxy.example/speech/v1/", "https://proxy.example/speech"],
  ])("takes %s with or without its version", (url, baseUrl) => {
    expect(chooseUpstream(configOf({ VOICEWIRE_UPSTREAM_URL: url }))).toMatchObject({
      kind: "remote",
      baseUrl,
    });
  });

  test("a region wins over the URL, and needs a key", () => {
    const env = { VOICEWIRE_UPSTREAM_REGION: "in", VOICEWIRE_UPSTREAM_URL: "http://x" };
    expect(chooseUpstream(configOf({ ...env, ELEVENLABS_API_KEY: "k" }))).toMatchObject({
      baseUrl: "https://api.in.residency.elevenlabs.io",
    });
    expect(() => chooseUpstream(configOf(env))).toThrow("set ELEVENLABS_API_KEY, or leave out the region");
  });
});

describe("openUpstream()", () => {
  function failing(code: ErrorCode) {
    return openUpstream({
      config: configOf({}),
      log: watchedLog,
      clock: systemClock,
      env: {},
      start: () => ({
        pid: undefined,
        send: () => undefined,
        onReport: (listener) => listener({ type: "failed", code, message: "It is so" }),
        onEnd: (listener) => queueMicrotask(() => listener("exit code 1")),
        kill: () => undefined,
      }),
    });
  }

  test("says how to get the voice where its package is missing, and what to use instead", async () => {
    await expect(failing("voice_package_missing")).rejects.toMatchObject({
      code: "voice_package_missing",
      message: expect.stringMatching(/npm install .*@echogarden\/espeak-ng-emscripten.*--upstream-region/s),
    });
  });

  test("passes any other reason on", async () => {
    await expect(failing("port_in_use")).rejects.toMatchObject({ code: "port_in_use", message: "It is so" });
  });

  test.each([
    [{}, ["--log-level", "warn"]],
    [
      { VOICEWIRE_DATA: "kept", VOICEWIRE_FAULTS: "1" },
      ["--log-level", "warn", "--data", "kept", "--faults"],
    ],
  ])("hands the service's settings on: %j", async (env, expected) => {
    let given: readonly string[] = [];
    const starting = openUpstream({
      config: configOf(env),
      log: watchedLog,
      clock: systemClock,
      env: {},
      start: (args) => {
        given = args;
        return {
          pid: undefined,
          send: () => undefined,
          onReport: (listener) => listener({ type: "failed", code: "internal", message: "Enough" }),
          onEnd: (listener) => queueMicrotask(() => listener("exit code 1")),
          kill: () => undefined,
        };
      },
    });
    await expect(starting).rejects.toThrow("Enough");
    expect(given.slice(4)).toEqual(expected);
  });

  test("starts nothing for a remote upstream", async () => {
    const upstream = await openUpstream({
      config: configOf({ VOICEWIRE_UPSTREAM_URL: "http://127.0.0.1:9", VOICEWIRE_UPSTREAM_KEY: "k" }),
      log: watchedLog,
      clock: systemClock,
      env: {},
      start: () => {
        throw new Error("Expected no child");
      },
    });
    expect(upstream).toMatchObject({ baseUrl: "http://127.0.0.1:9", key: "k", service: undefined });
    await upstream.stop();
  });
});
