/** The audio of speech that was cut, as far as it is kept: cut out as one upstream response would bring it. */
import { concatBytes } from "../../audio/bytes.ts";
import { OggOpusWriter } from "../../audio/containers/ogg.ts";
import { opusPacketSamples48k } from "../../audio/containers/ogg-reader.ts";
import { TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { PlacedSlice } from "../output/recent-audio.ts";
import type { Slice } from "../source.ts";

/** Places on the timeline. */
interface Range {
  readonly fromTicks: number;
  readonly untilTicks: number;
}

interface KeptAudio {
  readonly bytes: Uint8Array;
  /** Where it began. */
  readonly startTicks: number;
}

/** Slices that were not rendered, as they would have followed from `writeTicks` on. */
export function placeBehind(slices: readonly Slice[], writeTicks: number): PlacedSlice[] {
  let startTicks = writeTicks;
  return slices.map((slice) => {
    const placed = { startTicks, slice };
    startTicks += slice.ticks;
    return placed;
  });
}

/** The audio between two places, cut at samples or packets; null where there is none. */
export function cutOut(placed: readonly PlacedSlice[], range: Range): KeptAudio | null {
  const pieces: Uint8Array[] = [];
  let startTicks: number | null = null;
  const format = placed[0]?.slice.format ?? "";
  const isOpus = format.startsWith("opus");
  const bytesPerSample = format.startsWith("pcm") ? 2 : 1;
  for (const { startTicks: sliceTicks, slice } of placed) {
    let at = sliceTicks;
    for (const raw of slice.raw()) {
      const ticks = isOpus ? packetTicks(raw) : slice.ticks;
      const ticksPerSample = isOpus ? ticks : (ticks * bytesPerSample) / raw.byteLength;
      // A packet is taken whole where any of it is wanted: rather the end of a word before than half a sound.
      const before = (range.fromTicks - at) / ticksPerSample;
      const skipped = Math.max(0, isOpus ? Math.floor(before) : Math.ceil(before));
      const wanted = Math.ceil((range.untilTicks - at) / ticksPerSample);
      const piece = isOpus
        ? wholePacket(raw, skipped, wanted)
        : raw.subarray(skipped * bytesPerSample, Math.max(0, wanted) * bytesPerSample);
      if (piece.byteLength > 0) {
        startTicks ??= at + skipped * ticksPerSample;
        pieces.push(piece);
      }
      at += ticks;
    }
  }
  if (startTicks === null) return null;
  // A copy, be it of one piece: the memory of those that were not rendered is used again.
  return { bytes: isOpus ? inOgg(pieces) : new Uint8Array(concatBytes(pieces)), startTicks };
}

function wholePacket(packet: Uint8Array, skipped: number, wanted: number): Uint8Array {
  return skipped < 1 && wanted > 0 ? packet : packet.subarray(0, 0);
}

function packetTicks(packet: Uint8Array): number {
  return (opusPacketSamples48k(packet) * TICKS_PER_SECOND) / 48_000;
}

/** Packets as an upstream sends them; what decoders skip at the start is on the timeline already. */
function inOgg(packets: readonly Uint8Array[]): Uint8Array {
  const writer = new OggOpusWriter({ preSkip: 0, inputSampleRate: 48_000 });
  const pages = [writer.header()];
  for (const packet of packets) pages.push(writer.push(packet, opusPacketSamples48k(packet)));
  pages.push(writer.finish());
  return concatBytes(pages);
}
