/** Codecs whose bytes are samples, G.711 and PCM: which format is one, and its samples as 16 bits and back. */

import { parseUpstreamFormat } from "../formats.ts";
import { decodeAlaw, decodeUlaw, encodeAlaw, encodeUlaw } from "./g711.ts";
import { bytesOf } from "./pcm.ts";

/** Codecs whose bytes can be cut at any sample. PCM is 16-bit little-endian. */
export type SampleCodec = "ulaw" | "alaw" | "pcm";

/** Codec and rate (Hz) of an upstream's format; null where it is compressed, or unknown. */
export function sampledFormatOf(
  format: string,
): { readonly codec: SampleCodec; readonly sampleRate: number } | null {
  const { codec, sampleRate } = parseUpstreamFormat(format) ?? {};
  const isSampled = codec === "ulaw" || codec === "alaw" || codec === "pcm";
  return isSampled && sampleRate !== undefined ? { codec, sampleRate } : null;
}

export function bytesPerSample(codec: SampleCodec): 1 | 2 {
  switch (codec) {
    case "ulaw":
    case "alaw":
      return 1;
    case "pcm":
      return 2;
  }
}

/** Whole samples to 16 bits. The result is the caller's own: never a view of `bytes`. */
export function decodeSamples(codec: SampleCodec, bytes: Uint8Array): Int16Array {
  switch (codec) {
    case "ulaw":
      return decodeUlaw(bytes);
    case "alaw":
      return decodeAlaw(bytes);
    case "pcm": {
      const pcm = new Int16Array(bytes.length >> 1);
      bytesOf(pcm).set(bytes.subarray(0, pcm.byteLength));
      return pcm;
    }
  }
}

/** PCM comes back as a view of `pcm`. */
export function encodeSamples(codec: SampleCodec, pcm: Int16Array): Uint8Array {
  switch (codec) {
    case "ulaw":
      return encodeUlaw(pcm);
    case "alaw":
      return encodeAlaw(pcm);
    case "pcm":
      return bytesOf(pcm);
  }
}
