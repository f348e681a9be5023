import { describe, expect, it } from "vitest";
import { riseGain, scaleSamples } from "../../../src/audio/analysis/fade.ts";
import { decodeSamples, encodeSamples } from "../../../src/audio/codecs/samples.ts";
import { spliceStep } from "../../helpers/splice-step.ts";
import { noise, tone } from "./helpers.ts";

describe("spliceStep()", () => {
  it("is the step at the splice against the largest inside", () => {
    const cases: [string, number[], number[], number][] = [
      ["as steep as inside", [0, 10, 20], [30, 40], 1],
      ["no step", [0, 10, 20], [20, 10], 0],
      ["a click", [0, 10, 20], [-180, -170], 20],
      ["the steepest of both sides", [0, 10], [60, 160], 0.5],
      ["downwards", [100, 0], [-50, -50], 0.5],
      ["constant around: in levels", [7, 7, 7], [10, 10], 3],
      ["full scale", [32_767], [-32_768], 65_535],
      ["nothing before", [], [500], 0],
      ["nothing behind", [500], [], 0],
    ];
    for (const [name, before, after, ratio] of cases) {
      expect(spliceStep(Int16Array.from(before), Int16Array.from(after)), name).toBeCloseTo(ratio, 10);
    }
  });

  it("keeps a tone that goes on apart from one that was cut", () => {
    const whole = tone({ hz: 440, rate: 48_000, samples: 480 });
    expect(spliceStep(whole.slice(0, 240), whole.slice(240))).toBeLessThanOrEqual(1);
    // A quarter and three quarters of a period: from peak to trough.
    expect(spliceStep(whole.slice(0, 28), whole.slice(82))).toBeGreaterThan(30);
  });
});

describe("riseGain()", () => {
  it("rises from exactly nothing to all without a corner", () => {
    const length = 144;
    const gains = Array.from({ length: length + 2 }, (_, index) => riseGain(index, length));
    expect(gains[0]).toBe(0);
    expect(gains[length / 2]).toBeCloseTo(0.5, 10);
    expect(gains.slice(length)).toEqual([1, 1]);
    const steps = gains.slice(1).map((gain, index) => gain - (gains[index] ?? 0));
    expect(Math.min(...steps)).toBeGreaterThanOrEqual(0);
    // Half a Hann window is nowhere steeper than pi / 2 of the straight line, and flat at both ends.
    expect(Math.max(...steps)).toBeLessThanOrEqual(Math.PI / 2 / length + 1e-9);
    expect(steps[0]).toBeLessThan(0.02 / length);
    expect(steps[length - 1]).toBeLessThan(0.02 / length);
  });
});

describe("scaleSamples()", () => {
  it.each(["ulaw", "alaw", "pcm"] as const)("%s: multiplies, and leaves what it was given alone", (codec) => {
    const bytes = encodeSamples(codec, noise(300));
    const before = bytes.slice();
    const silent = decodeSamples(
      codec,
      scaleSamples(codec, bytes, () => 0),
    );
    expect(Math.max(...silent.map(Math.abs))).toBeLessThanOrEqual(8);
    expect(scaleSamples(codec, bytes, () => 1)).toEqual(bytes);
    const halved = decodeSamples(
      codec,
      scaleSamples(codec, bytes, () => 0.5),
    );
    decodeSamples(codec, bytes).forEach((sample, index) => {
      // G.711 keeps 5 significant bits.
      const tolerance = codec === "pcm" ? 1 : 8 + Math.abs(sample) / 32;
      expect(Math.abs((halved[index] ?? 0) - sample / 2)).toBeLessThanOrEqual(tolerance);
    });
    expect(bytes).toEqual(before);
  });
});
