/** Interleaved samples of any width as mono ones: what WAV and AIFF have in common. */
import { decodeAlaw, decodeUlaw } from "../../../audio/codecs/g711.ts";
import type { PcmPiece } from "../pieces.ts";

/** -1..1 of the sample at a byte. */
export type ReadSample = (view: DataView, at: number) => number;

export interface Layout {
  readonly sampleRate: number;
  readonly channels: number;
  readonly bytesPerSample: number;
  readonly read: ReadSample;
}

export function integerReader(bytes: number, isLittle: boolean): ReadSample | undefined {
  if (bytes === 2) return (view, at) => view.getInt16(at, isLittle) / 32_768;
  if (bytes === 3) {
    const [high, low] = isLittle ? [1, 0] : [0, 2];
    return (view, at) => (view.getInt16(at + high, isLittle) * 256 + view.getUint8(at + low)) / 8_388_608;
  }
  return bytes === 4 ? (view, at) => view.getInt32(at, isLittle) / 2_147_483_648 : undefined;
}

export function floatReader(bytes: number, isLittle: boolean): ReadSample | undefined {
  if (bytes === 4) return (view, at) => finite(view.getFloat32(at, isLittle));
  return bytes === 8 ? (view, at) => finite(view.getFloat64(at, isLittle)) : undefined;
}

export function g711Reader(law: "alaw" | "ulaw"): ReadSample {
  const decode = law === "alaw" ? decodeAlaw : decodeUlaw;
  const values = decode(Uint8Array.from({ length: 256 }, (_, byte) => byte));
  return (view, at) => (values[view.getUint8(at)] ?? 0) / 32_768;
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

/** The mean of the channels. `bytes`: whole blocks. */
export function mix(bytes: Uint8Array, { sampleRate, channels, bytesPerSample, read }: Layout): PcmPiece {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pcm = new Int16Array(bytes.length / (channels * bytesPerSample));
  const scale = 32_768 / channels;
  for (let frame = 0, at = 0; frame < pcm.length; frame += 1) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel += 1, at += bytesPerSample) sum += read(view, at);
    pcm[frame] = Math.max(-32_768, Math.min(32_767, Math.round(sum * scale)));
  }
  return { pcm, sampleRate };
}
