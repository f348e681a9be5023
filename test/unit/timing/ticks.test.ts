import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { msOfTicks, TICKS_PER_SECOND, ticksPerSample } from "../../../src/timing/ticks.ts";

describe("ticks", () => {
  it.each([8000, 16000, 22050, 24000, 32000, 44100, 48000])(
    "a sample at %i Hz is a whole number of ticks",
    (rate) => {
      expect(Number.isInteger(ticksPerSample(rate))).toBe(true);
      expect(ticksPerSample(rate) * rate).toBe(TICKS_PER_SECOND);
    },
  );

  it("TICKS_PER_SECOND is the least such number: half and a third of it fail", () => {
    const rates = [8000, 16000, 22050, 24000, 32000, 44100, 48000];
    for (const prime of [2, 3, 5, 7]) {
      expect(rates.some((rate) => !Number.isInteger(TICKS_PER_SECOND / prime / rate))).toBe(true);
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
