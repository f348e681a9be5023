/**
 * One synthesis: the answer to its request as chunks of audio and timing, or as the error that it is. How the answer is read
 * is its dialect's business: each service has its own.
 */
import type { GatewayError } from "../../errors.ts";
import type { ResponseHeaders } from "../headers.ts";
import type { RequestCost } from "../request-cost.ts";
import type { Synthesis, SynthesisChunk, SynthesisHandlers, SynthesisHead } from "../types.ts";
import type { Exchange, ExchangeReceiver } from "./exchange.ts";

/** As much of an error body as is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** What a service answers to one request. */
export interface Dialect {
  /** Longest wait for the first audio that this service needs, ms; default: whatever the caller has. */
  readonly firstAudioMs?: number | undefined;
  /** The head of a 200. Throws upstream_protocol where it is plainly not what was asked for. */
  head(headers: ResponseHeaders): SynthesisHead;
  /** Reads its body. `onChunk` may be called from within `push` and `end`. */
  body(headers: ResponseHeaders, onChunk: (chunk: SynthesisChunk) => void): BodyReader;
  /** `body`: as much of it as was read. */
  refusal(refused: Refused): GatewayError;
  /** Whether a refusal with this status, beside 429, may say that there are too many requests. Default: none does. */
  mayBeTooMany?(status: number): boolean;
  /** True: the body of such a refusal, or of a 429, says not to ask again. Without this method it is always asked again. */
  isRefusalFinal?(refused: Refused): boolean;
  /** Any other error in the service's own words: which of several upstreams it is. Without it: as it is. */
  named?(error: GatewayError): GatewayError;
  /** The synthesis is over, however it ended. Idempotent. */
  close?(): void;
}

export interface Refused {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Buffer;
}

/** Both throw what is wrong with the answer. */
export interface BodyReader {
  /** The piece is the reader's own. */
  push(piece: Buffer): void;
  /** On a socket: the answer has come to its end. */
  readonly isComplete?: boolean;
  /** What it says that it bills, in characters; known at its end. */
  readonly billed?: number | undefined;
  /** The body ended cleanly. */
  end(): void;
}

/** What the body is being read as; before the head, nothing. */
type Reading =
  | { readonly kind: "nothing" }
  | { readonly kind: "body"; readonly reader: BodyReader }
  | {
      readonly kind: "refusal";
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly pieces: Buffer[];
      bytes: number;
    };

export class SpeechStream implements Synthesis, ExchangeReceiver {
  readonly #dialect: Dialect;
  readonly #handlers: SynthesisHandlers;
  readonly #cost: RequestCost | null;
  #exchange: Exchange | null = null;
  #isAborted = false;
  #isPaused = false;
  #reading: Reading = { kind: "nothing" };

  /** `cost`: what it costs; null: nobody writes that down. */
  constructor(dialect: Dialect, handlers: SynthesisHandlers, cost: RequestCost | null = null) {
    this.#dialect = dialect;
    this.#handlers = handlers;
    this.#cost = cost;
  }

  /** Once, after both were made: each needs the other. */
  attach(exchange: Exchange): void {
    this.#exchange = exchange;
    if (this.#isPaused) exchange.pause();
  }

  /** The status that the answer was refused with; null where it was not. */
  get refusedWith(): number | null {
    return this.#reading.kind === "refusal" ? this.#reading.status : null;
  }

  get isAborted(): boolean {
    return this.#isAborted;
  }

  // ---- Synthesis -------------------------------------------------------------------------------------------------

  pause(): void {
    this.#isPaused = true;
    this.#exchange?.pause();
  }
  resume(): void {
    this.#isPaused = false;
    this.#exchange?.resume();
  }
  abort(): void {
    this.#isAborted = true;
    this.#cost?.end("aborted", this.refusedWith !== null);
    this.#exchange?.abort();
    this.#dialect.close?.();
  }

  // ---- ExchangeReceiver ------------------------------------------------------------------------------------------

  sent(): void {
    this.#cost?.sent();
    this.#handlers.requestSent?.(this.#dialect.firstAudioMs);
  }

  turnedAway(): void {
    this.#cost?.turnedAway();
    this.#handlers.requestTurnedAway?.();
  }

  mayBeTooMany(status: number): boolean {
    return this.#dialect.mayBeTooMany?.(status) === true;
  }

  isRefusalFinal(refused: Refused): boolean {
    return this.#dialect.isRefusalFinal?.(refused) === true;
  }

  get isComplete(): boolean {
    return this.#reading.kind === "body" && this.#reading.reader.isComplete === true;
  }

  head(status: number, headers: ResponseHeaders): void {
    if (status !== 200) {
      this.#reading = { kind: "refusal", status, headers, pieces: [], bytes: 0 };
      return;
    }
    const head = this.#dialect.head(headers);
    // A receiver may give up between two chunks of one piece.
    const reader = this.#dialect.body(headers, (chunk) => {
      if (this.#isAborted) return;
      this.#cost?.audio(chunk.audio.byteLength);
      this.#handlers.chunk(chunk);
    });
    this.#reading = { kind: "body", reader };
    this.#cost?.head(head);
    this.#handlers.head(head);
  }

  data(piece: Buffer): void {
    const reading = this.#reading;
    switch (reading.kind) {
      case "body":
        reading.reader.push(piece);
        return;
      case "refusal":
        reading.pieces.push(piece);
        reading.bytes += piece.length;
        // Thrown, it ends the exchange and destroys the body.
        if (reading.bytes >= MAX_REFUSAL_BYTES) throw this.#refusal(reading);
        return;
      case "nothing":
        return;
    }
  }

  end(): void {
    const reading = this.#reading;
    if (reading.kind === "refusal") throw this.#refusal(reading);
    if (reading.kind === "body") reading.reader.end();
    this.#dialect.close?.();
    // The last chunk came at the end, and its receiver may have given up on it.
    if (this.#isAborted) return;
    if (reading.kind === "body" && reading.reader.billed !== undefined) this.#billed(reading.reader.billed);
    this.#cost?.end("done");
    this.#handlers.end();
  }

  #billed(characters: number): void {
    this.#cost?.billed(characters);
    this.#handlers.billed?.(characters);
  }

  error(error: GatewayError): void {
    this.#dialect.close?.();
    if (this.#isAborted) return;
    const reading = this.#reading;
    const isRefused = reading.kind === "refusal";
    // Whatever cut the error body short, the status had said what is wrong.
    const said = isRefused ? this.#refusal(reading) : (this.#dialect.named?.(error) ?? error);
    this.#cost?.end(said.code, isRefused);
    this.#handlers.error(said);
  }

  #refusal({ status, headers, pieces }: Extract<Reading, { kind: "refusal" }>): GatewayError {
    return this.#dialect.refusal({
      status,
      headers,
      body: Buffer.concat(pieces).subarray(0, MAX_REFUSAL_BYTES),
    });
  }
}
