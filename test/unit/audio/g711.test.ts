import { describe, expect, it } from "vitest";
import { decodeAlaw, decodeUlaw, encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { ffmpegDecode, hasProgram, run } from "./helpers.ts";

const ALL_SAMPLES = Int16Array.from({ length: 65_536 }, (_, index) => index - 32_768);
const ALL_CODES = Uint8Array.from({ length: 256 }, (_, code) => code);
const LAWS = [
  { name: "ulaw", ffmpeg: "mulaw", sox: "ul", encode: encodeUlaw, decode: decodeUlaw },
  { name: "alaw", ffmpeg: "alaw", sox: "al", encode: encodeAlaw, decode: decodeAlaw },
] as const;

/**
 * Decision values of G.711: where one step ends and the next begins, on the scale of 16 bits. Mu-law (table 2a):
 * 16 steps of 2, 4, 8 ... of 14 bits, the first one only half as wide. A-law (table 1a): 32 steps of 2 (of 13
 * bits), then 16 of 4, 8 ...
 */
function decisions(law: "ulaw" | "alaw"): number[] {
  const values = [0];
  const widths = law === "ulaw" ? [1, 2, 4, 8, 16, 32, 64, 128] : [1, 1, 2, 4, 8, 16, 32, 64];
  const unit = law === "ulaw" ? 8 : 16;
  let at = law === "ulaw" ? -unit / 2 : 0;
  for (const width of widths) {
    for (let step = 0; step < 16; step += 1) {
      at += width * unit;
      values.push(at);
    }
  }
  return values;
}

describe.each(LAWS)("G.711 $name", ({ name, ffmpeg, sox, encode, decode }) => {
  it("encodes each of 65,536 samples into the step that G.711's decision values say", () => {
    const limits = decisions(name);
    const codes = encode(ALL_SAMPLES);
    const order = ALL_CODES.toSorted(
      (a, b) => (decode(Uint8Array.of(a))[0] ?? 0) - (decode(Uint8Array.of(b))[0] ?? 0),
    );
    // 128 steps on either side of zero; mu-law has two zeros, whose order is in the sign bit.
    const positive = order.filter((code) => (code & 0x80) !== 0);
    const negative = order.filter((code) => (code & 0x80) === 0).toReversed();
    for (const [index, sample] of ALL_SAMPLES.entries()) {
      const magnitude = sample < 0 ? -sample - 1 : sample;
      const above = limits.findIndex((limit) => limit > magnitude);
      const step = above < 0 ? 127 : Math.min(127, above - 1);
      const expected = (sample < 0 ? negative : positive)[step];
      if (codes[index] !== expected)
        expect({ sample, code: codes[index] }).toEqual({ sample, code: expected });
    }
  });

  it("gives every code back after decoding it", () => {
    const codes = encode(decode(ALL_CODES));
    // Mu-law's two zeros decode alike.
    const expected = name === "ulaw" ? ALL_CODES.map((code) => (code === 0x7f ? 0xff : code)) : ALL_CODES;
    expect(codes).toEqual(expected);
  });

  it("has the known points of the law", () => {
    const pcm = Int16Array.of(0, 32_767, -32_768);
    expect([...encode(pcm)]).toEqual(name === "ulaw" ? [0xff, 0x80, 0x00] : [0xd5, 0xaa, 0x2a]);
    expect(decode(Uint8Array.of(name === "ulaw" ? 0x80 : 0xaa))[0]).toBe(name === "ulaw" ? 32_124 : 32_256);
  });

  it.skipIf(!hasProgram("ffmpeg"))("decodes all 256 codes as ffmpeg does (skipped without ffmpeg)", () => {
    const format = ["-f", ffmpeg, "-ar", "8000", "-ac", "1"];
    expect(decode(ALL_CODES)).toEqual(ffmpegDecode(ALL_CODES, { rate: 8000, format }));
  });

  it.skipIf(!hasProgram("sox"))("decodes all 256 codes as sox does (skipped without sox)", () => {
    const raw = ["-t", sox, "-r", "8000", "-c", "1", "-", "-t", "s16", "-"];
    const { stdout } = run("sox", raw, ALL_CODES);
    expect([...bytesOf(decode(ALL_CODES))]).toEqual([...stdout]);
  });

  it.skipIf(!hasProgram("ffmpeg"))(
    "encodes within rounding of ffmpeg: where the codes differ, the sample lies between two steps (skipped without ffmpeg)",
    () => {
      const args = [
        "-v",
        "error",
        "-f",
        "s16le",
        "-ar",
        "8000",
        "-ac",
        "1",
        "-i",
        "pipe:0",
        "-f",
        ffmpeg,
        "pipe:1",
      ];
      const theirs = run("ffmpeg", args, bytesOf(ALL_SAMPLES)).stdout;
      const ours = encode(ALL_SAMPLES);
      const oursBack = decode(ours);
      const theirsBack = decode(theirs);
      let different = 0;
      for (const [index, sample] of ALL_SAMPLES.entries()) {
        if (ours[index] === theirs[index]) continue;
        different += 1;
        const a = oursBack[index] ?? 0;
        const b = theirsBack[index] ?? 0;
        // Neighbouring steps only: ffmpeg decides half way between their levels, G.711 at its decision values.
        const gap = Math.abs(a - b);
        expect(Math.min(Math.abs(sample - a), Math.abs(sample - b))).toBeLessThanOrEqual(gap);
        expect(gap).toBeLessThanOrEqual(Math.max(16, Math.abs(sample) / 8));
      }
      expect(different).toBeLessThan(65_536 * 0.05);
    },
  );

  it.skipIf(!hasProgram("sox"))("encodes as sox does but at the ends of steps (skipped without sox)", () => {
    const raw = ["-D", "-t", "s16", "-r", "8000", "-c", "1", "-", "-t", sox, "-"];
    const theirs = run("sox", raw, bytesOf(ALL_SAMPLES)).stdout;
    const ours = encode(ALL_SAMPLES);
    let different = 0;
    for (const [index, code] of ours.entries()) if (code !== theirs[index]) different += 1;
    expect(theirs).toHaveLength(65_536);
    expect(different).toBeLessThan(65_536 * 0.05);
  });
});
