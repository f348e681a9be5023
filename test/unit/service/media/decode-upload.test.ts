import { describe, expect, it } from "vitest";
import { ApiError } from "../../../../src/service/api-error.ts";
import {
  type DecodeOptions,
  decodeUpload,
  uploadSeconds,
} from "../../../../src/service/media/decode-upload.ts";
import { correlation, lagOf, randomNumbers } from "../../../kit/signals.ts";
import { concatPcm, hasProgram } from "../../audio/helpers.ts";
import { encodeFile, encodeFiles, fileOf, RATE, testSound } from "./helpers.ts";

const SECONDS = 2;
const other: DecodeOptions = { fileFormat: "other" };

async function decode(bytes: Uint8Array, options = other, pieceBytes?: number) {
  const pieces: Int16Array[] = [];
  let sampleRate = 0;
  for await (const piece of decodeUpload(fileOf(bytes, pieceBytes), options)) {
    pieces.push(piece.pcm);
    sampleRate = piece.sampleRate;
  }
  return { pcm: concatPcm(pieces), sampleRate, longest: Math.max(...pieces.map(({ length }) => length)) };
}

/** The code of the error, and its status. */
async function apiErrorOf(bytes: Uint8Array, options = other): Promise<unknown> {
  const thrown = await decode(bytes, options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(thrown instanceof ApiError)) throw new Error(`No ApiError: ${String(thrown)}`);
  return { ...(thrown.body("").detail as object), status: thrown.httpStatus };
}

const wav = (codec: string, ...more: string[]) => ["-c:a", codec, ...more, "-f", "wav"];
const FILES: Readonly<Record<string, readonly string[]>> = {
  "WAV, 8 bits": wav("pcm_u8"),
  "WAV, 16 bits": wav("pcm_s16le"),
  "WAV, 24 bits": wav("pcm_s24le"),
  "WAV, 32 bits": wav("pcm_s32le"),
  "WAV, floats": wav("pcm_f32le"),
  "WAV, doubles": wav("pcm_f64le"),
  "WAV, A-law": wav("pcm_alaw"),
  "WAV, mu-law": wav("pcm_mulaw"),
  "WAV, stereo": wav("pcm_s16le", "-ac", "2"),
  "WAV, six channels, extensible": wav("pcm_s24le", "-af", "pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0"),
  "WAV, RF64": wav("pcm_s16le", "-rf64", "always"),
  "WAV with tags": wav("pcm_s16le", "-metadata", "title=A title"),
  MP3: ["-c:a", "libmp3lame", "-b:a", "128k", "-f", "mp3"],
  "MP3, variable rate, stereo": ["-c:a", "libmp3lame", "-q:a", "3", "-ac", "2", "-f", "mp3"],
  "MP3 without tags": ["-c:a", "libmp3lame", "-id3v2_version", "0", "-write_xing", "1", "-f", "mp3"],
  FLAC: ["-c:a", "flac", "-f", "flac"],
  "FLAC, 24 bits, stereo": ["-c:a", "flac", "-sample_fmt", "s32", "-ac", "2", "-f", "flac"],
  "FLAC in Ogg": ["-c:a", "flac", "-f", "ogg"],
  "Ogg Opus": ["-c:a", "libopus", "-b:a", "64k", "-f", "ogg"],
  "Ogg Opus, stereo": ["-c:a", "libopus", "-b:a", "96k", "-ac", "2", "-f", "opus"],
  "Ogg Vorbis": ["-c:a", "libvorbis", "-q:a", "6", "-f", "ogg"],
  "AIFF, 8 bits": ["-c:a", "pcm_s8", "-f", "aiff"],
  "AIFF, 16 bits": ["-c:a", "pcm_s16be", "-f", "aiff"],
  "AIFF, 24 bits, stereo": ["-c:a", "pcm_s24be", "-ac", "2", "-f", "aiff"],
  "AIFF, 32 bits, with tags": [
    "-c:a",
    "pcm_s32be",
    "-write_id3v2",
    "1",
    "-metadata",
    "title=A",
    "-f",
    "aiff",
  ],
  "AIFC, little-endian": ["-c:a", "pcm_s16le", "-f", "aiff"],
  "AIFC, floats": ["-c:a", "pcm_f32be", "-f", "aiff"],
  "AIFC, doubles": ["-c:a", "pcm_f64be", "-f", "aiff"],
  "AIFC, A-law": ["-c:a", "pcm_alaw", "-f", "aiff"],
  "AIFC, mu-law": ["-c:a", "pcm_mulaw", "-f", "aiff"],
  "WebM, Opus": ["-c:a", "libopus", "-b:a", "64k", "-f", "webm"],
  "WebM, Opus, stereo, live": ["-c:a", "libopus", "-ac", "2", "-f", "webm", "-live", "1"],
  "WebM, Vorbis": ["-c:a", "libvorbis", "-q:a", "6", "-f", "webm"],
  "WebM, Opus beside a film": [
    ...["-f", "lavfi", "-i", "testsrc=duration=2:size=64x64:rate=10"],
    ...["-map", "1:v", "-map", "0:a", "-c:v", "libvpx", "-c:a", "libopus", "-f", "webm"],
  ],
  "Matroska, FLAC": ["-c:a", "flac", "-f", "matroska"],
  "Matroska, MP3": ["-c:a", "libmp3lame", "-f", "matroska"],
  "Matroska, PCM": ["-c:a", "pcm_s16le", "-f", "matroska"],
  "Matroska, floats": ["-c:a", "pcm_f32le", "-ac", "2", "-f", "matroska"],
  "M4A, index last": ["-c:a", "aac", "-b:a", "96k", "-f", "ipod"],
  "M4A, index first": ["-c:a", "aac", "-b:a", "96k", "-movflags", "faststart", "-f", "ipod"],
  "MP4 in fragments": ["-c:a", "aac", "-b:a", "96k", "-movflags", "frag_keyframe+empty_moov", "-f", "mp4"],
  "QuickTime, Apple Lossless": ["-c:a", "alac", "-f", "mov"],
};

/** All of FILES by their length in seconds: several tests need the same. */
const encoded = new Map<number, ReadonlyMap<string, Uint8Array>>();

/** `testSound` in one of FILES. */
function encodedFile(name: string, seconds: number): Uint8Array {
  const files = encoded.get(seconds) ?? encodeAll(seconds);
  encoded.set(seconds, files);
  return files.get(name) ?? new Uint8Array(0);
}

function encodeAll(seconds: number): Map<string, Uint8Array> {
  const sound = testSound(seconds);
  // One with an input of its own needs a process of its own.
  const [mixed = [], plain = []] = [true, false].map((isMixed) =>
    Object.entries(FILES).filter(([, args]) => args.includes("-i") === isMixed),
  );
  const together = encodeFiles(
    sound,
    plain.map(([, args]) => args),
  );
  return new Map([
    ...plain.map(([name], index): [string, Uint8Array] => [name, together[index] ?? new Uint8Array(0)]),
    ...mixed.map(([name, args]): [string, Uint8Array] => [name, encodeFile(sound, args)]),
  ]);
}

/** Nothing in them says how much of the start is the encoder's. */
const KEEPS_DELAY: ReadonlySet<string> = new Set(["Matroska, MP3", "MP4 in fragments"]);

/** Samples by which a file may be longer or shorter: encoders fill their last frame. */
function toleranceOf(name: string): number {
  if (/MP3/.test(name)) return 2304;
  if (/M4A|MP4/.test(name)) return 2048;
  return /WebM/.test(name) ? 1920 : 0;
}

describe.runIf(hasProgram("ffmpeg"))("uploaded audio", () => {
  for (const name of Object.keys(FILES)) {
    it(`${name}: the same number of samples, each in its place`, async () => {
      const sound = testSound(SECONDS);
      const { pcm, sampleRate, longest } = await decode(encodedFile(name, SECONDS));
      expect(sampleRate).toBe(RATE);
      expect(Math.abs(pcm.length - sound.length)).toBeLessThanOrEqual(toleranceOf(name));
      const lag = KEEPS_DELAY.has(name) ? lagOf(sound.subarray(0, 20_000), pcm, 2000) : 0;
      expect(correlation(sound, pcm, { lag, from: 4800, to: sound.length - 4800 })).toBeGreaterThan(0.98);
      expect(longest).toBeLessThan(200_000);
    });
  }

  it.each([8000, 11_025, 12_000, 16_000, 22_050, 37_800, 44_101, 88_200, 96_000, 192_000])(
    "%i Hz: the rate as it is where it is common, else 48 kHz without a shift",
    async (rate) => {
      const sound = testSound(SECONDS, rate);
      const { pcm, sampleRate } = await decode(encodeFile(sound, wav("pcm_s16le"), rate));
      const isCommon = [8000, 16_000, 22_050].includes(rate);
      expect(sampleRate).toBe(isCommon ? rate : RATE);
      const same = testSound(SECONDS, sampleRate);
      expect(pcm.length).toBe(same.length);
      const range = { from: 1000, to: same.length - 1000 };
      expect(correlation(same, pcm, range)).toBeGreaterThan(0.9999);
      expect(lagOf(same.subarray(0, 40_000), pcm, 20)).toBe(0);
    },
  );

  it("does not mind how the bytes are cut", { timeout: 90_000 }, async () => {
    const audio = ["WAV, 24 bits", "WAV with tags", "FLAC", "FLAC in Ogg", "Ogg Opus", "Ogg Vorbis"];
    const containers = [
      "AIFF, 24 bits, stereo",
      "WebM, Opus",
      "WebM, Vorbis",
      "Matroska, FLAC",
      "M4A, index last",
    ];
    for (const name of [...audio, ...containers]) {
      const bytes = encodedFile(name, 0.5);
      const whole = await decode(bytes, other, bytes.length);
      const cut = await decode(bytes, other, 13);
      expect(cut.pcm, name).toEqual(whole.pcm);
    }
  });

  it("goes by the content: an ID3 tag of half a megabyte before MP3 and before FLAC", async () => {
    const tag = Buffer.concat([
      Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 32, 0, 0]),
      Buffer.alloc(32 << 14),
    ]);
    for (const name of ["MP3 without tags", "FLAC"]) {
      const bytes = encodedFile(name, SECONDS);
      const plain = await decode(bytes);
      const tagged = await decode(Buffer.concat([tag, bytes]));
      expect(tagged.pcm.length, name).toBe(plain.pcm.length);
    }
  });

  it("an MP3 that was cut out of a longer one", async () => {
    const bytes = encodedFile("MP3", SECONDS);
    const { pcm } = await decode(bytes.subarray(10_101));
    expect(pcm.length / RATE).toBeGreaterThan(1);
  });

  it("passes over a FLAC file's picture of a megabyte", async () => {
    const bytes = encodedFile("FLAC", SECONDS);
    const block = Buffer.concat([Buffer.from([6, 0x10, 0, 0]), Buffer.alloc(1 << 20, 0xff)]);
    // Behind the marker and STREAMINFO.
    const pictured = Buffer.concat([bytes.subarray(0, 42), block, bytes.subarray(42)]);
    expect((await decode(pictured)).pcm).toEqual((await decode(bytes)).pcm);
  });

  it("plays a file that was cut off as far as it goes, or refuses it", { timeout: 90_000 }, async () => {
    for (const name of Object.keys(FILES)) {
      // A page of FLAC in Ogg holds a second.
      const bytes = encodedFile(name, 3 * SECONDS);
      const half = bytes.subarray(0, Math.floor(bytes.length / 2));
      // The index of an MP4 file is its end.
      const isNeeded = name === "M4A, index last" || name.startsWith("QuickTime");
      if (name.startsWith("Ogg Opus") || isNeeded) {
        expect(await apiErrorOf(half), name).toMatchObject({ status: 400, code: "invalid_audio" });
        continue;
      }
      const outcome = await decode(half).catch((thrown: unknown) => thrown);
      // In Ogg a page is whole or nothing, and a short file may have only one.
      if (name.includes("Ogg") && outcome instanceof ApiError) {
        expect(outcome.body("").detail, name).toMatchObject({ code: "invalid_audio" });
        continue;
      }
      if (outcome instanceof Error) throw new Error(name, { cause: outcome });
      const { pcm } = outcome as { pcm: Int16Array };
      expect(pcm.length / RATE, name).toBeGreaterThan(0.2);
      expect(pcm.length / RATE, name).toBeLessThan(3 * SECONDS);
    }
  });

  it("refuses headers without sound", { timeout: 90_000 }, async () => {
    for (const name of Object.keys(FILES)) {
      const bytes = encodedFile(name, SECONDS).subarray(0, 30);
      expect(await apiErrorOf(bytes), name).toMatchObject({
        status: 400,
        code: expect.stringMatching(/^invalid_audio/),
      });
    }
  });

  it("never fails otherwise, whatever happened to the bytes", { timeout: 90_000 }, async () => {
    const random = randomNumbers(7);
    for (const name of Object.keys(FILES)) {
      const bytes = encodedFile(name, 0.5);
      for (const changes of [1, 9, 81]) {
        const broken = bytes.slice();
        for (let change = 0; change < changes; change += 1) {
          broken[Math.floor(random() * broken.length)] = Math.floor(random() * 256);
        }
        const outcome = await decode(broken).then(
          ({ pcm }) => pcm.length > 0,
          (thrown: unknown) => thrown instanceof ApiError && thrown.httpStatus === 400,
        );
        expect(outcome, name).toBe(true);
      }
    }
  });
});

describe("what is no audio", () => {
  it("nothing at all", async () => {
    for (const fileFormat of ["other", "pcm_s16le_16"] as const) {
      const error = await apiErrorOf(new Uint8Array(0), { fileFormat });
      expect(error).toMatchObject({ status: 400, type: "validation_error", code: "invalid_audio" });
    }
  });

  it("noise, text, a picture, AAC", async () => {
    const random = randomNumbers(3);
    const noise = Uint8Array.from({ length: 50_000 }, () => random() * 256);
    const text = new TextEncoder().encode("It was a dark and stormy night. ".repeat(500));
    const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...noise.subarray(0, 9000)]);
    const adts = new Uint8Array(9000);
    for (let at = 0; at < adts.length; at += 100) adts.set([0xff, 0xf1, 0x50, 0x80, 0x0c, 0x9f, 0xfc], at);
    for (const bytes of [noise, text, png, adts, Uint8Array.of(1)]) {
      expect(await apiErrorOf(bytes)).toMatchObject({ status: 400, code: "invalid_audio_format" });
    }
  });
});

describe("raw PCM", () => {
  it("is taken as 16 kHz mono, whatever it looks like", async () => {
    const sound = testSound(1, 16_000);
    const bytes = new Uint8Array(sound.buffer);
    const { pcm, sampleRate } = await decode(bytes, { fileFormat: "pcm_s16le_16" }, 333);
    expect(sampleRate).toBe(16_000);
    expect(pcm).toEqual(sound);
  });

  it("with half a sample at its end is refused, and says how many bytes are too many", async () => {
    const whole = new Uint8Array(testSound(1, 16_000).buffer);
    for (const bytes of [whole.slice(0, -1), whole.slice(0, 1)]) {
      const refused = await apiErrorOf(bytes, { fileFormat: "pcm_s16le_16" });
      expect(refused).toMatchObject({
        status: 400,
        code: "invalid_audio",
        message: expect.stringContaining("1 byte at its end is too many"),
        param: "audio",
      });
    }
  });
});

describe("long audio", () => {
  it("is refused when it is over the limit, not before", async () => {
    const bytes = new Uint8Array(16_000 * 2 * 10);
    const options = { fileFormat: "pcm_s16le_16", maxSeconds: 10 } as const;
    expect((await decode(bytes, options)).pcm.length).toBe(160_000);
    const longer = new Uint8Array(bytes.length + 2);
    expect(await apiErrorOf(longer, options)).toMatchObject({ status: 400, code: "audio_too_long" });
  });

  it("an hour and a bit of a WAV file is refused without being held", async () => {
    let given = 0;
    const silence = new Uint8Array(1 << 20);
    const file = {
      async *read() {
        while (given < 4000) {
          given += 1;
          yield silence;
        }
      },
    };
    const before = process.memoryUsage().rss;
    const reading = async () => {
      for await (const piece of decodeUpload(file, { fileFormat: "pcm_s16le_16" }))
        expect(piece.pcm.length > 0);
    };
    await expect(reading()).rejects.toBeInstanceOf(ApiError);
    // 3600 s at 32,000 bytes a second are 110 MB.
    expect(given).toBeLessThan(112);
    expect(process.memoryUsage().rss - before).toBeLessThan(100e6);
  });
});

describe("uploadSeconds", () => {
  const pcm = { fileFormat: "pcm_s16le_16" } as const;

  it("is how long the whole is", async () => {
    const { signal } = new AbortController();
    expect(await uploadSeconds(fileOf(new Uint8Array(32_000 * 1.5)), { ...pcm, signal })).toBeCloseTo(1.5, 3);
  });

  it("rejects for what is broken, and ends a file without end when it is aborted", async () => {
    const leaving = new AbortController();
    const broken = uploadSeconds(fileOf(new Uint8Array(9000)), {
      fileFormat: "other",
      signal: leaving.signal,
    });
    await expect(broken).rejects.toMatchObject({ httpStatus: 400 });
    let hasClosed = false;
    const endless = {
      async *read() {
        try {
          for (let given = 0; ; given += 1) {
            if (given === 3) leaving.abort(new Error("Given up"));
            yield new Uint8Array(8192);
          }
        } finally {
          hasClosed = true;
        }
      },
    };
    await expect(uploadSeconds(endless, { ...pcm, signal: leaving.signal })).rejects.toThrow("Given up");
    expect(hasClosed).toBe(true);
  });
});
