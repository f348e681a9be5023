/** One request to the fake upstream: what came, and the answer carried out step by step. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";

/** One step of a body, done in order. */
export type FakeStep =
  /** Written as it is (see `splitBytes`). */
  | Uint8Array
  | string
  /** So long after the step before. */
  | { readonly afterMs: number }
  /** No earlier than so long after the head. */
  | { readonly atMs: number }
  | { readonly until: Promise<unknown> }
  /** Written over and over, as fast as the client takes it. */
  | { readonly endless: Uint8Array }
  /** Nothing more, the connection stays open. */
  | "stall"
  /** TCP reset. */
  | "reset"
  /** The connection ends (FIN) before the body does. */
  | "cut";

export interface FakeAnswer {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: readonly FakeStep[];
  /** Writes each piece of the body in pieces of so many bytes, a turn of the event loop apart. */
  readonly splitBytes?: number;
}

/** `silence`: the request is read and never answered. `reset`: the connection is reset before an answer. */
export type FakeReaction = FakeAnswer | "silence" | "reset";
export type FakeScript = (request: FakeRequest, index: number) => FakeReaction | Promise<FakeReaction>;

/** A request as it came, and what became of its answer so far. */
export interface FakeRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body if it is JSON, else undefined. */
  readonly json: unknown;
  /** Body bytes that the socket took. */
  readonly bytesWritten: number;
  /** The socket takes no more for now: the client does not read. */
  readonly isBlocked: boolean;
  /** The answer was sent to its end. */
  readonly isFinished: boolean;
  /** The client went before the end; when, by performance.now(). */
  readonly abortedAtMs: number | null;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Reads the request, asks `react` what to do and does it. */
export async function serve(
  incoming: IncomingMessage,
  response: ServerResponse,
  react: (request: FakeRequest) => FakeReaction | Promise<FakeReaction>,
): Promise<void> {
  const request = await readRequest(incoming);
  if (request === null) return;
  const gone = new Promise<void>((resolve) => {
    response.on("close", () => {
      if (response.writableFinished) request.isFinished = true;
      else request.abortedAtMs = performance.now();
      resolve();
    });
  });
  const reaction = await react(request);
  if (reaction === "silence") return;
  if (reaction === "reset") {
    incoming.socket.resetAndDestroy();
    return;
  }
  response.writeHead(reaction.status ?? 200, { ...reaction.headers });
  response.flushHeaders();
  await new BodyWriter({ response, request, gone, splitBytes: reaction.splitBytes ?? 0 }).write(
    reaction.body ?? [],
  );
}

/** null: the client went before it had sent everything. */
async function readRequest(incoming: IncomingMessage): Promise<Mutable<FakeRequest> | null> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of incoming) pieces.push(piece as Buffer);
  } catch {
    return null;
  }
  const text = Buffer.concat(pieces).toString("utf8");
  const url = new URL(`http://fake${incoming.url ?? "/"}`);
  return {
    method: incoming.method ?? "",
    // Not url.pathname: that is normalized, and a test wants to see what was sent.
    path: (incoming.url ?? "/").split("?")[0] ?? "/",
    query: url.searchParams,
    headers: incoming.headers,
    text,
    json: parseOrUndefined(text),
    bytesWritten: 0,
    isBlocked: false,
    isFinished: false,
    abortedAtMs: null,
  };
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface BodyWriterOptions {
  readonly response: ServerResponse;
  readonly request: Mutable<FakeRequest>;
  readonly gone: Promise<void>;
  readonly splitBytes: number;
}

class BodyWriter {
  readonly #options: BodyWriterOptions;
  readonly #startMs = performance.now();

  constructor(options: BodyWriterOptions) {
    this.#options = options;
  }

  async write(steps: readonly FakeStep[]): Promise<void> {
    const { response } = this.#options;
    for (const step of steps) {
      if (this.#isGone || step === "stall") return;
      if (step === "reset") {
        response.socket?.resetAndDestroy();
        return;
      }
      if (step === "cut") {
        response.socket?.end();
        return;
      }
      await this.#do(step);
    }
    response.end();
  }

  get #isGone(): boolean {
    return this.#options.request.abortedAtMs !== null;
  }

  async #do(step: Exclude<FakeStep, "stall" | "reset" | "cut">): Promise<void> {
    if (typeof step === "string") await this.#bytes(Buffer.from(step));
    else if (step instanceof Uint8Array) await this.#bytes(step);
    else if ("afterMs" in step) await this.#sleep(step.afterMs);
    else if ("atMs" in step) await this.#sleep(this.#startMs + step.atMs - performance.now());
    else if ("until" in step) await Promise.race([step.until, this.#options.gone]);
    else while (!this.#isGone) await this.#bytes(step.endless);
  }

  async #bytes(bytes: Uint8Array): Promise<void> {
    const splitBytes = this.#options.splitBytes || bytes.length;
    for (let start = 0; start < bytes.length && !this.#isGone; start += splitBytes) {
      await this.#piece(bytes.subarray(start, start + splitBytes));
      if (this.#options.splitBytes > 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #piece(piece: Uint8Array): Promise<void> {
    const { response, request, gone } = this.#options;
    request.bytesWritten += piece.length;
    if (response.write(piece)) return;
    request.isBlocked = true;
    await Promise.race([new Promise((resolve) => response.once("drain", resolve)), gone]);
    request.isBlocked = false;
  }

  async #sleep(ms: number): Promise<void> {
    if (ms <= 0) return;
    let timer: NodeJS.Timeout | undefined;
    const slept = new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await Promise.race([slept, this.#options.gone]);
    clearTimeout(timer);
  }
}
