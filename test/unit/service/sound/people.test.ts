/** Voices without words, of people and animals, and hooves. */
import { describe, expect, it } from "vitest";
import { centroid, envelope, make, onsets, pitchHz, share } from "./analysis.ts";

/** The pitch at each tenth of a second. */
function pitches(samples: Int16Array, count: number): number[] {
  return Array.from({ length: count }, (_, at) => pitchHz(samples, at * 0.1, { low: 60, high: 1600 }));
}

describe("laughter", () => {
  it("is five syllables a second, of an open vowel, each lower than the one before", () => {
    const laughter = make("laughter", { durationSeconds: 4 });
    const levels = envelope(laughter, 0.02);
    const peaks = levels.flatMap((level, at) =>
      level === Math.max(...levels.slice(Math.max(0, at - 4), at + 5)) ? at : [],
    );
    expect(Math.abs(peaks.length - 20)).toBeLessThanOrEqual(1);
    for (const [at, peak] of peaks.slice(1).entries())
      expect(Math.abs((peak - (peaks[at] ?? 0)) * 0.02 - 0.2)).toBeLessThan(0.07);
    expect(share(laughter, 500, 1500)).toBeGreaterThan(0.6);
    const voiced = [0, 2, 4].map((syllable) =>
      pitchHz(laughter, syllable * 0.2 + 0.1, { low: 120, high: 400 }),
    );
    expect(voiced[0]).toBeGreaterThan((voiced[1] ?? 0) * 1.05);
    expect(voiced[1]).toBeGreaterThan((voiced[2] ?? 0) * 1.05);
  });

  it("a man's laughter is lower than a woman's", () => {
    const [man = 0, woman = 0] = ["a man laughing", "a woman laughing"].map((text) =>
      pitchHz(make(text), 0.1, { low: 100, high: 500 }),
    );
    expect(woman).toBeGreaterThan(man * 1.5);
  });
});

describe("crying", () => {
  it("is wails of a second that rise and fall, with a breath between", () => {
    const crying = make("a baby crying", { durationSeconds: 4 });
    const wail = pitches(crying, 10);
    const highest = wail.indexOf(Math.max(...wail));
    expect(highest).toBeGreaterThan(2);
    expect(highest).toBeLessThan(7);
    expect(Math.max(...wail)).toBeGreaterThan((wail[0] ?? 0) * 1.2);
    expect(Math.max(...wail)).toBeGreaterThan((wail[9] ?? 0) * 1.2);
    const levels = envelope(crying, 0.05);
    expect(Math.min(...levels.slice(18, 24))).toBeLessThan(Math.max(...levels) / 20);
    expect(centroid(crying, 1.05, 1.25)).toBeGreaterThan(centroid(crying, 0.3, 0.8) * 1.2);
  });
});

describe("a gallop", () => {
  it("is three hooves in quick order, then a pause, twice a second", () => {
    const hooves = onsets(make("a galloping horse", { durationSeconds: 4 }), 0.05);
    expect(hooves.length).toBeGreaterThanOrEqual(21);
    for (let stride = 0; stride < 6; stride += 1) {
      const [first = 0, second = 0, third = 0, next = 0] = hooves.slice(stride * 3, stride * 3 + 4);
      expect(second - first).toBeCloseTo(0.12, 1);
      expect(third - second).toBeCloseTo(0.12, 1);
      expect(next - third).toBeGreaterThan(0.2);
      expect(Math.abs(next - first - 0.48)).toBeLessThan(0.03);
    }
  });

  it("is faster and slower, and sounds of the ground", () => {
    const strides = (text: string) => onsets(make(text, { durationSeconds: 4 }), 0.05).length;
    expect(strides("fast gallop")).toBeGreaterThan(strides("gallop") * 1.3);
    expect(centroid(make("gallop on gravel"))).not.toBeCloseTo(centroid(make("gallop on wood")), -1);
  });
});

describe("other voices", () => {
  it("snoring: a rattle below 1 kHz for a second and a half, every three seconds", () => {
    const snoring = make("snoring", { durationSeconds: 6.4 });
    expect(share(snoring, 100, 1000)).toBeGreaterThan(0.8);
    const levels = envelope(snoring, 0.1);
    const mean = (from: number, to: number) =>
      levels.slice(from, to).reduce((sum, level) => sum + level, 0) / (to - from);
    expect(mean(3, 11)).toBeGreaterThan(mean(14, 28) * 5);
    expect(mean(35, 43)).toBeGreaterThan(mean(14, 28) * 5);
  });

  it("a whistle: one tone, up an octave and down again", () => {
    const whistle = make("one whistle");
    const heard = [0.05, 0.3, 0.45, 0.7].map((at) => pitchHz(whistle, at, { low: 800, high: 4000 }));
    expect(heard[1]).toBeGreaterThan((heard[0] ?? 0) * 1.4);
    expect(heard[2]).toBeGreaterThan((heard[3] ?? 0) * 1.3);
    expect(share(whistle, 1200, 2700)).toBeGreaterThan(0.97);
  });

  it("a cow is low, a sheep trembles, a neigh falls", () => {
    for (const hz of pitches(make("a cow"), 15)) expect(Math.abs(hz - 140)).toBeLessThan(25);
    const bleat = envelope(make("one sheep"), 0.02).slice(4, 30);
    const turns = bleat.filter((level, at) => level > (bleat[at - 1] ?? 0) && level >= (bleat[at + 1] ?? 0));
    expect(turns.length).toBeGreaterThanOrEqual(4);
    const neigh = pitches(make("a horse"), 12);
    expect(neigh[0]).toBeGreaterThan((neigh[11] ?? 0) * 2);
  });
});
