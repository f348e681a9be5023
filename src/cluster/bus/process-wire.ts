/**
 * Messages between two processes of one program over a pipe: u32 length, then the message as V8 serializes it. One process has
 * started the other, so nothing is checked. Messages of one turn leave in one system call.
 */
import type { Duplex } from "node:stream";
import { deserialize, serialize } from "node:v8";
import { ERRORS, type ErrorCode, GatewayError, toGatewayError } from "../../errors.ts";
import type { BusState, Entry, TableChange } from "./bus.ts";

/** An error of ours, which would arrive as one of nobody's. */
interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
}

export type TableName = "owners" | "leases";

/** What is called, answered by one `result` or `error` with its number. */
export type HubCall =
  | { readonly name: "claim"; readonly table: TableName; readonly key: string; readonly value: Uint8Array }
  | {
      readonly name: "takeOver" | "renew";
      readonly table: TableName;
      readonly entry: Entry;
      readonly value: Uint8Array;
    }
  | { readonly name: "release"; readonly table: TableName; readonly entry: Entry }
  | { readonly name: "find"; readonly table: TableName; readonly key: string }
  | { readonly name: "close" }
  | {
      readonly name: "request";
      readonly subject: string;
      readonly bytes: Uint8Array;
      readonly timeoutMs: number;
    }
  /** These stand under the call's number until they are ended. */
  | { readonly name: "watch"; readonly table: TableName; readonly prefix: string }
  | { readonly name: "subscribe" | "answer"; readonly subject: string };

export type ToHub =
  | { readonly kind: "call"; readonly id: number; readonly call: HubCall }
  | { readonly kind: "publish"; readonly subject: string; readonly bytes: Uint8Array }
  | { readonly kind: "answer"; readonly question: number; readonly reply: Uint8Array | WireError }
  | { readonly kind: "end"; readonly id: number };

export type FromHub =
  | { readonly kind: "result"; readonly id: number; readonly value: unknown }
  | { readonly kind: "error"; readonly id: number; readonly error: WireError }
  | { readonly kind: "heard"; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: "changed"; readonly id: number; readonly change: TableChange }
  | { readonly kind: "asked"; readonly id: number; readonly question: number; readonly bytes: Uint8Array }
  | { readonly kind: "state"; readonly state: BusState };

const HEAD_BYTES = 4;

export class ProcessWire<In, Out> {
  readonly #stream: Duplex;
  readonly #onMessage: (message: In) => void;
  #isCorked = false;
  /** What has come of messages that are not whole, and how long it has to be before it is looked at. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  #wantedBytes = HEAD_BYTES;

  /** `onEnd`: nothing comes or goes any more. */
  constructor(stream: Duplex, onMessage: (message: In) => void, onEnd: () => void) {
    this.#stream = stream;
    this.#onMessage = onMessage;
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    // What follows is the end.
    stream.on("error", () => undefined);
    stream.once("close", onEnd);
    stream.once("end", onEnd);
  }

  /** Bytes that the other has not taken. */
  get waitingBytes(): number {
    return this.#stream.writableLength;
  }

  send(message: Out): void {
    const stream = this.#stream;
    if (!stream.writable) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      stream.cork();
      queueMicrotask(() => {
        this.#isCorked = false;
        stream.uncork();
      });
    }
    const body = serialize(message);
    const head = Buffer.allocUnsafe(HEAD_BYTES);
    head.writeUInt32BE(body.length);
    stream.write(head);
    stream.write(body);
  }

  /** What was sent before still goes. */
  end(): void {
    this.#stream.end();
  }

  #read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#wantedBytes) return;
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    let at = 0;
    for (;;) {
      const leftBytes = bytes.length - at;
      this.#wantedBytes = leftBytes < HEAD_BYTES ? HEAD_BYTES : HEAD_BYTES + bytes.readUInt32BE(at);
      if (leftBytes < this.#wantedBytes) break;
      const end = at + this.#wantedBytes;
      const message: In = deserialize(bytes.subarray(at + HEAD_BYTES, end));
      at = end;
      this.#onMessage(message);
    }
    this.#chunks = at === bytes.length ? [] : [bytes.subarray(at)];
    this.#bytes = bytes.length - at;
  }
}

export function toWireError(thrown: unknown): WireError {
  const { code, message, retryAfterMs } = toGatewayError(thrown);
  return { code, message, retryAfterMs };
}

export function fromWireError({ code, message, retryAfterMs }: WireError): GatewayError {
  const known = Object.hasOwn(ERRORS, code) ? code : "internal";
  return new GatewayError(known, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}
