/** Audio in JSON: base64 of whole pieces between prepared halves of the message. */

import type { AudioFormat } from "../vocabulary.ts";
import type { CarrierName } from "./carrier.ts";
import { silentByte } from "./carrier-format.ts";
import { protocolError } from "./fields.ts";

/** The bytes of a payload, the caller's own. Throws `carrier_protocol` where the text is not base64 (RFC 4648). */
export function decodePayload(carrier: CarrierName, payload: string): Buffer {
  const bytes = Buffer.from(payload, "base64");
  // Node skips what is not base64: a shorter result is how that shows.
  const padding = payload.endsWith("==") ? 2 : payload.endsWith("=") ? 1 : 0;
  if (bytes.length !== Math.floor(((payload.length - padding) * 3) / 4)) {
    throw protocolError(carrier, "media.payload is not base64");
  }
  return bytes;
}

/** What a carrier takes as one message of audio. */
export interface PieceRule {
  /** Less than this waits for more. */
  readonly minBytes: number;
  /** Every piece is a multiple of this, and so is `minBytes`. */
  readonly stepBytes: number;
  /** A multiple of `stepBytes`, from `2 * minBytes` up. */
  readonly maxBytes: number;
}

/** Takes the first `bytes` of `buffer`, which it may change but not keep. */
type SendPiece = (buffer: Buffer, bytes: number) => void;

/** Cuts frames into the pieces that a carrier takes. What is too short for one waits: less than `maxBytes`. */
export class PieceCutter {
  readonly #rule: PieceRule;
  readonly #silence: number;
  readonly #held: Buffer;
  #heldBytes = 0;

  constructor(rule: PieceRule, format: AudioFormat) {
    this.#rule = rule;
    this.#silence = silentByte(format);
    this.#held = Buffer.alloc(rule.maxBytes);
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Gives every piece that is complete to `send`. */
  push(frames: readonly Uint8Array[], send: SendPiece): void {
    for (const frame of frames) {
      for (let at = 0; at < frame.length; ) {
        const part = frame.subarray(at, at + this.#rule.maxBytes - this.#heldBytes);
        this.#held.set(part, this.#heldBytes);
        this.#heldBytes += part.length;
        at += part.length;
        if (this.#heldBytes === this.#rule.maxBytes) this.#send(this.#rule.maxBytes, send);
      }
    }
    const whole = this.#heldBytes - (this.#heldBytes % this.#rule.stepBytes);
    if (whole >= this.#rule.minBytes && whole > 0) this.#send(whole, send);
  }

  /** Sends what is held as the last piece, filled up with silence. */
  flush(send: SendPiece): void {
    if (this.#heldBytes === 0) return;
    const { minBytes, stepBytes } = this.#rule;
    const bytes = Math.max(minBytes, Math.ceil(this.#heldBytes / stepBytes) * stepBytes);
    this.#held.fill(this.#silence, this.#heldBytes, bytes);
    this.#heldBytes = bytes;
    this.#send(bytes, send);
  }

  /** Throws away what is held. */
  drop(): void {
    this.#heldBytes = 0;
  }

  #send(bytes: number, send: SendPiece): void {
    send(this.#held, bytes);
    if (bytes < this.#heldBytes) this.#held.copyWithin(0, bytes, this.#heldBytes);
    this.#heldBytes -= bytes;
  }
}
