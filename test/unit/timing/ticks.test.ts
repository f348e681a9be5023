import { describe, expect, it } from "vitest";
import { AUDIO_FORMATS, OUTPUT_FORMATS, parseUpstreamFormat } from "../../../src/audio/formats.ts";
import { GatewayError } from "../../../src/errors.ts";
import { msOfTicks, TICKS_PER_SECOND, ticksPerSample } from "../../../src/timing/ticks.ts";

/** Those that samples have on the timeline: of listeners and of the upstream. */
const RATES = [
  ...new Set([
    ...Object.values(AUDIO_FORMATS).map(({ sampleRate }) => sampleRate),
    ...OUTPUT_FORMATS.map((name) => parseUpstreamFormat(name)?.sampleRate ?? 0),
  ]),
];

describe("ticks", () => {
  it.each(RATES)("a sample at %i Hz is a whole number of ticks", (rate) => {
    const why = `TICKS_PER_SECOND in src/timing/ticks.ts has to be a multiple of ${rate}`;
    expect(Number.isInteger(TICKS_PER_SECOND / rate), why).toBe(true);
    expect(ticksPerSample(rate) * rate).toBe(TICKS_PER_SECOND);
  });

  it("TICKS_PER_SECOND is the least such number: half and a third of it fail", () => {
    for (const prime of [2, 3, 5, 7]) {
      expect(RATES.some((rate) => !Number.isInteger(TICKS_PER_SECOND / prime / rate))).toBe(true);
    }
  });

  it.each([0, -8000, 11025.5, 47999, Number.NaN])("ticksPerSample(%d) says what was expected", (rate) => {
    expect(() => ticksPerSample(rate)).toThrow(GatewayError);
  });

  it("msOfTicks() rounds to a microsecond, exact after a day", () => {
    expect(msOfTicks(0)).toBe(0);
    expect(msOfTicks(TICKS_PER_SECOND * 0.02)).toBe(20);
    expect(msOfTicks(ticksPerSample(44100))).toBe(0.023);
    expect(msOfTicks(TICKS_PER_SECOND * 86_400 + TICKS_PER_SECOND / 1000)).toBe(86_400_001);
  });
});
