/**
 * Reads the server's side of a WebSocket (RFC 6455 section 5.2) from bytes cut anywhere, copying nothing but the
 * messages that somebody wants to see.
 */
const OPCODE_TEXT = 1;
const OPCODE_BINARY = 2;
const OPCODE_CLOSE = 8;
const OPCODE_PING = 9;

export interface FrameHandlers {
  /** A binary message of so many bytes. */
  frame(payloadBytes: number, atMs: number): void;
  /** A text message; its text only if texts are wanted. */
  text(text: string | null, atMs: number): void;
  ping(payload: Buffer): void;
  close(): void;
}

export class FrameReader {
  readonly #handlers: FrameHandlers;
  readonly #wantsText: boolean;
  readonly #header = new Uint8Array(10);
  #headerBytes = 0;
  #opcode = 0;
  #payloadBytes = 0;
  #payloadLeft = 0;
  #kept: Buffer[] = [];

  constructor(handlers: FrameHandlers, options: { readonly wantsText: boolean }) {
    this.#handlers = handlers;
    this.#wantsText = options.wantsText;
  }

  /** `bytes` is not kept. */
  push(bytes: Uint8Array, atMs: number): void {
    let offset = 0;
    while (offset < bytes.length) {
      if (this.#payloadLeft > 0) {
        const end = Math.min(bytes.length, offset + this.#payloadLeft);
        if (this.#isKept) this.#kept.push(Buffer.from(bytes.subarray(offset, end)));
        this.#payloadLeft -= end - offset;
        offset = end;
      } else {
        this.#header[this.#headerBytes++] = bytes[offset++] ?? 0;
        if (this.#headerBytes < 2 || this.#headerBytes < headerSize(this.#header)) continue;
        this.#readHeader();
      }
      if (this.#payloadLeft === 0) this.#finish(atMs);
    }
  }

  get #isKept(): boolean {
    return this.#opcode >= OPCODE_CLOSE || (this.#opcode === OPCODE_TEXT && this.#wantsText);
  }

  #readHeader(): void {
    const view = new DataView(this.#header.buffer);
    const short = (this.#header[1] ?? 0) & 0x7f;
    this.#opcode = (this.#header[0] ?? 0) & 0x0f;
    this.#payloadBytes =
      short === 126 ? view.getUint16(2) : short === 127 ? Number(view.getBigUint64(2)) : short;
    this.#payloadLeft = this.#payloadBytes;
    this.#headerBytes = 0;
  }

  #finish(atMs: number): void {
    if (this.#opcode === OPCODE_BINARY) {
      this.#handlers.frame(this.#payloadBytes, atMs);
      return;
    }
    const payload = this.#isKept ? Buffer.concat(this.#kept) : null;
    this.#kept = [];
    if (this.#opcode === OPCODE_TEXT) this.#handlers.text(payload?.toString("utf8") ?? null, atMs);
    else if (this.#opcode === OPCODE_PING) this.#handlers.ping(payload ?? Buffer.alloc(0));
    else if (this.#opcode === OPCODE_CLOSE) this.#handlers.close();
  }
}

/** Servers do not mask, so that the length alone decides. */
function headerSize(header: Uint8Array): number {
  const short = (header[1] ?? 0) & 0x7f;
  return short === 126 ? 4 : short === 127 ? 10 : 2;
}
