/** What a packet of Opus says of itself in its first byte (RFC 6716, section 3.1), read here once more for the tests. */
export interface OpusToc {
  /** At 48 kHz, of one frame. */
  readonly frameSamples: number;
  readonly isStereo: boolean;
  /** Code 0: one frame in the packet. */
  readonly isOneFrame: boolean;
}

export function opusToc(packet: Uint8Array): OpusToc {
  const toc = packet[0] ?? 0;
  return {
    frameSamples: frameSamplesOf(toc >> 3),
    isStereo: (toc & 4) !== 0,
    isOneFrame: packet.length > 0 && (toc & 3) === 0,
  };
}

/** SILK up to 11, hybrid up to 15, CELT. */
function frameSamplesOf(config: number): number {
  if (config < 12) return [480, 960, 1920, 2880][config & 3] ?? 0;
  return config < 16 ? ([480, 960][config & 1] ?? 0) : ([120, 240, 480, 960][config & 3] ?? 0);
}
