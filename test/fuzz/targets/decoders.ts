/** The decoders of uploads that are WebAssembly, and of Opus calls. What they make out of an input stands for their branches. */
import { createHash } from "node:crypto";
import { FlacEncoder } from "../../../src/audio/codecs/flac.ts";
import { createMp3Encoder } from "../../../src/audio/codecs/mp3.ts";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import { OggOpusWriter } from "../../../src/audio/containers/ogg.ts";
import { buildPage, FLAG_FIRST, FLAG_LAST } from "../../../src/audio/containers/ogg-page.ts";
import type { UploadDecoder } from "../../../src/service/media/decoders/decoder.ts";
import { FlacHead } from "../../../src/service/media/decoders/flac-head.ts";
import { createMp3Upload } from "../../../src/service/media/decoders/mp3.ts";
import { createOggOpusUpload } from "../../../src/service/media/decoders/ogg-opus.ts";
import { VorbisHead } from "../../../src/service/media/decoders/vorbis-head.ts";
import {
  createFlacUpload,
  createOggFlacUpload,
  createVorbisUpload,
} from "../../../src/service/media/decoders/wasm.ts";
import { vorbisFile } from "../../kit/vorbis.ts";
import { noteOutcome } from "../coverage.ts";
import { cut, isDeclared, outcomeOf, requireSame, type Target, whole } from "../target.ts";
import { withChecksums } from "./audio.ts";
import { VORBIS_FILE, VORBIS_HEAD_BYTES } from "./vorbis-file.ts";

const RATE = 24_000;
const TONE = Int16Array.from({ length: RATE / 10 }, (_, at) => 8000 * Math.sin(at / 9) + (at % 7) * 100);
const FLAC_HEAD_BYTES = 42;

/** Two frames and what is left: a header of 42 bytes, then frames. */
function flacFile(): { readonly head: Uint8Array; readonly frames: readonly Uint8Array[] } {
  const encoder = new FlacEncoder({ sampleRate: RATE });
  const first = encoder.push(TONE.subarray(0, 1024));
  return {
    head: first.subarray(0, FLAC_HEAD_BYTES),
    frames: [first.subarray(FLAC_HEAD_BYTES), encoder.push(TONE.subarray(1024, 2048)), encoder.flush()],
  };
}

/** Most inputs are shorter than a frame of sound. A straight line takes few bytes, and so do 40 samples. */
function shortFlacFile(): Uint8Array {
  const encoder = new FlacEncoder({ sampleRate: RATE });
  const line = Int16Array.from({ length: 1024 }, (_, at) => at);
  return Buffer.concat([encoder.push(line), encoder.push(TONE.subarray(0, 40)), encoder.flush()]);
}

/** The mapping of FLAC to Ogg (RFC 9639 section 10.1): a first packet with the header, one of comments, frames. */
function oggFlac(): readonly Uint8Array[] {
  const { head, frames } = flacFile();
  const first = Buffer.concat([Buffer.from("\u007fFLAC\u0001\u0000\u0000\u0001", "latin1"), head]);
  const comments = Buffer.concat([Buffer.from([0x84, 0, 0, 8]), Buffer.alloc(8)]);
  return [first, comments, ...frames].map((packet, sequence) =>
    buildPage({
      flags: sequence === 0 ? FLAG_FIRST : sequence === frames.length + 1 ? FLAG_LAST : 0,
      granule: Math.max(0, sequence - 1) * 1024,
      serial: 7,
      sequence,
      packets: [packet],
    }),
  );
}

async function mp3File(): Promise<Uint8Array> {
  const encoder = await createMp3Encoder({ sampleRate: RATE, bitrateKbps: 32 });
  return Buffer.concat([encoder.encode(TONE), encoder.finish()]);
}

function opusFile(): Uint8Array {
  const encoder = new OpusEncoder({ sampleRate: RATE, bitrateKbps: 16, complexity: 0 });
  const writer = new OggOpusWriter({ serial: 9, preSkip: 312, inputSampleRate: 48_000, pageMs: 60 });
  const pages = [0, 480, 960].map((at) => writer.push(encoder.encode(TONE.slice(at, at + 480)), 960));
  encoder.close();
  return Buffer.concat([writer.header(), ...pages, writer.finish()]);
}

/** The libraries write what is wrong with a file to console.error. */
async function quietly<T>(action: () => Promise<T>): Promise<T> {
  const { error } = console;
  console.error = () => undefined;
  try {
    return await action();
  } finally {
    console.error = error;
  }
}

/** One file after another, each of many inputs. `head`: what each file begins with. */
function fileTarget(
  open: () => UploadDecoder | Promise<UploadDecoder>,
  head: Uint8Array,
  rest: Omit<Target, "run">,
): Target {
  let decoder: UploadDecoder | null = null;
  return {
    ...rest,
    begin: () =>
      quietly(async () => {
        if (decoder !== null) await settled(decoder.finish());
        decoder?.close();
        decoder = await open();
        if (head.length > 0) await decoder.push(head);
      }),
    run: (input) =>
      quietly(async () => {
        if (decoder === null) throw new TypeError("Cannot decode: nothing is open");
        await note(decoder.push(Buffer.from(input)));
      }),
  };
}

/** Every input is a file of its own, for decoders that are opened at once. */
function wholeFileTarget(
  open: () => UploadDecoder | Promise<UploadDecoder>,
  rest: Omit<Target, "run">,
  prepared: (input: Buffer) => Buffer = Buffer.from,
): Target {
  return {
    ...rest,
    run: (input) =>
      quietly(async () => {
        const decoder = await open();
        try {
          await note(decoder.push(prepared(input)));
          await note(decoder.finish());
        } finally {
          decoder.close();
        }
      }),
  };
}

/** Throws where what is left of the file behind its head depends on how the file is cut. */
function sameInPieces(
  input: Buffer,
  begin: () => { push(bytes: Uint8Array): Uint8Array; readonly isDone: boolean },
): Buffer {
  const read = (pieces: Iterable<Buffer>): string =>
    outcomeOf(() => {
      const head = begin();
      const rest: Buffer[] = [];
      for (const piece of pieces) rest.push(Buffer.from(head.push(piece)));
      return [head.isDone, Buffer.concat(rest).toString("latin1")];
    });
  requireSame("cut", read(whole(input)), read(cut(input)));
  return input;
}

const MAX_HEADS = 10_000;
const heads = new Set<string>();

/** Nothing of a file whose headers were decoded before: its sound is upload-vorbis's, and a decoder takes milliseconds to open. */
function newVorbisHead(input: Buffer): Buffer {
  let front = "";
  try {
    const out = Buffer.from(new VorbisHead().push(Buffer.from(input)));
    let end = 0;
    for (let page = 0; page < 3 && out.length > end; page += 1) {
      const table = out.subarray(end + 27, end + 27 + (out[end + 26] ?? 0));
      end += 27 + table.length + table.reduce((sum, length) => sum + length, 0);
    }
    front = createHash("sha1").update(out.subarray(0, end)).digest("base64");
  } catch (thrown) {
    if (!isDeclared(thrown)) throw thrown;
  }
  if (heads.has(front)) return Buffer.alloc(0);
  if (heads.size < MAX_HEADS && front !== "") heads.add(front);
  return input;
}

async function settled(step: ReturnType<UploadDecoder["push"]>): Promise<void> {
  try {
    await step;
  } catch (thrown) {
    if (!isDeclared(thrown)) throw thrown;
  }
}

/** How much sound of which rate, and what is wrong. */
async function note(step: ReturnType<UploadDecoder["push"]>): Promise<void> {
  try {
    const pieces = await step;
    noteOutcome(pieces.map(({ pcm, sampleRate }) => `${Math.ceil(pcm.length / 64)} at ${sampleRate}`).join());
  } catch (thrown) {
    noteOutcome(String(thrown));
    throw thrown;
  }
}

const flac = flacFile();
const oggPages = oggFlac();
const mp3 = await mp3File();
const opus = opusFile();
const NOTHING = new Uint8Array(0);
const vorbisPages = VORBIS_FILE.subarray(VORBIS_HEAD_BYTES);

export const DECODER_TARGETS: Readonly<Record<string, Target>> = {
  "upload-mp3": fileTarget(createMp3Upload, NOTHING, {
    seeds: [
      mp3.subarray(0, 500),
      mp3.subarray(0, 96),
      Buffer.concat([Buffer.from("ID3\u0004\0\0\0\0\0\u0001x"), mp3.subarray(0, 300)]),
    ],
    words: ["ID3", "TAG", "APETAGEX", "Xing", "Info", "LAME", "\u00ff\u00fb", "\u00ff\u00f3\u0044"],
  }),
  "upload-flac": fileTarget(createFlacUpload, flac.head, {
    seeds: [...flac.frames, Buffer.concat(flac.frames)],
    words: ["fLaC", "\u00ff"],
  }),
  "upload-flac-head": wholeFileTarget(
    createFlacUpload,
    { seeds: [shortFlacFile()], words: ["fLaC"] },
    (input) => sameInPieces(input, () => new FlacHead()),
  ),
  "upload-ogg-flac": fileTarget(createOggFlacUpload, Buffer.concat(oggPages.slice(0, 2)), {
    seeds: oggPages.slice(2),
    words: ["OggS", "\u007fFLAC", "fLaC"],
  }),
  "upload-vorbis": fileTarget(createVorbisUpload, VORBIS_FILE.subarray(0, VORBIS_HEAD_BYTES), {
    seeds: [vorbisPages, Buffer.concat([vorbisPages, vorbisPages])],
    words: ["OggS", "vorbis"],
  }),
  "upload-vorbis-setup": wholeFileTarget(
    createVorbisUpload,
    { seeds: [vorbisFile(), VORBIS_FILE], words: ["OggS", "\u0001vorbis", "\u0005vorbis", "BCV"] },
    (input) => newVorbisHead(sameInPieces(withChecksums(input), () => new VorbisHead())),
  ),
  "upload-opus": wholeFileTarget(
    async () => createOggOpusUpload(),
    { seeds: [opus, Buffer.concat([opus, opus])], words: ["OggS", "OpusHead", "OpusTags"] },
    withChecksums,
  ),
};
