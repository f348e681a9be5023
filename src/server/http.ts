/** HTTP over uWebSockets.js: what is read of a request before its callback returns, and answers, bounded, aborts heeded. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { BodyAllowance } from "../access/limits/body-allowance.ts";
import { LimitError, rateHeaders } from "../access/limits/limit-error.ts";
import { ERRORS, GatewayError, toGatewayError } from "../errors.ts";
import { errorBody } from "../protocol/events.ts";

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Uint8Array | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The connection takes no further request. */
  readonly closes?: boolean;
}

/** Whose scripts may read an answer in a browser (W3C Fetch, "CORS protocol"). */
type Readers = "allowed-origins" | "same-origin";

/** Notes that scripts of this origin may read the answer. */
export function allowReader(res: HttpResponse, origin: string): void {
  res.reader = origin;
}

/** The answer goes over TLS: the browser shall use nothing else with this host for so long (RFC 6797). */
export function demandTls(res: HttpResponse, maxAgeSeconds: number): void {
  res.strictTransport = `max-age=${maxAgeSeconds}`;
}

/** Notes what may be taken in of the request's body: see BodyAllowance. */
export function noteBody(res: HttpResponse, allowance: BodyAllowance): void {
  res.bodyAllowance = allowance;
}

export function bodyAllowance(res: HttpResponse): BodyAllowance | null {
  const noted: unknown = res.bodyAllowance;
  return noted instanceof BodyAllowance ? noted : null;
}

/** Notes that the request is HEAD: its answer has no body (RFC 9110 section 9.3.2). */
export function noteHead(res: HttpResponse): void {
  res.isForHead = true;
}

/** Notes who hears of an error that is the answer. */
export function noteErrors(res: HttpResponse, sent: (thrown: unknown) => void): void {
  res.errorSent = sent;
}

/** Notes what is given back to who asks, where the request is refused. */
export function noteGiveBack(res: HttpResponse, giveBack: () => void): void {
  res.giveBack = giveBack;
}

/** The request is refused: what it had taken is given back. */
export function giveBack(res: HttpResponse): void {
  const noted: unknown = res.giveBack;
  if (typeof noted === "function") noted();
}

/** Notes headers of the answer, whoever writes it; they are asked for when it is written. */
export function noteHeaders(res: HttpResponse, headers: () => Readonly<Record<string, string>>): void {
  res.notedHeaders = headers;
}

export function notedHeaders(res: HttpResponse): Readonly<Record<string, string>> {
  const noted: unknown = res.notedHeaders;
  return typeof noted === "function" ? noted() : {};
}

/** An answer is data: a browser that opens it runs nothing, guesses no type, and tells nobody its address. The page has its own. */
const INERT: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'",
  "referrer-policy": "no-referrer",
};

/** Headers of an answer that is inert in browsers; unless it is for its own origin alone, allowed origins may read it. */
export function writeHeaders(
  res: HttpResponse,
  headers: Readonly<Record<string, string>>,
  readers: Readers = "allowed-origins",
): void {
  const all = { ...INERT, ...notedHeaders(res), ...headers };
  for (const [name, value] of Object.entries(all)) res.writeHeader(name, value);
  const strictTransport: unknown = res.strictTransport;
  if (typeof strictTransport === "string") res.writeHeader("strict-transport-security", strictTransport);
  if (readers === "same-origin") return;
  // Caches keep answers apart whoever asks first.
  res.writeHeader("vary", "Origin");
  const reader: unknown = res.reader;
  if (typeof reader === "string") res.writeHeader("access-control-allow-origin", reader);
}

/**
 * Ends an answer that has no body. `length`: of the body that GET would get; null where nobody knows. The library's own
 * parameter for it makes it wait for that body: it cuts the connection at the next request.
 */
export function endWithoutBody(res: HttpResponse, length: number | null): void {
  if (length !== null) res.writeHeader("content-length", String(length));
  res.endWithoutBody();
}

/** A part of the request's path, without its percent-encoding. */
export function pathPart(req: HttpRequest, index = 0): string {
  const part = req.getParameter(index) ?? "";
  try {
    return decodeURIComponent(part);
  } catch {
    // Not percent-encoded text: it is no id, and refused with the error of one.
    return part;
  }
}

/** HTTP statuses from here on say that the request failed (RFC 9110 section 15). */
const FIRST_ERROR_STATUS = 400;

/** One request's response; writing after the client has gone is silently nothing. */
export class Reply {
  readonly #res: HttpResponse;
  readonly #readers: Readers;
  #isOver = false;

  constructor(res: HttpResponse, readers: Readers = "allowed-origins") {
    this.#res = res;
    this.#readers = readers;
    res.onAborted(() => {
      this.#isOver = true;
      bodyAllowance(res)?.letGo();
    });
  }

  send(answer: Answer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    bodyAllowance(this.#res)?.letGo();
    if (answer.status >= FIRST_ERROR_STATUS) giveBack(this.#res);
    this.#res.cork(() => {
      this.#res.writeStatus(String(answer.status));
      const headers = { "content-type": answer.contentType, ...answer.headers };
      writeHeaders(this.#res, headers, this.#readers);
      if (this.#res.isForHead !== true) this.#res.end(answer.body, answer.closes);
      else if (answer.closes === true) this.#res.end("", true);
      else endWithoutBody(this.#res, Buffer.byteLength(answer.body));
    });
  }

  json(status: number, body: unknown): void {
    this.send({ status, contentType: "application/json", body: JSON.stringify(body) });
  }

  fail(thrown: unknown): void {
    this.#noteError(thrown);
    this.send(failure(thrown));
  }

  /** `status` and `body`: where they are another surface's. */
  failAndClose(thrown: unknown, shape: Partial<Pick<Answer, "status" | "body">> = {}): void {
    this.#noteError(thrown);
    this.send({ ...failure(thrown), closes: true, ...shape });
  }

  #noteError(thrown: unknown): void {
    const noted: unknown = this.#res.errorSent;
    if (!this.#isOver && typeof noted === "function") noted(thrown);
  }
}

/** An error as an answer. */
export function failure(thrown: unknown): Answer {
  const error = toGatewayError(thrown);
  const wait = error.retryAfterMs;
  return {
    status: ERRORS[error.code].httpStatus,
    contentType: "application/json",
    body: JSON.stringify({ error: errorBody(error) }),
    headers: {
      ...(wait === undefined ? {} : { "retry-after": String(Math.ceil(wait / 1000)) }),
      ...(error instanceof LimitError ? rateHeaders(error.rate) : {}),
    },
  };
}

/**
 * The whole request body as text. It counts as held until the answer is sent or the client has gone: whoever does not answer by a
 * Reply lets its allowance go. Rejects with message_too_large, memory_limit, rate_limited; never settles when the client goes away.
 */
export function readBody(res: HttpResponse, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const allowance = bodyAllowance(res);
    let bytes = 0;
    let isRefused = false;
    const refuse = (error: unknown): void => {
      isRefused = true;
      parts.length = 0;
      reject(error);
    };
    res.onData((chunk, isLast) => {
      if (isRefused) return;
      try {
        if (bytes === 0) allowance?.begin();
        bytes += chunk.byteLength;
        if (bytes > maxBytes) {
          throw new GatewayError(
            "message_too_large",
            `Body is too large: expected at most ${maxBytes} bytes`,
          );
        }
        allowance?.take(chunk.byteLength);
      } catch (thrown) {
        refuse(thrown);
        return;
      }
      // The chunk's memory is taken back when this returns.
      parts.push(Buffer.from(Buffer.from(chunk)));
      if (isLast) resolve(Buffer.concat(parts).toString("utf8"));
    });
  });
}
