/**
 * JSON values on lines of their own out of a byte stream, however it was cut into pieces. Each byte is looked at once and
 * copied at most once per doubling, so the cost is linear in the length of the stream.
 *
 * Also taken, because readers in the field take them: blank lines, a carriage return before the newline, lines that
 * begin with `id:`, `retry:`, `event:` or `:` (skipped) and `data:` (the prefix is), and a last line without newline. So
 * it reads server-sent events, too, whose data is one line each.
 */
import { GatewayError } from "../../errors.ts";

export interface JsonLinesOptions {
  /** A line's JSON is `bytes[start, end)`, good until this returns. Called from within `push` and `flush`; may throw. */
  readonly onLine: (bytes: Buffer, start: number, end: number) => void;
  /** Longest line, its newline not counted, bytes; default 4 MiB. */
  readonly maxLineBytes?: number;
}

const DEFAULT_MAX_LINE_BYTES = 4 * 1024 * 1024;
/** Room for the first unfinished line: most lines of 20-200 ms of mu-law. */
const FIRST_ROOM_BYTES = 4096;
const NEWLINE = 0x0a;
const OPEN_OBJECT = 0x7b;
const SKIPPED_PREFIXES = ["id:", "retry:", "event:", ":"] as const;
const DATA_PREFIX = "data:";

export class JsonLines {
  readonly #onLine: JsonLinesOptions["onLine"];
  readonly #maxLineBytes: number;
  /** The unfinished line is `#room[0, #kept)`; the room is used again for the next one. */
  #room: Buffer = Buffer.alloc(0);
  #kept = 0;
  #lines = 0;

  constructor({ onLine, maxLineBytes = DEFAULT_MAX_LINE_BYTES }: JsonLinesOptions) {
    this.#onLine = onLine;
    this.#maxLineBytes = maxLineBytes;
  }

  /** Takes the next piece; it may be used again as soon as this returns. Throws upstream_protocol. */
  push(piece: Buffer): void {
    let start = 0;
    for (;;) {
      const newline = piece.indexOf(NEWLINE, start);
      if (newline === -1) break;
      if (this.#kept === 0) this.#line(piece, start, newline);
      else this.#finishKept(piece.subarray(start, newline));
      start = newline + 1;
    }
    if (start < piece.length) this.#keep(piece.subarray(start));
  }

  /** The stream ended cleanly. Throws upstream_truncated where it ended inside a line's JSON. */
  flush(): void {
    if (this.#kept === 0) return;
    try {
      this.#finishKept(Buffer.alloc(0));
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.code !== "upstream_protocol") throw thrown;
      const what = "The upstream's stream ended too early: its last line is not a whole record";
      throw new GatewayError("upstream_truncated", what);
    }
  }

  #finishKept(rest: Buffer): void {
    this.#keep(rest);
    const length = this.#kept;
    this.#kept = 0;
    this.#line(this.#room, 0, length);
  }

  #keep(bytes: Buffer): void {
    const length = this.#kept + bytes.length;
    this.#checkLength(length);
    if (length > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(FIRST_ROOM_BYTES, this.#room.length * 2, length));
      this.#room.copy(room, 0, 0, this.#kept);
      this.#room = room;
    }
    bytes.copy(this.#room, this.#kept);
    this.#kept = length;
  }

  #line(bytes: Buffer, start: number, end: number): void {
    this.#lines += 1;
    this.#checkLength(end - start);
    const json = bytes[start] === OPEN_OBJECT ? start : jsonStart(bytes, start, end);
    if (json === -1) return;
    try {
      this.#onLine(bytes, json, end);
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.code !== "upstream_protocol") throw thrown;
      throw new GatewayError(thrown.code, `${thrown.message} (line ${this.#lines})`);
    }
  }

  #checkLength(length: number): void {
    if (length <= this.#maxLineBytes) return;
    throw new GatewayError(
      "upstream_protocol",
      `The upstream sent a line that is too long: over ${this.#maxLineBytes} bytes without a newline`,
    );
  }
}

/** Where the JSON of a line begins; -1: the line holds none and is to be skipped. */
function jsonStart(bytes: Buffer, lineStart: number, end: number): number {
  const start = skipBlanks(bytes, lineStart, end);
  if (start === end) return -1;
  if (SKIPPED_PREFIXES.some((prefix) => startsWith(bytes.subarray(start, end), prefix))) return -1;
  if (!startsWith(bytes.subarray(start, end), DATA_PREFIX)) return start;
  const data = skipBlanks(bytes, start + DATA_PREFIX.length, end);
  return data === end ? -1 : data;
}

function skipBlanks(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d)) at += 1;
  return at;
}

function startsWith(line: Buffer, prefix: string): boolean {
  return line.toString("latin1", 0, prefix.length) === prefix;
}
