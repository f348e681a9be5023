import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import { OPUS_LOOKAHEAD_48K } from "../../../src/audio/codecs/opus-lookahead.ts";
import { OggOpusWriter } from "../../../src/audio/containers/ogg.ts";
import { OggOpusEncoder } from "../../../src/audio/containers/ogg-encoder.ts";
import { pagesOf } from "../../helpers/ogg-pages.ts";
import { ffmpegDecode, hasProgram, peakHz, tone } from "./helpers.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "voicewire-ogg-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function opusinfo(bytes: Uint8Array): string {
  const path = join(folder, "x.opus");
  writeFileSync(path, bytes);
  const done = spawnSync("opusinfo", [path]);
  return done.stdout.toString() + done.stderr.toString();
}

/** Packets of a tone in frames of 20 ms. */
function packets(count: number): Uint8Array[] {
  const encoder = new OpusEncoder({ sampleRate: 48_000, bitrateKbps: 64, complexity: 0 });
  const pcm = tone({ hz: 440, rate: 48_000, samples: count * 960 });
  const made = Array.from({ length: count }, (_, at) =>
    encoder.encode(pcm.subarray(at * 960, (at + 1) * 960)),
  );
  encoder.close();
  return made;
}

function write(count: number, pageMs: number, total?: number): Uint8Array {
  const writer = new OggOpusWriter({
    serial: 7,
    preSkip: OPUS_LOOKAHEAD_48K,
    inputSampleRate: 48_000,
    pageMs,
  });
  const made = packets(count);
  const pages = made.map((packet, at) => writer.push(packet, 960, { isLast: at === count - 1 }));
  return concatBytes([writer.header(), ...pages, writer.finish(total)]);
}

describe("OggOpusWriter", () => {
  it("header() writes OpusHead and OpusTags on pages of their own (RFC 7845 section 3)", () => {
    const header = new OggOpusWriter({ serial: 1, preSkip: 312, inputSampleRate: 24_000 }).header();
    const [first, second, ...rest] = pagesOf(header);
    expect(rest).toEqual([]);
    expect(first).toEqual({ flags: 2, granule: 0, serial: 1, sequence: 0, segments: [19], packets: 1 });
    expect(second).toMatchObject({ flags: 0, granule: 0, sequence: 1 });
    expect(Buffer.from(header.subarray(28, 36)).toString()).toBe("OpusHead");
    expect(Buffer.from(header.subarray(36, 47)).toString("hex")).toBe("01013801c05d0000000000");
  });

  it("push() sends the first packet at once and then pages of pageMs; granules count samples with the pre-skip", () => {
    const pages = pagesOf(write(12, 100)).slice(2);
    expect(pages.map((page) => page.granule)).toEqual([960, 5760, 10_560, 11_520]);
    expect(pages.map((page) => page.flags)).toEqual([0, 0, 0, 4]);
    expect(pages.map((page) => page.sequence)).toEqual([2, 3, 4, 5]);
  });

  it("push() starts a new page where the segments of one run out", () => {
    const writer = new OggOpusWriter({ serial: 1, preSkip: 0, inputSampleRate: 48_000, pageMs: 60_000 });
    const made = [writer.header()];
    const sizes = [600, 254, 255, 256, 509, 510, 511];
    for (let at = 0; at < 300; at += 1)
      made.push(writer.push(new Uint8Array(sizes[at % 7] ?? 1).fill(8), 960));
    made.push(writer.finish());
    const pages = pagesOf(concatBytes(made)).slice(2);
    expect(pages.length).toBeGreaterThan(3);
    const lacing = pages.flatMap((page) => page.segments);
    const lengths: number[] = [];
    let length = 0;
    for (const segment of lacing) {
      length += segment;
      if (segment < 255) {
        lengths.push(length);
        length = 0;
      }
    }
    expect(lengths).toEqual(Array.from({ length: 300 }, (_, at) => sizes[at % 7]));
  });

  it("finish() cuts the end by the granule position and never goes back behind a page already sent", () => {
    expect(pagesOf(write(7, 100, 6 * 960)).at(-1)).toMatchObject({ flags: 4, granule: 6 * 960 + 312 });
    const writer = new OggOpusWriter({ serial: 1, preSkip: 312, inputSampleRate: 48_000 });
    const sent = writer.push(new Uint8Array(10), 960);
    expect(pagesOf(sent)).toHaveLength(1);
    expect(pagesOf(writer.finish(100))).toMatchObject([
      { flags: 4, granule: 960, sequence: 3, segments: [] },
    ]);
    expect(writer.finish()).toHaveLength(0);
    expect(() => writer.push(new Uint8Array(1), 960)).toThrow(TypeError);
  });

  it("push() refuses a packet that no page can hold", () => {
    const writer = new OggOpusWriter({ preSkip: 0, inputSampleRate: 48_000 });
    expect(() => writer.push(new Uint8Array(255 * 255), 960)).toThrow(RangeError);
  });

  it.skipIf(!hasProgram("opusinfo"))(
    "opusinfo finds nothing to warn about (skipped without opusinfo)",
    () => {
      for (const [count, pageMs, total] of [
        [1, 100, 300],
        [12, 100],
        [60, 20, 57_000],
        [300, 1000, 287_500],
      ] as const) {
        const report = opusinfo(write(count, pageMs, total));
        expect(report).not.toMatch(/warning|error|negative|hole|corrupt/i);
        expect(report).toContain("Pre-skip: 312");
      }
    },
  );
});

describe("OggOpusEncoder", () => {
  it.skipIf(!hasProgram("ffmpeg") || !hasProgram("opusinfo"))(
    "keeps the length to the sample, at any length (skipped without ffmpeg and opusinfo)",
    () => {
      for (const samples of [0, 1, 647, 648, 649, 960, 961, 4800, 12_345]) {
        const encoder = new OggOpusEncoder({ bitrateKbps: 64 });
        const bytes = concatBytes([encoder.push(tone({ hz: 440, rate: 48_000, samples })), encoder.flush()]);
        encoder.close();
        expect(pagesOf(bytes).at(-1)).toMatchObject({ flags: 4, granule: samples + 312 });
        expect(opusinfo(bytes)).not.toMatch(/warning|error/i);
        if (samples > 0) expect(ffmpegDecode(bytes, { rate: 48_000 })).toHaveLength(samples);
      }
    },
  );

  it.skipIf(!hasProgram("ffmpeg"))("a tone survives at its pitch and place (skipped without ffmpeg)", () => {
    const encoder = new OggOpusEncoder({ bitrateKbps: 64 });
    const input = tone({ hz: 440, rate: 48_000, samples: 48_000 });
    const output = ffmpegDecode(concatBytes([encoder.push(input), encoder.flush()]), { rate: 48_000 });
    encoder.close();
    expect(peakHz(output, 48_000)).toBe(440);
    // The pre-skip takes the encoder's delay out: the correlation is best at no shift.
    const correlation = (shift: number): number =>
      input
        .subarray(10_000, 30_000)
        .reduce((sum, value, at) => sum + value * (output[at + 10_000 + shift] ?? 0), 0);
    const shifts = Array.from({ length: 41 }, (_, index) => index - 20);
    const best = shifts.reduce((a, b) => (correlation(b) > correlation(a) ? b : a));
    expect(Math.abs(best)).toBeLessThanOrEqual(1);
  });
});
