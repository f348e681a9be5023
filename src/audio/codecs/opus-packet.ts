/** What an Opus packet says of itself: its table-of-contents byte (RFC 6716 section 3.1). */

/** Frame durations at 48 kHz of the three modes, by the low bits of the configuration number. */
const SILK_SAMPLES = [480, 960, 1920, 2880] as const;
const HYBRID_SAMPLES = [480, 960] as const;
const CELT_SAMPLES = [120, 240, 480, 960] as const;

/** Duration in samples at 48 kHz; 0 for bytes that are no packet. */
export function opusPacketSamples48k(packet: Uint8Array): number {
  const toc = packet[0];
  if (toc === undefined) return 0;
  const samples = frameSamples48k(toc >> 3) * frameCount(toc, packet);
  // No packet is longer than 120 ms (RFC 6716 requirement R5).
  return samples > 5760 ? 0 : samples;
}

function frameSamples48k(config: number): number {
  if (config < 12) return SILK_SAMPLES[config & 3] ?? 0;
  if (config < 16) return HYBRID_SAMPLES[config & 1] ?? 0;
  return CELT_SAMPLES[config & 3] ?? 0;
}

function frameCount(toc: number, packet: Uint8Array): number {
  const code = toc & 3;
  if (code === 0) return 1;
  return code < 3 ? 2 : (packet[1] ?? 0) & 0x3f;
}

/** A packet of `frameMs` (10, 20, 40 or 60) without any content: decoders conceal it, and their clock goes on. */
export function concealmentPacket(frameMs: number): Uint8Array {
  return celtPacket(frameMs, []);
}

/** The same of digital silence, by the silence flag of its frames: unlike an empty packet it is not concealed with an echo. */
export function silentPacket(frameMs: number): Uint8Array {
  return celtPacket(frameMs, [0xff, 0xfe]);
}

/** CELT, full band, mono, each frame of these bytes (RFC 6716 sections 3.1, 3.2 and 4.3). */
function celtPacket(frameMs: number, frame: readonly number[]): Uint8Array {
  const celt10 = 30 << 3;
  const celt20 = 31 << 3;
  if (frameMs === 10) return Uint8Array.of(celt10, ...frame);
  if (frameMs === 20) return Uint8Array.of(celt20, ...frame);
  if (frameMs === 40) return Uint8Array.of(celt20 | 1, ...frame, ...frame);
  if (frameMs === 60) return Uint8Array.of(celt20 | 3, 3, ...frame, ...frame, ...frame);
  throw new RangeError(`Cannot make an Opus packet: ${frameMs} ms, expected 10, 20, 40 or 60`);
}
