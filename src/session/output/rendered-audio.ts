/**
 * Rendered audio that is kept, for a listener that comes in a codec which nobody has yet: its rendition begins
 * where the listener does and not at the write head, which may be seconds ahead of what is heard.
 *
 *   kept     |slice|slice|slice|slice|   |slice|slice|   the hole is the silence between two utterances
 *   frames               |frame|frame|frame|frame|fra    from the one that holds the listener's place
 */

import { createOpusDecoder, type OpusDecoder } from "../../audio/codecs/opus-decoder.ts";
import { bytesPerSample, decodeSamples, sampledFormatOf } from "../../audio/codecs/samples.ts";
import { opusPacketSamples48k } from "../../audio/containers/ogg-reader.ts";
import { AUDIO_FORMATS } from "../../audio/formats.ts";
import { Rendition, type RenditionOptions, type RenditionShape } from "../../delivery/rendition.ts";
import { type Clock, soon } from "../../kit/clock.ts";
import { TICKS_PER_MS, ticksPerSample } from "../../timing/ticks.ts";
import { isPassThrough, UPSTREAM_OPUS_PACKET_MS } from "../route.ts";
import { OPUS_PREROLL_PACKETS } from "../source.ts";
import type { PlacedSlice, RecentAudio } from "./recent-audio.ts";

const OPUS_PREROLL_TICKS = OPUS_PREROLL_PACKETS * UPSTREAM_OPUS_PACKET_MS * TICKS_PER_MS;
const OPUS_RATE = 48_000;

type KeptSlice = PlacedSlice["slice"];

export interface RenderedAudio {
  /** End of all audio rendered. */
  readonly writeTicks: number;
  readonly recent: RecentAudio;
  /**
   * Where the utterance began that stands at the listener's place, or at the oldest audio that is kept behind it: its frames
   * are counted from there. null: none does.
   */
  readonly utteranceTicks: number | null;
  /** Whether the utterance at the write head goes on; where not, its last frame is filled. */
  readonly isOpen: boolean;
}

/**
 * A rendition whose first frame holds `fromTicks`, with all that was rendered from there on; where that is not kept, it begins
 * with what is, or at the write head. Throws encoder_failed where what is kept can't be decoded.
 */
export function renditionFrom(
  rendered: RenderedAudio,
  fromTicks: number,
  options: Omit<RenditionOptions, "startTicks"> & { readonly clock: Clock },
): Rendition {
  const frameTicks = options.frameMs * TICKS_PER_MS;
  const firstTicks = startOf(rendered, fromTicks, frameTicks);
  const startTicks = hasPreroll(rendered, firstTicks, options) ? firstTicks - frameTicks : firstTicks;
  let isJoined = false;
  const rendition = new Rendition({
    ...options,
    startTicks,
    onError: (error) => {
      if (isJoined) options.onError(error);
      // The listener that it would be reported to has not joined yet.
      else soon(options.clock, () => options.onError(error));
    },
  });
  try {
    if (startTicks < rendered.writeTicks) pushKept(rendition, startTicks, rendered);
  } catch (thrown) {
    rendition.close();
    throw thrown;
  }
  isJoined = true;
  return rendition;
}

function startOf(rendered: RenderedAudio, fromTicks: number, frameTicks: number): number {
  const oldestTicks = rendered.recent.startTicks;
  if (oldestTicks === null || fromTicks >= rendered.writeTicks) return rendered.writeTicks;
  // As for those who were there from the beginning: samples of all rates begin together with an utterance.
  const gridTicks = rendered.utteranceTicks ?? oldestTicks;
  const frame = (Math.max(fromTicks, oldestTicks) - gridTicks) / frameTicks;
  // A frame of which the beginning is gone would be silence there without a word to anybody: it counts as missed.
  const wholeFrames = fromTicks < oldestTicks ? Math.ceil(frame) : Math.floor(frame);
  return Math.min(rendered.writeTicks, gridTicks + wholeFrames * frameTicks);
}

/**
 * Whether a frame before the first is rendered as well: a resampler that begins in the middle of speech rises from silence, and
 * whoever had this audio in other frames would hear that. An encoder's first frame stands alone: its decoder begins there too.
 */
function hasPreroll(
  rendered: RenderedAudio,
  firstTicks: number,
  { format, frameMs }: RenditionShape,
): boolean {
  if (AUDIO_FORMATS[format].codec === "opus" || firstTicks >= rendered.writeTicks) return false;
  const fromTicks = firstTicks - frameMs * TICKS_PER_MS;
  return fromTicks >= Math.max(rendered.recent.startTicks ?? firstTicks, rendered.utteranceTicks ?? 0);
}

function pushKept(rendition: Rendition, startTicks: number, rendered: RenderedAudio): void {
  const decoder = new KeptDecoder();
  let atTicks = startTicks;
  const sampleTicks = ticksPerSample(AUDIO_FORMATS[rendition.format].sampleRate);
  // Speech may end between two samples of this rate: what the resampler rounded up is no silence any more.
  const samplesTo = (ticks: number): number => Math.round((ticks - startTicks) / sampleTicks);
  const padTo = (ticks: number): void => {
    if (ticks <= atTicks) return;
    rendition.pushSilence((samplesTo(ticks) - samplesTo(atTicks)) * sampleTicks);
    rendition.startTalkspurt();
    atTicks = ticks;
  };
  try {
    for (const kept of rendered.recent.since(startTicks - OPUS_PREROLL_TICKS)) {
      padTo(kept.startTicks);
      const { slice } = kept;
      const doneTicks = atTicks - kept.startTicks;
      if (isPassThrough(rendition, slice.format)) {
        for (const bytes of rawBehind(slice, doneTicks)) rendition.pushPassThrough(bytes);
      } else {
        const { pcm, rate } = decoder.decode(slice);
        const rest = pcm.subarray(Math.round(doneTicks / ticksPerSample(rate)));
        if (rest.length > 0) rendition.pushPcm(rest, rate);
      }
      atTicks = Math.max(atTicks, kept.startTicks + slice.ticks);
    }
  } finally {
    decoder.close();
  }
  if (rendered.isOpen) padTo(rendered.writeTicks);
  else rendition.flush();
}

/** The bytes without the first `ticks`: whole samples, or packets. */
function rawBehind(slice: KeptSlice, ticks: number): readonly Uint8Array[] {
  const sampled = sampledFormatOf(slice.format);
  if (sampled !== null) {
    const samples = Math.round(ticks / ticksPerSample(sampled.sampleRate));
    return slice
      .raw()
      .map((bytes) => bytes.subarray(samples * bytesPerSample(sampled.codec)))
      .filter((bytes) => bytes.byteLength > 0);
  }
  let atTicks = 0;
  return slice.raw().filter((packet) => {
    const isBehind = atTicks >= ticks;
    atTicks += opusPacketSamples48k(packet) * ticksPerSample(OPUS_RATE);
    return isBehind;
  });
}

class KeptDecoder {
  #opus: OpusDecoder | null = null;

  decode(slice: KeptSlice): { readonly pcm: Int16Array; readonly rate: number } {
    const sampled = sampledFormatOf(slice.format);
    const pieces = slice
      .raw()
      .map((bytes) => (sampled === null ? this.#decodeOpus(bytes) : decodeSamples(sampled.codec, bytes)));
    const pcm = new Int16Array(pieces.reduce((total, piece) => total + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      pcm.set(piece, at);
      at += piece.length;
    }
    return { pcm, rate: sampled?.sampleRate ?? OPUS_RATE };
  }

  close(): void {
    this.#opus?.close();
    this.#opus = null;
  }

  #decodeOpus(packet: Uint8Array): Int16Array {
    this.#opus ??= createOpusDecoder();
    return this.#opus.decode(packet);
  }
}
