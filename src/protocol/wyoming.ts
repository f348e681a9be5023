/**
 * Wyoming, which Home Assistant and its voices speak over TCP: frames of one JSON line, the JSON that belongs to it, and
 * bytes. The JSON may stand in the line, behind it, or in both places.
 *
 *   {"type": "audio-chunk", "data_length": 42, "payload_length": 2048}\n   42 bytes of JSON   2048 bytes of samples
 */
import type { GatewayError } from "../errors.ts";

export type WyomingData = Readonly<Record<string, unknown>>;

export interface WyomingFrame {
  readonly type: string;
  readonly data: WyomingData;
  /** Good until `onFrame` returns. */
  readonly payload: Buffer;
}

export interface WyomingReaderOptions {
  /** Called from within `push`. May throw. */
  readonly onFrame: (frame: WyomingFrame) => void;
  readonly limits: WyomingLimits;
  /** What `push` throws for bytes that are no frame. */
  readonly broken: (what: string) => GatewayError;
}

/** What a frame may hold, bytes. */
interface WyomingLimits {
  readonly header: number;
  readonly data: number;
  readonly payload: number;
}

const VERSION = "1.5.2";
const NEWLINE = 0x0a;
const NO_BYTES = Buffer.alloc(0);

export function wyomingFrame(type: string, data: WyomingData = {}, payload: Uint8Array = NO_BYTES): Buffer {
  const json = Buffer.from(JSON.stringify(data));
  const line = JSON.stringify({
    type,
    version: VERSION,
    data_length: json.length,
    ...(payload.length === 0 ? {} : { payload_length: payload.length }),
  });
  return Buffer.concat([Buffer.from(`${line}\n`), json, payload]);
}

interface Header {
  readonly type: string;
  readonly data: WyomingData;
  readonly dataLength: number;
  readonly payloadLength: number;
}

/** Reads frames, cut anywhere. Of a frame that has begun only what has come is kept. */
export class WyomingReader {
  readonly #options: WyomingReaderOptions;
  readonly #section = new Section();
  #header: Header | null = null;
  /** The JSON behind the line; null: it has not come. */
  #data: WyomingData | null = null;

  constructor(options: WyomingReaderOptions) {
    this.#options = options;
  }

  push(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) at = this.#take(piece, at);
  }

  /** Returns where the next section begins. */
  #take(piece: Buffer, from: number): number {
    if (this.#header === null) return this.#takeLine(piece, from);
    const { dataLength, payloadLength } = this.#header;
    const wanted = this.#data === null ? dataLength : payloadLength;
    const to = Math.min(piece.length, from + wanted - this.#section.length);
    const bytes = this.#section.add(piece.subarray(from, to), wanted);
    if (bytes !== null) this.#finish(bytes);
    return to;
  }

  #takeLine(piece: Buffer, from: number): number {
    const newline = piece.indexOf(NEWLINE, from);
    const to = newline < 0 ? piece.length : newline;
    const length = this.#section.length + to - from;
    const { header } = this.#options.limits;
    if (length > header) throw this.#options.broken(`a header is longer than ${header} bytes`);
    const line = this.#section.add(piece.subarray(from, to), newline < 0 ? length + 1 : length);
    if (line === null) return to;
    this.#header = this.#readHeader(line.toString("utf8"));
    // What has no length is there already.
    if (this.#header.dataLength === 0) this.#finish(NO_BYTES);
    return to + 1;
  }

  /** A section behind the line is whole. */
  #finish(bytes: Buffer): void {
    const header = this.#header;
    if (header === null) return;
    if (this.#data === null) {
      this.#data = bytes.length === 0 ? {} : this.#parse(bytes.toString("utf8"));
      if (header.payloadLength === 0) this.#finish(NO_BYTES);
      return;
    }
    const data = { ...header.data, ...this.#data };
    this.#header = null;
    this.#data = null;
    this.#options.onFrame({ type: header.type, data, payload: bytes });
  }

  #readHeader(line: string): Header {
    const { type, data, data_length, payload_length } = this.#parse(line);
    if (typeof type !== "string" || type === "") throw this.#options.broken("a header has no type");
    const { limits } = this.#options;
    return {
      type,
      data: isData(data) ? data : {},
      dataLength: this.#length(data_length, "data_length", limits.data),
      payloadLength: this.#length(payload_length, "payload_length", limits.payload),
    };
  }

  #length(value: unknown, name: string, most: number): number {
    if (value === undefined || value === null) return 0;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= most) return value;
    throw this.#options.broken(`${name} is no whole number up to ${most}`);
  }

  /** What it says is not quoted: it may hold a text that is to be spoken. */
  #parse(json: string): WyomingData {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      throw this.#options.broken("a frame is not JSON");
    }
    if (isData(value)) return value;
    throw this.#options.broken("a frame is no JSON object");
  }
}

/** What has come of a line, its data or its payload; copied at most once per doubling. */
class Section {
  #room: Buffer = NO_BYTES;
  length = 0;

  /** Returns the whole of it once that is there, in place of which the next one begins. */
  add(bytes: Buffer, wanted: number): Buffer | null {
    const length = this.length + bytes.length;
    if (this.length === 0 && length === wanted) return bytes;
    if (length > this.#room.length) {
      const room = Buffer.allocUnsafe(Math.min(wanted, Math.max(2 * this.#room.length, length)));
      this.#room.copy(room, 0, 0, this.length);
      this.#room = room;
    }
    bytes.copy(this.#room, this.length);
    this.length = length;
    if (length < wanted) return null;
    const whole = this.#room.subarray(0, length);
    this.#room = NO_BYTES;
    this.length = 0;
    return whole;
  }
}

function isData(value: unknown): value is WyomingData {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
