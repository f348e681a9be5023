/** RTP packets as they come from a peer (RFC 3550 section 5.1), and the keys that are dialled in them (RFC 4733). */

export interface RtpPacket {
  readonly payloadType: number;
  readonly hasMarker: boolean;
  readonly sequence: number;
  readonly timestamp: number;
  readonly ssrc: number;
  /** A view of the packet. */
  readonly payload: Uint8Array;
}

const HEADER_BYTES = 12;
const VERSION = 2;

/** Payload types that are RTCP on the port of RTP: its packet types 200-204 without their highest bit (RFC 5761 section 4). */
const RTCP_FIRST = 72;
const RTCP_LAST = 76;

/** null: not RTP (RTCP is none), or cut short. */
export function parseRtp(packet: Uint8Array): RtpPacket | null {
  if (packet.length < HEADER_BYTES) return null;
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const first = view.getUint8(0);
  if (first >> 6 !== VERSION) return null;
  const payloadType = view.getUint8(1) & 0x7f;
  if (payloadType >= RTCP_FIRST && payloadType <= RTCP_LAST) return null;
  let start = HEADER_BYTES + (first & 0x0f) * 4;
  if ((first & 0x10) !== 0) {
    if (start + 4 > packet.length) return null;
    start += 4 + view.getUint16(start + 2) * 4;
  }
  const padding = (first & 0x20) === 0 ? 0 : view.getUint8(packet.length - 1);
  const end = packet.length - padding;
  if (start > end || ((first & 0x20) !== 0 && padding === 0)) return null;
  return {
    payloadType,
    hasMarker: (view.getUint8(1) & 0x80) !== 0,
    sequence: view.getUint16(2),
    timestamp: view.getUint32(4),
    ssrc: view.getUint32(8),
    payload: packet.subarray(start, end),
  };
}

/** `fresh`: in order, after `missing` that did not come; `stale`: came before or too late. */
type SequenceVerdict = { readonly kind: "fresh"; readonly missing: number } | { readonly kind: "stale" };

/** How far back a packet is late and not the beginning of another stream (RFC 3550 appendix A.1: MAX_MISORDER). */
const MAX_LATE = 100;

/** Follows the sequence numbers of one source over their wrap. */
export class RtpSequence {
  #next: number | null = null;
  #ssrc: number | null = null;

  note({ sequence, ssrc }: Pick<RtpPacket, "sequence" | "ssrc">): SequenceVerdict {
    const next = this.#ssrc === ssrc ? this.#next : null;
    this.#ssrc = ssrc;
    const ahead = next === null ? 0 : (sequence - next) & 0xffff;
    if (ahead >= 0x1_0000 - MAX_LATE) return { kind: "stale" };
    this.#next = (sequence + 1) & 0xffff;
    // A leap of half the range or more is a sender that began again, not so many lost packets.
    return { kind: "fresh", missing: ahead < 0x8000 ? ahead : 0 };
  }
}

const DIGITS = "0123456789*#ABCD";
const EVENT_BYTES = 4;

/** Telephone events: one key is many packets of one timestamp, of which the last ones say that it is over. */
export class TelephoneEvents {
  readonly #clockRate: number;
  #lastTimestamp: number | null = null;

  /** `clockRate`: of the timestamps, Hz; 8000 beside G.711. */
  constructor(clockRate = 8000) {
    this.#clockRate = clockRate;
  }

  /** The key that is over with this packet, once; null: none, or not over yet. */
  push(packet: RtpPacket): { readonly digit: string; readonly durationMs: number } | null {
    const { payload, timestamp } = packet;
    if (payload.length < EVENT_BYTES) return null;
    const digit = DIGITS[payload[0] ?? 0xff];
    const isOver = ((payload[1] ?? 0) & 0x80) !== 0;
    if (digit === undefined || !isOver || this.#lastTimestamp === timestamp) return null;
    this.#lastTimestamp = timestamp;
    const duration = ((payload[2] ?? 0) << 8) | (payload[3] ?? 0);
    return { digit, durationMs: Math.round((duration * 1000) / this.#clockRate) };
  }
}
