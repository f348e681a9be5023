/** RTP packets around audio frames (RFC 3550 section 5.1; payload formats of RFC 3551 and, for Opus, RFC 7587). */
import type { AudioFormat } from "../../protocol/vocabulary.ts";

/** Dynamic payload types (RFC 3551 section 6: 96-127): ours to choose; docs/protocol.md names them. */
const OPUS_PAYLOAD_TYPE = 111;
const L16_PAYLOAD_TYPE = 96;
/** Static type of L16 mono at 44,100 Hz (RFC 3551 table 4). */
const L16_44100_PAYLOAD_TYPE = 11;

const HEADER_BYTES = 12;
const VERSION_2 = 0x80;
const MARKER = 0x80;

/** PCMU 0, PCMA 8, L16 mono at 44,100 Hz 11, other L16 96, Opus 111. */
export function rtpPayloadType(format: AudioFormat): number {
  switch (format) {
    case "ulaw_8000":
      return 0;
    case "alaw_8000":
      return 8;
    case "opus_48000":
      return OPUS_PAYLOAD_TYPE;
    case "pcm_44100":
      return L16_44100_PAYLOAD_TYPE;
    default:
      return L16_PAYLOAD_TYPE;
  }
}

export interface RtpPacketizerOptions {
  /** As `rtpPayloadType` gives it; L16 types have their samples' bytes swapped to network order. */
  readonly payloadType: number;
  /** What the timestamp rises by with each packet, in units of the payload's clock (Opus: always 48 kHz). */
  readonly samplesPerFrame: number;
  /** Random 32 bits that name the stream (RFC 3550 section 8). */
  readonly ssrc: number;
  /** First sequence number, 16 bits; random. */
  readonly sequence: number;
  /** First timestamp, 32 bits; random. */
  readonly timestamp: number;
}

export class RtpPacketizer {
  readonly #payloadType: number;
  readonly #samplesPerFrame: number;
  readonly #ssrc: number;
  readonly #isL16: boolean;
  #sequence: number;
  #timestamp: number;

  constructor(options: RtpPacketizerOptions) {
    if (!Number.isInteger(options.payloadType) || options.payloadType < 0 || options.payloadType > 127) {
      throw new RangeError(`Cannot make RTP packets: payloadType is ${options.payloadType}, expected 0-127`);
    }
    this.#payloadType = options.payloadType;
    this.#samplesPerFrame = options.samplesPerFrame;
    this.#ssrc = options.ssrc >>> 0;
    this.#sequence = options.sequence & 0xffff;
    this.#timestamp = options.timestamp >>> 0;
    this.#isL16 = options.payloadType === L16_PAYLOAD_TYPE || options.payloadType === L16_44100_PAYLOAD_TYPE;
  }

  /** A new packet with a copy of `payload`; the marker bit says that it follows silence (RFC 3551 section 4.1). */
  wrap(payload: Uint8Array, isTalkspurtStart: boolean): Uint8Array {
    const packet = new Uint8Array(HEADER_BYTES + payload.length);
    const header = new DataView(packet.buffer);
    header.setUint8(0, VERSION_2);
    header.setUint8(1, (isTalkspurtStart ? MARKER : 0) | this.#payloadType);
    header.setUint16(2, this.#sequence);
    header.setUint32(4, this.#timestamp);
    header.setUint32(8, this.#ssrc);
    if (this.#isL16) copySwapped(payload, packet);
    else packet.set(payload, HEADER_BYTES);
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.skip(1);
    return packet;
  }

  /** The last `packets` were sent to nobody: those that come instead of them have their numbers and times. */
  takeBack(packets: number): void {
    this.#sequence = (this.#sequence - packets) & 0xffff;
    this.skip(-packets);
  }

  /** Time that passes without packets: the timestamp moves on, the sequence does not (RFC 3550 section 5.1). */
  skip(frames: number): void {
    this.#timestamp = (this.#timestamp + frames * this.#samplesPerFrame) >>> 0;
  }
}

/** L16 is big-endian on the wire (RFC 3551 section 4.5.11). */
function copySwapped(payload: Uint8Array, packet: Uint8Array): void {
  for (let at = 0; at + 1 < payload.length; at += 2) {
    packet[HEADER_BYTES + at] = payload[at + 1] ?? 0;
    packet[HEADER_BYTES + at + 1] = payload[at] ?? 0;
  }
}
