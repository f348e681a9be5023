/**
 * Takes the WAV headers out of audio that comes in pieces, and says what the samples behind each are. Services put one in
 * front of a stream, of each of its chunks or of each sentence, where samples alone were asked for; and many say no length.
 */
import { GatewayError } from "../../errors.ts";
import type { SampleCodec } from "../codecs/samples.ts";
import { isWavHeader } from "./wav.ts";

export interface Sampled {
  /** `f32`: little-endian floats from -1 to 1. */
  readonly codec: SampleCodec | "f32";
  /** Hz. */
  readonly sampleRate: number;
  /** Samples that lie beside one another. */
  readonly channels: number;
}

export interface StripperOptions {
  /** What comes without a header; null: a header has to say it. */
  readonly plain: Sampled | null;
  /** May be a view of what was pushed, cut anywhere. Called from within `push`. */
  readonly onSamples: (bytes: Uint8Array, sampled: Sampled) => void;
}

const RIFF_BYTES = 12;
const CHUNK_BYTES = 8;
/** `RIFF....WAVEfmt `: as much of a header as can't be samples by chance. */
const START_BYTES = 16;
const RIFF = Buffer.from("RIFF");
/** Longest header, with the chunks before its samples. */
const MAX_HEADER_BYTES = 16 * 1024;
const MIN_FORMAT_BYTES = 16;
/** Where an extensible format has its real tag. */
const EXTENSIBLE_TAG_AT = 24;
const TAGS: ReadonlyMap<number, { readonly codec: Sampled["codec"]; readonly bits: number }> = new Map([
  [1, { codec: "pcm", bits: 16 }],
  [3, { codec: "f32", bits: 32 }],
  [6, { codec: "alaw", bits: 8 }],
  [7, { codec: "ulaw", bits: 8 }],
]);
const FORMATS = "expected PCM of 16 bits, floats of 32, or mu-law or A-law of 8";
const TAG_EXTENSIBLE = 0xfffe;
const MAX_CHANNELS = 8;
/** Lengths that writers put where they don't know it: nothing, all ones, the largest that is signed, and a little less. */
const UNKNOWN_FROM = 0x7fff_f000;
const NO_BYTES = new Uint8Array(0);

type State =
  /** Nothing has come, or a header may: at the start of the audio or of a chunk, or behind samples whose length a header has said. */
  | { readonly kind: "start" }
  | { readonly kind: "header" }
  | { readonly kind: "samples"; left: number; readonly isPadded?: boolean }
  /** What stands behind the samples, of no interest. */
  | { readonly kind: "skip"; left: number; readonly isPadded?: never };

export class WavStripper {
  readonly #options: StripperOptions;
  #state: State = { kind: "start" };
  /** What has come of a header, or of what may be one. */
  #kept: Uint8Array = NO_BYTES;
  /** As the last header says. */
  #sampled: Sampled | null;
  #hasHeader = false;

  constructor(options: StripperOptions) {
    this.#options = options;
    this.#sampled = options.plain;
  }

  /** What comes without a header; before anything was pushed. */
  setPlain(plain: Sampled): void {
    this.#sampled = plain;
  }

  /** A new chunk begins, which may have a header of its own. What was kept of the one before is samples. */
  startChunk(): void {
    if (this.#state.kind === "header") throw broken("its WAV header is cut off");
    const kept = this.#takeKept();
    // Too little to be a chunk of a file that had one.
    if (kept.length > 0 && (!this.#hasHeader || this.#state.kind === "samples")) this.#samples(kept);
    this.#state = { kind: "start" };
  }

  /** Throws upstream_protocol for a header that can't be read, upstream_not_speech where none says what the samples are. */
  push(piece: Uint8Array): void {
    let bytes = piece;
    while (bytes.length > 0) bytes = this.#step(bytes);
  }

  /** Nothing follows. Throws as `push`, and upstream_truncated where a header has said more. */
  finish(): void {
    const state = this.#state;
    this.startChunk();
    if (state.kind !== "samples" || !Number.isFinite(state.left)) return;
    throw new GatewayError(
      "upstream_truncated",
      `The upstream's audio ends early: ${state.left} bytes that its WAV header says are missing`,
    );
  }

  /** Returns what is left of the bytes. */
  #step(bytes: Uint8Array): Uint8Array {
    const state = this.#state;
    switch (state.kind) {
      case "start":
        return this.#sniff(bytes);
      case "header":
        return this.#header(bytes);
      case "samples":
      case "skip": {
        if (this.#hasHeader && !Number.isFinite(state.left)) return this.#endless(bytes);
        const taken = bytes.subarray(0, state.left);
        if (state.kind === "samples") this.#samples(taken);
        state.left -= taken.length;
        if (state.left === 0) this.#state = state.isPadded ? { kind: "skip", left: 1 } : { kind: "start" };
        return bytes.subarray(taken.length);
      }
    }
  }

  #sniff(bytes: Uint8Array): Uint8Array {
    const all = this.#join(bytes);
    const needed = mayBeRiff(all) ? RIFF_BYTES : this.#hasHeader ? CHUNK_BYTES : 0;
    if (all.length < needed) {
      this.#kept = Uint8Array.from(all);
      return NO_BYTES;
    }
    if (isWavHeader(all)) {
      this.#state = { kind: "header" };
      return all;
    }
    // Behind samples of a known length come other chunks of the file.
    const trailer = this.#hasHeader ? trailerBytes(all) : 0;
    this.#state =
      trailer > 0 ? { kind: "skip", left: trailer } : { kind: "samples", left: Number.POSITIVE_INFINITY };
    return all;
  }

  /** Samples behind a header without a length: another one ends them, as where each sentence is a stream of its own. */
  #endless(bytes: Uint8Array): Uint8Array {
    const all = this.#join(bytes);
    const at = headerAt(all);
    this.#samples(all.subarray(0, at));
    const rest = all.subarray(at);
    if (rest.length >= START_BYTES) {
      this.#state = { kind: "header" };
      return rest;
    }
    this.#kept = Uint8Array.from(rest);
    return NO_BYTES;
  }

  #header(bytes: Uint8Array): Uint8Array {
    const all = this.#join(bytes);
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength);
    let sampled: Sampled | null = null;
    let at = RIFF_BYTES;
    while (at + CHUNK_BYTES <= all.length) {
      const name = nameAt(view, at);
      const size = view.getUint32(at + 4, true);
      at += CHUNK_BYTES;
      if (name === "data") {
        this.#sampled = sampled ?? fail("its WAV header has no format before its samples");
        this.#hasHeader = true;
        const isUnknown = size === 0 || size >= UNKNOWN_FROM;
        this.#state = isUnknown
          ? { kind: "samples", left: Number.POSITIVE_INFINITY }
          : { kind: "samples", left: size, isPadded: size % 2 === 1 };
        return all.subarray(at);
      }
      if (name === "fmt ") {
        if (size < MIN_FORMAT_BYTES) throw broken(`its WAV header has a format of ${size} bytes`);
        if (at + size > all.length) break;
        sampled = formatAt(new DataView(all.buffer, all.byteOffset + at, size));
      }
      at += size + (size % 2);
      if (at > MAX_HEADER_BYTES) throw broken(`its WAV header is longer than ${MAX_HEADER_BYTES} bytes`);
    }
    this.#kept = Uint8Array.from(all);
    return NO_BYTES;
  }

  #join(bytes: Uint8Array): Uint8Array {
    const kept = this.#takeKept();
    if (kept.length === 0) return bytes;
    const all = new Uint8Array(kept.length + bytes.length);
    all.set(kept);
    all.set(bytes, kept.length);
    return all;
  }

  #takeKept(): Uint8Array {
    const kept = this.#kept;
    this.#kept = NO_BYTES;
    return kept;
  }

  #samples(bytes: Uint8Array): void {
    const sampled =
      this.#sampled ??
      notSpeech(
        "it has no WAV header, and nothing says at which rate it is: expected one, or its rate as sample-rate",
      );
    if (bytes.length > 0) this.#options.onSamples(bytes, sampled);
  }
}

function formatAt(format: DataView): Sampled {
  const plainTag = format.getUint16(0, true);
  const isExtensible = plainTag === TAG_EXTENSIBLE && format.byteLength > EXTENSIBLE_TAG_AT + 1;
  const tag = isExtensible ? format.getUint16(EXTENSIBLE_TAG_AT, true) : plainTag;
  const channels = format.getUint16(2, true);
  const sampleRate = format.getUint32(4, true);
  const bits = format.getUint16(14, true);
  const known = TAGS.get(tag);
  if (known?.bits !== bits) notSpeech(`its WAV header says format ${tag} of ${bits} bits, ${FORMATS}`);
  if (channels < 1 || channels > MAX_CHANNELS) throw broken(`its WAV header says ${channels} channels`);
  return { codec: known.codec, sampleRate, channels };
}

/** Where the next header begins, or may begin at the end of what has come; the length: nowhere. */
function headerAt(bytes: Uint8Array): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = buffer.indexOf(RIFF); at >= 0; at = buffer.indexOf(RIFF, at + 1)) {
    const kind = buffer.toString("latin1", at + CHUNK_BYTES, at + START_BYTES);
    if ("WAVEfmt ".startsWith(kind)) return at;
  }
  const isStart = (length: number): boolean => buffer.subarray(-length).equals(RIFF.subarray(0, length));
  const held = [3, 2, 1].find((length) => length <= buffer.length && isStart(length)) ?? 0;
  return buffer.length - held;
}

/** Whether these bytes begin as a header does, as far as they go. */
function mayBeRiff(bytes: Uint8Array): boolean {
  return "RIFF".startsWith(Buffer.from(bytes.subarray(0, 4)).toString("latin1"));
}

/** Length of a chunk that is no header and no samples; 0: it does not look like one. */
function trailerBytes(bytes: Uint8Array): number {
  if (bytes.length < CHUNK_BYTES) return 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isNamed = /^(?:LIST|id3 |ID3 |fact|cue |JUNK|bext|smpl)$/.test(nameAt(view, 0));
  const size = view.getUint32(4, true);
  return isNamed ? CHUNK_BYTES + size + (size % 2) : 0;
}

function nameAt(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((index) => view.getUint8(at + index)));
}

/** It is sound, and would be of the same kind the next time. */
function notSpeech(what: string): never {
  throw new GatewayError("upstream_not_speech", `The upstream's audio can't be used: ${what}`);
}

function fail(what: string): never {
  throw broken(what);
}

function broken(what: string): GatewayError {
  return new GatewayError("upstream_protocol", `The upstream's audio can't be used: ${what}`);
}
