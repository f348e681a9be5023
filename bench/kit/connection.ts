/** One WebSocket client over bare TCP, cheap enough for a thousand of them at 50 frames/s beside the server. */
import { connect, type Socket } from "node:net";
import { clientMessage, OPCODE_TEXT, upgradeRequest } from "./client-wire.ts";
import { FrameReader } from "./frame-reader.ts";
import type { FrameLateness } from "./lateness.ts";
import { monotonicMs } from "./monotonic.ts";

const HANDSHAKE_DEADLINE_MS = 20_000;
const OPCODE_PONG = 10;

export interface ConnectionOptions {
  readonly port: number;
  readonly path: string;
  /** Key or token; without it the gateway has to have no keys. */
  readonly credential?: string | undefined;
  readonly wantsText: boolean;
  /** Shared by all connections of a process: a read is over before the next one begins. */
  readonly readBuffer: Uint8Array;
  readonly lateness: FrameLateness | null;
}

export class Connection {
  frames = 0;
  texts = 0;
  payloadBytes = 0;
  isOpen = false;
  isClosed = false;
  /** Called with each binary message; for scenarios. */
  onFrame: ((atMs: number) => void) | null = null;
  onText: ((text: string, atMs: number) => void) | null = null;
  readonly #socket: Socket;
  readonly #lateness: FrameLateness | null;
  readonly #reader: FrameReader;
  #head = "";
  #onOpen: (() => void) | null = null;

  private constructor(options: ConnectionOptions) {
    this.#lateness = options.lateness;
    this.#reader = new FrameReader(
      {
        frame: (bytes, atMs) => this.#takeFrame(bytes, atMs),
        text: (text, atMs) => {
          this.texts += 1;
          if (text !== null) this.onText?.(text, atMs);
        },
        ping: (payload) => this.#write(OPCODE_PONG, payload),
        close: () => this.close(),
      },
      { wantsText: options.wantsText },
    );
    this.#socket = connect({
      port: options.port,
      host: "127.0.0.1",
      noDelay: true,
      onread: {
        buffer: options.readBuffer,
        callback: (count, buffer) => {
          this.#onBytes(buffer.subarray(0, count));
          return true;
        },
      },
    });
    this.#socket.on("close", () => {
      this.isClosed = true;
    });
    // A refused or reset connection counts as closed; `close` follows.
    this.#socket.on("error", () => this.#socket.destroy());
  }

  /** Resolves when the server has switched protocols. The server's key proof is not checked: it is our own server. */
  static open(options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(options);
    return new Promise((resolve, reject) => {
      const refuse = (): void => reject(new Error(`Connection failed: ${options.path} on ${options.port}`));
      const timer = setTimeout(() => {
        connection.close();
        refuse();
      }, HANDSHAKE_DEADLINE_MS);
      connection.#socket.once("close", () => {
        clearTimeout(timer);
        refuse();
      });
      connection.#onOpen = () => {
        clearTimeout(timer);
        resolve(connection);
      };
      connection.#socket.write(upgradeRequest(options));
    });
  }

  send(text: string): void {
    this.#write(OPCODE_TEXT, Buffer.from(text));
  }

  /** Its frames are held against a timeline whose 0 is played at `originMs`. */
  anchor(originMs: number): void {
    this.#lateness?.anchor(originMs);
  }

  /** Stops reading: what the server sends fills the kernel's buffers, then the server's own. */
  stall(): void {
    this.#socket.pause();
  }

  close(): void {
    this.isClosed = true;
    this.#socket.destroy();
  }

  #onBytes(bytes: Uint8Array): void {
    const atMs = monotonicMs();
    if (this.isOpen) {
      this.#reader.push(bytes, atMs);
      return;
    }
    this.#head += Buffer.from(bytes).toString("latin1");
    const headEnd = this.#head.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    if (!this.#head.startsWith("HTTP/1.1 101")) {
      this.close();
      return;
    }
    const rest = Buffer.from(this.#head.slice(headEnd + 4), "latin1");
    this.#head = "";
    this.isOpen = true;
    this.#onOpen?.();
    this.#reader.push(rest, atMs);
  }

  #takeFrame(payloadBytes: number, atMs: number): void {
    this.frames += 1;
    this.payloadBytes += payloadBytes;
    this.#lateness?.note(atMs);
    this.onFrame?.(atMs);
  }

  #write(opcode: number, payload: Buffer): void {
    if (!this.isClosed) this.#socket.write(clientMessage(opcode, payload));
  }
}
