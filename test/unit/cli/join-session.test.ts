import { describe, expect, test } from "vitest";
import { exitCodeOf } from "../../../src/cli/exit.ts";
import { gatewayUrl } from "../../../src/cli/session/join-session.ts";
import { VoicewireError } from "../../../src/client/client-error.ts";
import { GatewayError } from "../../../src/errors.ts";

describe("gatewayUrl()", () => {
  test.each([
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
    ["ws://host:1/", "http://host:1"],
    ["wss://host/prefix/", "https://host/prefix"],
    ["127.0.0.1:9000", "http://127.0.0.1:9000"],
    ["localhost", "http://localhost"],
  ])("takes %s", (given, expected) => {
    expect(gatewayUrl(given)).toBe(expected);
  });

  test.each(["ftp://x", "", "http://", "a b"])('refuses "%s"', (given) => {
    expect(() => gatewayUrl(given)).toThrow("expected the address of a gateway");
  });
});

describe("exitCodeOf()", () => {
  const client = (code: string) => new VoicewireError({ code, message: "m", retryable: false });

  test.each([
    [new GatewayError("invalid_config", "m"), 2],
    [new GatewayError("port_in_use", "m"), 3],
    [new GatewayError("voice_package_missing", "m"), 4],
    [new GatewayError("upstream_unauthorized", "m"), 4],
    [client("upstream_failed"), 4],
    [client("unknown_voice"), 4],
    [new GatewayError("unauthorized", "m"), 4],
    [new GatewayError("token_expired", "m"), 4],
    [client("token_revoked"), 4],
    [client("forbidden"), 4],
    [client("connection_lost"), 4],
    [client("text_too_long"), 2],
    [client("queue_full"), 1],
    [new Error("m"), 1],
    ["m", 1],
  ])("of %s is %i", (thrown, code) => {
    expect(exitCodeOf(thrown)).toBe(code);
  });
});
