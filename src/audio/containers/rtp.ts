/** RTP packets around audio frames (RFC 3550 section 5.1; payload formats of RFC 3551 and, for Opus, RFC 7587). */
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import { AUDIO_FORMATS } from "../formats.ts";

const HEADER_BYTES = 12;
const VERSION_2 = 0x80;
const MARKER = 0x80;

export interface RtpPacketizerOptions {
  readonly payloadType: number;
  /** PCM, which comes little-endian: L16 is big-endian on the wire (RFC 3551 section 4.5.11). */
  readonly isL16: boolean;
  /** What the timestamp rises by with each packet, in units of the payload's clock (Opus: always 48 kHz). */
  readonly samplesPerFrame: number;
  /** Random 32 bits that name the stream (RFC 3550 section 8). */
  readonly ssrc: number;
  /** First sequence number, 16 bits; random. */
  readonly sequence: number;
  /** First timestamp, 32 bits; random. */
  readonly timestamp: number;
}

/** What a format's packets carry. */
export function rtpPayload(format: AudioFormat): Pick<RtpPacketizerOptions, "payloadType" | "isL16"> {
  const { codec, rtpPayloadType } = AUDIO_FORMATS[format];
  return { payloadType: rtpPayloadType, isL16: codec === "pcm_s16le" };
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
    this.#isL16 = options.isL16;
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

function copySwapped(payload: Uint8Array, packet: Uint8Array): void {
  for (let at = 0; at + 1 < payload.length; at += 2) {
    packet[HEADER_BYTES + at] = payload[at + 1] ?? 0;
    packet[HEADER_BYTES + at + 1] = payload[at] ?? 0;
  }
}
