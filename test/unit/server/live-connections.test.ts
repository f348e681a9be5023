import { expect, it } from "vitest";
import { ERRORS } from "../../../src/errors.ts";
import { isGoodBye } from "../../../src/server/sockets/live-connections.ts";

it.each([
  ["a client that closes", 1000, true],
  ["a page that is left", 1001, true],
  ["a close frame without a code", 1005, true],
  ["a connection that breaks", 1006, false],
  ["one that reads too slowly and is cut off", ERRORS.slow_consumer.closeCode, false],
  ["one that is cut off for a fault inside", ERRORS.internal.closeCode, false],
])("%s (%i): it does not come back: %s", (_, code, isFinal) => {
  expect(isGoodBye(code)).toBe(isFinal);
});
