import { describe, expect, it } from "vitest";
import { readTraceparent, writeTraceparent } from "../../../src/kit/traceparent.ts";
import { TraceIds } from "../../../src/tracing/trace-ids.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

describe("traceparent", () => {
  it("says trace, span and whether it is sampled", () => {
    expect(readTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      isSampled: true,
    });
    expect(readTraceparent(`00-${TRACE}-${SPAN}-02`)?.isSampled).toBe(false);
    expect(readTraceparent(`00-${TRACE}-${SPAN}-03`)?.isSampled).toBe(true);
  });

  it("of a later version may say more", () => {
    expect(readTraceparent(`01-${TRACE}-${SPAN}-01-more`)?.traceId).toBe(TRACE);
  });

  it.each([
    ["nothing", undefined],
    ["an empty text", ""],
    ["an unknown version", `ff-${TRACE}-${SPAN}-01`],
    ["more in version 0", `00-${TRACE}-${SPAN}-01-more`],
    ["capitals", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ["a trace of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
    ["a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["a short span", `00-${TRACE}-${SPAN.slice(1)}-01`],
  ])("with %s is not read", (_what, text) => {
    expect(readTraceparent(text)).toBeNull();
  });

  it("is written as it is read", () => {
    for (const flags of ["00", "01"]) {
      const text = `00-${TRACE}-${SPAN}-${flags}`;
      const context = readTraceparent(text);
      expect(context === null ? null : writeTraceparent(context)).toBe(text);
    }
  });

  it("gets ids that differ, of the right length", () => {
    const ids = new TraceIds();
    const traces = Array.from({ length: 2000 }, () => ids.traceId());
    const spans = Array.from({ length: 2000 }, () => ids.spanId());
    expect(new Set([...traces, ...spans]).size).toBe(4000);
    expect(traces.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
    expect(spans.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
  });
});
