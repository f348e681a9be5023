import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { type CarrierKnown, dialectOf } from "../../../src/server/carriers/carrier-dialect.ts";

/** Lets in whatever carrier it turns out to be. */
const ANY = { mustBe: () => undefined };
const UNKNOWN: CarrierKnown = { carrier: null, subprotocol: "", admission: ANY };
const CONNECTED = '{"event":"connected"}';
const TELNYX = '{"event":"start","stream_id":"s","start":{"call_control_id":"c"}}';
const TWILIO = `{"event":"start","start":{"streamSid":"MZ${"0".repeat(32)}"}}`;

const find = (messages: readonly Wire[], known = UNKNOWN) => dialectOf(messages, known)?.name;

describe("dialectOf", () => {
  it("knows the carrier of the path, of the subprotocol, or of the first messages", () => {
    expect(find(["{}"], { ...UNKNOWN, carrier: "plivo" })).toBe("plivo");
    expect(find(["{}"], { ...UNKNOWN, subprotocol: "media" })).toBe("asterisk");
    expect(find([CONNECTED])).toBeUndefined();
    expect(find([CONNECTED, new Uint8Array(2), TELNYX])).toBe("telnyx");
  });

  it("refuses messages of no carrier, and of one that the connection was not let in for", () => {
    expect(() => find(["{}"])).toThrow(expect.objectContaining({ code: "carrier_protocol" }));
    const admission = {
      mustBe: (carrier: string) => {
        if (carrier === "twilio") throw new GatewayError("carrier_signature", "Not signed");
      },
    };
    expect(() => find([TWILIO], { ...UNKNOWN, admission })).toThrow(
      expect.objectContaining({ code: "carrier_signature" }),
    );
    expect(find([CONNECTED, TELNYX], { ...UNKNOWN, admission })).toBe("telnyx");
  });
});
