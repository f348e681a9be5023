/**
 * Reads a connection in undici's place, so that reading can be held between two reads.
 *
 * undici holds a response by leaving off in the middle of what it has read. The rest goes back into the socket, where each
 * time that the response goes on another 64 KiB are read, joined with the rest and parsed again: an answer that comes faster
 * than it is spoken was in memory as a whole, and copied ten times a second. Here all of a read is parsed, and none follows.
 */
import type { OnReadOpts, Socket } from "node:net";
import { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { READ_BYTES } from "../types.ts";

export class SocketReader {
  /** For `net.connect` and `tls.connect`. */
  readonly onread: OnReadOpts;
  #socket: Socket | null = null;
  /** Lets the socket read, as often as it is asked to. */
  #readOn: (size: number) => void = () => undefined;
  #isHeld = false;
  #reads = 0;
  #currentRead: number | null = null;

  /** `buffer` may be that of many: what it holds is copied before anybody else reads into it. */
  constructor(buffer: Buffer) {
    this.onread = { buffer, callback: (bytes) => this.#read(buffer.subarray(0, bytes)) };
  }

  /** A socket that was opened with `onread` and is connected; before undici has it. */
  attach(socket: Socket): void {
    this.#socket = socket;
    this.#isHeld = false;
    this.#readOn = socket._read.bind(socket);
    // undici empties the socket of what was read, and either of these would make it read more.
    socket._read = (size) => {
      if (!this.#isHeld) this.#readOn(size);
    };
    const read = socket.read.bind(socket);
    socket.read = (size) => (this.#isHeld ? Duplex.prototype.read.call(socket, size) : read(size));
  }

  /** Which read is being parsed now; null: none. */
  get currentRead(): number | null {
    return this.#currentRead;
  }

  /** No read from now on; what a read has brought is parsed to its end. Idempotent. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Idempotent. */
  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    if (this.#socket?.destroyed === false) this.#readOn(READ_BYTES);
  }

  /** Returns whether to read on. */
  #read(bytes: Buffer): boolean {
    const socket = this.#socket;
    if (socket === null) return false;
    socket.push(Buffer.from(bytes));
    // TLS may bring it while another response is being parsed, and undici parses one at a time: it hears of it in a moment.
    if (socket instanceof TLSSocket) return !this.#isHeld;
    // Whoever reads the response says by then whether to go on.
    if (!this.#isHeld) this.#parse(socket);
    return !this.#isHeld && socket.readableLength === 0;
  }

  #parse(socket: Socket): void {
    this.#reads += 1;
    this.#currentRead = this.#reads;
    try {
      socket.emit("readable");
    } finally {
      this.#currentRead = null;
    }
  }
}
