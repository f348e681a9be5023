/** A WebSocket client that writes many messages as one piece, as a client does whose writes have been held up. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Opcodes of RFC 6455, with the bit of a whole message. */
const TEXT = 0x81;
const CLOSE = 0x88;
const MAX_RECEIVED_CHARS = 16_384;
/** Clients mask; with zeros the bytes are as they were. */
const MASK = Buffer.alloc(4);

export class RawSocket implements AsyncDisposable {
  readonly #socket: Socket;
  /** The beginning of what it is sent: the handshake and `hello`. */
  #received = "";

  private constructor(socket: Socket, first: Buffer) {
    this.#socket = socket;
    this.#received = first.toString("latin1");
    socket.on("data", (data: Buffer) => {
      if (this.#received.length < MAX_RECEIVED_CHARS) this.#received += data.toString("latin1");
    });
    socket.on("error", () => undefined);
  }

  static async connect(url: string): Promise<RawSocket> {
    const { hostname, port, pathname, search } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET ${pathname}${search} HTTP/1.1\r\nHost: ${hostname}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    const [first] = (await once(socket, "data")) as [Buffer];
    return new RawSocket(socket, first);
  }

  /** That of its `hello`. */
  async returnToken(): Promise<string> {
    for (;;) {
      const token = /"resume_token":"([\w-]+)"/.exec(this.#received)?.[1];
      if (token !== undefined) return token;
      await once(this.#socket, "data");
    }
  }

  /** Each of at most 125 bytes; in one write. */
  send(messages: readonly object[]): void {
    this.#socket.write(Buffer.concat(messages.map((message) => frame(TEXT, JSON.stringify(message)))));
  }

  /** Says good-bye, behind all that it has sent. */
  close(): void {
    this.#socket.end(frame(CLOSE, "\u0003\u00e8"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#socket.closed) return;
    const closed = once(this.#socket, "close");
    this.#socket.destroy();
    await closed;
  }
}

/** `payload`: of characters up to U+00FF, one byte each. */
function frame(opcode: number, payload: string): Buffer {
  const bytes = Buffer.from(payload, "latin1");
  if (bytes.length > 125) throw new RangeError(`Message of ${bytes.length} bytes, expected at most 125`);
  return Buffer.concat([Buffer.from([opcode, 0x80 | bytes.length]), MASK, bytes]);
}
