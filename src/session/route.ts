/**
 * Which format to ask the upstream for, decided once an utterance from what its listeners need. One codec for all:
 * ask for that and pass it through. Several, or one that the upstream lacks: ask for PCM good enough for the best of them and
 * encode each once.
 */
import { AUDIO_FORMATS, isStreamFormat, type StreamFormat, streamedPcm } from "../audio/formats.ts";
import type { Config } from "../config.ts";
import type { AudioFormat, Band } from "../protocol/vocabulary.ts";

/** Packet length that the upstream's Opus comes in; other frame lengths have to be encoded here. */
export const UPSTREAM_OPUS_PACKET_MS = 20;

export interface Need {
  readonly format: AudioFormat;
  readonly frameMs: number;
  readonly band: Band;
}

export interface RouteOptions {
  /**
   * Bit rate asked for when Opus is passed through; null: the voice's upstream makes none, and the threads that encode are the
   * session's.
   */
  readonly opusBitrateKbps: Config["opusBitrateKbps"] | null;
  /** Its samples get a gain, so that nothing can be passed through: they are encoded once, behind that. */
  readonly isLevelled: boolean;
}

/** Nobody listening: the fewest bytes. */
export function chooseSourceFormat(
  needs: readonly Need[],
  { opusBitrateKbps, isLevelled }: RouteOptions,
): StreamFormat {
  const [first] = needs;
  if (first === undefined) return "ulaw_8000";
  const isFull = needs.every((need) => need.band === "full");
  if (!isLevelled && isFull && needs.every((need) => need.format === first.format)) {
    if (isStreamFormat(first.format)) return first.format;
    const isOpus = first.format === "opus_48000";
    if (isOpus && opusBitrateKbps !== null && needs.every((need) => need.frameMs === UPSTREAM_OPUS_PACKET_MS))
      return `opus_48000_${opusBitrateKbps}`;
  }
  // Opus is encoded from 24 kHz: above that a voice has nothing that Opus at speech bit rates would keep, and
  // PCM over 24 kHz is reserved for the vendor's larger plans.
  const rates = needs.map((need) =>
    need.format === "opus_48000" ? 24_000 : AUDIO_FORMATS[need.format].sampleRate,
  );
  return streamedPcm(Math.max(...rates));
}

/** Whether a rendition can take the upstream's bytes as they are. */
export function isPassThrough(need: Need, sourceFormat: string): boolean {
  if (need.band !== "full") return false;
  if (need.format !== "opus_48000") return need.format === sourceFormat;
  return sourceFormat.startsWith("opus_48000_") && need.frameMs === UPSTREAM_OPUS_PACKET_MS;
}
