import { describe, expect, it } from "vitest";
import { createSampler } from "../../../src/tracing/sampler.ts";
import { TraceIds } from "../../../src/tracing/trace-ids.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const parent = (isSampled: boolean) => ({ traceId: TRACE, spanId: "00f067aa0ba902b7", isSampled });

describe("samplers", () => {
  it.each([
    ["always_on", [true, true, true]],
    ["always_off", [false, false, false]],
    ["parentbased_always_on", [true, true, false]],
    ["parentbased_always_off", [false, true, false]],
  ])("%s", (name, [alone, inSampled, inOther]) => {
    const sampler = createSampler(name, undefined);
    expect(sampler(TRACE, null)).toBe(alone);
    expect(sampler(TRACE, parent(true))).toBe(inSampled);
    expect(sampler(TRACE, parent(false))).toBe(inOther);
  });

  it("traceidratio keeps its share, and the same traces each time", () => {
    const ids = new TraceIds();
    const traces = Array.from({ length: 20_000 }, () => ids.traceId());
    const [tenth, half] = [
      createSampler("traceidratio", "0.1"),
      createSampler("parentbased_traceidratio", "0.5"),
    ];
    const kept = traces.filter((id) => tenth(id, null));
    expect(kept.length / traces.length).toBeCloseTo(0.1, 1);
    expect(kept.every((id) => half(id, null))).toBe(true);
    expect(traces.filter((id) => createSampler("traceidratio", "0")(id, null))).toEqual([]);
    expect(traces.every((id) => createSampler("traceidratio", undefined)(id, null))).toBe(true);
  });

  it.each([
    ["sometimes", undefined, "OTEL_TRACES_SAMPLER"],
    ["traceidratio", "1.5", "OTEL_TRACES_SAMPLER_ARG"],
    ["traceidratio", "half", "OTEL_TRACES_SAMPLER_ARG"],
  ])("%s with %s is refused", (name, ratio, field) => {
    expect(() => createSampler(name, ratio)).toThrow(
      expect.objectContaining({ code: "invalid_config", field }),
    );
  });
});
