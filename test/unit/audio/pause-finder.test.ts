import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PauseFinder, type Silence } from "../../../src/audio/analysis/pause-finder.ts";
import { SILENCE_LEVEL } from "../../../src/audio/analysis/silence.ts";
import { encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { decodeSamples, encodeSamples, sampledFormatOf } from "../../../src/audio/codecs/samples.ts";
import { anySplits, pieces, SAMPLED_FORMATS, splits } from "./helpers.ts";

const RATE = 8000;

/** Sound and silence in turn, seconds each; begins with sound. */
function speech(...seconds: number[]): Int16Array {
  const samples: number[] = [];
  for (const [i, length] of seconds.entries()) {
    for (let n = 0; n < Math.round(length * RATE); n += 1) samples.push(i % 2 === 0 ? 4000 : 20);
  }
  return Int16Array.from(samples);
}

/** All silences of audio that comes in these pieces: parts that touch are one. */
function foundIn(format: string, all: readonly Uint8Array[]): Silence[] {
  const finder = new PauseFinder(format);
  const whole: Silence[] = [];
  for (const silence of all.flatMap((piece) => finder.push(piece))) {
    const last = whole.at(-1);
    if (silence.startSeconds === last?.endSeconds) {
      whole[whole.length - 1] = { ...last, endSeconds: silence.endSeconds };
    } else whole.push(silence);
  }
  return whole;
}

/** Every whole sample looked at on its own. */
function plainFindings(format: string, bytes: Uint8Array): Silence[] {
  const { codec, sampleRate } = sampledFormatOf(format) ?? { codec: "pcm", sampleRate: Number.NaN };
  const samples = decodeSamples(codec, bytes);
  const sounds = [...samples].flatMap((sample, at) => (Math.abs(sample) > SILENCE_LEVEL ? [at] : []));
  return [...sounds, samples.length].flatMap((end, i) => {
    const start = (sounds[i - 1] ?? -1) + 1;
    if (end - start < 0.04 * sampleRate) return [];
    return [{ startSeconds: start / sampleRate, endSeconds: end / sampleRate }];
  });
}

/** Silence and sound in turn, in samples; silences around the shortest that counts, levels around the one that sounds. */
function speechlike(minSamples: number): fc.Arbitrary<Int16Array> {
  const silence = fc.oneof(
    fc.integer({ min: 0, max: 5 }),
    fc.integer({ min: minSamples - 2, max: minSamples + 2 }),
    fc.integer({ min: 0, max: 3 * minSamples }),
  );
  const quiet = fc.constantFrom(0, SILENCE_LEVEL, -SILENCE_LEVEL);
  const loud = fc.constantFrom(SILENCE_LEVEL + 1, -SILENCE_LEVEL - 1, 9000, -32_768);
  const turn = fc.tuple(silence, quiet, fc.integer({ min: 0, max: 4 }), loud);
  return fc
    .array(turn, { maxLength: 10 })
    .map((turns) =>
      Int16Array.from(
        turns.flatMap(([silent, low, sounding, high]) => [
          ...Array.from({ length: silent }, () => low),
          ...Array.from({ length: sounding }, () => high),
        ]),
      ),
    );
}

describe("PauseFinder", () => {
  it.each(SAMPLED_FORMATS)("finds in %s what looking at every sample does, for any split", (format) => {
    const { codec, sampleRate } = sampledFormatOf(format) ?? { codec: "pcm", sampleRate: Number.NaN };
    const given = speechlike(Math.ceil(0.04 * sampleRate)).chain((pcm) => {
      // It may end inside a sample.
      const bytes = encodeSamples(codec, Int16Array.of(...pcm, 0));
      return fc.integer({ min: bytes.length - 1, max: bytes.length }).chain((length) => {
        const cuts = fc.oneof({ weight: 20, arbitrary: splits(length) }, anySplits(length));
        return fc.tuple(fc.constant(bytes.subarray(0, length)), cuts);
      });
    });
    fc.assert(
      fc.property(given, ([bytes, cuts]) => {
        expect(foundIn(format, pieces(bytes, cuts))).toEqual(plainFindings(format, bytes));
      }),
    );
  });

  it("reports a silence as soon as it is long enough, and no part of it twice", () => {
    const finder = new PauseFinder("ulaw_8000");
    const silence = (samples: number): Uint8Array => encodeUlaw(new Int16Array(samples));
    expect(finder.push(silence(319))).toEqual([]);
    expect(finder.push(silence(1))).toEqual([{ startSeconds: 0, endSeconds: 0.04 }]);
    expect(finder.push(silence(0))).toEqual([]);
    expect(finder.push(silence(8))).toEqual([{ startSeconds: 0.04, endSeconds: 0.041 }]);
    finder.skip(silence(8));
    expect(finder.push(silence(8))).toEqual([]);
    expect(finder.push(silence(312))).toEqual([{ startSeconds: 0.042, endSeconds: 0.082 }]);
  });

  it("does not take sound in pieces of a byte for silence", () => {
    const bytes = bytesOf(new Int16Array(4000).fill(300));
    expect(foundIn("pcm_8000", pieces(bytes, [...bytes.keys(), bytes.length]))).toEqual([]);
  });

  it.each([
    ["ulaw_8000", (pcm: Int16Array) => encodeUlaw(pcm)],
    ["pcm_8000", (pcm: Int16Array) => bytesOf(pcm)],
  ])("finds the pauses of speech in %s, not the gaps inside a word", (format, encode) => {
    const found = new PauseFinder(format).push(encode(speech(0.2, 0.02, 0.3, 0.25, 0.1, 0.05, 0.2)));
    expect(found).toHaveLength(2);
    expect(found[0]?.startSeconds).toBeCloseTo(0.52, 3);
    expect(found[0]?.endSeconds).toBeCloseTo(0.77, 3);
    expect(found[1]?.startSeconds).toBeCloseTo(0.87, 3);
    expect(found[1]?.endSeconds).toBeCloseTo(0.92, 3);
  });

  it("counts from the start of the audio, what was not looked at included", () => {
    const finder = new PauseFinder("ulaw_8000");
    finder.skip(encodeUlaw(speech(1.5)));
    const [pause] = finder.push(encodeUlaw(speech(0.1, 0.2, 0.1)));
    expect(pause?.startSeconds).toBeCloseTo(1.6, 3);
    expect(pause?.endSeconds).toBeCloseTo(1.8, 3);
  });

  it("finds none in compressed audio", () => {
    expect(new PauseFinder("opus_48000_64").push(new Uint8Array(4000))).toEqual([]);
    expect(new PauseFinder("mp3_44100_128").push(new Uint8Array(4000))).toEqual([]);
  });
});
