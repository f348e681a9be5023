/** Writes frames into a file as they come: WAV, Ogg Opus, MP3 or the bare frames; `-` is stdout, bare. */
import { OPUS_LOOKAHEAD_48K } from "../../audio/codecs/opus-lookahead.ts";
import { opusPacketSamples48k } from "../../audio/codecs/opus-packet.ts";
import { OggOpusWriter } from "../../audio/containers/ogg.ts";
import { UNKNOWN_DATA_BYTES, wavHeader } from "../../audio/containers/wav.ts";
import { AUDIO_FORMATS } from "../../audio/formats.ts";
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import type { Output } from "../io.ts";
import { OutputFile } from "./output-file.ts";
import type { OutputFormat } from "./output-plan.ts";

export interface AudioFileOptions extends OutputFormat {
  readonly path: string;
  /** For the path `-`. */
  readonly stdout: Output;
}

/**
 * Loads what the container needs (an MP3 encoder) and resolves with how to open the file, which then takes no time.
 * Opening throws `invalid_config` where the file can't be written.
 */
export async function prepareAudioFile(options: AudioFileOptions): Promise<() => AudioFile> {
  const wrapper = await wrapperOf(options);
  const { path, stdout } = options;
  return () => new AudioFile(wrapper, path === "-" ? stdoutTarget(stdout) : new OutputFile(path, FILE));
}

const FILE = { what: "Output", flag: "out" } as const;

/** What a container puts around and between the frames. */
interface Wrapper {
  /** Before the first frame. */
  header(): Uint8Array;
  frame(frame: Uint8Array): Uint8Array;
  /** Behind the last frame. */
  trailer(): Uint8Array;
  /** The header again, now that the number of bytes behind it is known; undefined = it stays. */
  finalHeader?(dataBytes: number): Uint8Array;
}

interface Target {
  append(bytes: Uint8Array): void;
  /** Writes over the beginning, where that can be done. */
  rewrite(header: Uint8Array): void;
  close(): void;
  /** As `close`; where nothing was written, nothing is left. */
  discard(): void;
}

export class AudioFile {
  readonly #wrapper: Wrapper;
  readonly #target: Target;
  #headerBytes = 0;
  #bytes = 0;
  #hasBegun = false;
  #isClosed = false;

  constructor(wrapper: Wrapper, target: Target) {
    this.#wrapper = wrapper;
    this.#target = target;
  }

  /** What was written so far. */
  get bytes(): number {
    return this.#bytes;
  }

  write(frame: Uint8Array): void {
    if (this.#isClosed) return;
    this.#begin();
    this.#append(this.#wrapper.frame(frame));
  }

  /** Completes the file: last page, last MP3 frame, sizes in the header. Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.#begin();
      this.#append(this.#wrapper.trailer());
      const header = this.#wrapper.finalHeader?.(this.#bytes - this.#headerBytes);
      if (header !== undefined) this.#target.rewrite(header);
    } finally {
      this.#target.close();
    }
  }

  /** No speech comes: what came is completed, and where none did there is no file, or the one that was there before. */
  discard(): void {
    if (this.#hasBegun) this.close();
    this.#isClosed = true;
    this.#target.discard();
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#append(this.#wrapper.header());
    this.#headerBytes = this.#bytes;
  }

  #append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#target.append(bytes);
    this.#bytes += bytes.length;
  }
}

const NO_BYTES = new Uint8Array(0);

async function wrapperOf({ container, format }: OutputFormat): Promise<Wrapper> {
  switch (container) {
    case "raw":
      return { header: () => NO_BYTES, frame: (frame) => frame, trailer: () => NO_BYTES };
    case "wav":
      return wavWrapper(format);
    case "ogg":
      return oggWrapper();
    case "mp3":
      return await mp3Wrapper(format);
  }
}

/** The sizes stand at the front (RIFF), so the header is written twice; until then it says "until the end". */
function wavWrapper(format: AudioFormat): Wrapper {
  const { sampleRate } = AUDIO_FORMATS[format];
  return {
    header: () => wavHeader({ sampleRate, dataBytes: UNKNOWN_DATA_BYTES }),
    frame: (frame) => frame,
    trailer: () => NO_BYTES,
    finalHeader: (dataBytes) => wavHeader({ sampleRate, dataBytes }),
  };
}

function oggWrapper(): Wrapper {
  const writer = new OggOpusWriter({ preSkip: OPUS_LOOKAHEAD_48K, inputSampleRate: 48_000 });
  return {
    header: () => writer.header(),
    frame: (frame) => writer.push(frame, opusPacketSamples48k(frame)),
    trailer: () => writer.finish(),
  };
}

/** Enough for speech at the rate; the pairs are among the vendor's formats. */
const MP3_KBPS: Readonly<Record<number, number>> = { 22050: 32, 24000: 48, 44100: 128 };

async function mp3Wrapper(format: AudioFormat): Promise<Wrapper> {
  const { sampleRate } = AUDIO_FORMATS[format];
  const { createMp3Encoder } = await import("../../audio/codecs/mp3.ts");
  const encoder = await createMp3Encoder({ sampleRate, bitrateKbps: MP3_KBPS[sampleRate] ?? 0 });
  return {
    header: () => NO_BYTES,
    frame: (frame) => encoder.encode(samplesOf(frame)),
    trailer: () => encoder.finish(),
  };
}

/** A copy where the frame does not begin at an even address. */
function samplesOf(frame: Uint8Array): Int16Array {
  const bytes = frame.byteOffset % 2 === 0 ? frame : frame.slice();
  return new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1);
}

function stdoutTarget(stdout: Output): Target {
  return {
    append: (bytes) => stdout.write(bytes),
    rewrite: () => undefined,
    close: () => undefined,
    discard: () => undefined,
  };
}
