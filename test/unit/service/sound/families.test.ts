/** Each kind of sound has what makes it that: where its energy lies, how it moves, how often it comes. */
import { describe, expect, it } from "vitest";
import { centroid, envelope, make, onsets, peakHz, share } from "./analysis.ts";

const SHORT = { durationSeconds: 2 };
const decibels = (level: number) => 20 * Math.log10(level + 1e-6);

describe("where the energy lies", () => {
  it.each([
    ["rain", 2000, 20_000, 0.8],
    ["thunder", 20, 200, 0.6],
    ["wind", 100, 2000, 0.9],
    ["stream", 200, 2000, 0.7],
    ["bubbles", 200, 2000, 0.9],
    ["creaking door", 200, 3000, 0.8],
    ["breaking glass", 2000, 20_000, 0.9],
    ["engine", 20, 400, 0.8],
    ["hum", 20, 200, 0.85],
    ["helicopter", 20, 600, 0.8],
    ["telephone", 500, 8000, 0.9],
    ["three clicks", 1000, 8000, 0.7],
    ["bird", 2000, 7000, 0.95],
    ["dog", 300, 3000, 0.9],
    ["cat", 300, 4000, 0.9],
    ["cricket", 3800, 5000, 0.9],
    ["frog", 100, 2000, 0.9],
    ["applause", 500, 5000, 0.7],
    ["heartbeat", 30, 200, 0.9],
    ["typing", 200, 6000, 0.8],
    ["kick drum", 30, 200, 0.9],
    ["snare", 1500, 20_000, 0.5],
    ["cymbal", 3000, 22_050, 0.95],
    ["drone", 30, 800, 0.9],
    ["radio static", 400, 6000, 0.85],
  ])("%s: from %d to %d Hz", (text, lowHz, highHz, least) => {
    expect(share(make(text, SHORT), lowHz, highHz)).toBeGreaterThan(least);
  });

  it.each([
    ["deep bell", "bell", "high bell"],
    ["big dog", "dog", "small dog"],
    ["muffled rain", "soft rain", "rain"],
    ["wooden knock", "knock", "metal knock"],
    ["footsteps on wood", "footsteps", "footsteps on gravel"],
  ])("%s is darker than %s, and that than %s", (dark, plain, bright) => {
    const [low = 0, , high = 0] = [dark, plain, bright].map((text) => centroid(make(text, SHORT)));
    expect(high).toBeGreaterThan(low * 1.15);
  });
});

describe("how it moves", () => {
  it("a bell rings at its partials and dies away without a break", () => {
    const bell = make("bell");
    const partials = [260, 520, 619, 780, 1040].map((hz) => Math.abs(peakHz(bell) - hz) / hz);
    expect(Math.min(...partials)).toBeLessThan(0.03);
    const levels = envelope(bell, 0.25).slice(0, 12).map(decibels);
    for (const [index, level] of levels.slice(1).entries()) expect(level).toBeLessThan(levels[index] ?? 0);
    expect((levels[0] ?? 0) - (levels[11] ?? 0)).toBeGreaterThan(15);
    // High partials go first.
    expect(centroid(bell, 0, 0.3)).toBeGreaterThan(centroid(bell, 2, 2.5) * 1.1);
  });

  it("a gong opens after the blow and rings longer than a bell", () => {
    const [gong, bell] = ["gong", "bell"].map((text) =>
      envelope(make(text, { durationSeconds: 4 }), 0.25).map(decibels),
    );
    expect((gong?.[0] ?? 0) - (gong?.[11] ?? 0)).toBeLessThan((bell?.[0] ?? 0) - (bell?.[11] ?? 0));
  });

  it("a siren goes up and down", () => {
    const siren = make("siren", { durationSeconds: 4 });
    const pitches = Array.from({ length: 20 }, (_, index) => centroid(siren, index * 0.2, index * 0.2 + 0.1));
    const [lowest, highest] = [Math.min(...pitches), Math.max(...pitches)];
    expect(highest).toBeGreaterThan(lowest * 1.3);
    expect(pitches.indexOf(highest)).toBeGreaterThan(7);
    expect(pitches.indexOf(highest)).toBeLessThan(13);
  });

  it("a laser falls, a water drop rises", () => {
    const laser = make("laser");
    expect(centroid(laser, 0.01, 0.08)).toBeGreaterThan(centroid(laser, 0.25, 0.32) * 2);
    const drop = make("one water drop");
    expect(peakHz(drop, 0.08, 0.2)).toBeGreaterThan(peakHz(drop, 0.01, 0.05) * 1.2);
  });

  it("an explosion and a gunshot begin at their loudest; a whoosh comes and goes", () => {
    for (const text of ["explosion", "gunshot", "door slam"]) {
      const levels = envelope(make(text), 0.1);
      expect(levels.indexOf(Math.max(...levels))).toBeLessThan(2);
      expect(levels.at(-1)).toBeLessThan((levels[0] ?? 0) / 10);
    }
    const levels = envelope(make("whoosh"), 0.05);
    const peak = levels.indexOf(Math.max(...levels));
    expect(peak).toBeGreaterThan(levels.length * 0.3);
    expect(peak).toBeLessThan(levels.length * 0.7);
  });

  it("sea waves swell slowly, rain does not", () => {
    const spread = (text: string) => {
      const levels = envelope(make(text, { durationSeconds: 7 }), 0.5).map(decibels);
      return Math.max(...levels) - Math.min(...levels);
    };
    expect(spread("ocean waves")).toBeGreaterThan(spread("rain") + 2);
  });

  it("an alarm and a telephone stop and begin again", () => {
    const phone = envelope(make("phone ringing", { durationSeconds: 4 }), 0.1).map(decibels);
    expect(Math.max(...phone) - Math.min(...phone)).toBeGreaterThan(25);
    expect(peakHz(make("alarm"), 0.05, 0.25)).toBeLessThan(peakHz(make("alarm"), 0.45, 0.65));
  });

  it("a cave echoes", () => {
    const tail = (text: string) =>
      envelope(make(text, SHORT), 0.1)
        .slice(10)
        .reduce((sum, level) => sum + level, 0);
    expect(tail("one gunshot in a cave")).toBeGreaterThan(tail("one gunshot") * 20);
  });
});

describe("how often it comes", () => {
  it.each([
    ["four footsteps", 4],
    ["footsteps", 6],
    ["five knocks", 5],
    ["three beeps", 3],
    ["a dog barks three times", 3],
    ["a single gunshot", 1],
    ["two explosions", 2],
  ])("%s: %d", (text, count) => {
    expect(onsets(make(text))).toHaveLength(count);
  });

  it("a clock ticks twice a second, a heart beats 72 times a minute, fast ones faster", () => {
    const distances = (text: string, gapSeconds: number) => {
      const found = onsets(make(text, { durationSeconds: 4 }), gapSeconds);
      return found.slice(1).map((at, index) => at - (found[index] ?? 0));
    };
    for (const distance of distances("clock", 0.15)) expect(distance).toBeCloseTo(0.5, 1);
    const beats = distances("heartbeat", 0.5);
    expect(beats.length).toBeGreaterThan(2);
    for (const distance of beats) expect(Math.abs(distance - 60 / 72)).toBeLessThan(0.04);
    for (const distance of distances("fast clock", 0.15))
      expect(Math.abs(distance - 0.5 / 1.7)).toBeLessThan(0.02);
  });

  it("goes on to the end of a longer sound, and a count holds", () => {
    const walked = onsets(make("footsteps", { durationSeconds: 8 }));
    expect(walked.length).toBeGreaterThan(12);
    expect(walked.at(-1)).toBeGreaterThan(7);
    expect(onsets(make("two knocks", { durationSeconds: 5 }))).toHaveLength(2);
    expect(onsets(make("five knocks", { durationSeconds: 0.9 }), 0.08)).toHaveLength(5);
  });

  it("keeps the order of the prompt", () => {
    const sound = make("thunder then rain", { durationSeconds: 4 });
    expect(centroid(sound, 0, 1.4)).toBeLessThan(centroid(sound, 2.8, 4) / 2);
    const turned = make("thunder after rain", { durationSeconds: 4 });
    expect(centroid(turned, 2.8, 4)).toBeLessThan(centroid(turned, 0, 1.4) / 2);
  });
});
