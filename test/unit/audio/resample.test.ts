import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Resampler, SAMPLE_RATES } from "../../../src/audio/resample/resample.ts";
import { concatPcm, fitTone, levelDb, noise, pieces, splits, tone } from "./helpers.ts";

const PAIRS = SAMPLE_RATES.flatMap((fromRate) => SAMPLE_RATES.map((toRate) => ({ fromRate, toRate })));
const CONVERSIONS = PAIRS.filter(({ fromRate, toRate }) => fromRate !== toRate);

function resample(pcm: Int16Array, options: { fromRate: number; toRate: number }): Int16Array {
  const resampler = new Resampler(options);
  return concatPcm([resampler.push(pcm), resampler.flush()]);
}

describe("Resampler", () => {
  it("gives round(N * to / from) samples after flush(), for all pairs and any split, and the same ones", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...PAIRS),
        fc.integer({ min: 0, max: 3000 }).chain((length) => fc.tuple(fc.constant(length), splits(length))),
        (rates, [length, cuts]) => {
          const pcm = noise(length, 7);
          const whole = resample(pcm, rates);
          expect(whole).toHaveLength(Math.round((length * rates.toRate) / rates.fromRate));
          const resampler = new Resampler(rates);
          const parts = pieces(pcm, cuts).map((piece) => resampler.push(piece));
          expect(concatPcm([...parts, resampler.flush()])).toEqual(whole);
        },
      ),
    );
  });

  it("flush() and reset() start a new stream: it comes out as from a new resampler", () => {
    const rates = { fromRate: 22_050, toRate: 8000 };
    const pcm = noise(1000);
    const resampler = new Resampler(rates);
    const first = concatPcm([resampler.push(pcm), resampler.flush()]);
    expect(concatPcm([resampler.push(pcm), resampler.flush()])).toEqual(first);
    resampler.push(noise(333, 5));
    resampler.reset();
    expect(concatPcm([resampler.push(pcm), resampler.flush()])).toEqual(first);
    expect(resampler.flush()).toHaveLength(0);
  });

  it.each(CONVERSIONS)(
    "keeps a 1 kHz tone in place, $fromRate -> $toRate Hz: SNR >= 60 dB, no delay",
    (rates) => {
      const input = tone({ hz: 1000, rate: rates.fromRate, samples: rates.fromRate / 2 });
      const output = resample(input, rates);
      // Against the ideal tone at the same times: a delay of one sample would cost more than this allows.
      const ideal = tone({ hz: 1000, rate: rates.toRate, samples: output.length });
      const difference = output.map((value, at) => value - (ideal[at] ?? 0));
      expect(levelDb(difference, 12_000)).toBeLessThan(-60);
      expect(fitTone(output, 1000, rates.toRate).snrDb).toBeGreaterThan(60);
    },
  );

  it.each(CONVERSIONS.filter(({ fromRate, toRate }) => toRate < fromRate))(
    "keeps aliases under -50 dB, $fromRate -> $toRate Hz",
    (rates) => {
      for (const factor of [1.06, 1.25, 1.5, 1.9]) {
        const hz = (rates.toRate / 2) * factor;
        if (hz > rates.fromRate / 2) continue;
        const input = tone({ hz, rate: rates.fromRate, samples: rates.fromRate / 4 });
        expect(levelDb(resample(input, rates), 12_000)).toBeLessThan(-50);
      }
    },
  );

  it.each(CONVERSIONS.filter(({ fromRate, toRate }) => toRate > fromRate))(
    "keeps images under -50 dB, $fromRate -> $toRate Hz",
    (rates) => {
      // 0.45 of the rate: its mirror image lies just above the old Nyquist frequency.
      const hz = rates.fromRate * 0.4;
      const input = tone({ hz, rate: rates.fromRate, samples: rates.fromRate / 4 });
      expect(fitTone(resample(input, rates), hz, rates.toRate).snrDb).toBeGreaterThan(50);
    },
  );

  it("passes telephone speech: 24 kHz -> 8 kHz loses less than 0.5 dB up to 3.4 kHz", () => {
    for (const hz of [300, 1000, 2000, 3000, 3400]) {
      const output = resample(tone({ hz, rate: 24_000, samples: 12_000 }), {
        fromRate: 24_000,
        toRate: 8000,
      });
      expect(Math.abs(20 * Math.log10(fitTone(output, hz, 8000).amplitude / 12_000))).toBeLessThan(0.5);
    }
  });

  it("keeps a constant constant and clips instead of wrapping around", () => {
    const constant = new Int16Array(4000).fill(12_345);
    const output = resample(constant, { fromRate: 44_100, toRate: 16_000 });
    expect(output.subarray(200, -200).every((value) => Math.abs(value - 12_345) <= 1)).toBe(true);
    const square = Int16Array.from({ length: 2000 }, (_, at) =>
      Math.floor(at / 20) % 2 === 0 ? 32_767 : -32_768,
    );
    const clipped = resample(square, { fromRate: 16_000, toRate: 48_000 });
    for (let at = 60 * 3; at < clipped.length - 180; at += 1) {
      const input = square[Math.floor(at / 3)] ?? 0;
      const isFlat = at % 60 > 15 && at % 60 < 45;
      if (isFlat) expect(Math.sign(clipped[at] ?? 0)).toBe(Math.sign(input));
    }
  });

  it("push() with equal rates gives the samples back as they are", () => {
    const pcm = noise(10);
    const resampler = new Resampler({ fromRate: 24_000, toRate: 24_000 });
    expect(resampler.push(pcm)).toBe(pcm);
    expect(resampler.flush()).toHaveLength(0);
  });

  it("refuses a rate that no format has", () => {
    expect(() => new Resampler({ fromRate: 11_025, toRate: 8000 })).toThrow(RangeError);
    expect(() => new Resampler({ fromRate: 8000, toRate: Number.NaN })).toThrow(RangeError);
  });
});
