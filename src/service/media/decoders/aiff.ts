/** AIFF and AIFC files piece by piece: integers of 8-32 bits in either order of bytes, floats, G.711; any channels. */
import type { PcmPiece } from "../pieces.ts";
import { invalidAudio, MAX_CHANNELS, requireRate, type UploadDecoder, unknownFormat } from "./decoder.ts";
import { floatReader, g711Reader, integerReader, type Layout, mix, type ReadSample } from "./samples.ts";

const FORM_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
/** AIFF's has 18; AIFC adds a codec and its name. */
const MIN_COMMON_BYTES = 18;
const MAX_COMMON_BYTES = 1024;
/** Offset and block size stand before the samples. */
const SOUND_HEADER_BYTES = 8;

type Stage =
  | { readonly name: "form" }
  | { readonly name: "chunk" }
  | { readonly name: "common"; readonly bytes: number }
  | { readonly name: "sound"; readonly bytes: number }
  | { readonly name: "skip"; bytes: number; readonly next: Stage }
  | { readonly name: "samples"; bytes: number }
  | { readonly name: "end" };

export class AiffDecoder implements UploadDecoder {
  #held: Uint8Array = new Uint8Array(0);
  #stage: Stage = { name: "form" };
  #layout: Layout | null = null;

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const pieces: PcmPiece[] = [];
    while (this.#step(pieces));
    // A copy: what is left must not hold on to the whole.
    this.#held = this.#held.slice();
    return pieces;
  }

  /** Samples that are cut off are played as far as they go. */
  async finish(): Promise<readonly PcmPiece[]> {
    if (this.#layout === null) throw invalidAudio("the AIFF file ends inside its header");
    return [];
  }

  close(): void {
    this.#held = new Uint8Array(0);
    this.#stage = { name: "end" };
  }

  /** False where more bytes are needed. */
  #step(pieces: PcmPiece[]): boolean {
    const stage = this.#stage;
    switch (stage.name) {
      case "form":
        return this.#take(FORM_BYTES, () => ({ name: "chunk" }));
      case "chunk":
        return this.#take(CHUNK_HEADER_BYTES, (view) => this.#chunk(view));
      case "common":
        return this.#take(stage.bytes, (view) => {
          this.#layout = layoutOf(view);
          return { name: "skip", bytes: stage.bytes % 2, next: { name: "chunk" } };
        });
      case "sound":
        return this.#take(SOUND_HEADER_BYTES, (view) => {
          const offset = view.getUint32(0);
          const bytes = Math.max(0, stage.bytes - SOUND_HEADER_BYTES - offset);
          return { name: "skip", bytes: offset, next: { name: "samples", bytes } };
        });
      case "skip":
        return this.#skip(stage);
      case "samples":
        return this.#samples(stage, pieces);
      case "end":
        this.#held = this.#held.subarray(this.#held.length);
        return false;
    }
  }

  #take(bytes: number, read: (view: DataView) => Stage): boolean {
    if (this.#held.length < bytes) return false;
    this.#stage = read(new DataView(this.#held.buffer, this.#held.byteOffset, bytes));
    this.#held = this.#held.subarray(bytes);
    return true;
  }

  #chunk(view: DataView): Stage {
    const name = nameAt(view, 0);
    const size = view.getUint32(4);
    if (name === "COMM") {
      if (size < MIN_COMMON_BYTES || size > MAX_COMMON_BYTES) {
        throw invalidAudio(`the AIFF file's COMM chunk has ${size} bytes`);
      }
      return { name: "common", bytes: size };
    }
    if (name !== "SSND") return { name: "skip", bytes: size + (size % 2), next: { name: "chunk" } };
    if (this.#layout === null) throw invalidAudio("the AIFF file has no COMM chunk before its samples");
    return { name: "sound", bytes: size };
  }

  #skip(stage: { bytes: number; readonly next: Stage }): boolean {
    const skipped = Math.min(stage.bytes, this.#held.length);
    this.#held = this.#held.subarray(skipped);
    stage.bytes -= skipped;
    if (stage.bytes > 0) return false;
    this.#stage = stage.next;
    return true;
  }

  #samples(stage: { bytes: number }, pieces: PcmPiece[]): boolean {
    const layout = this.#layout;
    if (layout === null) return false;
    const blockBytes = layout.channels * layout.bytesPerSample;
    const there = Math.min(stage.bytes, this.#held.length);
    const taken = there - (there % blockBytes);
    if (taken > 0) pieces.push(mix(this.#held.subarray(0, taken), layout));
    this.#held = this.#held.subarray(taken);
    stage.bytes -= taken;
    if (stage.bytes >= blockBytes) return false;
    this.#stage = { name: "end" };
    return true;
  }
}

function nameAt(view: DataView, at: number): string {
  return String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at, 4));
}

function layoutOf(view: DataView): Layout {
  const channels = view.getUint16(0);
  const bits = view.getUint16(6);
  const sampleRate = requireRate(Math.round(extendedAt(view, 8)));
  if (channels < 1 || channels > MAX_CHANNELS) {
    throw unknownFormat(`the AIFF file has ${channels} channels, which is not from 1 to ${MAX_CHANNELS}`);
  }
  const codec = view.byteLength >= 22 ? nameAt(view, 18) : "NONE";
  const bytesPerSample = /^[au]law$/i.test(codec) ? 1 : Math.ceil(bits / 8);
  const read = readerOf(codec, bytesPerSample);
  if (read === undefined) {
    // The name is the file's: letters and digits only.
    const shown = codec.replaceAll(/[^\w]/g, "?");
    throw unknownFormat(`the AIFF file has codec "${shown}" in ${bits} bits`);
  }
  return { sampleRate, channels, bytesPerSample, read };
}

function readerOf(codec: string, bytes: number): ReadSample | undefined {
  switch (codec) {
    case "NONE":
    case "twos":
    case "in24":
    case "in32":
      return bytes === 1 ? (view, at) => view.getInt8(at) / 128 : integerReader(bytes, false);
    case "sowt":
      return bytes === 1 ? (view, at) => view.getInt8(at) / 128 : integerReader(bytes, true);
    case "fl32":
    case "FL32":
    case "fl64":
    case "FL64":
      return floatReader(bytes, false);
    case "alaw":
    case "ALAW":
      return g711Reader("alaw");
    case "ulaw":
    case "ULAW":
      return g711Reader("ulaw");
    default:
      return undefined;
  }
}

/** The 80-bit float of the sample rate; its whole part. */
function extendedAt(view: DataView, at: number): number {
  const exponent = view.getUint16(at) & 0x7fff;
  return (
    view.getUint32(at + 2) * 2 ** (exponent - 16_383 - 31) +
    view.getUint32(at + 6) * 2 ** (exponent - 16_383 - 63)
  );
}
