import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeSamples, sampledFormatOf } from "../../../src/audio/analysis/silence.ts";
import { type SoundFrames, SoundMeter } from "../../../src/audio/analysis/sound-meter.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { anySplits, noise, pieces, SAMPLED_FORMATS, tone } from "./helpers.ts";

const hum = (samples: number, rate: number, hz: number): Int16Array =>
  tone({ hz, rate, samples, amplitude: 8000 });

const brightness = (frames: SoundFrames | null, at: number): number =>
  (frames?.stepEnergies[at] ?? Number.NaN) / (4 * (frames?.energies[at] ?? Number.NaN));

/** All frames of audio that comes in these pieces, by their numbers. */
function measured(format: string, all: readonly Uint8Array[]): Map<number, { energy: number; step: number }> {
  const meter = new SoundMeter(format);
  const found = new Map<number, { energy: number; step: number }>();
  for (const piece of all) {
    const frames = meter.push(piece);
    for (const [i, energy] of (frames?.energies ?? []).entries())
      found.set((frames?.first ?? 0) + i, { energy, step: frames?.stepEnergies[i] ?? Number.NaN });
  }
  return found;
}

describe("SoundMeter", () => {
  it.each([
    ["pcm_8000", 8000],
    ["pcm_22050", 22_050],
    ["pcm_24000", 24_000],
    ["pcm_44100", 44_100],
  ])("%s: a hundred frames a second, with the energy of their samples", (format, sampleRate) => {
    const frames = new SoundMeter(format).push(bytesOf(hum(sampleRate, sampleRate, 500)));
    expect(frames?.first).toBe(0);
    expect(frames?.frameSeconds).toBe(0.01);
    expect(frames?.energies).toHaveLength(100);
    for (const energy of frames?.energies ?? []) expect(energy / (8000 ** 2 / 2)).toBeCloseTo(1, 1);
  });

  it("a sound is as bright at every sample rate and in every codec", () => {
    for (const hertz of [150, 1000, 3000]) {
      // Of a sine, the step over 1/8000 s has 2 - 2 cos(2 pi f / 8000) times its energy.
      const expected = (1 - Math.cos((2 * Math.PI * hertz) / 8000)) / 2;
      for (const sampleRate of [8000, 16_000, 24_000]) {
        const frames = new SoundMeter(`pcm_${sampleRate}`).push(bytesOf(hum(sampleRate, sampleRate, hertz)));
        expect(brightness(frames, 50)).toBeCloseTo(expected, 2);
      }
      for (const codec of ["ulaw", "alaw"] as const) {
        const frames = new SoundMeter(`${codec}_8000`).push(encodeSamples(codec, hum(8000, 8000, hertz)));
        expect(brightness(frames, 50)).toBeCloseTo(expected, 2);
      }
    }
  });

  it.each(SAMPLED_FORMATS)("%s: gives the very same frames however the bytes are split", (format) => {
    const codec = sampledFormatOf(format)?.codec ?? "pcm";
    const bytes = encodeSamples(codec, noise(3000));
    const whole = [...measured(format, [bytes])];
    expect(whole.length).toBeGreaterThanOrEqual(6);
    fc.assert(
      fc.property(anySplits(bytes.length), (cuts) => {
        expect([...measured(format, pieces(bytes, cuts))]).toEqual(whole);
      }),
    );
  });

  it("takes a sample that is cut in two at the end of a frame to that frame", () => {
    const bytes = bytesOf(Int16Array.from({ length: 240 }, (_, at) => (at < 80 ? 10_000 : 100)));
    const meter = new SoundMeter("pcm_8000");
    expect(meter.push(bytes.subarray(0, 159))).toBeNull();
    expect(meter.push(bytes.subarray(159))).toMatchObject({ first: 0, energies: [1e8, 1e4, 1e4] });
  });

  it("does not look at a sample that was skipped by half", () => {
    const meter = new SoundMeter("pcm_8000");
    const bytes = bytesOf(new Int16Array(161).fill(0x0203));
    meter.skip(bytes.subarray(0, 161));
    meter.push(bytes.subarray(161, 163));
    meter.skip(bytes.subarray(163, 163));
    const frames = meter.push(bytes.subarray(163, 321));
    expect(frames).toMatchObject({ first: 1, energies: [0x0203 ** 2] });
  });

  it("numbers frames from the start of the audio, what was skipped included, and begins one again behind it", () => {
    const meter = new SoundMeter("pcm_8000");
    const loud = bytesOf(new Int16Array(40).fill(1000));
    expect(meter.push(loud)).toBeNull();
    meter.skip(bytesOf(new Int16Array(200).fill(9000)));
    // Samples 240 up to 440: frames of 80, the first one whole.
    const frames = meter.push(bytesOf(new Int16Array(200).fill(100)));
    expect(frames).toMatchObject({ first: 3, energies: [10_000, 10_000], stepEnergies: [0, 0] });
    expect(meter.push(loud)).toMatchObject({ first: 5, energies: [(10_000 + 1_000_000) / 2] });
  });

  it("does not look into compressed audio, and has nothing to say of none", () => {
    const meter = new SoundMeter("mp3_44100_128");
    expect(meter.push(new Uint8Array(5000))).toBeNull();
    expect(new SoundMeter("pcm_8000").push(new Uint8Array(0))).toBeNull();
  });
});
