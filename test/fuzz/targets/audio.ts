/** Containers of sound: those of the upstream's answers, and those of uploads to the built-in service. */
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { OggOpusWriter } from "../../../src/audio/containers/ogg.ts";
import { OggOpusReader } from "../../../src/audio/containers/ogg-reader.ts";
import { wavHeader } from "../../../src/audio/containers/wav.ts";
import { readWav, WavError } from "../../../src/audio/containers/wav-reader.ts";
import { AiffDecoder } from "../../../src/service/media/decoders/aiff.ts";
import type { UploadDecoder } from "../../../src/service/media/decoders/decoder.ts";
import { MatroskaDecoder } from "../../../src/service/media/decoders/matroska.ts";
import { containerOf, foreignNameOf, id3Bytes, isMp4 } from "../../../src/service/media/decoders/sniff.ts";
import { WavDecoder } from "../../../src/service/media/decoders/wav.ts";
import { mp3InfoFrame } from "../../../src/service/media/mp3-info.ts";
import { inStreamOrder } from "../../../src/service/media/mp4-order.ts";
import { Mp3Head } from "../../../src/vendor-sockets/mp3-head.ts";
import { cut, outcomeOf, pieceLengths, requireSame, type Target, whole } from "../target.ts";

function oggSeed(): Uint8Array {
  const writer = new OggOpusWriter({ serial: 9, preSkip: 312, inputSampleRate: 48_000, pageMs: 60 });
  const packet = Uint8Array.of(0xf8, 1, 2, 3);
  return Buffer.concat([writer.header(), ...[1, 2, 3].map(() => writer.push(packet, 960)), writer.finish()]);
}

/** Its checksums are made right again, or hardly an input would come further. */
const ogg: Target = {
  words: ["OggS", "OpusHead", "OpusTags"],
  seeds: [oggSeed(), Buffer.concat([oggSeed(), oggSeed()])],
  run: (input) => {
    const sound = withChecksums(input);
    requireSame("cut", packetsOf(whole(sound)), packetsOf(cut(sound)));
    packetsOf(whole(input));
  },
};

function packetsOf(pieces: Iterable<Buffer>): string {
  const reader = new OggOpusReader();
  const packets: string[] = [];
  const outcome = outcomeOf(() => {
    for (const piece of pieces) {
      reader.push(piece, (packet) => packets.push(Buffer.from(packet).toString("latin1")));
    }
    reader.finish();
  });
  return JSON.stringify([packets, outcome, reader.links, reader.preSkip, reader.endSamples48k]);
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x80000000) === 0 ? crc << 1 : (crc << 1) ^ 0x04c11db7;
  return crc;
});

/** RFC 3533 section 6: of each page that is whole. */
export function withChecksums(input: Buffer): Buffer {
  const bytes = Buffer.from(input);
  for (let at = 0; at + 27 <= bytes.length; ) {
    const segments = bytes[at + 26] ?? 0;
    const table = bytes.subarray(at + 27, at + 27 + segments);
    const end = at + 27 + segments + table.reduce((sum, length) => sum + length, 0);
    if (end > bytes.length) break;
    bytes.writeUInt32LE(0, at + 22);
    let crc = 0;
    for (const byte of bytes.subarray(at, end))
      crc = (crc << 8) ^ (CRC_TABLE[((crc >>> 24) ^ byte) & 0xff] ?? 0);
    bytes.writeUInt32LE(crc >>> 0, at + 22);
    at = end;
  }
  return bytes;
}

const mp3Head: Target = {
  words: ["ID3", "Xing", "Info", "LAME3.100", "\u00ff\u00fb"],
  seeds: [
    mp3InfoFrame({ bytes: 4170, samples: 11_520, frames: 10 }),
    Buffer.concat([Buffer.from("ID3\u0004\u0000\u0000\u0000\u0000\u0000\u0005hello"), mp3InfoFrame(null)]),
    Buffer.from([0xff, 0xfb, 0x90, 0xc4, 0, 0, 0, 0, 0, 0, 0, 0]),
  ],
  run: (input) => requireSame("cut", headless(whole(input)), headless(cut(input))),
};

function headless(pieces: Iterable<Buffer>): string {
  const head = new Mp3Head();
  head.begin();
  const passed = Array.from(pieces, (piece) => Buffer.from(head.push(piece)));
  return Buffer.concat([...passed, head.end()]).toString("latin1");
}

function decoderTarget(make: () => UploadDecoder, seeds: Target["seeds"], words: readonly string[]): Target {
  return {
    seeds,
    words,
    run: async (input) =>
      requireSame("cut", await samplesOf(make(), whole(input)), await samplesOf(make(), cut(input))),
  };
}

/** How much of which rate; the sound of broken files is of no matter. */
async function samplesOf(decoder: UploadDecoder, pieces: Iterable<Buffer>): Promise<string> {
  const counts = new Map<number, number>();
  let failure: unknown = null;
  try {
    for (const piece of pieces) count(counts, await decoder.push(piece));
    count(counts, await decoder.finish());
  } catch (thrown) {
    failure = thrown;
  } finally {
    decoder.close();
  }
  return outcomeOf(() => {
    if (failure !== null) throw failure;
    return [...counts];
  });
}

function count(counts: Map<number, number>, pieces: Awaited<ReturnType<UploadDecoder["push"]>>): void {
  for (const { pcm, sampleRate } of pieces) {
    if (pcm.length > 0) counts.set(sampleRate, (counts.get(sampleRate) ?? 0) + pcm.length);
  }
}

const PCM = bytesOf(Int16Array.from({ length: 40 }, (_, at) => at * 300));
const wavSeed = Buffer.concat([wavHeader({ sampleRate: 16_000, dataBytes: PCM.length }), PCM]);

/** FORM, size, AIFF, COMM with 1 channel of 16 bits at 44,100 Hz, SSND. */
function aiffSeed(kind: "AIFF" | "AIFC"): Buffer {
  const rate = Buffer.from("400eac44000000000000", "hex");
  const more = kind === "AIFC" ? Buffer.from("sowt\u0000\u0000") : Buffer.alloc(0);
  const common = Buffer.concat([Buffer.from([0, 1, 0, 0, 0, 40, 0, 16]), rate, more]);
  const sound = Buffer.concat([Buffer.alloc(8), PCM]);
  const body = Buffer.concat([Buffer.from(kind), chunk("COMM", common), chunk("SSND", sound)]);
  return chunk("FORM", body);
}

function chunk(name: string, content: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, "latin1");
  head.writeUInt32BE(content.length, 4);
  return Buffer.concat([head, content]);
}

/** An EBML element: its id in hexadecimal, a size of one or two bytes, the content. */
function element(id: string, content: Uint8Array): Buffer {
  const size =
    content.length < 127 ? [0x80 | content.length] : [0x40 | (content.length >> 8), content.length & 0xff];
  return Buffer.concat([Buffer.from(id, "hex"), Buffer.from(size), content]);
}

/** A Matroska file with one track of PCM, and one block of it. */
function matroskaSeed(): Buffer {
  const float = Buffer.alloc(4);
  float.writeFloatBE(16_000);
  const audio = element(
    "e1",
    Buffer.concat([element("b5", float), element("9f", Buffer.of(1)), element("6264", Buffer.of(16))]),
  );
  const track = element(
    "ae",
    Buffer.concat([
      element("d7", Buffer.of(1)),
      element("83", Buffer.of(2)),
      element("86", Buffer.from("A_PCM/INT/LIT")),
      audio,
    ]),
  );
  const block = element("a3", Buffer.concat([Buffer.from([0x81, 0, 0, 0x80]), PCM]));
  const cluster = element("1f43b675", Buffer.concat([element("e7", Buffer.of(0)), block]));
  const head = element("1a45dfa3", element("4282", Buffer.from("matroska")));
  return Buffer.concat([head, element("18538067", Buffer.concat([element("1654ae6b", track), cluster]))]);
}

/** An index behind the sound, with a table of offsets. */
function mp4Seed(): Buffer {
  const table = chunk("stco", Buffer.from([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x20]));
  const index = ["stbl", "minf", "mdia", "trak", "moov"].reduce(
    (inner, name) => box(name, inner),
    box("stco", table.subarray(8)),
  );
  return Buffer.concat([box("ftyp", Buffer.from("M4A \u0000\u0000\u0000\u0000")), box("mdat", PCM), index]);
}

function box(name: string, content: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(content.length + 8);
  head.write(name, 4, "latin1");
  return Buffer.concat([head, content]);
}

/** A file's pieces are its reader's own, so that they may be kept; its bytes may not be changed. */
const mp4: Target = {
  words: ["ftyp", "moov", "mdat", "moof", "trak", "mdia", "minf", "stbl", "stco", "co64", "M4A "],
  seeds: [mp4Seed()],
  run: async (input) =>
    requireSame("cut", await reordered(input, [input.length]), await reordered(input, pieceLengths(input))),
};

async function reordered(input: Buffer, lengths: readonly number[]): Promise<string> {
  const file = {
    async *read() {
      let at = 0;
      for (const length of lengths) {
        yield input.subarray(at, at + length);
        at += length;
      }
    },
  };
  const bytes: Buffer[] = [];
  for await (const piece of inStreamOrder(file)) bytes.push(Buffer.from(piece));
  return Buffer.concat(bytes).toString("latin1");
}

const sniff: Target = {
  words: [
    "OggS",
    "fLaC",
    "RIFF",
    "WAVE",
    "FORM",
    "AIFF",
    "ID3",
    "ftyp",
    "\u001aE\u00df\u00a3",
    "OpusHead",
    "webm",
    "matroska",
  ],
  seeds: [
    oggSeed(),
    wavSeed,
    aiffSeed("AIFC"),
    matroskaSeed(),
    mp4Seed(),
    mp3InfoFrame(null),
    "ID3\u0004\u0000\u0000\u0000\u0000\u0000\u0001xfLaC",
  ],
  run: (input) => {
    containerOf(input);
    foreignNameOf(input);
    id3Bytes(input);
    isMp4(input);
  },
};

const wavFile: Target = {
  words: ["RIFF", "WAVE", "fmt ", "data", "LIST"],
  seeds: [
    wavSeed,
    Buffer.concat([wavHeader({ sampleRate: 16_000, dataBytes: 4 }), Buffer.from([1, 2, 3, 4])]),
  ],
  run: (input) => {
    try {
      const { audio } = readWav(input);
      if (audio.length > input.length) throw new Error(`${input.length} bytes gave ${audio.length}`);
    } catch (thrown) {
      if (!(thrown instanceof WavError)) throw thrown;
    }
  },
};

export const AUDIO_TARGETS: Readonly<Record<string, Target>> = {
  "played-sounds": wavFile,
  "ogg-opus": ogg,
  "mp3-head": mp3Head,
  "upload-sniff": sniff,
  "upload-wav": decoderTarget(
    () => new WavDecoder(),
    [wavSeed],
    ["RIFF", "RF64", "WAVE", "fmt ", "data", "ds64", "LIST"],
  ),
  "upload-aiff": decoderTarget(
    () => new AiffDecoder(),
    [aiffSeed("AIFF"), aiffSeed("AIFC")],
    ["FORM", "AIFF", "AIFC", "COMM", "SSND", "sowt", "fl32", "alaw"],
  ),
  "upload-matroska": decoderTarget(
    () => new MatroskaDecoder(),
    [matroskaSeed()],
    [
      "A_PCM/INT/LIT",
      "A_PCM/FLOAT/IEEE",
      "A_MPEG/L3",
      "\u00ff",
      "\u0001\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff",
    ],
  ),
  "upload-mp4": mp4,
};
