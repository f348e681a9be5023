import { spawnSync } from "node:child_process";
import fc from "fast-check";
import prism from "prism-media";
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { concealmentPacket, opusPacketSamples48k } from "../../../src/audio/codecs/opus-packet.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { OggOpusWriter } from "../../../src/audio/containers/ogg.ts";
import {
  buildPage,
  FLAG_CONTINUED,
  FLAG_FIRST,
  FLAG_LAST,
  type OggPage,
} from "../../../src/audio/containers/ogg-page.ts";
import { OggOpusReader } from "../../../src/audio/containers/ogg-reader.ts";
import { GatewayError } from "../../../src/errors.ts";
import { hasProgram, noise, pieces, splits, tone } from "./helpers.ts";

/** Stands for an Opus packet of 20 ms (configuration 31, one frame); its content is not looked at. */
function packet(bytes: number, seed: number): Uint8Array {
  const made = bytesOf(noise(Math.ceil(bytes / 2), seed)).slice(0, bytes);
  made[0] = 31 << 3;
  return made;
}

/** Sizes around the lacing's 255, and the largest that a page holds. */
const PACKETS = [1, 254, 255, 256, 509, 510, 511, 160, 160, 160, 160, 160, 65_024, 20].map(packet);

function written(packets: readonly Uint8Array[], preSkip = 312): Uint8Array {
  const writer = new OggOpusWriter({ serial: 9, preSkip, inputSampleRate: 48_000, pageMs: 60 });
  const header = writer.header();
  return concatBytes([header, ...packets.map((bytes) => writer.push(bytes, 960)), writer.finish()]);
}

/** Lays packets over pages of a fixed number of segments, as muxers do that fill their pages up. */
function spanning(packets: readonly Uint8Array[], segmentsPerPage: number): Uint8Array {
  const lacing = packets.flatMap((bytes) => [
    ...new Array<number>(Math.floor(bytes.length / 255)).fill(255),
    bytes.length % 255,
  ]);
  const body = concatBytes(packets);
  const pages: Uint8Array[] = [];
  let at = 0;
  let isContinued = false;
  for (let first = 0; first < lacing.length; first += segmentsPerPage) {
    const segments = lacing.slice(first, first + segmentsPerPage);
    const bytes = segments.reduce((total, length) => total + length, 0);
    pages.push(
      rawPage({
        flags: isContinued ? FLAG_CONTINUED : 0,
        sequence: pages.length + 2,
        segments,
        body: body.subarray(at, at + bytes),
      }),
    );
    at += bytes;
    isContinued = segments.at(-1) === 255;
  }
  return concatBytes(pages);
}

/** A page with a lacing of its own, checksummed by building a page of the same bytes and correcting its table. */
function rawPage(page: {
  flags: number;
  sequence: number;
  segments: number[];
  body: Uint8Array;
}): Uint8Array {
  const bytes = new Uint8Array(27 + page.segments.length + page.body.length);
  const view = new DataView(bytes.buffer);
  bytes.set(Buffer.from("OggS"));
  view.setUint8(5, page.flags);
  view.setBigInt64(6, -1n, true);
  view.setUint32(14, 9, true);
  view.setUint32(18, page.sequence, true);
  view.setUint8(26, page.segments.length);
  bytes.set(page.segments, 27);
  bytes.set(page.body, 27 + page.segments.length);
  view.setUint32(22, slowCrc(bytes), true);
  return bytes;
}

/** RFC 3533's checksum bit by bit: not the table of ogg-page.ts. */
function slowCrc(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit += 1) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  }
  return crc >>> 0;
}

function read(chunks: readonly Uint8Array[]): Uint8Array[] {
  const reader = new OggOpusReader();
  const out: Uint8Array[] = [];
  for (const chunk of chunks) reader.push(chunk, (bytes) => out.push(bytes.slice()));
  reader.finish();
  return out;
}

/** As toEqual, without its cost for long arrays. */
function expectPackets(actual: readonly Uint8Array[], expected: readonly Uint8Array[]): void {
  expect(actual.map((bytes) => bytes.length)).toEqual(expected.map((bytes) => bytes.length));
  expect(Buffer.compare(concatBytes(actual), concatBytes(expected))).toBe(0);
}

const STREAM = written(PACKETS);
const HEADER = new OggOpusWriter({ serial: 9, preSkip: 312, inputSampleRate: 48_000 }).header();
const HEADER_PAGES = 2;

describe("OggOpusReader", () => {
  it("push() gives the same packets for any split", () => {
    fc.assert(
      fc.property(splits(STREAM.length, 40), (cuts) => {
        expectPackets(read(pieces(STREAM, cuts)), PACKETS);
      }),
      { numRuns: 60 },
    );
    const small = written(PACKETS.slice(0, 9));
    expect(read([...small].map((byte) => Uint8Array.of(byte)))).toEqual(PACKETS.slice(0, 9));
  });

  it("push() joins packets that go on over pages, for any split", () => {
    for (const segments of [1, 2, 3, 7, 254, 255]) {
      const stream = concatBytes([HEADER, spanning(PACKETS, segments)]);
      expectPackets(read([stream]), PACKETS);
      fc.assert(
        fc.property(splits(stream.length, 20), (cuts) => {
          expectPackets(read(pieces(stream, cuts)), PACKETS);
        }),
        { numRuns: 10 },
      );
    }
  });

  it("reads comments of any length, over many pages", () => {
    const [head] = pieces(HEADER, [0, 47]);
    const tags = new Uint8Array(200_000).fill(65);
    tags.set(Buffer.from("OpusTags"));
    const lacing = [...new Array<number>(Math.floor(tags.length / 255)).fill(255), tags.length % 255];
    const pages = [head ?? HEADER];
    let at = 0;
    for (let first = 0; first < lacing.length; first += 255) {
      const segments = lacing.slice(first, first + 255);
      const end = at + segments.reduce((total, length) => total + length, 0);
      const flags = first > 0 ? FLAG_CONTINUED : 0;
      pages.push(rawPage({ flags, sequence: pages.length, segments, body: tags.subarray(at, end) }));
      at = end;
    }
    pages.push(rawPage({ flags: 0, sequence: pages.length, segments: [160], body: packet(160, 3) }));
    expect(read(pages)).toEqual([packet(160, 3)]);
  });

  it("reports pre-skip, end and length", () => {
    const writer = new OggOpusWriter({ serial: 1, preSkip: 3840, inputSampleRate: 48_000 });
    const reader = new OggOpusReader();
    expect(reader.preSkip).toBe(0);
    reader.push(writer.header(), () => expect.unreachable());
    expect(reader.preSkip).toBe(3840);
    for (let index = 0; index < 8; index += 1)
      reader.push(writer.push(packet(50, index), 960), () => undefined);
    expect([reader.isEnded, reader.endSamples48k]).toEqual([false, null]);
    writer.push(packet(50, 8), 960, { isLast: true });
    let endSeen: number | null = null;
    reader.push(writer.finish(4000), () => {
      endSeen = reader.endSamples48k;
    });
    expect(endSeen).toBe(4000);
    expect(reader.isEnded).toBe(true);
  });

  it("counts from the first granule position where a stream does not begin at 0", () => {
    const serial = 9;
    const page = (fields: Partial<OggPage>) =>
      buildPage({ flags: 0, granule: 0, serial, sequence: 0, packets: [], ...fields });
    const reader = new OggOpusReader();
    const one = packet(10, 1);
    reader.push(HEADER, () => undefined);
    reader.push(page({ granule: 100_960, sequence: 2, packets: [one] }), () => undefined);
    reader.push(page({ granule: 101_500, sequence: 3, packets: [one], flags: FLAG_LAST }), () => undefined);
    expect(reader.endSamples48k).toBe(1500 - 312);
  });

  it("reads chained streams one after the other and leaves multiplexed ones alone", () => {
    const other = buildPage({
      flags: FLAG_FIRST,
      granule: 0,
      serial: 77,
      sequence: 0,
      packets: [packet(5, 5)],
    });
    const first = written(PACKETS.slice(0, 4), 312);
    const second = written(PACKETS.slice(4, 6), 100);
    const reader = new OggOpusReader();
    const out: Uint8Array[] = [];
    reader.push(
      concatBytes([first.slice(0, HEADER.length), other, first.slice(HEADER.length), second]),
      (bytes) => out.push(bytes.slice()),
    );
    expect(out).toEqual(PACKETS.slice(0, 6));
    expect([reader.links, reader.preSkip]).toEqual([2, 100]);
  });

  it("refuses what is not one sound stream, with upstream_protocol", () => {
    const spoiled = (change: (bytes: Uint8Array) => void): Uint8Array => {
      const bytes = written(PACKETS.slice(0, 5));
      change(bytes);
      return bytes;
    };
    const head = (bytes: Uint8Array) =>
      rawPage({ flags: FLAG_FIRST, sequence: 0, segments: [bytes.length], body: bytes });
    const opusHead = (at: number, value: number) => {
      const bytes = HEADER.slice(28, 47);
      bytes[at] = value;
      return head(bytes);
    };
    const one = packet(20, 1);
    const broken: Record<string, Uint8Array> = {
      "a flipped bit": spoiled((bytes) => bytes.fill((bytes.at(-3) ?? 0) ^ 1, -3, -2)),
      "other bytes": new TextEncoder().encode('{"detail":"not audio"}'),
      "a version of 1": spoiled((bytes) => bytes.fill(1, 4, 5)),
      "no first page": written(PACKETS).slice(HEADER.length),
      "a lost page": concatBytes([HEADER, rawPage({ flags: 0, sequence: 3, segments: [20], body: one })]),
      "a packet continued out of nowhere": concatBytes([
        HEADER,
        rawPage({ flags: FLAG_CONTINUED, sequence: 2, segments: [20], body: one }),
      ]),
      "a packet that is not continued": concatBytes([
        HEADER,
        rawPage({ flags: 0, sequence: 2, segments: [255], body: packet(255, 1) }),
        rawPage({ flags: 0, sequence: 3, segments: [20], body: one }),
      ]),
      "an empty packet": concatBytes([
        HEADER,
        rawPage({ flags: 0, sequence: 2, segments: [0], body: new Uint8Array(0) }),
      ]),
      "pages behind the last": concatBytes([
        written(PACKETS.slice(0, 1)),
        rawPage({ flags: 0, sequence: 4, segments: [20], body: one }),
      ]),
      "another codec": head(new TextEncoder().encode("\x01vorbis-and-more-bytes")),
      "a short OpusHead": head(HEADER.slice(28, 40)),
      "a newer OpusHead": opusHead(8, 16),
      "six channels": opusHead(9, 6),
      "a mapping table": opusHead(18, 1),
    };
    for (const [name, bytes] of Object.entries(broken)) {
      let thrown: unknown;
      try {
        read([bytes]);
      } catch (error) {
        thrown = error;
      }
      expect({ name, code: thrown instanceof GatewayError ? thrown.code : thrown }).toEqual({
        name,
        code: "upstream_protocol",
      });
    }
  });

  it("finish() refuses an end inside a page or a packet", () => {
    for (const cut of [1, 26, 27, 40, HEADER.length + 10, STREAM.length - 1]) {
      expect(() => read([STREAM.slice(0, cut)])).toThrow(/ends/);
    }
    const open = rawPage({ flags: 0, sequence: HEADER_PAGES, segments: [255], body: packet(255, 1) });
    expect(() => read([HEADER, open])).toThrow(/middle of a packet/);
  });

  it.skipIf(!hasProgram("opusenc"))(
    "reads what opusenc writes as prism-media's stream does (skipped without opusenc)",
    async () => {
      const wav = bytesOf(tone({ hz: 440, rate: 48_000, samples: 96_000 }));
      const raw = ["--quiet", "--raw", "--raw-rate", "48000", "--raw-chan", "1", "-", "-"];
      const stream = new Uint8Array(spawnSync("opusenc", raw, { input: wav }).stdout);
      const demuxer = new prism.opus.OggDemuxer();
      const theirs: Uint8Array[] = [];
      demuxer.on("data", (bytes: Uint8Array) => theirs.push(new Uint8Array(bytes)));
      demuxer.end(Buffer.from(stream));
      await new Promise((resolve) => demuxer.once("end", resolve));
      const ours = read(pieces(stream, [0, 1, 100, 5000, stream.length])).map(
        (bytes) => new Uint8Array(bytes),
      );
      expect(ours).toEqual(theirs);
      expect(ours.length).toBeGreaterThan(99);
      expect(ours.every((bytes) => opusPacketSamples48k(bytes) === 960)).toBe(true);
    },
  );
});

describe("opusPacketSamples48k()", () => {
  it("reads every configuration of the TOC byte (RFC 6716 table 2)", () => {
    const ms = [10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 10, 20];
    for (let config = 16; config < 32; config += 1) ms.push([2.5, 5, 10, 20][config % 4] ?? 0);
    for (const [config, duration] of ms.entries()) {
      expect(opusPacketSamples48k(Uint8Array.of(config << 3))).toBe(duration * 48);
      const two = duration * 48 * 2;
      expect(opusPacketSamples48k(Uint8Array.of((config << 3) | 1))).toBe(two);
      expect(opusPacketSamples48k(Uint8Array.of((config << 3) | 2, 0))).toBe(two);
    }
    expect(opusPacketSamples48k(Uint8Array.of((31 << 3) | 3, 6))).toBe(5760);
  });

  it("gives 0 for no packet: no bytes, no frames, more than 120 ms", () => {
    expect(opusPacketSamples48k(new Uint8Array(0))).toBe(0);
    expect(opusPacketSamples48k(Uint8Array.of((31 << 3) | 3))).toBe(0);
    expect(opusPacketSamples48k(Uint8Array.of((31 << 3) | 3, 7))).toBe(0);
  });

  it("concealmentPacket() has the duration it was asked for", () => {
    for (const ms of [10, 20, 40, 60]) expect(opusPacketSamples48k(concealmentPacket(ms))).toBe(ms * 48);
    expect(() => concealmentPacket(30)).toThrow(RangeError);
  });
});
