/**
 * Takes off an MP3 response what stands before its first frame of sound: an ID3v2 tag, and the frame of a Xing or Info
 * header, which says how long the file is. In the middle of a longer stream both are wrong, and players show the length
 * of the first response for all of it.
 */
import { concatBytes } from "../audio/bytes.ts";

const NO_BYTES = new Uint8Array(0);
/** Length of an ID3v2 header; a frame's header is shorter. */
const LOOK_BYTES = 10;
const ID3_FOOTER_FLAG = 0x10;
/** kbit/s of layer III by their index, MPEG-1 and MPEG-2 (ISO/IEC 11172-3, 13818-3). */
const KBPS_1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const KBPS_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const RATES_1 = [44_100, 48_000, 32_000];

/** What is taken off a response or held back of it. */
export interface ResponseFilter {
  begin(): void;
  push(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

export class Mp3Head implements ResponseFilter {
  #held: Uint8Array = NO_BYTES;
  #skipBytes = 0;
  #isPassed = false;
  #hadInfo = false;

  begin(): void {
    this.#held = NO_BYTES;
    this.#skipBytes = 0;
    this.#isPassed = false;
    this.#hadInfo = false;
  }

  push(bytes: Uint8Array): Uint8Array {
    if (this.#isPassed) return bytes;
    this.#held = this.#held.length === 0 ? bytes : concatBytes([this.#held, bytes]);
    while (this.#skip() && this.#held.length >= LOOK_BYTES) {
      const size = this.#sizeOfHead();
      if (size === null) break;
      if (size === 0) return this.#pass();
      this.#skipBytes = size;
    }
    // Not lent any longer than this call.
    this.#held = new Uint8Array(this.#held);
    return NO_BYTES;
  }

  end(): Uint8Array {
    return this.#isPassed ? NO_BYTES : this.#pass();
  }

  #pass(): Uint8Array {
    const bytes = this.#held;
    this.#held = NO_BYTES;
    this.#isPassed = true;
    return bytes;
  }

  /** Whether all that is to be skipped has come. */
  #skip(): boolean {
    const count = Math.min(this.#skipBytes, this.#held.length);
    this.#held = this.#held.subarray(count);
    this.#skipBytes -= count;
    return this.#skipBytes === 0;
  }

  /** Bytes of what is no sound here; 0: sound begins; null: more has to come to know. */
  #sizeOfHead(): number | null {
    const held = this.#held;
    if (isText(held, 0, "ID3")) return id3Bytes(held);
    const frame = this.#hadInfo ? null : readFrame(held);
    if (frame === null) return 0;
    if (held.length < frame.infoAt + 4) return null;
    if (!isText(held, frame.infoAt, "Xing") && !isText(held, frame.infoAt, "Info")) return 0;
    this.#hadInfo = true;
    return frame.bytes;
  }
}

/** ID3v2.4 section 3.1: the size without header and footer, seven bits a byte. */
function id3Bytes(bytes: Uint8Array): number {
  const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((bytes[at] ?? 0) & 0x7f), 0);
  return size + LOOK_BYTES + (((bytes[5] ?? 0) & ID3_FOOTER_FLAG) === 0 ? 0 : LOOK_BYTES);
}

/** The layer III frame that begins here, and where in it a Xing header would stand: behind the side information. */
function readFrame(bytes: Uint8Array): { readonly bytes: number; readonly infoAt: number } | null {
  const [sync = 0, second = 0, third = 0, fourth = 0] = bytes;
  const version = (second >> 3) & 3;
  const isLayer3 = ((second >> 1) & 3) === 1;
  if (sync !== 0xff || second < 0xe0 || version === 1 || !isLayer3) return null;
  const isFirst = version === 3;
  const kbps = (isFirst ? KBPS_1 : KBPS_2)[third >> 4] ?? 0;
  const rate = (RATES_1[(third >> 2) & 3] ?? 0) / (isFirst ? 1 : version === 2 ? 2 : 4);
  if (kbps === 0 || rate === 0) return null;
  const isMono = fourth >> 6 === 3;
  const sideBytes = isFirst ? (isMono ? 17 : 32) : isMono ? 9 : 17;
  const checkBytes = (second & 1) === 0 ? 2 : 0;
  return {
    bytes: Math.floor(((isFirst ? 144 : 72) * kbps * 1000) / rate) + ((third >> 1) & 1),
    infoAt: 4 + checkBytes + sideBytes,
  };
}

function isText(bytes: Uint8Array, at: number, text: string): boolean {
  return bytes.length >= at + text.length && [...text].every((c, i) => bytes[at + i] === c.charCodeAt(0));
}
