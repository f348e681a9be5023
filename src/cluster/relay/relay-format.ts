/**
 * What two nodes send each other about clients of the one and sessions of the other, as bytes. All numbers are big-endian.
 *
 *   message   | version u8 | sender, 36 letters of a UUID | generation u32 | number u32 | record ...
 *   record    | kind u8 | length u32 | payload
 *
 *   open      | connection u32 | JSON              a client has arrived
 *   message   | connection u32 | is binary u8 | .. it said something
 *   buffered  | connection u32 | bytes u32         so much waits for it at its own node
 *   closed    | connection u32 | code u16          it has gone
 *   deliver   | count u16 | is binary u8 | length u32 | .. | ... | connection u32 ...     these are sent to all of them, in order
 *   end       | connection u32 | code u16 | reason its connection is to be closed
 *   taken     | bytes f64                          of the records of this generation
 *
 * The connections of `deliver` come last, so that one more can be added while it is the last record: listeners in lockstep
 * get the same batch one after the other, and it crosses the bus once for all of them at one node.
 */
import type { OffsetUnit } from "../../protocol/vocabulary.ts";

const RELAY_VERSION = 2;

const KIND = { open: 1, message: 2, buffered: 3, closed: 4, deliver: 5, end: 6, taken: 7 } as const;
const UUID_CHARS = 36;
const PLACE_AT = 1 + UUID_CHARS;
/** Length of a message before its records. */
export const HEAD_BYTES = PLACE_AT + 8;
const RECORD_HEAD_BYTES = 5;
const ITEM_HEAD_BYTES = 5;
const FIRST_BYTES = 4096;
/** What is larger is not kept for the next message. */
const MAX_KEPT_BYTES = 256 * 1024;

/** What crosses in a batch: bytes are a binary message, the others text. */
export type RelayDelivery = Uint8Array | { json(offsets: OffsetUnit): Uint8Array };

/** Bytes of one WebSocket message. */
export interface RelayItem {
  readonly isBinary: boolean;
  readonly bytes: Uint8Array;
}

export type RelayRecord =
  | { readonly kind: "open"; readonly connection: number; readonly arrival: unknown }
  | { readonly kind: "message"; readonly connection: number; readonly item: RelayItem }
  | { readonly kind: "buffered"; readonly connection: number; readonly bytes: number }
  | { readonly kind: "closed"; readonly connection: number; readonly code: number }
  | {
      readonly kind: "deliver";
      readonly connections: readonly number[];
      readonly items: readonly RelayItem[];
    }
  | { readonly kind: "end"; readonly connection: number; readonly code: number; readonly reason: string }
  | { readonly kind: "taken"; readonly bytes: number };

interface RelayPlace {
  /** The process that sent it: its incarnation. */
  readonly from: string;
  readonly generation: number;
  readonly number: number;
}

export interface RelayMessage extends RelayPlace {
  readonly records: readonly RelayRecord[];
}

/** Records that go out in one message. */
export class RelayWriter {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #used = HEAD_BYTES;
  /** Where the last record begins, and the last `deliver`. */
  #recordAt = 0;
  #deliverAt: number | null = null;

  /** Length of the records. */
  get length(): number {
    return this.#used - HEAD_BYTES;
  }

  open(connection: number, arrival: unknown): void {
    const json = Buffer.from(JSON.stringify(arrival), "utf8");
    const at = this.#record(KIND.open, 4 + json.length);
    this.#bytes.writeUInt32BE(connection, at);
    this.#bytes.set(json, at + 4);
  }

  message(connection: number, { isBinary, bytes }: RelayItem): void {
    const at = this.#record(KIND.message, 5 + bytes.length);
    this.#bytes.writeUInt32BE(connection, at);
    this.#bytes[at + 4] = isBinary ? 1 : 0;
    this.#bytes.set(bytes, at + 5);
  }

  buffered(connection: number, bytes: number): void {
    const at = this.#record(KIND.buffered, 8);
    this.#bytes.writeUInt32BE(connection, at);
    this.#bytes.writeUInt32BE(Math.min(bytes, 0xffff_ffff), at + 4);
  }

  closed(connection: number, code: number): void {
    const at = this.#record(KIND.closed, 6);
    this.#bytes.writeUInt32BE(connection, at);
    this.#bytes.writeUInt16BE(code, at + 4);
  }

  /** The bytes are copied: frames are views that are good for the call only. */
  deliver(connection: number, batch: readonly RelayDelivery[], offsets: OffsetUnit): void {
    let at = this.#record(KIND.deliver, deliverLength(batch, offsets) - RECORD_HEAD_BYTES);
    at = this.#bytes.writeUInt16BE(batch.length, at);
    for (const item of batch) {
      const bytes = bytesOf(item, offsets);
      this.#bytes[at] = item instanceof Uint8Array ? 1 : 0;
      this.#bytes.writeUInt32BE(bytes.length, at + 1);
      this.#bytes.set(bytes, at + ITEM_HEAD_BYTES);
      at += ITEM_HEAD_BYTES + bytes.length;
    }
    this.#bytes.writeUInt32BE(connection, at);
    this.#deliverAt = this.#recordAt;
  }

  /** One text message to one connection. */
  text(connection: number, text: string): void {
    const length = Buffer.byteLength(text);
    let at = this.#record(KIND.deliver, 2 + ITEM_HEAD_BYTES + length + 4);
    at = this.#bytes.writeUInt16BE(1, at);
    this.#bytes[at] = 0;
    this.#bytes.writeUInt32BE(length, at + 1);
    this.#bytes.write(text, at + ITEM_HEAD_BYTES, length, "utf8");
    this.#bytes.writeUInt32BE(connection, at + ITEM_HEAD_BYTES + length);
  }

  /** The last record, which has to be `deliver`, goes to this connection as well. */
  deliverAlso(connection: number): void {
    if (this.#deliverAt === null || this.#deliverAt !== this.#recordAt)
      throw new TypeError("Last record is not deliver");
    const at = this.#reserve(4);
    this.#bytes.writeUInt32BE(connection, at);
    this.#bytes.writeUInt32BE(at + 4 - this.#recordAt - RECORD_HEAD_BYTES, this.#recordAt + 1);
  }

  end(connection: number, code: number, reason: string): void {
    const text = Buffer.from(reason, "utf8");
    const at = this.#record(KIND.end, 6 + text.length);
    this.#bytes.writeUInt32BE(connection, at);
    this.#bytes.writeUInt16BE(code, at + 4);
    this.#bytes.set(text, at + 6);
  }

  taken(bytes: number): void {
    this.#bytes.writeDoubleBE(bytes, this.#record(KIND.taken, 8));
  }

  /** The message, a copy of its own; the writer is empty again. */
  take({ from, generation, number }: RelayPlace): Uint8Array {
    this.#bytes[0] = RELAY_VERSION;
    this.#bytes.write(from, 1, UUID_CHARS, "latin1");
    this.#bytes.writeUInt32BE(generation, PLACE_AT);
    this.#bytes.writeUInt32BE(number, PLACE_AT + 4);
    const message = Buffer.from(this.#bytes.subarray(0, this.#used));
    this.clear();
    return message;
  }

  clear(): void {
    this.#used = HEAD_BYTES;
    this.#deliverAt = null;
    if (this.#bytes.length > MAX_KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  }

  /** Where its payload begins. */
  #record(kind: number, length: number): number {
    const at = this.#reserve(RECORD_HEAD_BYTES + length);
    this.#recordAt = at;
    this.#bytes[at] = kind;
    this.#bytes.writeUInt32BE(length, at + 1);
    return at + RECORD_HEAD_BYTES;
  }

  #reserve(length: number): number {
    const at = this.#used;
    const end = at + length;
    if (end > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
    }
    this.#used = end;
    return at;
  }
}

function bytesOf(item: RelayDelivery, offsets: OffsetUnit): Uint8Array {
  return item instanceof Uint8Array ? item : item.json(offsets);
}

/** What `deliver` to one connection takes of a message, bytes. */
export function deliverLength(batch: readonly RelayDelivery[], offsets: OffsetUnit): number {
  let length = RECORD_HEAD_BYTES + 2 + 4;
  for (const item of batch) length += ITEM_HEAD_BYTES + bytesOf(item, offsets).length;
  return length;
}

/** What `message` takes of a message, bytes. */
export function messageLength({ bytes }: RelayItem): number {
  return RECORD_HEAD_BYTES + 5 + bytes.length;
}

/** Its bytes are views. undefined: it is no message of this version. */
export function readRelayMessage(message: Uint8Array): RelayMessage | undefined {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  if (bytes.length < HEAD_BYTES || bytes[0] !== RELAY_VERSION) return undefined;
  const records: RelayRecord[] = [];
  let at = HEAD_BYTES;
  while (at < bytes.length) {
    if (at + RECORD_HEAD_BYTES > bytes.length) return undefined;
    const end = at + RECORD_HEAD_BYTES + bytes.readUInt32BE(at + 1);
    if (end > bytes.length) return undefined;
    const record = readRecord(bytes[at] ?? 0, bytes.subarray(at + RECORD_HEAD_BYTES, end));
    if (record === undefined) return undefined;
    records.push(record);
    at = end;
  }
  const from = bytes.toString("latin1", 1, PLACE_AT);
  const generation = bytes.readUInt32BE(PLACE_AT);
  return { from, generation, number: bytes.readUInt32BE(PLACE_AT + 4), records };
}

function readRecord(kind: number, payload: Buffer): RelayRecord | undefined {
  if (kind === KIND.taken)
    return payload.length === 8 ? { kind: "taken", bytes: payload.readDoubleBE() } : undefined;
  if (kind === KIND.deliver) return readDeliver(payload);
  if (payload.length < 4) return undefined;
  const connection = payload.readUInt32BE();
  const rest = payload.subarray(4);
  if (kind === KIND.open) {
    const arrival = jsonOf(rest);
    return arrival === undefined ? undefined : { kind: "open", connection, arrival };
  }
  if (kind === KIND.message && rest.length >= 1) {
    return { kind: "message", connection, item: { isBinary: rest[0] === 1, bytes: rest.subarray(1) } };
  }
  if (kind === KIND.buffered && rest.length === 4)
    return { kind: "buffered", connection, bytes: rest.readUInt32BE() };
  if (rest.length < 2) return undefined;
  const code = rest.readUInt16BE();
  if (kind === KIND.closed && rest.length === 2) return { kind: "closed", connection, code };
  if (kind === KIND.end) return { kind: "end", connection, code, reason: rest.toString("utf8", 2) };
  return undefined;
}

function readDeliver(payload: Buffer): RelayRecord | undefined {
  if (payload.length < 2) return undefined;
  const items: RelayItem[] = [];
  let at = 2;
  for (let left = payload.readUInt16BE(); left > 0; left -= 1) {
    if (at + ITEM_HEAD_BYTES > payload.length) return undefined;
    const end = at + ITEM_HEAD_BYTES + payload.readUInt32BE(at + 1);
    if (end > payload.length) return undefined;
    items.push({ isBinary: payload[at] === 1, bytes: payload.subarray(at + ITEM_HEAD_BYTES, end) });
    at = end;
  }
  if ((payload.length - at) % 4 !== 0) return undefined;
  const connections: number[] = [];
  for (; at < payload.length; at += 4) connections.push(payload.readUInt32BE(at));
  return { kind: "deliver", connections, items };
}

/** undefined: it is none. */
export function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  } catch {
    return undefined;
  }
}
