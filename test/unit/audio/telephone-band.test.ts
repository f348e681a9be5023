import { describe, expect, it } from "vitest";
import { TelephoneBand } from "../../../src/audio/resample/telephone-band.ts";
import { whiteNoise } from "../../kit/spectrum.ts";

/** Gain for a steady tone, dB. */
function gainDb(hz: number, rate: number): number {
  const tone = Int16Array.from(
    { length: rate },
    (_, at) => 20_000 * Math.sin((2 * Math.PI * hz * at) / rate),
  );
  const passed = new TelephoneBand().push(tone, rate);
  const power = (samples: Int16Array): number =>
    samples.subarray(rate / 2).reduce((sum, sample) => sum + sample * sample, 0);
  return 10 * Math.log10((power(passed) + 1e-9) / power(tone));
}

describe("TelephoneBand", () => {
  it.each([8000, 16_000, 22_050, 24_000, 44_100, 48_000])("passes 300 to 3400 Hz at %i Hz", (rate) => {
    for (const hz of [300, 3400]) expect(gainDb(hz, rate), `${hz} Hz`).toBeCloseTo(-3, 0);
    for (const hz of [500, 1000, 2000, 2800])
      expect(Math.abs(gainDb(hz, rate)), `${hz} Hz`).toBeLessThan(0.7);
    for (const hz of [60, 100, 150]) expect(gainDb(hz, rate), `${hz} Hz`).toBeLessThan(-23);
    if (rate > 9200) expect(gainDb(4600, rate)).toBeLessThan(-26);
    if (rate > 12_000) expect(gainDb(5900, rate)).toBeLessThan(-45);
  });

  it("gives the same samples whatever pieces they come in", () => {
    const noise = whiteNoise(24_000, 1, 0.9);
    const whole = new TelephoneBand().push(noise, 24_000);
    const filter = new TelephoneBand();
    const pieces: number[] = [];
    for (let at = 0, length = 1; at < noise.length; at += length, length = (length * 7) % 997) {
      pieces.push(...filter.push(noise.subarray(at, at + length), 24_000));
    }
    expect(Int16Array.from(pieces)).toEqual(whole);
  });

  it("clips what is too loud, and is silent again behind it", () => {
    const filter = new TelephoneBand();
    const square = Int16Array.from({ length: 8000 }, (_, at) => (at % 16 < 8 ? 32_767 : -32_768));
    const loud = filter.push(square, 16_000);
    expect(loud).toContain(32_767);
    expect(loud).toContain(-32_768);
    filter.push(new Int16Array(1600), 16_000);
    expect(filter.push(new Int16Array(1600), 16_000).every((sample) => sample === 0)).toBe(true);
  });

  it("starts from silence after a reset", () => {
    const noise = whiteNoise(8000, 0.1, 0.5);
    const filter = new TelephoneBand();
    const first = filter.push(noise, 8000);
    filter.reset();
    expect(filter.push(noise, 8000)).toEqual(first);
  });
});
