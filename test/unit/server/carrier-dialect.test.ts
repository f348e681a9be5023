import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { dialectFinder } from "../../../src/server/carriers/carrier-dialect.ts";

const AUTH = { twilioAuthToken: "" };
const UNKNOWN = { carrier: null, subprotocol: "", isSigned: false };
const CONNECTED = '{"event":"connected"}';

/** A first message of Telnyx, padded to `chars`. */
function telnyxStart(chars: number): string {
  const padding = "x".repeat(chars);
  return JSON.stringify({ event: "start", stream_id: "s", start: { call_control_id: "c" }, padding });
}

describe("dialectFinder", () => {
  it("knows the carrier of the path, of the subprotocol, or of the first messages", () => {
    expect(dialectFinder({ ...UNKNOWN, carrier: "plivo" }, AUTH)("{}")?.name).toBe("plivo");
    expect(dialectFinder({ ...UNKNOWN, subprotocol: "media" }, AUTH)("{}")?.name).toBe("asterisk");
    const find = dialectFinder(UNKNOWN, AUTH);
    expect([find(CONNECTED), find(telnyxStart(1))?.name, find("{}")?.name]).toEqual([
      null,
      "telnyx",
      "telnyx",
    ]);
  });

  it("lets the messages go once the carrier is known", () => {
    // What V8 takes back when it is asked to.
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("gc");
    if (typeof collect !== "function") throw new Error("No garbage collection on request");
    const heldBytes = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = heldBytes();
    const finders = Array.from({ length: 50 }, () => {
      const find = dialectFinder(UNKNOWN, AUTH);
      expect(find(telnyxStart(500_000))?.name).toBe("telnyx");
      return find;
    });
    // 25 MB came.
    expect(heldBytes() - before).toBeLessThan(5_000_000);
    expect(finders.every((find) => find("{}")?.name === "telnyx")).toBe(true);
  });
});
