import { OggOpusDecoder } from "ogg-opus-decoder";
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import { OPUS_LOOKAHEAD_48K } from "../../../src/audio/codecs/opus-lookahead.ts";
import { OggOpusStream } from "../../../src/audio/containers/ogg-stream.ts";
import { pagesOf } from "../../helpers/ogg-pages.ts";
import { peakHz, tone } from "./helpers.ts";

/** Packets of a tone that goes on from one to the next. */
function tonePackets(count: number, frameMs = 20): Uint8Array[] {
  const frame = frameMs * 48;
  const encoder = new OpusEncoder({ sampleRate: 48_000, bitrateKbps: 64, complexity: 0 });
  const pcm = tone({ hz: 440, rate: 48_000, samples: count * frame });
  const packets = Array.from({ length: count }, (_, at) =>
    encoder.encode(pcm.subarray(at * frame, (at + 1) * frame)),
  );
  encoder.close();
  return packets;
}

async function decode(bytes: Uint8Array): Promise<{ samples: Float32Array; errors: number }> {
  const decoder = new OggOpusDecoder();
  await decoder.ready;
  const { channelData, errors } = await decoder.decodeFile(bytes);
  decoder.free();
  return { samples: channelData[0] ?? new Float32Array(0), errors: errors.length };
}

describe("OggOpusStream", () => {
  it("sends a batch as pages at once: at most 200 ms each, granules that count samples, then a last page of silence", () => {
    const stream = new OggOpusStream({ frameMs: 20, serial: 0xfffffffe });
    const packets = tonePackets(28);
    const bytes = concatBytes([
      stream.header(),
      stream.pages(packets.slice(0, 3)),
      stream.pages(packets.slice(3, 26)),
      stream.pages([]),
      stream.pages(packets.slice(26)),
      stream.finish(),
    ]);
    const pages = pagesOf(bytes);
    expect(pages.map(({ flags }) => flags)).toEqual([2, 0, 0, 0, 0, 0, 0, 4]);
    expect(pages.map(({ packets }) => packets)).toEqual([1, 1, 3, 10, 10, 3, 2, 1]);
    expect(pages.map(({ granule }) => granule / 960)).toEqual([0, 0, 3, 13, 23, 26, 28, 29]);
    expect(pages.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(new Set(pages.map(({ serial }) => serial))).toEqual(new Set([0xfffffffe]));
  });

  it("cuts a page before its 255 segments are full", () => {
    const stream = new OggOpusStream({ frameMs: 10 });
    const large = new Uint8Array(255 * 30);
    expect(pagesOf(stream.pages(Array.from({ length: 9 }, () => large))).map((page) => page.packets)).toEqual(
      [8, 1],
    );
  });

  it("is decoded to the sample by an independent decoder", async () => {
    const stream = new OggOpusStream({ frameMs: 20 });
    const packets = tonePackets(50);
    const body = Array.from({ length: 10 }, (_, at) => stream.pages(packets.slice(at * 5, at * 5 + 5)));
    const { samples, errors } = await decode(concatBytes([stream.header(), ...body, stream.finish()]));
    expect({ length: samples.length, errors }).toEqual({ length: 48_960 - OPUS_LOOKAHEAD_48K, errors: 0 });
    expect(peakHz(samples, 48_000)).toBe(440);
  });

  it.each([10, 20, 40, 60])("concealed() and silence() keep time in frames of %i ms", async (frameMs) => {
    const stream = new OggOpusStream({ frameMs });
    const count = 600 / frameMs;
    const packets = tonePackets(2 * count, frameMs);
    const bytes = concatBytes([
      stream.header(),
      stream.pages(packets.slice(0, count)),
      stream.concealed(count),
      stream.silence(count),
      stream.pages(packets.slice(count)),
      stream.finish(),
    ]);
    const granules = pagesOf(bytes).map((page) => page.granule);
    const total = (4 * 600 + frameMs) * 48;
    expect(granules.at(-1)).toBe(total);
    expect([...granules].sort((a, b) => a - b)).toEqual(granules);
    const { samples, errors } = await decode(bytes);
    expect({ length: samples.length, errors }).toEqual({ length: total - OPUS_LOOKAHEAD_48K, errors: 0 });
    // The second half of the silence, when nothing of the tone rings on.
    const quiet = samples.slice(72_000, 86_000);
    expect(Math.max(...quiet.map(Math.abs))).toBeLessThan(0.001);
    expect(peakHz(samples.slice(90_000), 48_000)).toBe(440);
  });

  it("has a serial number of its own and refuses frame lengths that have no packet without content", () => {
    const serials = [1, 2, 3].map(() => pagesOf(new OggOpusStream({ frameMs: 20 }).header())[0]?.serial);
    expect(new Set(serials).size).toBe(3);
    expect(() => new OggOpusStream({ frameMs: 30 }).concealed(1)).toThrow(RangeError);
    expect(() => new OggOpusStream({ frameMs: 30 }).silence(1)).toThrow(RangeError);
  });
});
