/** Mutated HTTP requests, byte for byte over TCP, and what each answer has to keep to. */
import { connect } from "node:net";
import { ERRORS } from "../../../src/errors.ts";
import { Mutator } from "../mutator.ts";
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
/** A stream of audio or events does not end by itself. */
const READ_MS = 400;
const MAX_READ_BYTES = 65_536;
const MAX_FAULTS = 20;
/** The server library's own answer to a request line that names no HTTP/1.1. */
const NO_HTTP = 505;
/** Where the upstream is at fault, or the process is full: with a code of the table. */
const ALLOWED_5XX = new Set([502, 503, 504]);

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

  async request(seed: RequestSeed): Promise<void> {
    const bytes = this.#mutated(seed);
    const answer = await this.#exchange(bytes);
    this.sent += 1;
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    const fault = answerFault(status, answer);
    if (fault !== null && this.faults.length < MAX_FAULTS)
      this.faults.push(`${fault}: ${bytes.toString("latin1").slice(0, 600)} -> ${answer.slice(0, 600)}`);
  }

  #mutated(seed: RequestSeed): Buffer {
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
    let head = Buffer.from(
      `host: 127.0.0.1:${this.#port}\r\nconnection: close\r\n${oneIn(10) ? `x-a: ${"b".repeat(mutator.next(9000))}\r\n` : ""}` +
        `${seed.type === undefined || oneIn(20) ? "" : `content-type: ${seed.type}\r\n`}` +
        `${isChunked ? "transfer-encoding: chunked" : `content-length: ${length}`}\r\n`,
    );
    if (oneIn(12)) head = mutator.mutate(head, head) as typeof head;
    const sent = isChunked
      ? Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")])
      : body;
    return Buffer.concat([
      Buffer.from(`${method} `),
      path,
      Buffer.from(" HTTP/1.1\r\n"),
      head,
      Buffer.from("\r\n"),
      sent,
    ]);
  }

  #exchange(bytes: Buffer): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect(this.#port, "127.0.0.1");
      let answer = "";
      const timer = setTimeout(() => socket.destroy(), READ_MS);
      socket.on("error", () => socket.destroy());
      socket.on("data", (data) => {
        answer += data.toString("latin1");
        if (answer.length > MAX_READ_BYTES) socket.destroy();
      });
      socket.on("close", () => {
        clearTimeout(timer);
        resolve(answer);
      });
      socket.write(bytes);
    });
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
