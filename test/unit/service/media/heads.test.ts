/** The heads of FLAC and Vorbis files are read before a decoder is opened. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { FlacEncoder } from "../../../../src/audio/codecs/flac.ts";
import { buildPage } from "../../../../src/audio/containers/ogg-page.ts";
import { ApiError } from "../../../../src/service/api-error.ts";
import { decodeUpload } from "../../../../src/service/media/decode-upload.ts";
import { withChecksums } from "../../../fuzz/targets/audio.ts";
import { vorbisComments, vorbisFile, vorbisIdentification, vorbisSetup } from "../../../kit/vorbis.ts";
import { hasProgram, run } from "../../audio/helpers.ts";
import { encodeFile, encodeFiles, fileOf, RATE, testSound } from "./helpers.ts";

async function samplesOf(bytes: Uint8Array, pieceBytes?: number): Promise<number> {
  let samples = 0;
  for await (const { pcm } of decodeUpload(fileOf(bytes, pieceBytes), { fileFormat: "other" })) {
    samples += pcm.length;
  }
  return samples;
}

async function refusalOf(bytes: Uint8Array): Promise<string> {
  const thrown: unknown = await samplesOf(bytes).catch((reason: unknown) => reason);
  if (!(thrown instanceof ApiError)) throw new Error(`No ApiError: ${String(thrown)}`);
  return (thrown.body("").detail as { readonly message: string }).message;
}

const instantiate = vi.spyOn(WebAssembly, "instantiate");
afterEach(() => instantiate.mockClear());

/** An ID, a length and content, as after the marker of a FLAC file. */
function block(kind: number, content: Uint8Array, isLast = false): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt32BE(content.length);
  header.writeUInt8(kind | (isLast ? 0x80 : 0));
  return Buffer.concat([header, content]);
}

/** Of 24 kHz, 16 bits, one channel and a length that is not known. */
function streamInfo({ min = 1024, max = 1024, rate = 24_000, bits = 16 } = {}): Buffer {
  const content = Buffer.alloc(34);
  content.writeUInt16BE(min, 0);
  content.writeUInt16BE(max, 2);
  content.writeUInt32BE(rate * 4096 + ((bits - 1) << 4), 10);
  return content;
}

const flac = (...parts: readonly Uint8Array[]): Buffer => Buffer.concat([Buffer.from("fLaC"), ...parts]);

describe("a broken head", () => {
  it.each([
    ["its first block is no STREAMINFO", flac(block(4, Buffer.alloc(100)))],
    ["its first block is no STREAMINFO", flac(block(0, Buffer.alloc(35), true), Buffer.alloc(9))],
    ["from 0 to 0 samples", flac(block(0, streamInfo({ min: 0, max: 0 }), true))],
    ["from 4096 to 1024 samples", flac(block(0, streamInfo({ min: 4096 }), true))],
    ["its sample rate is 0 Hz", flac(block(0, streamInfo({ rate: 0 }), true))],
    ["its samples have 3 bits", flac(block(0, streamInfo({ bits: 3 }), true))],
    ["the type 127", flac(block(0, streamInfo()), block(127, Buffer.alloc(3)))],
    ["the type 0", flac(block(0, streamInfo()), block(0, streamInfo(), true))],
    [
      "the header of the FLAC file is too large",
      flac(block(0, streamInfo()), ...Array.from({ length: 5 }, () => block(6, Buffer.alloc(0xff_ffff)))),
    ],
    ["ends inside its header", flac(block(0, streamInfo()), block(6, Buffer.alloc(50)))],
    ["no frames behind its header", flac(block(0, streamInfo(), true), Buffer.alloc(1_100_000))],
  ])("FLAC: %s", async (message, bytes) => {
    expect(await refusalOf(bytes)).toContain(message);
    expect(instantiate).not.toHaveBeenCalled();
  });

  it.each([
    ["it is version 1", { version: 1 }],
    ["it has 0 channels", { channels: 0 }],
    ["it has 33 channels", { channels: 33 }],
    ["its sample rate is 100 Hz", { sampleRate: 100 }],
    ["its blocks have 32 and 128 samples", { blocks: 0x75 }],
    ["its blocks have 64 and 16384 samples", { blocks: 0xe6 }],
    ["its blocks have 256 and 128 samples", { blocks: 0x78 }],
  ])("Vorbis: %s", async (message, changed) => {
    const headers = [vorbisIdentification(changed), vorbisComments(), vorbisSetup()];
    expect(await refusalOf(vorbisFile(headers))).toContain(message);
    expect(instantiate).not.toHaveBeenCalled();
  });

  it.each([
    ["sync", 1],
    ["entries", 3],
    ["entries", 0xff_ffff],
    ["length less 1", 1],
    ["ordered", 1],
    ["lookup", 3],
    ["codes of that length", 5],
    ["time", 1],
    ["floor type", 2],
    ["codebook of the floor and 1", 3],
    ["place", 0],
    ["residue type", 3],
    ["classes less 1", 2],
    ["classbook", 2],
    ["codebook of the residue", 0],
    ["mapping type", 1],
    ["coupling", 1],
    ["reserved", 1],
    ["floor of the mapping", 1],
    ["residue of the mapping", 1],
    ["window", 1],
    ["transform", 1],
    ["mapping of the mode", 1],
    ["end", 0],
  ])("Vorbis, a setup with another %s: %d", async (field, value) => {
    const headers = [vorbisIdentification(), vorbisComments(), vorbisSetup({ [field]: value })];
    expect(await refusalOf(vorbisFile(headers))).toMatch(
      /the setup header of the Vorbis stream is broken at/,
    );
    expect(instantiate).not.toHaveBeenCalled();
  });

  it("Vorbis: a page with a wrong checksum, a header that is missing, one that is too large, an end", async () => {
    const [id, comments, setup] = [vorbisIdentification(), vorbisComments(), vorbisSetup()];
    const changed = vorbisFile();
    changed.writeUInt8(changed.readUInt8(40) ^ 1, 40);
    expect(await refusalOf(changed)).toContain("the checksum of a page is wrong");
    expect(await refusalOf(vorbisFile([id, setup, comments]))).toContain("one of the three is missing");
    expect(await refusalOf(vorbisFile().subarray(0, 150))).toContain("ends inside its headers");
    const first = buildPage({ flags: 0, granule: 0, serial: 3, sequence: 0, packets: [id] });
    // The first piece of a packet that goes on on the next page.
    const page = Buffer.alloc(27 + 255 + 255 * 255, 255);
    page.set(first.subarray(0, 26));
    const endless = withChecksums(Buffer.concat([first, page, page]));
    expect(await refusalOf(endless)).toContain("ends inside its headers");
    const named = buildPage({ flags: 0, granule: 0, serial: 3, sequence: 1, packets: [comments] });
    expect(await refusalOf(withChecksums(Buffer.concat([first, named, page, page])))).toContain(
      "one is too large",
    );
    expect(instantiate).not.toHaveBeenCalled();
  });
});

describe("a sound head", () => {
  it("opens one decoder for a file, and none before its sound", async () => {
    const file = vorbisFile();
    // The library unpacks itself by another module once.
    await samplesOf(file);
    instantiate.mockClear();
    expect(await samplesOf(file)).toBeGreaterThan(200);
    expect(instantiate).toHaveBeenCalledTimes(1);
  });

  it("Vorbis: sound on the page of the last header, pages of other streams, comments of any length", async () => {
    const samples = await samplesOf(vorbisFile());
    const [id, setup] = [vorbisIdentification(), vorbisSetup()];
    const other = buildPage({
      flags: 2,
      granule: 0,
      serial: 8,
      sequence: 0,
      packets: [Buffer.from("fishead\0")],
    });
    const pages = (packets: readonly Uint8Array[], sequence: number): Uint8Array =>
      buildPage({ flags: sequence === 0 ? 2 : 0, granule: 0, serial: 3, sequence, packets });
    const sound = vorbisFile().subarray(vorbisFile().length - 200);
    const at = sound.indexOf("OggS");
    for (let bytes = 230; bytes < 290; bytes += 1) {
      const head = [pages([id], 0), other, pages([vorbisComments("X".repeat(bytes)), setup], 1)];
      const file = Buffer.concat([...head, sound.subarray(at)]);
      expect(await samplesOf(file, bytes % 3 === 0 ? 1 : 97)).toBe(samples);
    }
    const packets = [
      vorbisComments(),
      setup,
      Buffer.from([0x0e, 0x9d, 0, 0x6b]),
      Buffer.from([0x34, 0x9d, 7]),
    ];
    expect(
      await samplesOf(Buffer.concat([pages([id], 0), pages(packets, 1), sound.subarray(at)])),
    ).toBeGreaterThan(samples);
  });

  it.each([1, 7, 5000])(
    "FLAC: pictures, cue sheets, seek tables and others, in pieces of %d bytes",
    async (size) => {
      const encoder = new FlacEncoder({ sampleRate: 24_000 });
      const sound = Int16Array.from({ length: 3000 }, (_, at) => 900 * Math.sin(at / 9));
      const file = Buffer.concat([encoder.push(sound), encoder.flush()]);
      const [info, frames] = [file.subarray(8, 42), file.subarray(42)];
      const blocks = [1, 2, 3, 4, 5, 6, 7, 126].map((kind) => block(kind, Buffer.alloc(kind * 333, 0xff)));
      const tagged = flac(block(0, info), ...blocks, block(1, Buffer.alloc(0), true), frames);
      expect(await samplesOf(tagged, size)).toBe(sound.length);
    },
  );
});

const LAYOUTS: Readonly<Record<number, string>> = { 1: "mono", 2: "stereo", 6: "5.1", 8: "7.1" };
const channels = (count: number): string[] => [
  "-ac",
  String(count),
  "-channel_layout",
  LAYOUTS[count] ?? "mono",
];

describe.runIf(hasProgram("ffmpeg"))("files that ffmpeg makes keep their sound", () => {
  const sound = testSound(1);

  /** Each has as many samples as the sound, at the rate of 48 kHz. */
  async function expectAll(settings: readonly (readonly string[])[]): Promise<void> {
    for (const [index, file] of encodeFiles(sound, settings).entries()) {
      const samples = await samplesOf(file);
      expect(Math.abs(samples - sound.length), settings[index]?.join(" ")).toBeLessThan(2100);
    }
  }

  it("Vorbis: qualities, rates, channels, another encoder", async () => {
    const qualities = [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((quality) => ["-q:a", String(quality)]);
    const layouts = [2, 6, 8].map(channels);
    await expectAll([
      ...[...qualities, ...layouts].map((setting) => ["-c:a", "libvorbis", ...setting, "-f", "ogg"]),
      ["-c:a", "vorbis", "-strict", "-2", "-ac", "2", "-f", "ogg"],
      ["-c:a", "libvorbis", "-q:a", "2", "-metadata", `comment=${"x".repeat(100_000)}`, "-f", "ogg"],
    ]);
    const rates = [8000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000, 192_000];
    for (const rate of rates) {
      const args = ["-c:a", "libvorbis", "-ar", String(rate), "-f", "ogg"];
      const samples = await samplesOf(encodeFile(sound, args));
      const isCommon = rate !== 11_025 && rate !== 22_050 && rate < 96_000;
      expect(samples / (isCommon ? rate : RATE), String(rate)).toBeGreaterThan(0.3);
    }
  });

  it("FLAC: compressions, rates, channels, bits", async () => {
    const compressions = Array.from({ length: 13 }, (_, level) => ["-compression_level", String(level)]);
    await expectAll(
      [
        ...compressions,
        ...[2, 6, 8].map(channels),
        ["-sample_fmt", "s32"],
        ["-frame_size", "16"],
        ["-frame_size", "65535"],
        ["-metadata", `comment=${"x".repeat(100_000)}`],
      ].map((setting) => ["-c:a", "flac", ...setting, "-f", "flac"]),
    );
  });

  it("streams whose length the encoder could not go back to", async () => {
    const input = new Uint8Array(sound.buffer, sound.byteOffset, sound.byteLength);
    for (const [codec, container] of [
      ["flac", "flac"],
      ["libvorbis", "ogg"],
      ["flac", "ogg"],
    ] as const) {
      const from = ["-v", "error", "-f", "s16le", "-ar", String(RATE), "-ac", "1", "-i", "pipe:0"];
      const { stdout } = run("ffmpeg", [...from, "-c:a", codec, "-f", container, "pipe:1"], input);
      expect(await samplesOf(stdout), `${codec} in ${container}`).toBe(sound.length);
    }
  });
});
