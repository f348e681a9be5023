import { describe, expect, it } from "vitest";
import { type StageDurations, StageTimes } from "../../../src/metrics/stage-times.ts";

const STAGES = [
  "text",
  "queued",
  "connected",
  "headers",
  "first_byte",
  "first_sound",
  "first_frame",
  "total",
];

function durations(ms: number): StageDurations {
  return {
    text_ms: ms,
    queued_ms: ms,
    connected_ms: ms,
    headers_ms: ms,
    first_byte_ms: ms,
    first_sound_ms: ms,
    first_frame_ms: ms,
    total_ms: 7 * ms,
  };
}

/** Values by metric name and labels. */
function read(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(" ")),
      Number(line.slice(line.lastIndexOf(" ") + 1)),
    ]),
  );
}

describe("StageTimes", () => {
  it("has each stage from the start, all zero, with one HELP and one TYPE before the samples", async () => {
    const text = await new StageTimes().render();
    const lines = text.split("\n");
    expect(lines[0]).toMatch(/^# HELP voicewire_stage_seconds \S/);
    expect(lines[1]).toBe("# TYPE voicewire_stage_seconds histogram");
    expect(text.match(/^#/gm)).toHaveLength(2);
    expect(text.endsWith("\n")).toBe(true);
    const values = read(text);
    expect([...values.values()].every((value) => value === 0)).toBe(true);
    for (const stage of STAGES) expect(values.get(`voicewire_stage_seconds_count{stage="${stage}"}`)).toBe(0);
  });

  it.each([
    [0, 1],
    [1, 1],
    [1.001, 2],
    [10_000, 10_000],
    [10_000.5, Number.POSITIVE_INFINITY],
    [86_400_000, Number.POSITIVE_INFINITY],
  ])("%f ms counts in the bucket up to %f ms and in every larger one", async (ms, boundMs) => {
    const stages = new StageTimes();
    stages.observe(durations(ms));
    for (const [name, value] of read(await stages.render())) {
      const bound = /bucket\{le="([^"]+)",stage="text"\}/.exec(name)?.[1];
      if (bound === undefined) continue;
      const seconds = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
      expect([name, value]).toEqual([name, seconds * 1000 >= boundMs - 1e-9 ? 1 : 0]);
    }
  });

  it("buckets rise, the last is the count, the sum is in seconds", async () => {
    const stages = new StageTimes();
    for (const ms of [0.4, 3, 3, 40, 700, 20_000]) stages.observe(durations(ms));
    const values = read(await stages.render());
    for (const stage of STAGES) {
      const buckets = [...values].filter(
        ([name]) => name.includes("_bucket{") && name.includes(`stage="${stage}"`),
      );
      const bounds = buckets.map(([name]) =>
        Number(/le="([^"]+)"/.exec(name)?.[1]?.replace("+Inf", "Infinity")),
      );
      expect(bounds).toEqual([...bounds].sort((a, b) => a - b));
      expect(bounds.at(-1)).toBe(Number.POSITIVE_INFINITY);
      const counts = buckets.map(([, value]) => value);
      expect(counts).toEqual([...counts].sort((a, b) => a - b));
      expect(counts.at(-1)).toBe(6);
      expect(values.get(`voicewire_stage_seconds_count{stage="${stage}"}`)).toBe(6);
    }
    expect(values.get('voicewire_stage_seconds_sum{stage="text"}')).toBeCloseTo(20.7464, 6);
    expect(values.get('voicewire_stage_seconds_sum{stage="total"}')).toBeCloseTo(7 * 20.7464, 6);
  });
});
