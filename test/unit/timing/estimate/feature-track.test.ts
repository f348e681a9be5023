import { describe, expect, it } from "vitest";
import type { SoundFrames } from "../../../../src/audio/sound-meter.ts";
import { partOf, Sounds, type SoundTrack } from "../../../../src/timing/estimate/feature-track.ts";

const frames = (first: number, energies: number[], brightness = 0): SoundFrames => ({
  frameSeconds: 0.01,
  first,
  energies,
  stepEnergies: energies.map((energy) => 4 * energy * brightness),
});

const soundsOf = (...all: SoundFrames[]): Sounds => {
  const sounds = new Sounds();
  for (const each of all) sounds.add(each);
  return sounds;
};

const rounded = (values: Float64Array | undefined): number[] => Array.from(values ?? [], Math.round);

describe("Sounds", () => {
  it("tells levels against what is loud in the stretch, and how bright it is", () => {
    const energies = [...Array<number>(20).fill(1e6), ...Array<number>(20).fill(1e4)];
    const track = soundsOf(frames(0, energies, 0.25)).within(0, 0.4);
    expect(track).toMatchObject({ fromSeconds: 0, untilSeconds: 0.4 });
    expect(rounded(track?.levels)).toEqual([...Array(19).fill(0), -1, -6, ...Array(19).fill(-20)]);
    for (const each of track?.brightness.slice(0, 19) ?? []) expect(each).toBeCloseTo(0.25, 3);
    // The same part alone has no louder one beside it.
    expect(rounded(soundsOf(frames(0, energies)).within(0.25, 0.4)?.levels)).toEqual(Array(15).fill(0));
  });

  it("joins what came in pieces, and knows nothing of what lies between them", () => {
    const track = soundsOf(frames(2, [1e6, 1e6]), frames(4, [1e6]), frames(8, [1e6])).within(0.01, 0.1);
    expect(Array.from(track?.levels ?? [], Number.isNaN)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => ![2, 3, 4, 8].includes(number)),
    );
  });

  it("has no track of a stretch without frames", () => {
    expect(new Sounds().within(0, 1)).toBeNull();
    expect(soundsOf(frames(0, [1e6])).within(1, 2)).toBeNull();
    expect(soundsOf(frames(0, [1e6])).within(0.005, 0.005)).toBeNull();
    expect(soundsOf(frames(0, [1e6])).within(1, 0)).toBeNull();
  });

  it("silence is far down and not bright, all of it, too", () => {
    const track = soundsOf(frames(0, [1e6, 1e6, 1e6, 0, 0, 0])).within(0, 0.06);
    expect(track?.levels[5]).toBeCloseTo(-50, 0);
    expect(track?.brightness[5]).toBe(0);
    expect(rounded(soundsOf(frames(0, [0, 0, 0])).within(0, 0.03)?.levels)).toEqual([0, 0, 0]);
  });

  it("keeps half a minute, and does not look at a longer stretch", () => {
    const sounds = new Sounds();
    const second = Array<number>(100).fill(1e6);
    for (let i = 0; i < 30; i += 1) sounds.add(frames(100 * i, second));
    expect(sounds.within(0, 30)?.levels).toHaveLength(3000);
    expect(sounds.within(0, 30.01)).toBeNull();
    for (let i = 30; i < 40; i += 1) sounds.add(frames(100 * i, second));
    expect(sounds.within(9, 9.9)).toBeNull();
    expect(rounded(sounds.within(10, 11)?.levels)).toEqual(Array(100).fill(0));
    sounds.forgetBefore(20);
    for (let i = 40; i < 50; i += 1) sounds.add(frames(100 * i, second));
    expect(sounds.within(20, 50)?.levels.some(Number.isNaN)).toBe(false);
  });

  it("forgets what lies before, piece by piece", () => {
    const sounds = soundsOf(frames(0, [1e6, 1e6]), frames(2, [1e6, 1e6]));
    sounds.forgetBefore(0.025);
    expect(sounds.within(0, 0.01)).toBeNull();
    expect(rounded(sounds.within(0.02, 0.04)?.levels)).toEqual([0, 0]);
    sounds.forgetBefore(0.04);
    expect(sounds.within(0, 1)).toBeNull();
  });
});

describe("partOf", () => {
  const track: SoundTrack = {
    fromSeconds: 1,
    untilSeconds: 1.05,
    levels: Float64Array.of(0, -1, -2, -3, -4),
    brightness: Float64Array.of(0, 0.1, 0.2, 0.3, 0.4),
  };

  it("gives the nearest frames", () => {
    const part = partOf(track, 1.012, 1.038);
    expect([...(part?.levels ?? [])]).toEqual([-1, -2, -3]);
    expect([...(part?.brightness ?? [])]).toEqual([0.1, 0.2, 0.3]);
    expect(part?.fromSeconds).toBeCloseTo(1.01, 9);
    expect(part?.untilSeconds).toBeCloseTo(1.04, 9);
  });

  it("stays within the track", () => {
    expect(partOf(track, 0, 9)?.levels).toHaveLength(5);
    expect(partOf(track, 1.02, 1.02)).toBeNull();
    expect(partOf(track, 2, 3)).toBeNull();
  });
});
