/** How much of a request's body is read, and for how long: while it is wanted, and after the request was refused. */
import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";

/** What a body may have beside its parts: the text in front of them and their heads. */
const MAX_UNPARSED_BYTES = 1_048_576;
/** Read of a refused body: most clients have sent all by then, and turn to their answer. */
const MAX_DISCARDED_BYTES = 1_048_576;

export interface BodyWatchOptions {
  /** Longest body. Its reader looks at `bytes` and refuses more; where it is handed nothing the connection is cut. */
  readonly maxBytes: number;
  /** Silence after which the client is taken for gone. */
  readonly stallMs: number;
  /** The whole body must be there by then, however slowly it drips. */
  readonly wholeMs: number;
}

/** Cuts the connection of a client that has fallen silent, that takes too long, or that sends without end. */
export class BodyWatch {
  readonly #raw: IncomingMessage;
  readonly #onData: (chunk: Uint8Array) => void;
  readonly #stall: NodeJS.Timeout;
  readonly #whole: NodeJS.Timeout;
  #bytes = 0;

  constructor(raw: IncomingMessage, { maxBytes, stallMs, wholeMs }: BodyWatchOptions) {
    this.#raw = raw;
    const cut = (): void => {
      raw.destroy();
    };
    this.#stall = setTimeout(cut, stallMs);
    this.#whole = setTimeout(cut, wholeMs);
    this.#onData = (chunk) => {
      this.#bytes += chunk.byteLength;
      this.#stall.refresh();
      if (this.#bytes > maxBytes + MAX_UNPARSED_BYTES) cut();
    };
    raw.on("data", this.#onData);
  }

  /** What has come by now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Idempotent. */
  end(): void {
    clearTimeout(this.#stall);
    clearTimeout(this.#whole);
    this.#raw.off("data", this.#onData);
  }
}

/**
 * For a body that nobody wants, before the answer is sent. Where more of it may come, the connection ends with the answer, in
 * steps (RFC 9112 section 9.6): a reset would take the answer away from a client that is still sending. Our side is closed, up
 * to 1 MB more is read and thrown away, and after `lingerMs` the connection is cut.
 */
export function discardBody({ raw }: FastifyRequest, reply: FastifyReply, lingerMs: number): void {
  raw.unpipe();
  if (raw.readableEnded || raw.destroyed) return;
  const { socket } = raw;
  reply.header("connection", "close");
  // What Node's server calls behind such an answer: it would close both sides at once.
  socket.destroySoon = () => socket.end();
  let bytes = 0;
  raw.on("data", (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    if (bytes > MAX_DISCARDED_BYTES) raw.pause();
  });
  raw.resume();
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(timer));
}
