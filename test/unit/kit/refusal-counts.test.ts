/** Which errors `voicewire_refused_total` counts, and that each counts once. */
import { describe, expect, it } from "vitest";
import { ERRORS, type ErrorCode, GatewayError } from "../../../src/errors.ts";
import { OWN, RefusalCounts } from "../../../src/kit/refusal-counts.ts";

/** Faults of a request, what the upstream did, an ordinary end, and what stops a start. A new code has to be in one of the lists. */
const NOT_COUNTED =
  /^(malformed|unknown_|invalid_|text_|binary_|not_|message_too|utterance_|nothing_|resume_expired|carrier_protocol|upstream_|session_closed|bus_refused|node_name|voice_package|voice_engine|voice_model|recording_)/;

describe("an error of the table", () => {
  it.each(Object.keys(ERRORS) as ErrorCode[])("%s is one that counts, or is one that does not", (code) => {
    expect(OWN.has(code)).toBe(!NOT_COUNTED.test(code));
  });
});

describe("errors on their way out", () => {
  it("count once each, wherever they are seen", () => {
    const counts = new RefusalCounts();
    const [full, refused] = [new GatewayError("inbox_full", "x"), new GatewayError("forbidden", "x")];
    counts.sent(full);
    counts.sent(full);
    counts.count("wrong_origin", refused);
    counts.sent(refused);
    counts.sent(new GatewayError("invalid_field", "x"));
    counts.sent(new RangeError("x"));
    expect([...counts.byReason]).toEqual([
      ["inbox_full", 1],
      ["wrong_origin", 1],
      ["internal", 1],
    ]);
  });

  it("refusals count for each client that gets the same one", () => {
    const counts = new RefusalCounts();
    const draining = new GatewayError("draining", "x");
    counts.sentToOneMore(draining);
    counts.sentToOneMore(draining);
    counts.sentToOneMore(new GatewayError("session_closed", "x"));
    expect([...counts.byReason]).toEqual([["draining", 2]]);
  });
});
