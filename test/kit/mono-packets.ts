/** Packets of Opus as Discord takes them: 20 ms of 48 kHz mono each, which libopus decodes without an error. */
import { OpusDecoder } from "opus-decoder";
import { expect } from "vitest";
import { opusToc } from "./opus-toc.ts";

/** Checks the packets and returns what is heard on either side, -1..1. */
export async function decodeMonoPackets(packets: readonly Uint8Array[]): Promise<Float32Array> {
  const expected = { frameSamples: 960, isStereo: false, isOneFrame: true };
  expect(packets.map(opusToc)).toEqual(packets.map(() => expected));
  const decoder = new OpusDecoder({ channels: 2 });
  await decoder.ready;
  const { channelData, errors, samplesDecoded } = decoder.decodeFrames([...packets]);
  decoder.free();
  expect(errors).toEqual([]);
  expect(samplesDecoded).toBe(packets.length * 960);
  // Mono packets sound on both sides.
  const [left = new Float32Array(), right] = channelData;
  expect(right).toEqual(left);
  return left;
}
