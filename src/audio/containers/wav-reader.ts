/** A whole WAV file in memory -> the bytes of one of the upstream's formats: 16-bit PCM (channels are mixed) or mono G.711. */
import { bytesOf } from "../codecs/pcm.ts";

const TAGS: Readonly<Record<number, "pcm" | "alaw" | "ulaw">> = { 1: "pcm", 6: "alaw", 7: "ulaw" };
const TAG_EXTENSIBLE = 0xfffe;
const FMT_BYTES = 16;
const MAX_CHANNELS = 8;

interface WavSound {
  /** As `pcm_16000` or `ulaw_8000`; not every rate is one that can be resampled. */
  readonly format: string;
  readonly audio: Uint8Array;
}

interface Layout {
  readonly codec: "pcm" | "alaw" | "ulaw";
  readonly sampleRate: number;
  readonly channels: number;
}

/** What is wrong with a file, for the end of a sentence. */
export class WavError extends Error {}

/** Throws WavError. A file that is cut off is read as far as it goes. */
export function readWav(file: Uint8Array): WavSound {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < 12 || nameAt(file, 0) !== "RIFF" || nameAt(file, 8) !== "WAVE") {
    throw new WavError("it does not begin as a WAV file");
  }
  let layout: Layout | null = null;
  for (let at = 12; at + 8 <= file.length; ) {
    const size = view.getUint32(at + 4, true);
    const [from, end] = [at + 8, Math.min(file.length, at + 8 + size)];
    const name = nameAt(file, at);
    if (name === "fmt ") layout = layoutOf(new DataView(file.buffer, file.byteOffset + from, end - from));
    if (name === "data") {
      if (layout === null) throw new WavError("its data comes before its format");
      return soundOf(layout, file.subarray(from, end));
    }
    at = from + size + (size % 2);
  }
  throw new WavError("it has no data");
}

function layoutOf(fmt: DataView): Layout {
  if (fmt.byteLength < FMT_BYTES) throw new WavError("its format is cut off");
  const tag = fmt.getUint16(0, true);
  const isExtensible = tag === TAG_EXTENSIBLE && fmt.byteLength >= 26;
  const codec = TAGS[isExtensible ? fmt.getUint16(24, true) : tag];
  const channels = fmt.getUint16(2, true);
  const bits = fmt.getUint16(14, true);
  if (codec === undefined || bits !== (codec === "pcm" ? 16 : 8)) {
    throw new WavError(`it has format ${tag} with ${bits} bits, expected 16-bit PCM or G.711`);
  }
  if (channels < 1 || channels > (codec === "pcm" ? MAX_CHANNELS : 1)) {
    throw new WavError(
      `it has ${channels} channels, expected 1${codec === "pcm" ? ` to ${MAX_CHANNELS}` : ""}`,
    );
  }
  return { codec, channels, sampleRate: fmt.getUint32(4, true) };
}

function soundOf({ codec, sampleRate, channels }: Layout, data: Uint8Array): WavSound {
  const format = `${codec}_${sampleRate}`;
  if (codec !== "pcm") return { format, audio: data };
  const samples = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const mixed = new Int16Array(Math.floor(data.byteLength / 2 / channels));
  for (let at = 0; at < mixed.length; at += 1) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel += 1) {
      sum += samples.getInt16((at * channels + channel) * 2, true);
    }
    mixed[at] = Math.round(sum / channels);
  }
  return { format, audio: bytesOf(mixed) };
}

function nameAt(file: Uint8Array, at: number): string {
  return Buffer.from(file.subarray(at, at + 4)).toString("latin1");
}
