import { describe, expect, it } from "vitest";
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { type CarrierKnown, dialectOf } from "../../../src/server/carriers/carrier-dialect.ts";

const UNKNOWN = { carrier: null, subprotocol: "", isSigned: false };
const CONNECTED = '{"event":"connected"}';
const TELNYX = '{"event":"start","stream_id":"s","start":{"call_control_id":"c"}}';
const TWILIO = `{"event":"start","start":{"streamSid":"MZ${"0".repeat(32)}"}}`;

const find = (messages: readonly Wire[], known: CarrierKnown = UNKNOWN, twilioAuthToken = "") =>
  dialectOf(messages, known, { twilioAuthToken })?.name;

describe("dialectOf", () => {
  it("knows the carrier of the path, of the subprotocol, or of the first messages", () => {
    expect(find(["{}"], { ...UNKNOWN, carrier: "plivo" })).toBe("plivo");
    expect(find(["{}"], { ...UNKNOWN, subprotocol: "media" })).toBe("asterisk");
    expect(find([CONNECTED])).toBeUndefined();
    expect(find([CONNECTED, new Uint8Array(2), TELNYX])).toBe("telnyx");
  });

  it("refuses messages of no carrier, and Twilio's where they had to be signed", () => {
    expect(() => find(["{}"])).toThrow(expect.objectContaining({ code: "carrier_protocol" }));
    expect(() => find([TWILIO], UNKNOWN, "secret")).toThrow(
      expect.objectContaining({ code: "carrier_signature" }),
    );
    expect(find([TWILIO], { ...UNKNOWN, isSigned: true }, "secret")).toBe("twilio");
  });
});
