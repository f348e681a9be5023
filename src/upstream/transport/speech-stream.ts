/** One synthesis: the answer to its request as chunks of audio and timing, or as the error that it is. */
import { sampledFormatOf } from "../../audio/analysis/silence.ts";
import { isWavHeader } from "../../audio/containers/wav.ts";
import { GatewayError } from "../../errors.ts";
import { countOf, headerOf, type ResponseHeaders } from "../headers.ts";
import { NdjsonParser } from "../parse/ndjson.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
  SynthesisRequest,
} from "../types.ts";
import { refusalError } from "../vendors/refusal.ts";
import type { Exchange, ExchangeReceiver } from "./exchange.ts";

/** As much of an error body as is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** What the body is being read as; before the head, nothing. */
type Reading =
  | { readonly kind: "nothing" }
  | { readonly kind: "audio" }
  | { readonly kind: "records"; readonly parser: NdjsonParser }
  | {
      readonly kind: "refusal";
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly pieces: Buffer[];
      bytes: number;
    };

export interface SpeechStreamOptions {
  readonly request: SynthesisRequest;
  readonly handlers: SynthesisHandlers;
  /** The key, for nothing but keeping it out of messages. */
  readonly key: string;
}

export class SpeechStream implements Synthesis, ExchangeReceiver {
  readonly #options: SpeechStreamOptions;
  readonly #handlers: SynthesisHandlers;
  #exchange: Exchange | null = null;
  #isAborted = false;
  #hasAudio = false;
  #reading: Reading = { kind: "nothing" };

  constructor(options: SpeechStreamOptions) {
    this.#options = options;
    this.#handlers = options.handlers;
  }

  /** Once, right after both were made: each needs the other. */
  attach(exchange: Exchange): void {
    this.#exchange = exchange;
  }

  /** The status that the answer was refused with; null where it was not. */
  get refusedWith(): number | null {
    return this.#reading.kind === "refusal" ? this.#reading.status : null;
  }

  // ---- Synthesis -------------------------------------------------------------------------------------------------

  pause(): void {
    this.#exchange?.pause();
  }
  resume(): void {
    this.#exchange?.resume();
  }
  abort(): void {
    this.#isAborted = true;
    this.#exchange?.abort();
  }

  // ---- ExchangeReceiver ------------------------------------------------------------------------------------------

  sent(): void {
    this.#handlers.requestSent?.();
  }

  turnedAway(): void {
    this.#handlers.requestTurnedAway?.();
  }

  head(status: number, headers: ResponseHeaders): void {
    if (status !== 200) {
      this.#reading = { kind: "refusal", status, headers, pieces: [], bytes: 0 };
      return;
    }
    const { request } = this.#options;
    checkContent(headers, request.wantsTiming);
    this.#reading = request.wantsTiming
      ? { kind: "records", parser: new NdjsonParser({ onRecord: (record) => this.#onChunk(record) }) }
      : { kind: "audio" };
    this.#handlers.head(readHead(headers));
  }

  data(piece: Buffer): void {
    const reading = this.#reading;
    switch (reading.kind) {
      case "audio":
        this.#onChunk({ audio: piece, alignment: null, normalizedAlignment: null, voiceSegments: [] });
        return;
      case "records":
        reading.parser.push(piece);
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
    if (reading.kind === "records") reading.parser.flush();
    // The last record came in flush, and its receiver may have given up on it.
    if (!this.#isAborted) this.#handlers.end();
  }

  error(error: GatewayError): void {
    if (this.#isAborted) return;
    const reading = this.#reading;
    // Whatever cut the error body short, the status had said what is wrong.
    this.#handlers.error(reading.kind === "refusal" ? this.#refusal(reading) : error);
  }

  #onChunk(chunk: SynthesisChunk): void {
    // A receiver may give up between two records of one piece.
    if (this.#isAborted) return;
    if (!this.#hasAudio && chunk.audio.length > 0) {
      this.#hasAudio = true;
      checkBeginning(chunk.audio, this.#options.request.outputFormat);
    }
    this.#handlers.chunk(chunk);
  }

  #refusal(reading: Extract<Reading, { kind: "refusal" }>): GatewayError {
    const { request, key } = this.#options;
    const body = Buffer.concat(reading.pieces).subarray(0, MAX_REFUSAL_BYTES);
    const { status, headers } = reading;
    return refusalError({ status, headers, body, secrets: [key, ...textsOf(request)] });
  }
}

function textsOf(request: SynthesisRequest): readonly string[] {
  if (request.kind === "dialogue") return request.inputs.map(({ text }) => text);
  return [request.text, request.previousText ?? "", request.nextText ?? ""];
}

/** Throws upstream_protocol where a 200 is plainly not what was asked for. */
function checkContent(headers: ResponseHeaders, wantsTiming: boolean): void {
  const type = headerOf(headers, "content-type") ?? "";
  const encoding = headerOf(headers, "content-encoding") ?? "identity";
  // Of the content type of the timed variant nothing is known, so its records speak for themselves.
  if (!wantsTiming && !/^audio\//i.test(type)) {
    throw unexpected(`content-type is ${JSON.stringify(type)}, expected audio/*`);
  }
  if (!/^identity$/i.test(encoding))
    throw unexpected(`content-encoding is ${JSON.stringify(encoding)}, expected none`);
}

/** Throws upstream_protocol for samples behind a WAV header: they would begin with a crack, at whatever rate it says. */
function checkBeginning(audio: Uint8Array, format: string): void {
  if (sampledFormatOf(format) === null || !isWavHeader(audio)) return;
  throw unexpected(`its ${format} begins with a WAV header, expected samples alone`);
}

function unexpected(what: string): GatewayError {
  return new GatewayError("upstream_protocol", `The upstream's answer can't be used: ${what}`);
}

function readHead(headers: ResponseHeaders): SynthesisHead {
  const requestId = headerOf(headers, "request-id");
  const characterCost = countOf(headers, "character-cost");
  const current = countOf(headers, "current-concurrent-requests");
  const maximum = countOf(headers, "maximum-concurrent-requests");
  return {
    ...(requestId === undefined ? {} : { requestId }),
    ...(characterCost === undefined ? {} : { characterCost }),
    ...(current === undefined ? {} : { currentConcurrentRequests: current }),
    ...(maximum === undefined ? {} : { maximumConcurrentRequests: maximum }),
  };
}
