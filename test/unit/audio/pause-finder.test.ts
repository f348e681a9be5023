import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseUpstreamFormat } from "../../../src/audio/formats.ts";
import { encodeUlaw } from "../../../src/audio/g711.ts";
import { PauseFinder, type Silence } from "../../../src/audio/pause-finder.ts";
import { bytesOf } from "../../../src/audio/pcm.ts";
import {
  bytesPerSample,
  decodeSamples,
  encodeSamples,
  type SampleCodec,
  SILENCE_LEVEL,
} from "../../../src/audio/silence.ts";
import { pieces, splits } from "./helpers.ts";

const RATE = 8000;

/** Sound and silence in turn, seconds each; begins with sound. */
function speech(...seconds: number[]): Int16Array {
  const samples: number[] = [];
  for (const [i, length] of seconds.entries()) {
    for (let n = 0; n < Math.round(length * RATE); n += 1) samples.push(i % 2 === 0 ? 4000 : 20);
  }
  return Int16Array.from(samples);
}

/** What touches belongs together: a silence that was cut by the border of two pieces. */
function joined(found: readonly Silence[]): Silence[] {
  const whole: Silence[] = [];
  for (const silence of found) {
    const last = whole.at(-1);
    if (last !== undefined && silence.startSeconds - last.endSeconds < 1e-9) {
      whole[whole.length - 1] = { ...last, endSeconds: silence.endSeconds };
    } else whole.push(silence);
  }
  return whole.filter(({ startSeconds, endSeconds }) => endSeconds - startSeconds >= 0.04);
}

interface Sampled {
  readonly codec: SampleCodec;
  readonly sampleRate: number;
}

/** Every sample of every piece looked at on its own, each piece as its whole samples and what is left at its ends. */
function plainFindings(all: readonly Uint8Array[], { codec, sampleRate }: Sampled): Silence[] {
  const width = bytesPerSample(codec);
  const second = sampleRate * width;
  const found: Silence[] = [];
  let from = 0;
  for (const piece of all) {
    const first = Math.min(piece.length, from % width);
    const samples = decodeSamples(codec, piece.subarray(first));
    const sounds = [...samples].flatMap((sample, index) =>
      Math.abs(sample) > SILENCE_LEVEL ? [first + index * width] : [],
    );
    const ends = [...sounds, piece.length];
    for (const [index, end] of ends.entries()) {
      const start = index === 0 ? 0 : (ends[index - 1] ?? 0) + width;
      const isBetween = index > 0 && index < ends.length - 1;
      if (end - start >= (isBetween ? 0.04 * second : 1))
        found.push({ startSeconds: (from + start) / second, endSeconds: (from + end) / second });
    }
    from += piece.length;
  }
  return found;
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
  it.each(["ulaw_8000", "alaw_8000", "pcm_8000", "pcm_16000", "pcm_22050", "pcm_44100"])(
    "finds in %s what looking at every sample does, for any split",
    (format) => {
      const facts = parseUpstreamFormat(format);
      const codec = facts?.codec as SampleCodec;
      const sampleRate = facts?.sampleRate ?? Number.NaN;
      const given = speechlike(Math.ceil(0.04 * sampleRate)).chain((pcm) =>
        // An end inside a sample, too.
        fc.tuple(
          fc.constant(encodeSamples(codec, pcm)),
          splits(pcm.length * bytesPerSample(codec)),
          fc.nat(1),
        ),
      );
      fc.assert(
        fc.property(given, ([bytes, cuts, missing]) => {
          const length = Math.max(0, bytes.length - missing);
          const all = pieces(
            bytes,
            cuts.map((at) => Math.min(at, length)),
          );
          const finder = new PauseFinder(format);
          expect(all.flatMap((piece) => finder.push(piece))).toEqual(
            plainFindings(all, { codec, sampleRate }),
          );
        }),
      );
    },
  );

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

  it("looks at whole samples however the bytes are split", () => {
    const bytes = bytesOf(speech(0.1, 0.2, 0.15, 0.3, 0.1));
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 8 }), (cuts) => {
        const finder = new PauseFinder("pcm_8000");
        const at = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const found = at.slice(1).flatMap((end, i) => finder.push(bytes.subarray(at[i], end)));
        const whole = joined(found);
        expect(whole).toHaveLength(2);
        expect(whole[0]?.startSeconds).toBeCloseTo(0.1, 2);
        expect(whole[0]?.endSeconds).toBeCloseTo(0.3, 2);
        expect(whole[1]?.endSeconds).toBeCloseTo(0.75, 2);
      }),
    );
  });

  it("finds none in compressed audio", () => {
    expect(new PauseFinder("opus_48000_64").push(new Uint8Array(4000))).toEqual([]);
    expect(new PauseFinder("mp3_44100_128").push(new Uint8Array(4000))).toEqual([]);
  });
});
