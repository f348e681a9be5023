/** What a file is: its header says so, whatever its bytes look like behind it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ApiError } from "../../../../src/service/api-error.ts";
import { decodeUpload } from "../../../../src/service/media/decode-upload.ts";
import { AiffDecoder } from "../../../../src/service/media/decoders/aiff.ts";
import { ForeignTrack, type UploadDecoder } from "../../../../src/service/media/decoders/decoder.ts";
import { decodedByFfmpeg, type FfmpegContainer, MP4 } from "../../../../src/service/media/decoders/ffmpeg.ts";
import { MatroskaDecoder } from "../../../../src/service/media/decoders/matroska.ts";
import { containerOf } from "../../../../src/service/media/decoders/sniff.ts";
import { inStreamOrder } from "../../../../src/service/media/mp4-order.ts";
import { levelOf } from "../../../kit/signals.ts";
import { hasProgram } from "../../audio/helpers.ts";
import { encodeFile, fileOf, RATE, testSound } from "./helpers.ts";

const SILENT_SECONDS = 3;
const OPUS_IN_WEBM = ["-c:a", "libopus", "-b:a", "24k", "-f", "webm"];

async function samplesOf(bytes: Uint8Array): Promise<Int16Array> {
  const samples: number[] = [];
  for await (const { pcm } of decodeUpload(fileOf(bytes), { fileFormat: "other" })) samples.push(...pcm);
  return Int16Array.from(samples);
}

async function messageOf(bytes: Uint8Array): Promise<string> {
  const thrown: unknown = await samplesOf(bytes).catch((reason: unknown) => reason);
  return detailOf(thrown);
}

function detailOf(thrown: unknown): string {
  if (!(thrown instanceof ApiError)) throw new Error(`No ApiError: ${String(thrown)}`);
  const detail = thrown.body("").detail as { readonly code: string; readonly message: string };
  return `${detail.code}: ${detail.message}`;
}

function withSilence(): Int16Array {
  const sound = testSound(1);
  const whole = new Int16Array(SILENT_SECONDS * RATE + sound.length);
  whole.set(sound, SILENT_SECONDS * RATE);
  return whole;
}

describe.runIf(hasProgram("ffmpeg"))("a file that begins with silence", () => {
  it("WebM with Opus: is decoded as it is, and not as MP3", async () => {
    const bytes = encodeFile(withSilence(), OPUS_IN_WEBM);
    expect(containerOf(bytes.subarray(0, 8192))).toBe("matroska");
    const pcm = await samplesOf(bytes);
    expect(pcm.length / RATE).toBeCloseTo(SILENT_SECONDS + 1, 1);
    expect(levelOf(pcm, 0, (SILENT_SECONDS - 0.1) * RATE)).toBeLessThan(10);
    expect(levelOf(pcm, (SILENT_SECONDS + 0.1) * RATE)).toBeGreaterThan(2000);
  });

  it("any bytes behind a header: never make another format of it", () => {
    const mp3 = encodeFile(testSound(1), ["-c:a", "libmp3lame", "-id3v2_version", "0", "-f", "mp3"]);
    expect(containerOf(mp3.subarray(0, 8192))).toBe("mp3");
    const headers: readonly (readonly [string, string | undefined])[] = [
      ["\u001a\u0045\u00df\u00a3", "matroska"],
      ["\0\0\0\u0020ftypM4A ", "mp4"],
      ["FORM\0\0\0\0AIFC", "aiff"],
      ["caff\0\u0001\0\0", undefined],
      ["#!AMR\n", undefined],
      ["RIFF\0\0\0\0AVI ", undefined],
      ["PK\u0003\u0004", undefined],
    ];
    for (const [header, container] of headers) {
      const bytes = Buffer.concat([Buffer.from(header, "latin1"), mp3]).subarray(0, 8192);
      expect(containerOf(bytes), header).toBe(container);
    }
  });

  it("two MP3 headers in noise: are not taken for MP3", () => {
    const mp3 = encodeFile(testSound(1), [
      "-c:a",
      "libmp3lame",
      "-b:a",
      "64k",
      "-id3v2_version",
      "0",
      "-f",
      "mp3",
    ]);
    const frameBytes = 192;
    const bytes = new Uint8Array(8192).fill(7);
    bytes.set(mp3.subarray(0, 2 * frameBytes + 4), 100);
    expect(containerOf(bytes)).toBeUndefined();
    bytes.set(mp3.subarray(0, 6 * frameBytes), 100);
    expect(containerOf(bytes)).toBe("mp3");
  });
});

describe("a file of a format that is not decoded", () => {
  it.each([
    ["caff\0\u0001\0\0", "a Core Audio file (CAF)"],
    ["#!AMR\n", "an AMR recording"],
    ["MThd\0\0\0\u0006", "a MIDI file"],
    ["\u0089PNG\r\n", "a picture (PNG)"],
    ["%PDF-1.7", "a PDF document"],
  ])("%j: the error names it, and what is accepted", async (front, name) => {
    const message = await messageOf(Buffer.concat([Buffer.from(front, "latin1"), Buffer.alloc(9000)]));
    expect(message).toContain("invalid_audio_format");
    expect(message).toContain(`it is ${name}`);
    expect(message).toContain("Expected WAV, AIFF, MP3, FLAC, Ogg, WebM or Matroska");
  });

  it.runIf(hasProgram("ffmpeg")).each([
    ["AAC", ["-c:a", "aac"]],
    ["ALAC", ["-c:a", "alac"]],
    ["AC-3", ["-c:a", "ac3"]],
  ])("Matroska with %s is decoded by ffmpeg", async (_, args) => {
    const sound = testSound(2);
    const bytes = encodeFile(sound, [...args, "-f", "matroska"]);
    // Read once only, as a worker does, in pieces with the codec in the first one and in a later one.
    for (const size of [bytes.length, 65_536, 97]) {
      const source = fileOf(bytes, size).read();
      const samples: number[] = [];
      const file = { read: () => source };
      for await (const { pcm } of decodeUpload(file, { fileFormat: "other" })) samples.push(...pcm);
      expect(Math.abs(samples.length - sound.length)).toBeLessThan(3000);
      expect(levelOf(Int16Array.from(samples)) / levelOf(sound)).toBeCloseTo(1, 1);
    }
  });

  it.runIf(hasProgram("ffmpeg"))(
    "Matroska with another codec on a machine without ffmpeg: the error names the codec",
    async () => {
      const bytes = encodeFile(testSound(1), ["-c:a", "aac", "-f", "matroska"]);
      const refusal: unknown = await new MatroskaDecoder().push(bytes).catch((reason: unknown) => reason);
      if (!(refusal instanceof ForeignTrack)) throw new Error(`Not foreign: ${String(refusal)}`);
      const container = { demuxer: "matroska", name: "Matroska", refusal: () => refusal } as const;
      const message = await messageWithoutFfmpeg(bytes, container);
      expect(message).toContain("invalid_audio_format: The audio cannot be decoded: its audio track in WebM");
      expect(message).toContain('the codec "A_AAC"');
    },
  );

  it.runIf(hasProgram("ffmpeg"))("M4A on a machine without ffmpeg: the error says so", async () => {
    const message = await messageWithoutFfmpeg(encodeFile(testSound(1), ["-c:a", "aac", "-f", "ipod"]), MP4);
    expect(message).toContain("invalid_audio_format: The audio cannot be decoded: it is an MP4 or M4A file");
    expect(message).toContain("needs ffmpeg");
  });
});

async function messageWithoutFfmpeg(bytes: Uint8Array, container: FfmpegContainer): Promise<string> {
  const decoding = decodedByFfmpeg(fileOf(bytes).read(), container, { folders: ["/nowhere"] }).next();
  return detailOf(await decoding.catch((reason: unknown) => reason));
}

describe("an MP4 file in the order of a stream", () => {
  it.runIf(hasProgram("ffmpeg"))(
    "has the sound's bytes where its index says, and is read twice only if needed",
    async () => {
      for (const [flags, reads] of [
        [[], 2],
        [["-movflags", "faststart"], 1],
      ] as const) {
        const bytes = encodeFile(testSound(2), ["-c:a", "aac", ...flags, "-f", "ipod"]);
        let count = 0;
        const file = fileOf(bytes, 997);
        const counted = {
          read: () => {
            count += 1;
            return file.read();
          },
        };
        const parts: Uint8Array[] = [];
        for await (const part of inStreamOrder(counted)) parts.push(part);
        const ordered = Buffer.concat(parts);
        expect(count).toBe(reads);
        expect(ordered.length).toBe(bytes.length);
        expect(ordered.indexOf("moov")).toBeLessThan(ordered.indexOf("mdat"));
        // The first chunk of samples, by the index of either file.
        const firstChunk = (whole: Buffer): Buffer => {
          const at = whole.readUInt32BE(whole.indexOf("stco") + 12);
          return whole.subarray(at, at + 64);
        };
        expect(firstChunk(ordered)).toEqual(firstChunk(Buffer.from(bytes)));
      }
    },
  );

  it("any other bytes: come out as they went in", async () => {
    const bytesOf = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.uint8Array({ maxLength: 300 }).map((rest) => Buffer.concat([Buffer.from("\0\0\0\bfree"), rest])),
    );
    await fc.assert(
      fc.asyncProperty(bytesOf, fc.integer({ min: 1, max: 50 }), async (bytes, pieceBytes) => {
        const parts: Uint8Array[] = [];
        for await (const part of inStreamOrder(fileOf(bytes, pieceBytes))) parts.push(part);
        expect(Buffer.concat(parts).equals(Buffer.from(bytes))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it("an index with false numbers: loses no byte and does not throw", async () => {
    const box = (name: string, size: number, content: Uint8Array): Buffer => {
      const header = Buffer.alloc(8);
      header.writeUInt32BE(size);
      header.write(name, 4, "latin1");
      return Buffer.concat([header, content]);
    };
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: 40 }),
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom("stco", "co64", "trak", "free"),
        fc.nat(),
        async (sound, noise, name, innerSize) => {
          const inner = box(name, innerSize, noise);
          const moov = box("moov", inner.length + 8, inner);
          const bytes = Buffer.concat([box("mdat", sound + 8, new Uint8Array(sound)), moov]);
          let length = 0;
          for await (const part of inStreamOrder(fileOf(bytes, 13))) length += part.length;
          expect(length).toBe(bytes.length);
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** The error that strangers' bytes may have, or none. */
async function outcomeOf(decoder: UploadDecoder, bytes: Uint8Array, pieceBytes: number): Promise<number> {
  try {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      await decoder.push(bytes.subarray(at, at + pieceBytes));
    }
    await decoder.finish();
    return 200;
  } catch (thrown) {
    if (thrown instanceof ApiError) return thrown.httpStatus;
    throw thrown;
  } finally {
    decoder.close();
  }
}

describe.runIf(hasProgram("ffmpeg"))("strangers' bytes", () => {
  const files: readonly (readonly [string, () => UploadDecoder, readonly string[]])[] = [
    ["AIFF", () => new AiffDecoder(), ["-c:a", "pcm_s24be", "-f", "aiff"]],
    ["WebM, Opus", () => new MatroskaDecoder(), OPUS_IN_WEBM],
    ["WebM, Vorbis", () => new MatroskaDecoder(), ["-c:a", "libvorbis", "-f", "webm"]],
    ["Matroska, PCM", () => new MatroskaDecoder(), ["-c:a", "pcm_s16le", "-f", "matroska"]],
  ];

  it.each(files)(
    "%s: changed anywhere, is decoded or refused with 400",
    { timeout: 60_000 },
    async (_, open, args) => {
      const bytes = encodeFile(testSound(0.2), args);
      const change = fc.record({
        at: fc.nat({ max: Math.min(bytes.length - 1, 6000) }),
        byte: fc.nat({ max: 255 }),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(change, { minLength: 1, maxLength: 12 }),
          fc.constantFrom(17, 600, 8192),
          async (changes, pieceBytes) => {
            const broken = bytes.slice();
            for (const { at, byte } of changes) broken[at] = byte;
            expect([200, 400]).toContain(await outcomeOf(open(), broken, pieceBytes));
          },
        ),
        { numRuns: 20 },
      );
    },
  );

  it.each(files)("%s: any bytes behind its header are decoded or refused with 400", async (_, open, args) => {
    const header = encodeFile(testSound(0.2), args).subarray(0, 200);
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 200 }), fc.uint8Array({ maxLength: 2000 }), async (kept, rest) => {
        const bytes = Buffer.concat([header.subarray(0, kept), rest]);
        expect([200, 400]).toContain(await outcomeOf(open(), bytes, 256));
      }),
      { numRuns: 20 },
    );
  });

  it("laced blocks: give their frames, whatever their sizes say", async () => {
    const { header, block } = pcmTrack();
    const pcmOf = async (lacing: number, sizes: readonly number[], body: Uint8Array): Promise<number> => {
      const decoder = new MatroskaDecoder();
      const bytes = Buffer.concat([
        header,
        block(Buffer.concat([Buffer.of(0x81, 0, 0, lacing << 1, ...sizes), body])),
      ]);
      try {
        return (await decoder.push(bytes)).reduce((total, { pcm }) => total + pcm.length, 0);
      } finally {
        decoder.close();
      }
    };
    const body = new Uint8Array(60);
    expect(await pcmOf(0, [], body)).toBe(30);
    expect(await pcmOf(1, [2, 10, 20], body)).toBe(30);
    expect(await pcmOf(2, [2], body)).toBe(30);
    // The first size, then ten more than it.
    expect(await pcmOf(3, [2, 0x80 | 10, 0x80 | (63 + 10)], body)).toBe(30);
    for (const lacing of [1, 2, 3]) {
      await expect(pcmOf(lacing, [200, 255], new Uint8Array(3))).rejects.toBeInstanceOf(ApiError);
    }
  });
});

/** A Matroska file with a track of 16-bit PCM at 8 kHz, up to its first block. */
function pcmTrack(): { readonly header: Buffer; block(content: Uint8Array): Buffer } {
  const element = (id: readonly number[], content: Uint8Array): Buffer => {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(0x1000_0000 + content.length);
    return Buffer.concat([Buffer.from(id), size, content]);
  };
  const rate = Buffer.alloc(4);
  rate.writeFloatBE(8000);
  const audio = Buffer.concat([
    element([0xb5], rate),
    element([0x9f], Buffer.of(1)),
    element([0x62, 0x64], Buffer.of(16)),
  ]);
  const track = Buffer.concat([
    element([0xd7], Buffer.of(1)),
    element([0x83], Buffer.of(2)),
    element([0x86], Buffer.from("A_PCM/INT/LIT")),
    element([0xe1], audio),
  ]);
  const header = Buffer.concat([
    element([0x1a, 0x45, 0xdf, 0xa3], new Uint8Array(0)),
    Buffer.of(0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255),
    element([0x16, 0x54, 0xae, 0x6b], element([0xae], track)),
    Buffer.of(0x1f, 0x43, 0xb6, 0x75, 0xff),
  ]);
  return { header, block: (content) => element([0xa3], content) };
}
