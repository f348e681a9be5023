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
/** Each has a connection of its own. Where so many wait, nothing more is asked until one of them has its answer. */
const MAX_WAITING = 600;
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

/** Where the body ends is said by its length, whatever else the method asks for. */
const FRAMED_METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);
/** Bytes of a header: few are as long as no server reads. */
const LONG_HEAD = 9000;
const SHORT_HEAD = 2000;
/** Characters that end a request's target. */
const ENDS_TARGET = /[^\x21-\x7e]/;

export class RequestCrowd {
  readonly faults: string[] = [];
  sent = 0;
  /** Those whose answer did not come soon. */
  waited = 0;
  /** By status; 0: cut off without an answer. */
  readonly statuses = new Map<number, number>();
  readonly #port: number;
  readonly #mutator: Mutator;
  readonly #idle: KeptConnection[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #waiting = 0;

  constructor(port: number, seed: number) {
    this.#port = port;
    this.#mutator = new Mutator(seed, WORDS);
  }

  /** Asks until `next` has nothing more, with so many requests under way beside those that only wait. */
  async ask(next: () => RequestSeed | null, asking: number): Promise<void> {
    await Promise.all(Array.from({ length: asking }, () => this.#askInTurn(next)));
    await Promise.all(this.#underWay);
    for (const connection of this.#idle.splice(0)) connection[Symbol.dispose]();
  }

  async #askInTurn(next: () => RequestSeed | null): Promise<void> {
    for (let seed = next(); seed !== null; seed = next()) {
      const asked = seed;
      await new Promise<void>((goOn) => {
        const done = this.#request(asked, goOn).then(() => {
          this.#underWay.delete(done);
          goOn();
        });
        this.#underWay.add(done);
      });
    }
  }

  async #request(seed: RequestSeed, goOn: () => void): Promise<void> {
    const connection = this.#idle.pop() ?? new KeptConnection(this.#port);
    const { bytes, isSound } = this.#mutated(seed);
    let isWaiting = false;
    const answer = await connection.exchange(bytes, isSound, () => {
      this.waited += 1;
      if (this.#waiting >= MAX_WAITING) return;
      isWaiting = true;
      this.#waiting += 1;
      goOn();
    });
    if (isWaiting) this.#waiting -= 1;
    this.#idle.push(connection);
    this.sent += 1;
    const status = statusOf(answer);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    const fault = answerFault(status, answer);
    if (fault !== null && this.faults.length < MAX_FAULTS)
      this.faults.push(`${fault}: ${bytes.toString("latin1").slice(0, 600)} -> ${answer.slice(0, 600)}`);
  }

  #mutated(seed: RequestSeed): MutatedRequest {
    const mutator = this.#mutator;
    const oneIn = (count: number): boolean => mutator.next(count) === 0;
    const usual = seed.openedOneIn === undefined || oneIn(seed.openedOneIn) ? seed.method : "HEAD";
    const method = oneIn(10) ? (mutator.pick(METHODS) ?? "GET") : usual;
    let path = Buffer.from(seed.path);
    if (oneIn(3))
      path = Buffer.from(`${seed.path}${seed.path.includes("?") ? "&" : "?"}${mutator.pick(QUERIES)}`);
    if (oneIn(3)) path = mutator.mutate(path, path) as typeof path;
    if (!oneIn(8)) path = encoded(path);
    let body = Buffer.from(seed.body ?? "");
    if (seed.body !== undefined && !oneIn(8)) body = mutator.mutate(body, body) as typeof body;
    const isChunked = oneIn(10);
    const length = oneIn(80) ? body.length + mutator.next(9) - 4 : body.length;
    const isHeadMutated = oneIn(50);
    const isSound =
      FRAMED_METHODS.has(method) &&
      !ENDS_TARGET.test(path.toString("latin1")) &&
      length === body.length &&
      !isHeadMutated;
    let head = Buffer.from(
      `host: 127.0.0.1:${this.#port}\r\nconnection: ${isSound && !oneIn(50) ? "keep-alive" : "close"}\r\n` +
        `${oneIn(10) ? `x-a: ${"b".repeat(mutator.next(oneIn(8) ? LONG_HEAD : SHORT_HEAD))}\r\n` : ""}` +
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

/** A target that is read as one: what would end it is percent-encoded, and an empty one is the root. */
function encoded(path: Buffer): Buffer<ArrayBuffer> {
  const text = path.toString("latin1");
  const whole = text.startsWith("/") ? text : `/${text}`;
  return Buffer.from(
    whole.replace(/[^\x21-\x7e]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`),
    "latin1",
  );
}

/** 0: no answer. */
function statusOf(answer: string): number {
  return answer.startsWith("HTTP/1.1 ") ? Number(answer.slice(9, 12)) : 0;
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
  const parsed = jsonOf(Buffer.from(text, "latin1").toString());
  if (parsed === null) return "an error that is no JSON object";
  if (!("detail" in parsed) && !("error" in parsed)) return "an error without its shape";
  const { code } = Object(parsed.error ?? parsed.detail) as { readonly code?: unknown };
  if (status >= 500 && typeof code !== "string") return `status ${status} without a code`;
  const isOwn = typeof parsed.error === "object" && "retryable" in Object(parsed.error);
  return isOwn && !Object.hasOwn(ERRORS, String(code)) ? `unknown code ${String(code)}` : null;
}

function jsonOf(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}
