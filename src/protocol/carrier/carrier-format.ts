/** How carriers name audio formats, and how long their audio is. */
import type { AudioFormat } from "../vocabulary.ts";

/** 16-bit linear samples, by their rate in Hz: those of SAMPLE_RATES that carriers name. */
const LINEAR: ReadonlyMap<number, AudioFormat> = new Map([
  [8000, "pcm_8000"],
  [16000, "pcm_16000"],
  [24000, "pcm_24000"],
  [32000, "pcm_32000"],
  [44100, "pcm_44100"],
  [48000, "pcm_48000"],
]);

/** 16-bit linear at `sampleRate` Hz, or null where listeners can't ask for it. */
export function linearFormat(sampleRate: number): AudioFormat | null {
  return LINEAR.get(sampleRate) ?? null;
}

/**
 * The format that a carrier names, e.g. `audio/x-mulaw` or `PCMU` at 8000 Hz; null where it is not known here. The
 * names are those of RFC 3551 and RFC 4856, in any case, with or without `audio/` and `x-`.
 */
export function namedFormat(encoding: string, sampleRate: number): AudioFormat | null {
  const name = encoding.toLowerCase().replace(/^(audio\/)?(x-)?/, "");
  if (name === "mulaw" || name === "pcmu" || name === "ulaw") return sampleRate === 8000 ? "ulaw_8000" : null;
  if (name === "alaw" || name === "pcma") return sampleRate === 8000 ? "alaw_8000" : null;
  if (name === "l16" || name === "linear16") return linearFormat(sampleRate);
  return null;
}

/** Bytes of a millisecond of a listener's format, not of an upstream's; Opus packets have none. */
export function bytesPerMs(format: AudioFormat): number {
  const [codec, rate] = format.split("_");
  return ((codec === "pcm" ? 2 : 1) * Number(rate)) / 1000;
}

type CodecName<Format extends string> = Format extends `${infer Name}_${number}` ? Name : never;

/** The byte that, repeated, is silence (G.711: the level next to zero). Opus packets are never filled up. */
const SILENT_BYTES: Readonly<Record<CodecName<AudioFormat>, number>> = {
  ulaw: 0xff,
  alaw: 0xd5,
  pcm: 0,
  opus: 0,
};

export function silentByte(format: AudioFormat): number {
  return SILENT_BYTES[format.slice(0, format.indexOf("_")) as CodecName<AudioFormat>];
}
