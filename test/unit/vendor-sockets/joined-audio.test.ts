import { beforeAll, describe, expect, it } from "vitest";
import { createMp3Encoder } from "../../../src/audio/codecs/mp3.ts";
import { OggOpusEncoder } from "../../../src/audio/containers/ogg-encoder.ts";
import { OggOpusReader } from "../../../src/audio/containers/ogg-reader.ts";
import { createJoinedAudio, type JoinedAudio } from "../../../src/vendor-sockets/joined-audio.ts";
import { Mp3Head } from "../../../src/vendor-sockets/mp3-head.ts";
import { ffmpegDecode, peakHz, pieces, tone } from "../audio/helpers.ts";

/** Gives a response in pieces of so many bytes. */
function give(join: JoinedAudio, response: Uint8Array, pieceBytes: number): Uint8Array[] {
  join.begin();
  const given: Uint8Array[] = [];
  for (let at = 0; at < response.length; at += pieceBytes)
    given.push(join.push(response.subarray(at, at + pieceBytes)));
  given.push(join.end());
  return given;
}

describe("G.711 and PCM", () => {
  it("PCM never ends in half a sample, and half a sample at the end of a response is dropped", () => {
    const join = createJoinedAudio("pcm_16000");
    const first = give(join, new Uint8Array(3201).fill(1), 7);
    expect(first.every((bytes) => bytes.length % 2 === 0)).toBe(true);
    expect(join.ms).toBe(100);
    const second = give(join, new Uint8Array(320).fill(2), 320);
    expect([join.originMs, join.ms]).toEqual([100, 10]);
    const all = Buffer.concat([...first, ...second]);
    expect([all.length, all[3199], all[3200]]).toEqual([3520, 1, 2]);
    expect(join.finish()).toHaveLength(0);
  });

  it("mu-law is passed as it is", () => {
    const join = createJoinedAudio("ulaw_8000");
    const bytes = new Uint8Array(81).fill(3);
    expect(Buffer.concat(give(join, bytes, 10)).equals(Buffer.from(bytes))).toBe(true);
    expect(join.ms).toBeCloseTo(81 / 8);
  });
});

describe("Ogg Opus", () => {
  function response(hz: number, ms: number): Uint8Array {
    const encoder = new OggOpusEncoder({ bitrateKbps: 64 });
    const bytes = Buffer.concat([
      encoder.push(tone({ hz, rate: 48_000, samples: ms * 48 })),
      encoder.flush(),
    ]);
    encoder.close();
    return bytes;
  }

  it("several responses are one stream, with everything of each, and their beginnings are known", () => {
    const join = createJoinedAudio("opus_48000_64");
    const all: Uint8Array[] = [];
    const origins: number[] = [];
    for (const [index, hz] of [440, 660, 880].entries()) {
      all.push(...give(join, response(hz, 500), [1, 100, 100_000][index] ?? 1));
      origins.push(join.originMs);
    }
    all.push(join.finish());
    const stream = Buffer.concat(all);
    const reader = new OggOpusReader();
    let packets = 0;
    reader.push(stream, () => {
      packets += 1;
    });
    reader.finish();
    expect([reader.links, reader.isEnded]).toEqual([1, true]);
    expect(packets).toBeGreaterThan(75);
    const pcm = ffmpegDecode(stream, { rate: 48_000 });
    for (const [index, hz] of [440, 660, 880].entries()) {
      const from = Math.round(((origins[index] ?? 0) + 50) * 48);
      expect(peakHz(pcm.subarray(from, from + 19_200), 48_000)).toBe(hz);
    }
    // Each begins where the packets of those before it end.
    expect(origins[0]).toBe(0);
    expect(origins[1]).toBeGreaterThanOrEqual(500);
    expect(origins[1]).toBeLessThan(550);
  });

  it("nothing that came is held back: what was given out is what came in, at every moment", () => {
    const join = createJoinedAudio("opus_48000_64");
    join.begin();
    const bytes = response(440, 300);
    const reader = new OggOpusReader();
    let last = 0;
    for (let at = 0; at < bytes.length; at += 200) {
      const given = join.push(bytes.subarray(at, at + 200));
      reader.push(given, () => {
        last += 20;
      });
      expect(last).toBeGreaterThanOrEqual(join.ms - 20);
    }
    expect(last).toBeGreaterThanOrEqual(300);
  });

  it("a response that breaks off inside a page, or is no Ogg, is upstream_protocol", () => {
    const join = createJoinedAudio("opus_48000_64");
    join.begin();
    join.push(response(440, 100).subarray(0, 300));
    expect(() => join.end()).toThrow(expect.objectContaining({ code: "upstream_protocol" }));
    join.begin();
    expect(() => join.push(new Uint8Array(100))).toThrow(
      expect.objectContaining({ code: "upstream_protocol" }),
    );
  });

  it("a stream without a response has no bytes", () => {
    expect(createJoinedAudio("opus_48000_64").finish()).toHaveLength(0);
  });
});

describe("MP3", () => {
  let frames: Uint8Array;
  beforeAll(async () => {
    const encoder = await createMp3Encoder({ sampleRate: 44_100, bitrateKbps: 128 });
    const pcm = tone({ hz: 440, rate: 44_100, samples: 22_050 });
    frames = Buffer.concat([encoder.encode(pcm), encoder.finish()]);
  });

  /** As encoders put them in front: ID3v2.3 with 200 bytes, and a frame whose side information is followed by "Info". */
  function head(word: "Xing" | "Info"): Uint8Array {
    const id3 = Buffer.concat([Buffer.from("ID3\x03\x00\x00\x00\x00\x01\x48", "latin1"), Buffer.alloc(200)]);
    // 128 kbit/s at 44.1 kHz, mono: 417 bytes, side information 17.
    const info = Buffer.alloc(417);
    info.set([0xff, 0xfb, 0x90, 0xc0]);
    info.write(word, 21, "latin1");
    return Buffer.concat([id3, info]);
  }

  it.each([1, 9, 100, 10_000])(
    "tags and length headers of every response are taken off, in pieces of %i",
    (pieceBytes) => {
      const join = createJoinedAudio("mp3_44100_128");
      const all = Buffer.concat([
        ...give(join, Buffer.concat([head("Info"), frames]), pieceBytes),
        ...give(join, Buffer.concat([head("Xing"), frames]), pieceBytes),
        ...give(join, frames, pieceBytes),
      ]);
      expect(all.equals(Buffer.concat([frames, frames, frames]))).toBe(true);
      expect(join.originMs).toBeCloseTo((2 * frames.length) / 16);
    },
  );

  it("what it does not know it passes on whole", () => {
    const filter = new Mp3Head();
    const odd = new Uint8Array(500).map((_, index) => index);
    filter.begin();
    const given = pieces(odd, [0, 3, 5, 11, 500]).map((piece) => filter.push(piece).slice());
    expect(Buffer.concat([...given, filter.end()]).equals(Buffer.from(odd))).toBe(true);
    filter.begin();
    expect(filter.push(Uint8Array.of(0xff, 0xfb))).toHaveLength(0);
    expect([...filter.end()]).toEqual([0xff, 0xfb]);
  });
});

describe("Mp3Head", () => {
  it("keeps none of the memory that it is lent, also of a Buffer", () => {
    const head = new Mp3Head();
    head.begin();
    const lent = Buffer.from([0xff, 0xfb, 0x90, 0xc4, 0, 0, 0, 0]);
    const sound = Buffer.from(lent);
    expect(head.push(lent)).toHaveLength(0);
    lent.fill(0xaa);
    expect(Buffer.from(head.end())).toEqual(sound);
  });
});
