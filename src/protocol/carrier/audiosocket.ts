/**
 * Asterisk's AudioSocket over TCP: one kind byte, a big-endian length, the payload (res_audiosocket.c).
 * Asterisk drops a call for any kind of packet from us but audio and hang-up, so nothing else can be written here.
 */
import { GatewayError } from "../../errors.ts";
import type { AudioFormat } from "../vocabulary.ts";

const KIND_HANG_UP = 0x00;
const KIND_UUID = 0x01;
const KIND_DTMF = 0x03;
const KIND_ERROR = 0xff;
const HEADER_BYTES = 3;
const UUID_BYTES = 16;
/** A second of the fastest kind; whatever is longer is no audio of a call. */
const MAX_PAYLOAD_BYTES = 32_000;

/** Signed 16-bit little-endian mono (slin and its faster kin), those that a session can be played in. */
const FORMAT_OF_KIND: ReadonlyMap<number, AudioFormat> = new Map([
  [0x10, "pcm_8000"],
  [0x12, "pcm_16000"],
  [0x13, "pcm_24000"],
  [0x14, "pcm_32000"],
  [0x15, "pcm_44100"],
  [0x16, "pcm_48000"],
]);

export type AudioSocketEvent =
  /** The first packet: which call it is, as a UUID in text. */
  | { readonly kind: "call"; readonly callId: string }
  /** The caller's voice; good until the next push. */
  | { readonly kind: "media"; readonly format: AudioFormat; readonly audio: Uint8Array }
  | { readonly kind: "dtmf"; readonly digit: string }
  | { readonly kind: "stopped"; readonly reason: string }
  | { readonly kind: "odd"; readonly what: string };

/** Which call a connection is, by its first bytes: `callId` null where they do not name one. null: more are needed. */
export function audioSocketCall(bytes: Uint8Array): { readonly callId: string | null } | null {
  const [kind, , length] = bytes;
  if (kind !== undefined && kind !== KIND_UUID) return { callId: null };
  if (bytes.length >= HEADER_BYTES && (bytes[1] !== 0 || length !== UUID_BYTES)) return { callId: null };
  if (bytes.length < HEADER_BYTES + UUID_BYTES) return null;
  return { callId: uuidText(bytes.subarray(HEADER_BYTES, HEADER_BYTES + UUID_BYTES)) };
}

function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Reads what Asterisk sends, cut anywhere. */
export class AudioSocketReader {
  readonly #onEvent: (event: AudioSocketEvent) => void;
  #rest: Uint8Array = new Uint8Array(0);
  #isCalled = false;
  #isOver = false;

  constructor(onEvent: (event: AudioSocketEvent) => void) {
    this.#onEvent = onEvent;
  }

  /** Throws `carrier_protocol` where the bytes can't be AudioSocket; nothing is read after that or after `stopped`. */
  push(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (!this.#isOver && all.length - at >= HEADER_BYTES) {
      const kind = all[at] ?? 0;
      if (!this.#isCalled && kind !== KIND_UUID && kind !== KIND_HANG_UP) {
        throw this.#broken("the first packet does not name the call");
      }
      const length = ((all[at + 1] ?? 0) << 8) | (all[at + 2] ?? 0);
      if (length > MAX_PAYLOAD_BYTES) throw this.#broken(`a packet has ${length} bytes`);
      const end = at + HEADER_BYTES + length;
      if (end > all.length) break;
      this.#packet(kind, all.subarray(at + HEADER_BYTES, end));
      at = end;
    }
    // A copy: what came is the socket's memory.
    this.#rest = this.#isOver ? new Uint8Array(0) : new Uint8Array(all.subarray(at));
  }

  #packet(kind: number, payload: Uint8Array): void {
    if (kind === KIND_UUID) {
      this.#call(payload);
      return;
    }
    if (kind === KIND_HANG_UP) {
      this.#isOver = true;
      this.#onEvent({ kind: "stopped", reason: "hang-up" });
      return;
    }
    const format = FORMAT_OF_KIND.get(kind);
    if (format !== undefined) {
      if (payload.length === 0 || payload.length % 2 === 1) this.#odd("audio of no whole samples");
      else this.#onEvent({ kind: "media", format, audio: payload });
    } else if (kind === KIND_DTMF) this.#digit(payload);
    else if (kind === KIND_ERROR) {
      this.#isOver = true;
      this.#onEvent({ kind: "stopped", reason: `error ${payload[0] ?? "without a code"}` });
    } else this.#odd(`a packet of kind ${kind}`);
  }

  #call(payload: Uint8Array): void {
    if (this.#isCalled) throw this.#broken("the call is named twice");
    if (payload.length !== UUID_BYTES) throw this.#broken(`its id has ${payload.length} bytes`);
    this.#isCalled = true;
    this.#onEvent({ kind: "call", callId: uuidText(payload) });
  }

  #digit(payload: Uint8Array): void {
    const digit = String.fromCharCode(payload[0] ?? 0);
    if (payload.length === 1 && /^[0-9*#A-D]$/.test(digit)) this.#onEvent({ kind: "dtmf", digit });
    else this.#odd("a digit that is none");
  }

  #odd(what: string): void {
    this.#onEvent({ kind: "odd", what });
  }

  #broken(what: string): GatewayError {
    this.#isOver = true;
    return new GatewayError("carrier_protocol", `Not AudioSocket: ${what}`);
  }
}

/** The kind byte of audio in this format; undefined where AudioSocket has none. */
export function audioSocketKind(format: AudioFormat): number | undefined {
  for (const [kind, name] of FORMAT_OF_KIND) if (name === format) return kind;
  return undefined;
}

/** Packets of audio in a row: one for each frame of at most 32,000 bytes. */
export function audioSocketPackets(kind: number, frames: readonly Uint8Array[]): Uint8Array {
  const packets = Buffer.allocUnsafe(frames.reduce((sum, frame) => sum + HEADER_BYTES + frame.length, 0));
  let at = 0;
  for (const frame of frames) {
    packets[at] = kind;
    packets.writeUInt16BE(frame.length, at + 1);
    packets.set(frame, at + HEADER_BYTES);
    at += HEADER_BYTES + frame.length;
  }
  return packets;
}

/** Ends the call. */
export function audioSocketHangUp(): Uint8Array {
  return Uint8Array.of(KIND_HANG_UP, 0, 0);
}
