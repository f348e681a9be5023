/** Mutated HTTP requests, byte for byte over TCP, and what each answer has to keep to. */
import { ERRORS } from "../../../src/errors.ts";
import { Mutator } from "../mutator.ts";
import { KeptConnection } from "./kept-connection.ts";
import type { RequestSeed } from "./request-seeds.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "X", ""];
const WORDS = [
  ..."text voice_id model_id output_format page_size null true -1 1e9 %00 %2e%2e %ed%a0%80 .. // ? & = ; NaN".split(
    " ",
  ),
  ..."content-length: transfer-encoding: chunked expect: 100-continue xi-api-key: authorization: origin: host:".split(
    " ",
  ),
];
const QUERIES =
  "format=pcm_16000 format=x wait=true rate=-1 token=a.b.c origin_ms=1e400 page_size=-1 a[]=%ff".split(" ");
const MAX_FAULTS = 20;
/** The server library's own answer to a request line that names no HTTP/1.1. */
const NO_HTTP = 505;
/** Where the upstream is at fault, or the process is full: with a code of the table. */
const ALLOWED_5XX = new Set([502, 503, 504]);

/** A request as it goes on the wire. */
interface MutatedRequest {
  readonly bytes: Buffer;
  /** Its end is where the server sees one: what is sent behind it is the next request. */
  readonly isSound: boolean;
}

/** Characters that end a request's target. */
const ENDS_TARGET = /[^\x21-\x7e]/;

export class RequestCrowd {
  readonly faults: string[] = [];
  sent = 0;
  /** By status; 0: cut off without an answer. */
  readonly statuses = new Map<number, number>();
  readonly #port: number;
  readonly #mutator: Mutator;

  constructor(port: number, seed: number) {
    this.#port = port;
    this.#mutator = new Mutator(seed, WORDS);
  }

  /** One client: it keeps its connection as long as it may, and asks until `next` has nothing more. */
  async client(next: () => RequestSeed | null): Promise<void> {
    using connection = new KeptConnection(this.#port);
    for (let seed = next(); seed !== null; seed = next()) await this.#request(connection, seed);
  }

  async #request(connection: KeptConnection, seed: RequestSeed): Promise<void> {
    const { bytes, isSound } = this.#mutated(seed);
    const answer = await connection.exchange(bytes, isSound);
    this.sent += 1;
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    const fault = answerFault(status, answer);
    if (fault !== null && this.faults.length < MAX_FAULTS)
      this.faults.push(`${fault}: ${bytes.toString("latin1").slice(0, 600)} -> ${answer.slice(0, 600)}`);
  }

  #mutated(seed: RequestSeed): MutatedRequest {
    const mutator = this.#mutator;
    const oneIn = (count: number): boolean => mutator.next(count) === 0;
    const method = oneIn(10) ? (mutator.pick(METHODS) ?? "GET") : seed.method;
    let path = Buffer.from(seed.path);
    if (oneIn(3))
      path = Buffer.from(`${seed.path}${seed.path.includes("?") ? "&" : "?"}${mutator.pick(QUERIES)}`);
    if (oneIn(3)) path = mutator.mutate(path, path) as typeof path;
    let body = Buffer.from(seed.body ?? "");
    if (seed.body !== undefined && !oneIn(8)) body = mutator.mutate(body, body) as typeof body;
    const isChunked = oneIn(10);
    const length = oneIn(20) ? body.length + mutator.next(9) - 4 : body.length;
    const isHeadMutated = oneIn(12);
    const isSound =
      method === seed.method &&
      !ENDS_TARGET.test(path.toString("latin1")) &&
      length === body.length &&
      !isHeadMutated;
    let head = Buffer.from(
      `host: 127.0.0.1:${this.#port}\r\nconnection: ${isSound ? "keep-alive" : "close"}\r\n` +
        `${oneIn(10) ? `x-a: ${"b".repeat(mutator.next(9000))}\r\n` : ""}` +
        `${seed.type === undefined || oneIn(20) ? "" : `content-type: ${seed.type}\r\n`}` +
        `${isChunked ? "transfer-encoding: chunked" : `content-length: ${length}`}\r\n`,
    );
    if (isHeadMutated) head = mutator.mutate(head, head) as typeof head;
    const sent = isChunked
      ? Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")])
      : body;
    const bytes = Buffer.concat([
      Buffer.from(`${method} `),
      path,
      Buffer.from(" HTTP/1.1\r\n"),
      head,
      Buffer.from("\r\n"),
      sent,
    ]);
    // An empty chunk ends the body, and its own line end is too much.
    return { bytes, isSound: isSound && !(isChunked && body.length === 0) };
  }
}

/** What is wrong with an answer; null: nothing. */
export function answerFault(status: number, answer: string): string | null {
  if (status < 400 || status === NO_HTTP) return null;
  const [head = "", ...rest] = answer.split("\r\n\r\n");
  const text = rest.join("\r\n\r\n");
  // As the vendor answers for a webhook that is not there.
  if (status === 500 && text.includes('"status":"webhook_not_found"')) return null;
  if (status >= 500 && !ALLOWED_5XX.has(status)) return `status ${status}`;
  if (!/content-type: application\/json/i.test(head))
    return status >= 500 ? `status ${status} without a code` : null;
  // HEAD has none; what is chunked or cut off is not whole JSON.
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
  if (text === "" || Buffer.byteLength(text, "latin1") !== length) return null;
  const parsed = JSON.parse(Buffer.from(text, "latin1").toString()) as Readonly<Record<string, unknown>>;
  if (!("detail" in parsed) && !("error" in parsed)) return "an error without its shape";
  const { code } = Object(parsed.error ?? parsed.detail) as { readonly code?: unknown };
  if (status >= 500 && typeof code !== "string") return `status ${status} without a code`;
  const isOwn = typeof parsed.error === "object" && "retryable" in Object(parsed.error);
  return isOwn && !Object.hasOwn(ERRORS, String(code)) ? `unknown code ${String(code)}` : null;
}
