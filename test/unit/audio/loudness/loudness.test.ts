import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../../src/audio/codecs/pcm.ts";
import { Leveller } from "../../../../src/audio/loudness/leveller.ts";
import { Limiter } from "../../../../src/audio/loudness/limiter.ts";
import { LoudnessMeter, lufsOf } from "../../../../src/audio/loudness/loudness-meter.ts";
import { measureLoudness } from "../../../kit/loudness-meter.ts";
import { syntheticSpeech } from "../../../kit/synthetic-speech.ts";
import { concatPcm, hasProgram, run } from "../helpers.ts";

const RATES = [8000, 16_000, 24_000, 48_000];

function sine(sampleRate: number, amplitude: number, hz = 997): Int16Array {
  return Int16Array.from({ length: sampleRate * 3 }, (_, index) =>
    Math.round(32_767 * amplitude * Math.sin((2 * Math.PI * hz * index) / sampleRate)),
  );
}

function lufs(samples: Int16Array, sampleRate: number): number {
  const meter = new LoudnessMeter(sampleRate);
  meter.push(samples);
  return lufsOf(meter.loudness?.energy ?? 0);
}

/** Through a leveller in pieces, each with what follows it. */
function levelled(leveller: Leveller, samples: Int16Array, pieceSamples: number): Int16Array {
  const pieces: Int16Array[] = [];
  for (let at = 0; at < samples.length; at += pieceSamples) {
    const piece = samples.slice(at, at + pieceSamples);
    const end = at + piece.length;
    leveller.level(piece, samples.slice(end, end + leveller.aheadSamples));
    pieces.push(piece);
  }
  return concatPcm(pieces);
}

describe("LoudnessMeter", () => {
  it.each(RATES)("a sine of 997 Hz and -20 dBFS is -23 LUFS at %i Hz", (rate) => {
    expect(lufs(sine(rate, 0.1), rate)).toBeCloseTo(-23.01, 1);
  });

  it("does not count pauses, and knows no loudness of silence", () => {
    const speech = sine(16_000, 0.1);
    const gapped = concatPcm([speech, new Int16Array(48_000), speech]);
    expect(lufs(gapped, 16_000)).toBeCloseTo(-23.2, 0);
    const meter = new LoudnessMeter(16_000);
    meter.push(new Int16Array(64_000));
    expect(meter.loudness).toBeNull();
  });

  it.each(RATES)("says at %i Hz what the meter of the tests says, which is another one", (rate) => {
    const speech = syntheticSpeech(rate, 6, 0.8);
    expect(Math.abs(lufs(speech, rate) - measureLoudness(speech, rate).lufs)).toBeLessThan(0.3);
  });
});

describe.skipIf(!hasProgram("ffmpeg"))("the meter of the tests (skipped without ffmpeg)", () => {
  it.each(RATES)("says at %i Hz what ffmpeg's ebur128 says", (rate) => {
    for (const speech of [syntheticSpeech(rate, 6, 1), sine(rate, 0.9, rate / 6.1)]) {
      const measured = measureLoudness(speech, rate);
      const input = ["-f", "s16le", "-ar", String(rate), "-ac", "1", "-i", "-"];
      const { stderr } = run(
        "ffmpeg",
        ["-hide_banner", "-nostats", ...input, "-af", "ebur128=peak=true", "-f", "null", "-"],
        bytesOf(speech),
      );
      const summary = stderr.slice(stderr.indexOf("Summary:"));
      const numberBehind = (name: string): number =>
        Number(new RegExp(`${name}:\\s+(-?[\\d.]+)`, "u").exec(summary)?.[1]);
      expect(Math.abs(measured.lufs - numberBehind("I"))).toBeLessThan(0.2);
      expect(Math.abs(measured.truePeakDb - numberBehind("Peak"))).toBeLessThan(0.5);
    }
  });
});

describe("Limiter", () => {
  it("keeps every true peak under -1 dB, whatever comes, in pieces of any size", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...RATES),
        fc.integer({ min: 1, max: 2 ** 31 }),
        fc.double({ min: 0.2, max: 20, noNaN: true }),
        fc.integer({ min: 40, max: 3000 }),
        (rate, seed, level, pieceSamples) => {
          const loud = Float32Array.from(syntheticSpeech(rate, 0.5, 0.6, seed), (s) => (s * level) / 32_768);
          const limiter = new Limiter(rate);
          const out: number[] = [];
          for (let at = 0; at < loud.length; at += pieceSamples) {
            const piece = loud.slice(at, at + pieceSamples);
            const end = at + piece.length;
            limiter.limit(piece, loud.slice(end, end + Limiter.aheadSamples(rate)));
            out.push(...piece);
          }
          const limited = Int16Array.from(out, (sample) => Math.round(sample * 32_768));
          expect(measureLoudness(limited, rate).truePeakDb).toBeLessThanOrEqual(-1);
        },
      ),
      { numRuns: 15 },
    );
  });

  it("leaves what is under the ceiling as it is", () => {
    const quiet = Float32Array.from(sine(16_000, 0.2), (sample) => sample / 32_768);
    const piece = quiet.slice();
    new Limiter(16_000).limit(piece, new Float32Array(0));
    expect(piece).toEqual(quiet);
  });
});

describe("Leveller", () => {
  const known = (rate: number, speech: Int16Array) => {
    const meter = new LoudnessMeter(rate);
    meter.push(speech);
    return meter.loudness;
  };

  it.each([0.1, 0.3, 1, 2])("brings a known voice of level %f to the target with one gain", (level) => {
    const speech = syntheticSpeech(16_000, 8, level);
    const options = { sampleRate: 16_000, targetLufs: -20, known: known(16_000, speech) };
    const whole = levelled(new Leveller(options), speech, speech.length);
    expect(measureLoudness(whole, 16_000).lufs).toBeCloseTo(-20, 0);
    expect(levelled(new Leveller(options), speech, 320)).toEqual(whole);
  });

  it.each([0.1, 2])("brings a new voice of level %f to the target by what has come of it", (level) => {
    const speech = syntheticSpeech(16_000, 8, level);
    const leveller = new Leveller({ sampleRate: 16_000, targetLufs: -20, known: null });
    const pieces: Int16Array[] = [];
    for (let at = 0; at < speech.length; at += 8000) {
      leveller.measure(speech.subarray(at, at + 8000));
      expect(leveller.isReady).toBe(true);
      pieces.push(levelled(leveller, speech.subarray(at, at + 8000), 320));
    }
    expect(Math.abs(measureLoudness(concatPcm(pieces), 16_000).lufs + 20)).toBeLessThan(1);
  });

  it("is not ready for a new voice before it has heard speech, and leaves silence silent", () => {
    const leveller = new Leveller({ sampleRate: 8000, targetLufs: -20, known: null });
    leveller.measure(new Int16Array(8000));
    expect(leveller.isReady).toBe(false);
    expect(levelled(leveller, new Int16Array(800), 160)).toEqual(new Int16Array(800));
  });

  it("turns what is next to silent up by 24 dB at most", () => {
    const noise = syntheticSpeech(8000, 4, 0.01);
    const leveller = new Leveller({ sampleRate: 8000, targetLufs: -10, known: known(8000, noise) });
    const out = levelled(leveller, noise, 160);
    const gain = measureLoudness(out, 8000).lufs - measureLoudness(noise, 8000).lufs;
    expect(gain).toBeLessThan(24.5);
  });
});
