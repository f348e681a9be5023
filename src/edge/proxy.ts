/**
 * The vendor's interface on the gateway's own port: /v1/... and /v2/... go upstream with the key added, bodies as they come.
 *
 *   client --upload--> UploadBody --reads--> upstream      a full one pauses the client's socket
 *   client <--writes-- uWebSockets.js <--data-- upstream   a full one pauses the upstream's
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js";
import { STATUS_CODES } from "node:http";
import { Readable } from "node:stream";
import { GatewayError } from "../errors.ts";
import { Reply } from "./http.ts";

/** As upstream/forward.ts has them. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

export interface ProxyHandlers {
  head(status: number, headers: HeaderList): void;
  data(piece: Uint8Array): void;
  end(): void;
  error(error: GatewayError): void;
}

export interface Proxied {
  pause(): void;
  resume(): void;
  touch(): void;
  abort(): void;
}

export type ProxyMethod = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

export interface ProxyOptions {
  readonly forward: (
    request: {
      readonly method: ProxyMethod;
      readonly path: string;
      readonly headers: HeaderList;
      readonly body: Readable | null;
    },
    handlers: ProxyHandlers,
  ) => Proxied;
}

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const WITH_BODY: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH", "DELETE"]);
/** Bytes of an upload that wait for the upstream. */
const UPLOAD_BYTES = 262_144;
/** The server writes these itself. */
const SERVERS_OWN: ReadonlySet<string> = new Set(["content-length", "date"]);

export function routeProxy(app: TemplatedApp, options: ProxyOptions): void {
  const answer = (res: HttpResponse, req: HttpRequest): void => {
    const method = req.getMethod().toUpperCase();
    if (!isMethod(method)) {
      new Reply(res).fail(new GatewayError("not_found", `No such method here: ${method.slice(0, 40)}`));
      return;
    }
    const query = req.getQuery();
    const path = query ? `${req.getUrl()}?${query}` : req.getUrl();
    const headers: [string, string][] = [];
    req.forEach((name, value) => {
      headers.push([name, value]);
    });
    new ProxyAnswer(res, { method, path, headers }, options);
  };
  app.any("/v1/*", answer);
  app.any("/v2/*", answer);
}

function isMethod(method: string): method is ProxyMethod {
  return METHODS.has(method);
}

/** What the client sends, on its way: the client's socket is paused while the upstream takes no more. */
class UploadBody extends Readable {
  readonly #onWanted: () => void;

  constructor(onWanted: () => void) {
    super({ highWaterMark: UPLOAD_BYTES });
    this.#onWanted = onWanted;
  }

  override _read(): void {
    this.#onWanted();
  }
}

class ProxyAnswer {
  readonly #res: HttpResponse;
  readonly #proxied: Proxied;
  #hasNoBody: boolean;
  #isOver = false;
  #isUploadPaused = false;
  /** Of the answer, where its head said; null: in chunks. */
  #length: number | null = null;
  #hasHead = false;
  /** What the socket did not take, and where in the body it begins. */
  #left: { readonly bytes: Uint8Array; readonly offset: number } | null = null;
  #isEnded = false;

  constructor(
    res: HttpResponse,
    request: { readonly method: ProxyMethod; readonly path: string; readonly headers: HeaderList },
    options: ProxyOptions,
  ) {
    this.#res = res;
    this.#hasNoBody = request.method === "HEAD";
    const body = WITH_BODY.has(request.method) ? new UploadBody(() => this.#resumeUpload()) : null;
    res.onAborted(() => this.#giveUp());
    this.#proxied = options.forward(
      { ...request, body },
      {
        head: (status, headers) => this.#onHead(status, headers),
        data: (piece) => this.#onData(piece),
        end: () => this.#onEnd(),
        error: (error) => this.#onError(error),
      },
    );
    if (body !== null) this.#receive(body);
  }

  #receive(body: UploadBody): void {
    // A body that nobody wants any more is read to its end, or the client could not read the answer.
    body.on("error", () => undefined);
    this.#res.onData((chunk, isLast) => {
      this.#proxied.touch();
      if (body.destroyed) return;
      // The chunk's memory is taken back when this returns.
      const bytes = Buffer.from(chunk.slice(0));
      const hasRoom = bytes.length === 0 || body.push(bytes);
      if (isLast) body.push(null);
      else if (!hasRoom && !this.#isOver) {
        this.#isUploadPaused = true;
        this.#res.pause();
      }
    });
  }

  #resumeUpload(): void {
    if (!this.#isUploadPaused || this.#isOver) return;
    this.#isUploadPaused = false;
    this.#res.resume();
  }

  #onHead(status: number, headers: HeaderList): void {
    if (this.#isOver) return;
    this.#hasHead = true;
    this.#hasNoBody = this.#hasNoBody || status === 204 || status === 304;
    const length = headers.find(([name]) => name === "content-length")?.[1];
    this.#length = length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : null;
    this.#res.onWritable((offset) => this.#onWritable(offset));
    this.#res.cork(() => {
      this.#res.writeStatus(`${status} ${STATUS_CODES[status] ?? ""}`.trim());
      for (const [name, value] of headers) if (!SERVERS_OWN.has(name)) this.#res.writeHeader(name, value);
    });
    // Before an answer is complete nothing that was paused for its upload matters.
    this.#resumeUpload();
  }

  #onData(piece: Uint8Array): void {
    if (this.#isOver || this.#hasNoBody) return;
    if (this.#left !== null) {
      // The upstream had this in hand when it was paused.
      const { bytes, offset } = this.#left;
      this.#left = { bytes: Buffer.concat([bytes, piece]), offset };
      return;
    }
    this.#write(piece);
  }

  #write(bytes: Uint8Array): void {
    const res = this.#res;
    const total = this.#length;
    if (total === null) {
      let isTaken = true;
      res.cork(() => {
        isTaken = res.write(bytes);
      });
      // Taken in all the same: the socket only says that it has enough.
      if (!isTaken) this.#hold(new Uint8Array(0), 0);
      return;
    }
    const offset = res.getWriteOffset();
    let ok = true;
    let isDone = false;
    res.cork(() => {
      [ok, isDone] = res.tryEnd(bytes, total);
    });
    if (isDone) this.#isOver = true;
    else if (!ok) this.#hold(bytes.slice(), offset);
  }

  #hold(bytes: Uint8Array, offset: number): void {
    this.#left = { bytes, offset };
    this.#proxied.pause();
  }

  /** `offset`: how much of the body the socket has taken by now. */
  #onWritable(offset: number): boolean {
    if (this.#isOver || this.#left === null) return true;
    const { bytes, offset: from } = this.#left;
    const rest = this.#length === null ? bytes : bytes.subarray(offset - from);
    this.#left = null;
    if (rest.length > 0) this.#write(rest);
    if (this.#left !== null) return false;
    if (this.#isEnded) this.#finish();
    else this.#proxied.resume();
    return true;
  }

  #onEnd(): void {
    this.#isEnded = true;
    if (this.#left === null) this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const res = this.#res;
    const total = this.#length;
    if (this.#hasNoBody || total === 0) res.cork(() => res.endWithoutBody(total ?? undefined));
    else if (total === null) res.cork(() => res.end());
    // Shorter than it said: the client has to see that.
    else res.close();
  }

  #onError(error: GatewayError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#hasHead) this.#res.close();
    else new Reply(this.#res).fail(error);
  }

  #giveUp(): void {
    if (this.#isOver && this.#isEnded) return;
    this.#isOver = true;
    this.#proxied.abort();
  }
}
