import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isSoundAt,
  SILENCE_LEVEL,
  SilenceMeter,
  silenceBytes,
  silentRun,
} from "../../../src/audio/analysis/silence.ts";
import {
  bytesPerSample,
  decodeSamples,
  encodeSamples,
  type SampleCodec,
} from "../../../src/audio/codecs/samples.ts";
import { pieces, splits } from "./helpers.ts";

const CODECS: readonly SampleCodec[] = ["ulaw", "alaw", "pcm"];

/** Silence with noise under the level, and a sound here and there. */
const speechlike = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: -SILENCE_LEVEL, max: SILENCE_LEVEL }) },
    { weight: 1, arbitrary: fc.constantFrom(101, -101, 300, -32_768, 32_767) },
  ),
  { maxLength: 60 },
);

function quietAtStart(pcm: readonly number[]): number {
  const first = pcm.findIndex((sample) => Math.abs(sample) > SILENCE_LEVEL);
  return first < 0 ? pcm.length : first;
}

describe("SilenceMeter", () => {
  it.each(CODECS)("%s: counts both ends as if all had come at once, for any split", (codec) => {
    const width = bytesPerSample(codec);
    fc.assert(
      fc.property(
        speechlike.chain((pcm) => fc.tuple(fc.constant(pcm), splits(pcm.length * width))),
        ([samples, cuts]) => {
          const bytes = encodeSamples(codec, Int16Array.from(samples));
          const pcm = [...decodeSamples(codec, bytes)];
          const meter = new SilenceMeter(codec);
          for (const piece of pieces(bytes, cuts)) meter.push(piece);
          expect(meter.leadingSamples).toBe(quietAtStart(pcm));
          expect(meter.trailingSamples).toBe(quietAtStart(pcm.reverse()));
          expect(meter.hasSound).toBe(quietAtStart(pcm) < pcm.length);
        },
      ),
    );
  });

  it("counts the silence that is left when some is cut, all of it being both ends", () => {
    const meter = new SilenceMeter("ulaw");
    meter.push(silenceBytes("ulaw", 100));
    meter.cutLeading(30);
    meter.cutTrailing(20);
    expect([meter.leadingSamples, meter.trailingSamples]).toEqual([50, 50]);
    meter.push(encodeSamples("ulaw", Int16Array.of(5000, 0, 0)));
    meter.cutLeading(10);
    meter.cutTrailing(1);
    expect([meter.leadingSamples, meter.trailingSamples]).toEqual([40, 1]);
  });
});

describe("silentRun()", () => {
  it.each(CODECS)("%s: counts up to the nearest sound either way, and not beyond its reach", (codec) => {
    const width = bytesPerSample(codec);
    const bytes = new Uint8Array(12 * width + 1);
    // Samples 3 and 8 sound; all begin at an odd address.
    const pcm = Int16Array.from({ length: 12 }, (_, at) => (at === 3 || at === 8 ? 5000 : 0));
    bytes.set(encodeSamples(codec, pcm), 1);
    const run = (sample: number, count: number, isBackward: boolean): number =>
      silentRun(codec, bytes, { from: 1 + sample * width, count, isBackward });
    expect(run(4, 8, false)).toBe(4);
    expect(run(4, 4, false)).toBe(4);
    expect(run(4, 2, false)).toBe(2);
    expect(run(7, 8, true)).toBe(4);
    expect(run(2, 3, true)).toBe(3);
    expect(run(11, 12, true)).toBe(3);
    expect(run(8, 1, true)).toBe(0);
    expect(run(5, 0, false)).toBe(0);
  });
});

describe("isSoundAt()", () => {
  it("is what lies beyond the level, of either sign, at any address", () => {
    const cases: [number, boolean][] = [
      [0, false],
      [100, false],
      [-100, false],
      [101, true],
      [-101, true],
      [32_767, true],
      [-32_768, true],
      [-1, false],
      [256, true],
    ];
    for (const [sample, expected] of cases) {
      const odd = new Uint8Array(3);
      odd.set(encodeSamples("pcm", Int16Array.of(sample)), 1);
      expect(isSoundAt("pcm", odd, 1), `${sample}`).toBe(expected);
    }
    for (const codec of ["ulaw", "alaw"] as const) {
      for (let code = 0; code < 256; code += 1) {
        const bytes = Uint8Array.of(code);
        const [sample = 0] = decodeSamples(codec, bytes);
        expect(isSoundAt(codec, bytes, 0), `${codec} ${code}`).toBe(Math.abs(sample) > SILENCE_LEVEL);
      }
    }
  });
});

describe("silenceBytes()", () => {
  it("is what each codec has for zero", () => {
    expect([...silenceBytes("ulaw", 3)]).toEqual([0xff, 0xff, 0xff]);
    expect([...silenceBytes("alaw", 3)]).toEqual([0xd5, 0xd5, 0xd5]);
    expect([...silenceBytes("pcm", 3)]).toEqual([0, 0, 0, 0, 0, 0]);
  });
});
