/** A WebSocket client that writes bytes as it likes, wrong ones too, and reads what it is sent (RFC 6455). */
import { connect, type Socket } from "node:net";

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const MASK = Buffer.from([0x5a, 0x01, 0xfe, 0x80]);
const MAX_HEAD_BYTES = 16_384;

export interface FrameOptions {
  readonly opcode: number;
  readonly payload: Buffer;
  /** Default true. */
  readonly isFinal?: boolean;
  /** Default true, as clients must. */
  readonly isMasked?: boolean;
  /** The three bits that an extension may set; default 0. */
  readonly reserved?: number;
}

export function frame(options: FrameOptions): Buffer {
  const { opcode, payload, isFinal = true, isMasked = true, reserved = 0 } = options;
  const first = (isFinal ? 0x80 : 0) | ((reserved & 7) << 4) | (opcode & 15);
  const mark = isMasked ? 0x80 : 0;
  const body = isMasked ? masked(payload) : payload;
  return Buffer.concat([lengthHead(first, mark, payload.length), isMasked ? MASK : Buffer.alloc(0), body]);
}

function lengthHead(first: number, mark: number, length: number): Buffer {
  if (length < 126) return Buffer.from([first, mark | length]);
  const head = Buffer.alloc(length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = mark | (length < 65_536 ? 126 : 127);
  if (length < 65_536) head.writeUInt16BE(length, 2);
  else head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

function masked(payload: Buffer): Buffer {
  const bytes = Buffer.alloc(payload.length);
  for (let at = 0; at < payload.length; at += 1) bytes[at] = (payload[at] ?? 0) ^ (MASK[at & 3] ?? 0);
  return bytes;
}

export interface WireHandlers {
  onText(text: string): void;
  onPong(payload: string): void;
  onCloseFrame(code: number, reason: string): void;
}

/** The frames of a server, whatever the pieces are in which they come. */
class FrameReader {
  readonly #handlers: WireHandlers;
  #rest: Buffer = Buffer.alloc(0);
  #fragments: Buffer[] = [];

  constructor(handlers: WireHandlers) {
    this.#handlers = handlers;
  }

  push(piece: Buffer): void {
    let bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    for (;;) {
      const short = (bytes[1] ?? 0) & 127;
      const headBytes = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (bytes.length < headBytes) break;
      const length =
        short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
      if (bytes.length < headBytes + length) break;
      this.#take(bytes[0] ?? 0, bytes.subarray(headBytes, headBytes + length));
      bytes = bytes.subarray(headBytes + length);
    }
    this.#rest = bytes;
  }

  #take(first: number, payload: Buffer): void {
    const opcode = first & 15;
    if (opcode === OPCODE.pong) this.#handlers.onPong(payload.toString());
    if (opcode === OPCODE.close) {
      const code = payload.length < 2 ? 1005 : payload.readUInt16BE(0);
      this.#handlers.onCloseFrame(code, payload.subarray(2).toString());
    }
    if (opcode === OPCODE.text || (opcode === OPCODE.continuation && this.#fragments.length > 0)) {
      this.#fragments.push(payload);
      if ((first & 0x80) === 0) return;
      this.#handlers.onText(Buffer.concat(this.#fragments).toString());
      this.#fragments = [];
    }
  }
}

export interface DialOptions extends WireHandlers {
  readonly port: number;
  readonly path: string;
  readonly subprotocol?: string | undefined;
  /** The TCP connection is over. */
  onEnd(): void;
}

export class WireSocket {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Resolves with the status that answers the upgrade, and with the socket where it is 101; status 0: cut off. */
  static dial(
    options: DialOptions,
  ): Promise<{ readonly status: number; readonly socket: WireSocket | null }> {
    const { port, path, subprotocol } = options;
    return new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      const reader = new FrameReader(options);
      let head: Buffer | null = Buffer.alloc(0);
      const answer = (status: number): void => {
        head = null;
        if (status !== 101) socket.destroy();
        resolve({ status, socket: status === 101 ? new WireSocket(socket) : null });
      };
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        if (head !== null) answer(0);
        options.onEnd();
      });
      socket.on("data", (piece) => {
        if (head === null) {
          reader.push(piece);
          return;
        }
        head = Buffer.concat([head, piece]);
        const end = head.indexOf("\r\n\r\n");
        if (end < 0 && head.length < MAX_HEAD_BYTES) return;
        const text = head.toString("latin1", 0, end);
        const behind = head.subarray(end + 4);
        answer(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0));
        reader.push(behind);
      });
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" +
          `${subprotocol === undefined ? "" : `Sec-WebSocket-Protocol: ${subprotocol}\r\n`}\r\n`,
      );
    });
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  /** Nothing more is sent: the server reads what has come, and closes the connection. */
  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
