import { expect, it } from "vitest";
import { isGoodBye, type LiveSocketOptions, liveSocket } from "../../../src/edge/live-socket.ts";
import { ERRORS } from "../../../src/errors.ts";

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

it("gives others their turn before each message of a socket that brings many in a row", () => {
  let turns = 0;
  const onMessage = (): void => {
    turns += 1;
  };
  const { message } = liveSocket({ maxMessageBytes: 100, onMessage } as LiveSocketOptions);
  // Of a connection that was refused already: nothing else is asked of it.
  const socket = { getUserData: () => ({ member: null }) } as never;
  for (let sent = 0; sent < 3; sent += 1) void message?.(socket, new ArrayBuffer(1), false);
  expect(turns).toBe(3);
});
