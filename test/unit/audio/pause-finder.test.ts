import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeUlaw } from "../../../src/audio/g711.ts";
import { PauseFinder, type Silence } from "../../../src/audio/pause-finder.ts";
import { bytesOf } from "../../../src/audio/pcm.ts";

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

describe("PauseFinder", () => {
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
