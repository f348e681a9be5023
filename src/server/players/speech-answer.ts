/** A POST that is answered with speech: its body is read, and what it asks for is spoken as the response's body. */
import type { HttpResponse } from "uWebSockets.js";
import type { Caller } from "../../access/caller.ts";
import type { Door } from "../../access/door.ts";
import type { ChargedUtterance } from "../../access/limits/limits.ts";
import { type GatewayError, toGatewayError } from "../../errors.ts";
import type { Span } from "../../tracing/span.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import { bodyAllowance, Reply, readBody } from "../http.ts";
import { SpokenBody, type SpokenBodyOptions } from "./spoken-body.ts";

/** What speaks. */
export interface SpeechAnswerDeps
  extends Pick<
    SpokenBodyOptions,
    "upstream" | "clock" | "counters" | "log" | "idleSeconds" | "firstAudioMs"
  > {
  readonly door: Door;
  /** Default: nothing is traced. */
  readonly tracer?: Tracer | undefined;
}

/** What a request asks for. */
export interface AskedSpeech
  extends Pick<SpokenBodyOptions, "contentType" | "ignored" | "encoder" | "events"> {
  /** `modelId`: "" = the upstream's default. */
  readonly speech: Omit<SpokenBodyOptions["request"], "kind" | "wantsTiming" | "modelId"> & {
    readonly modelId: string;
  };
  readonly caller: Caller;
  /** What is counted of it until it is over. */
  readonly charged: Pick<ChargedUtterance, "end">;
  /** Throws forbidden where the caller, by the keys as they are now, may not have it. */
  readonly mustStay: (caller: Caller) => void;
}

export interface SpeechAnswerOptions {
  readonly deps: SpeechAnswerDeps;
  /** What faults of our own are logged with. */
  readonly name: string;
  /** null: it is not traced. */
  readonly span: Span | null;
  /** Answers with why there is no speech. */
  readonly answerError: (reply: Reply, error: GatewayError) => void;
}

/** Four times the longest text in UTF-8, and the rest. */
const MAX_BODY_BYTES = 65_536;

/** To be made before the request's handler returns. */
export class SpeechAnswer {
  readonly #res: HttpResponse;
  readonly #options: SpeechAnswerOptions;
  /** The client has gone, or was refused. */
  #isOver = false;
  #body: SpokenBody | null = null;

  constructor(res: HttpResponse, options: SpeechAnswerOptions) {
    this.#res = res;
    this.#options = options;
    res.onAborted(() => {
      this.#isOver = true;
      this.#endSpan("client_left");
      bodyAllowance(res)?.letGo();
      this.#body?.markAborted();
    });
  }

  /** `parse`: of the request's body; what it rejects with is the answer. Before the request's handler returns. */
  start(parse: (body: string) => Promise<AskedSpeech>): void {
    readBody(this.#res, MAX_BODY_BYTES)
      .then(parse)
      .then((asked) => this.#speak(asked))
      .catch((thrown: unknown) => this.refuse(thrown));
  }

  /** Instead of `start`, or where nothing was sent yet. */
  refuse(thrown: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const error = toGatewayError(thrown);
    this.#endSpan(error.code);
    const { deps, name, answerError } = this.#options;
    if (error.code === "internal") deps.log.error({ err: error.cause ?? error }, `Fault in ${name}`);
    answerError(new Reply(this.#res), error);
  }

  /** The first call counts. */
  #endSpan(error: string | null): void {
    this.#options.span?.end(this.#options.deps.clock.nowMs(), error);
  }

  #speak({ speech, caller, mustStay, charged, ...body }: AskedSpeech): void {
    if (this.#isOver) {
      charged.end();
      return;
    }
    bodyAllowance(this.#res)?.letGo();
    const { modelId, ...request } = speech;
    const { door, ...deps } = this.#options.deps;
    const { span } = this.#options;
    this.#body = new SpokenBody({
      ...deps,
      ...body,
      traced: { begin: (begun) => span?.child(begun) ?? null },
      // One text: it is not cut because its token's time is over.
      terms: { door, caller, mustStay, isEndless: false },
      res: this.#res,
      request: { ...request, kind: "speech", wantsTiming: false, ...(modelId === "" ? {} : { modelId }) },
      onRefused: (error) => this.refuse(error),
      onOver: () => {
        charged.end();
        // A refusal has ended the span with its error before.
        queueMicrotask(() => this.#endSpan(null));
      },
    });
  }
}
