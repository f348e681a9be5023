/** One text spoken as the body of an HTTP response: streamed as it comes from the upstream, as far as the client takes it. */
import type { HttpResponse } from "uWebSockets.js";
import { UNKNOWN_DATA_BYTES, wavHeader } from "../../audio/containers/wav.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import { IGNORED_HEADER, ignoredHeader } from "../../kit/ignored-names.ts";
import type { Logger } from "../../kit/log.ts";
import type { UpstreamAttempt, UpstreamAttemptOptions } from "../../session/synthesis/upstream-attempt.ts";
import { type AttemptDeps, boundWaiting, startAttempt } from "../../vendor-sockets/requests.ts";
import type { ResponseTerms } from "../response-lease.ts";
import { ResponseWriter } from "./response-writer.ts";

/** The upstream's bytes as the format wants them. */
export interface Encoder {
  push(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

/** Audio as events instead of a plain body. */
interface BodyEvents {
  audio(bytes: Uint8Array): Uint8Array;
  /** The last one; how much audio the upstream has sent. */
  done(audioBytes: number): Uint8Array;
  /** Sound was sent, and no more comes. */
  failed(error: GatewayError): Uint8Array;
}

export interface SpokenBodyOptions extends AttemptDeps {
  readonly res: HttpResponse;
  readonly terms: ResponseTerms;
  readonly log: Logger;
  /** A client that takes nothing for so long is gone. */
  readonly idleSeconds: number;
  readonly request: Extract<UpstreamAttemptOptions["request"], { readonly kind: "speech" }>;
  readonly contentType: string;
  /** Names in the request that nothing is done of; default none. */
  readonly ignored?: readonly string[];
  readonly encoder: Encoder;
  /** null: the body is the audio, and one that fails is cut. */
  readonly events: BodyEvents | null;
  /** Nothing was sent: the response waits for a status. Called once at most, and not for a client that has gone. */
  readonly onRefused: (error: GatewayError) => void;
  /** It has ended, in whatever way. Called once. */
  readonly onOver: () => void;
}

const NO_BYTES = new Uint8Array(0);

export const PLAIN: Encoder = { push: (bytes) => bytes, end: () => NO_BYTES };

/** A header in front of PCM, of a length that is not known. `sampleRate`: Hz. */
export function wavEncoder(sampleRate: number): Encoder {
  let header: Uint8Array | null = wavHeader({ sampleRate, dataBytes: UNKNOWN_DATA_BYTES });
  return {
    push: (bytes) => {
      if (header === null || bytes.length === 0) return bytes;
      const first = Buffer.concat([header, bytes]);
      header = null;
      return first;
    },
    end: () => NO_BYTES,
  };
}

/** Asks the upstream at once. */
export class SpokenBody {
  readonly #options: SpokenBodyOptions;
  readonly #body: ResponseWriter;
  readonly #run: UpstreamAttempt;
  #isPumping = false;
  #audioBytes = 0;

  constructor(options: SpokenBodyOptions) {
    this.#options = options;
    const { res, clock, idleSeconds, request, terms } = options;
    this.#body = new ResponseWriter({
      res,
      clock,
      idleSeconds,
      onDrained: () => this.#pump(),
      onClosed: () => {
        this.#run.abort();
        options.onOver();
      },
      terms,
      onLost: (error) => this.#fail(error),
    });
    this.#body.begin();
    const { text } = request;
    this.#run = startAttempt(options, { request, text, onNews: () => this.#pump() });
  }

  /** The client has gone: the upstream's request ends, and the response is not touched any more. Idempotent. */
  markAborted(): void {
    this.#run.abort();
    this.#body.markAborted();
  }

  /** Moves what has come to the client, as far as it takes it. */
  #pump(): void {
    if (this.#body.isClosed || this.#isPumping) return;
    this.#isPumping = true;
    try {
      this.#move();
    } catch (thrown) {
      this.#fail(toGatewayError(thrown));
    } finally {
      this.#isPumping = false;
    }
    boundWaiting(this.#run);
  }

  #move(): void {
    const run = this.#run;
    while (!this.#body.isClosed && !this.#body.isBlocked) {
      const chunk = run.take();
      if (chunk === undefined) {
        if (run.error !== null) throw run.error;
        if (run.isComplete) this.#finish();
        return;
      }
      this.#audioBytes += chunk.audio.length;
      this.#send(this.#options.encoder.push(chunk.audio));
    }
  }

  #send(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const { events, contentType, ignored = [] } = this.#options;
    this.#body.write(events?.audio(bytes) ?? bytes);
    if (this.#body.isOpen) return;
    this.#body.open({
      "content-type": contentType,
      ...(ignored.length > 0 ? { [IGNORED_HEADER]: ignoredHeader(ignored) } : {}),
      "cache-control": "no-store",
    });
  }

  #finish(): void {
    const { encoder, events } = this.#options;
    this.#send(encoder.end());
    if (!this.#body.isOpen) {
      throw new GatewayError("upstream_protocol", "The upstream's answer has no audio");
    }
    this.#body.end(events?.done(this.#audioBytes) ?? NO_BYTES);
  }

  /** Before the first audio as a status; then in an event, or by a body that is cut. */
  #fail(error: GatewayError): void {
    const { events, log, onRefused } = this.#options;
    const { isOpen } = this.#body;
    if (isOpen) {
      if (error.code === "internal") log.error({ err: error.cause ?? error }, "Fault in a spoken body");
      if (events !== null) this.#body.write(events.failed(error));
    }
    // Ends the upstream's request, too.
    this.#body.cut();
    if (!isOpen) onRefused(error);
  }
}
