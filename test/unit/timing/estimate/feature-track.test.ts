import { describe, expect, it } from "vitest";
import type { SoundFrames } from "../../../../src/audio/analysis/sound-meter.ts";
import { FeatureFrames, type FeatureTrack, partOf } from "../../../../src/timing/estimate/feature-track.ts";

const frames = (first: number, energies: number[], tilts = 0): SoundFrames => ({
  frameSeconds: 0.01,
  first,
  energies,
  stepEnergies: energies.map((energy) => 4 * energy * tilts),
});

const framesOf = (...all: SoundFrames[]): FeatureFrames => {
  const kept = new FeatureFrames();
  for (const each of all) kept.add(each);
  return kept;
};

const rounded = (values: Float64Array | undefined): number[] => Array.from(values ?? [], Math.round);

describe("FeatureFrames", () => {
  it("measures levels against what is loud in the stretch, and how bright it is", () => {
    const energies = [...Array<number>(20).fill(1e6), ...Array<number>(20).fill(1e4)];
    const track = framesOf(frames(0, energies, 0.25)).within({ startSeconds: 0, endSeconds: 0.4 });
    expect(track).toMatchObject({ startSeconds: 0, endSeconds: 0.4 });
    expect(rounded(track?.levels)).toEqual([...Array(19).fill(0), -1, -6, ...Array(19).fill(-20)]);
    for (const each of track?.tilts.slice(0, 19) ?? []) expect(each).toBeCloseTo(0.25, 3);
    // The same part alone has no louder one beside it.
    expect(
      rounded(framesOf(frames(0, energies)).within({ startSeconds: 0.25, endSeconds: 0.4 })?.levels),
    ).toEqual(Array(15).fill(0));
  });

  it("joins what came in pieces, and knows nothing of what lies between them", () => {
    const track = framesOf(frames(2, [1e6, 1e6]), frames(4, [1e6]), frames(8, [1e6])).within({
      startSeconds: 0.01,
      endSeconds: 0.1,
    });
    expect(Array.from(track?.levels ?? [], Number.isNaN)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => ![2, 3, 4, 8].includes(number)),
    );
  });

  it("has no track of a stretch without frames", () => {
    expect(new FeatureFrames().within({ startSeconds: 0, endSeconds: 1 })).toBeNull();
    expect(framesOf(frames(0, [1e6])).within({ startSeconds: 1, endSeconds: 2 })).toBeNull();
    expect(framesOf(frames(0, [1e6])).within({ startSeconds: 0.005, endSeconds: 0.005 })).toBeNull();
    expect(framesOf(frames(0, [1e6])).within({ startSeconds: 1, endSeconds: 0 })).toBeNull();
  });

  it("silence is far down and not bright, all of it, too", () => {
    const track = framesOf(frames(0, [1e6, 1e6, 1e6, 0, 0, 0])).within({ startSeconds: 0, endSeconds: 0.06 });
    expect(track?.levels[5]).toBeCloseTo(-50, 0);
    expect(track?.tilts[5]).toBe(0);
    expect(
      rounded(framesOf(frames(0, [0, 0, 0])).within({ startSeconds: 0, endSeconds: 0.03 })?.levels),
    ).toEqual([0, 0, 0]);
  });

  it("keeps half a minute, and does not look at a longer stretch", () => {
    const kept = new FeatureFrames();
    const second = Array<number>(100).fill(1e6);
    for (let i = 0; i < 30; i += 1) kept.add(frames(100 * i, second));
    expect(kept.within({ startSeconds: 0, endSeconds: 30 })?.levels).toHaveLength(3000);
    expect(kept.within({ startSeconds: 0, endSeconds: 30.01 })).toBeNull();
    for (let i = 30; i < 40; i += 1) kept.add(frames(100 * i, second));
    expect(kept.within({ startSeconds: 9, endSeconds: 9.9 })).toBeNull();
    expect(rounded(kept.within({ startSeconds: 10, endSeconds: 11 })?.levels)).toEqual(Array(100).fill(0));
    kept.forgetBefore(20);
    for (let i = 40; i < 50; i += 1) kept.add(frames(100 * i, second));
    expect(kept.within({ startSeconds: 20, endSeconds: 50 })?.levels.some(Number.isNaN)).toBe(false);
  });

  it("forgets what lies before, piece by piece", () => {
    const kept = framesOf(frames(0, [1e6, 1e6]), frames(2, [1e6, 1e6]));
    kept.forgetBefore(0.025);
    expect(kept.within({ startSeconds: 0, endSeconds: 0.01 })).toBeNull();
    expect(rounded(kept.within({ startSeconds: 0.02, endSeconds: 0.04 })?.levels)).toEqual([0, 0]);
    kept.forgetBefore(0.04);
    expect(kept.within({ startSeconds: 0, endSeconds: 1 })).toBeNull();
  });
});

describe("partOf", () => {
  const track: FeatureTrack = {
    startSeconds: 1,
    endSeconds: 1.05,
    levels: Float64Array.of(0, -1, -2, -3, -4),
    tilts: Float64Array.of(0, 0.1, 0.2, 0.3, 0.4),
  };

  it("gives the nearest frames", () => {
    const part = partOf(track, { startSeconds: 1.012, endSeconds: 1.038 });
    expect([...(part?.levels ?? [])]).toEqual([-1, -2, -3]);
    expect([...(part?.tilts ?? [])]).toEqual([0.1, 0.2, 0.3]);
    expect(part?.startSeconds).toBeCloseTo(1.01, 9);
    expect(part?.endSeconds).toBeCloseTo(1.04, 9);
  });

  it("stays within the track", () => {
    expect(partOf(track, { startSeconds: 0, endSeconds: 9 })?.levels).toHaveLength(5);
    expect(partOf(track, { startSeconds: 1.02, endSeconds: 1.02 })).toBeNull();
    expect(partOf(track, { startSeconds: 2, endSeconds: 3 })).toBeNull();
  });
});
