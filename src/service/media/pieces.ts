/** What decoders of the service have in common: bytes in, mono samples out, a piece at a time. */

export interface PcmPiece {
  /** Mono; possibly none. */
  readonly pcm: Int16Array;
  /** Hz; of no meaning where there are no samples. */
  readonly sampleRate: number;
}

export interface PieceDecoder {
  push(bytes: Uint8Array): PcmPiece;
  /** What is left; nothing can be pushed after it. */
  finish(): PcmPiece;
  /** Idempotent. */
  close(): void;
}

/** The mean of all channels, -1..1, as 16-bit samples. */
export function toInt16(channels: readonly Float32Array[], samples: number): Int16Array {
  const pcm = new Int16Array(samples);
  const scale = 32_767 / Math.max(1, channels.length);
  for (let at = 0; at < samples; at += 1) {
    let sum = 0;
    for (const channel of channels) sum += channel[at] ?? 0;
    pcm[at] = Math.max(-32_768, Math.min(32_767, Math.round(sum * scale)));
  }
  return pcm;
}
