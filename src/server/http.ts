/** HTTP answers over uWebSockets.js: headers copied before the callback returns, bodies bounded, aborts heeded. */
import type { HttpResponse } from "uWebSockets.js";
import { ERRORS, GatewayError, toGatewayError } from "../errors.ts";
import { errorBody } from "../protocol/events.ts";
import { corsHeaders } from "./cors.ts";

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Uint8Array | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The connection takes no further request. */
  readonly closes?: boolean;
  /** It answers HEAD: the body is not sent. */
  readonly isHead?: boolean;
}

/** One request's response; writing after the client has gone is silently nothing. */
export class Reply {
  readonly #res: HttpResponse;
  readonly #readers: "allowed-origins" | "same-origin";
  #isOver = false;

  /** `readers`: whose scripts may read it in a browser. */
  constructor(res: HttpResponse, readers: "allowed-origins" | "same-origin" = "allowed-origins") {
    this.#res = res;
    this.#readers = readers;
    res.onAborted(() => {
      this.#isOver = true;
    });
  }

  send(answer: Answer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#res.cork(() => {
      this.#res.writeStatus(String(answer.status));
      this.#res.writeHeader("content-type", answer.contentType);
      for (const [name, value] of Object.entries(answer.headers ?? {})) this.#res.writeHeader(name, value);
      if (this.#readers === "allowed-origins")
        for (const [name, value] of Object.entries(corsHeaders(this.#res)))
          this.#res.writeHeader(name, value);
      this.#res.end(answer.isHead === true ? "" : answer.body, answer.closes);
    });
  }

  json(status: number, body: unknown): void {
    this.send({ status, contentType: "application/json", body: JSON.stringify(body) });
  }

  fail(thrown: unknown): void {
    this.send(failure(thrown));
  }

  /** `isHead`: as an answer to HEAD. */
  failAndClose(thrown: unknown, { isHead = false }: { readonly isHead?: boolean } = {}): void {
    this.send({ ...failure(thrown), closes: true, isHead });
  }
}

function failure(thrown: unknown): Answer {
  const error = toGatewayError(thrown);
  const wait = error.retryAfterMs;
  return {
    status: ERRORS[error.code].httpStatus,
    contentType: "application/json",
    body: JSON.stringify({ error: errorBody(error) }),
    ...(wait === undefined ? {} : { headers: { "retry-after": String(Math.ceil(wait / 1000)) } }),
  };
}

/** The whole request body as text. Rejects with message_too_large; never settles when the client goes away. */
export function readBody(res: HttpResponse, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    res.onData((chunk, isLast) => {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) {
        parts.length = 0;
        reject(
          new GatewayError("message_too_large", `Body is too large: expected at most ${maxBytes} bytes`),
        );
        return;
      }
      // The chunk's memory is taken back when this returns.
      parts.push(Buffer.from(Buffer.from(chunk)));
      if (isLast) resolve(Buffer.concat(parts).toString("utf8"));
    });
  });
}
