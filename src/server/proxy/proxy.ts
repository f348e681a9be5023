/**
 * The vendor's interface on the gateway's own port: the listed paths below /v1 and /v2 go upstream with the key added, bodies
 * as they come; so does /openapi.json, which describes it.
 *
 *   client --upload--> UploadBody --reads--> upstream      a full one pauses the client's socket
 *   client <--writes-- uWebSockets.js <--data-- upstream   a full one pauses the upstream's
 */

import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { STATUS_CODES } from "node:http";
import type { Readable } from "node:stream";
import { forbidden } from "../../access/access-error.ts";
import type { Caller } from "../../access/caller.ts";
import type { ProxyTrust } from "../../access/client-address.ts";
import type { Door } from "../../access/door.ts";
import type { ReservedSpeech, UpstreamSubject } from "../../access/limits/limits.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import { ClientLimit } from "../../kit/client-limit.ts";
import type { Clock } from "../../kit/clock.ts";
import type { LedgerSink } from "../../ledger/entries.ts";
import type { Counters } from "../../metrics/counters.ts";
import type { Span } from "../../tracing/span.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import { withoutTokens } from "../credential.ts";
import { bodyAllowance, endWithoutBody, notedHeaders, Reply, readBody, writeHeaders } from "../http.ts";
import { beginHttpSpan } from "../http-span.ts";
import { requestAddress } from "../request-address.ts";
import { beginResponse, type ResponseTerms } from "../response-lease.ts";
import { needs, type Routes } from "../routes.ts";
import { audited } from "../speech-access.ts";
import { type ProxiedCost, proxiedEntry } from "./proxied-entry.ts";
import {
  isLimited,
  mostUploadCharacters,
  ProxiedSpeech,
  type SpeechAsking,
  type SpeechTarget,
} from "./proxied-speech.ts";
import {
  groupOf,
  isForm,
  isWholeJson,
  lengthOf,
  MAX_WHOLE_BYTES,
  UPLOAD_BYTES,
  UploadBody,
} from "./proxy-body.ts";
import { headersForClient, headersForUpstream } from "./proxy-headers.ts";
import type { PassedPaths } from "./proxy-paths.ts";

/** As upstream/transport/forward.ts has them. */
type HeaderList = readonly (readonly [name: string, value: string])[];

interface ProxyHandlers {
  head(status: number, headers: HeaderList): void;
  data(piece: Uint8Array): void;
  end(): void;
  error(error: GatewayError): void;
}

interface Proxied {
  pause(): void;
  resume(): void;
  touch(): void;
  abort(): void;
}

interface Head {
  readonly status: number;
  readonly headers: HeaderList;
}

/** What has come of an answer and is still to be written. */
interface News {
  head: Head | null;
  readonly pieces: Uint8Array[];
}

type ProxyMethod = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface ProxyOptions {
  readonly door: Door;
  readonly passedPaths: PassedPaths;
  /** `x-voicewire-fault` goes upstream: only where that is a service for tests. */
  readonly passesFaults: boolean;
  readonly forward: (
    request: {
      readonly method: ProxyMethod;
      readonly path: string;
      readonly headers: HeaderList;
      readonly body: string | Readable | null;
      readonly group: string;
      readonly subject: UpstreamSubject;
    },
    handlers: ProxyHandlers,
  ) => Proxied;
  /** Forms of one client (clientOf in kit/client-limit.ts) at once. The service behind us sees our address only. */
  readonly maxUploadsPerClient: number;
  /** Whose word about a client's address counts. */
  readonly proxyTrust: ProxyTrust;
  readonly clock: Clock;
  readonly counters: Counters;
  /** Default: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  /** Where it is written down what requests cost. Default: nowhere. */
  readonly ledger?: LedgerSink | undefined;
}

const NOTHING = new Uint8Array(0);
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);
const WITH_BODY: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH", "DELETE"]);
/** As the audit log calls it. */
const SURFACE = "proxy";
/** What speech costs is known when it is answered: so much is paid before, by who has so much left. */
const FIRST_CHARACTERS = 1;
/** HTTP statuses from here on are errors (RFC 9110 section 15). */
const FIRST_ERROR_STATUS = 400;
/** The server writes these itself. */
const SERVERS_OWN: ReadonlySet<string> = new Set(["content-length", "date"]);

export function routeProxy(app: Routes, options: ProxyOptions): void {
  const { maxUploadsPerClient, door } = options;
  const uploads = new ClientLimit({ maxTotal: Number.POSITIVE_INFINITY, maxPerClient: maxUploadsPerClient });
  const answer = (res: HttpResponse, req: HttpRequest, caller: Caller): void => {
    const method = req.getMethod().toUpperCase();
    if (!isMethod(method)) {
      new Reply(res).fail(new GatewayError("not_found", `No such method here: ${method.slice(0, 40)}`));
      return;
    }
    const headers = headersOf(req, caller);
    const address = requestAddress(res, req, options.proxyTrust);
    const asking = { door, caller, surface: SURFACE, address };
    const asked = { method, path: req.getUrl(), query: req.getQuery() ?? "", headers };
    const isCounted = door.limits.countsCharacters(caller);
    const passing = { ...options, caller, pins: caller.speechSettings, isCounted };
    let target: ProxyTarget;
    let admission: Admission;
    let passedHeaders: HeaderList;
    try {
      passedHeaders = headersForUpstream(headers, options);
      target = audited(asking, () => targetOf(asked, passing));
      const { isSpeech, mostCharacters } = target;
      admission = audited(asking, () => admitted({ caller, address, isSpeech, mostCharacters }, door));
    } catch (thrown) {
      new Reply(res).fail(thrown);
      return;
    }
    const { path, query, bodyOf, charactersIn } = target;
    const { leave: spoken, reserved } = admission;
    const request = {
      method,
      path: query === "" ? path : `${path}?${query}`,
      subject: door.limits.upstreamSubject(caller, address),
      headers: passedHeaders,
      bodyOf: (json: string) =>
        audited(asking, () => {
          const body = bodyOf(json);
          // Before it goes: of requests that run beside one another each has its own.
          reserved?.reserve(Math.max(0, charactersIn(body) - FIRST_CHARACTERS));
          return body;
        }),
    };
    const settle = (characters: number | null): void => {
      if (characters !== null && characters > 0) door.audit.spent(caller, { surface: SURFACE, characters });
      reserved?.settle(characters);
    };
    const { ledger } = options;
    const answering = {
      ...options,
      note:
        ledger === undefined
          ? null
          : (spent: ProxiedCost) => {
              const entry = proxiedEntry(spent, { ...request, isSpeech: target.isSpeech });
              if (entry !== null) ledger.add(entry);
            },
      span: beginHttpSpan(req, options),
      settle,
      termsOf: (json: () => string | null): ResponseTerms => ({
        door,
        caller,
        mustStay: (now) => mustStillPass({ ...asked, path, query }, json(), { ...passing, caller: now }),
        isEndless: false,
      }),
    };
    if (!isForm(headers)) {
      new ProxyAnswer(res, request, { ...answering, onEnd: spoken });
      return;
    }
    const leave = uploads.acquire(address);
    if (leave === null) {
      settle(0);
      spoken();
      const message = `Your address has ${maxUploadsPerClient} uploads under way: try again when one of them is done`;
      new Reply(res).fail(new GatewayError("upload_limit", message));
      return;
    }
    const onEnd = (): void => {
      leave();
      spoken();
    };
    new ProxyAnswer(res, request, { ...answering, onEnd });
  };
  app.any("/v1/*", needs("proxy"), answer);
  app.any("/v2/*", needs("proxy"), answer);
  app.get("/openapi.json", needs("proxy"), answer);
}

/** What opens this gateway's door is nobody else's business; without keys it is the upstream's. */
function headersOf(req: HttpRequest, { isAnybody }: Caller): [string, string][] {
  const headers: [string, string][] = [];
  req.forEach((name, value) => {
    if (isAnybody || (name !== "xi-api-key" && name !== "authorization")) headers.push([name, value]);
  });
  return headers;
}

interface ProxyTarget extends SpeechTarget, Pick<ProxyRequest, "bodyOf"> {
  /** It counts as an utterance. */
  readonly isSpeech: boolean;
  /** Characters in a body that goes upstream, where they are counted. */
  readonly charactersIn: (body: string) => number;
  /** What it costs at most, where that is known when it is answered; null: it is known before. */
  readonly mostCharacters: number | null;
}

interface Asked extends SpeechTarget {
  readonly method: ProxyMethod;
  readonly headers: HeaderList;
}

interface Passing extends SpeechAsking, Pick<ProxyOptions, "passedPaths"> {
  /** The caller's characters are. */
  readonly isCounted: boolean;
}

interface Admission {
  /** Idempotent. */
  readonly leave: () => void;
  /** null: it is no speech. */
  readonly reserved: ReservedSpeech | null;
}

interface Admitting extends Pick<ProxyTarget, "isSpeech" | "mostCharacters"> {
  readonly caller: Caller;
  readonly address: string;
}

/** One of its client's requests, and an utterance. Throws rate_limited, budget_exhausted. */
function admitted({ caller, address, isSpeech, mostCharacters }: Admitting, door: Door): Admission {
  const leave = door.limits.begin("proxied_requests", caller, address);
  if (!isSpeech) return { leave, reserved: null };
  try {
    const { end, reserved } = paidFor({ caller, mostCharacters }, door);
    return {
      leave: () => {
        leave();
        end();
      },
      reserved,
    };
  } catch (thrown) {
    leave();
    throw thrown;
  }
}

/** `end`: idempotent. Throws rate_limited, budget_exhausted. */
function paidFor({ caller, mostCharacters }: Pick<Admitting, "caller" | "mostCharacters">, { limits }: Door) {
  const end = limits.beginUtterance(caller);
  let reserved: ReservedSpeech | null = null;
  try {
    reserved = limits.reserveSpeech(caller, FIRST_CHARACTERS);
    if (mostCharacters !== null) reserved.open(mostCharacters);
    return { end, reserved };
  } catch (thrown) {
    reserved?.settle(0);
    end();
    throw thrown;
  }
}

/** Where the request goes. Throws invalid_path, not_found, forbidden. */
function targetOf({ method, path, query: asked, headers }: Asked, passing: Passing): ProxyTarget {
  const { caller, passedPaths, isCounted } = passing;
  const query = caller.isAnybody ? asked : withoutTokens(asked);
  const part = passedPaths.check({ method, path, query });
  const isSpeech = part === "speech";
  const asIs = {
    path,
    query,
    bodyOf: (json: string) => json,
    charactersIn: () => 0,
    mostCharacters: null,
    isSpeech,
  };
  if (caller.isAnybody) return asIs;
  caller.mustPass(part);
  if (!isSpeech || !(isCounted || isLimited(caller))) return asIs;
  const speech = new ProxiedSpeech(passing, { path, query });
  if (!speech.wantsBody) {
    return { ...asIs, ...speech.target, mostCharacters: mostUploadCharacters(lengthOf(headers)) };
  }
  if (!isWholeJson(headers)) {
    const expected = `application/json with a content-length of at most ${MAX_WHOLE_BYTES}`;
    throw forbidden(`What your key or token allows can't be checked here: send ${expected}`);
  }
  return {
    ...asIs,
    ...speech.target,
    bodyOf: (json) => speech.bodyOf(json),
    charactersIn: (body) => speech.charactersIn(body),
  };
}

/** Whether what went upstream would still be passed on. `json`: the body that went; null: none, or in pieces. Throws forbidden. */
function mustStillPass(sent: Asked, json: string | null, passing: Omit<Passing, "pins">): void {
  const { bodyOf } = targetOf(sent, { ...passing, pins: {} });
  if (json !== null) bodyOf(json);
}

function isMethod(method: string): method is ProxyMethod {
  return METHODS.has(method);
}

interface ProxyRequest {
  readonly method: ProxyMethod;
  readonly subject: UpstreamSubject;
  /** With the query. */
  readonly path: string;
  readonly headers: HeaderList;
  /** What goes upstream of a body that is whole JSON. Throws what it may not be. */
  readonly bodyOf: (json: string) => string;
}

interface AnswerOptions extends Pick<ProxyOptions, "forward" | "clock" | "counters"> {
  /** null: it is not traced. */
  readonly span: Span | null;
  /** What it has cost is known: so many characters; null: about as many as its text has. The first call counts. */
  readonly settle: (characters: number | null) => void;
  /** It is over; null: nobody writes it down. */
  readonly note: ((cost: ProxiedCost) => void) | null;
  /** How long it may take; of the body that went upstream, null until then. */
  readonly termsOf: (json: () => string | null) => ResponseTerms;
  /** The upstream has answered or failed, or the client has gone. Called once or more. */
  readonly onEnd?: () => void;
}

/** The length of a body that may be another than the client's. */
function withLength(headers: HeaderList, body: string): HeaderList {
  const length = String(Buffer.byteLength(body));
  return headers.map(([name, value]) => (name === "content-length" ? [name, length] : [name, value]));
}

/** null: it is no number of characters. */
function charactersOf(cost: string | undefined): number | null {
  const characters = cost === undefined ? Number.NaN : Number(cost);
  return characters >= 0 ? characters : null;
}

class ProxyAnswer {
  readonly #res: HttpResponse;
  readonly #request: ProxyRequest;
  readonly #options: AnswerOptions;
  #proxied: Proxied | null = null;
  #upload: UploadBody | null = null;
  #hasNoBody: boolean;
  #isOver = false;
  /** Length of the answer's body, where its head says it; null: it comes in chunks. */
  #length: number | null = null;
  #isHeadWritten = false;
  /** What has come in this turn of the event loop; null: nothing has. It is written at the end of the turn, in one go. */
  #news: News | null = null;
  /** What the socket did not take, and where in the body it begins. */
  #left: { readonly bytes: Uint8Array; readonly offset: number } | null = null;
  #isEnded = false;
  /** The body as it went upstream, where it is JSON. */
  #json: string | null = null;
  /** What the head of the answer says; null: it has not come. */
  #answer: ProxiedCost["answer"] = null;
  #isNoted = false;
  readonly #endLease: () => void;

  constructor(res: HttpResponse, request: ProxyRequest, options: AnswerOptions) {
    this.#res = res;
    this.#request = request;
    this.#options = options;
    this.#hasNoBody = request.method === "HEAD";
    res.onAborted(() => this.#giveUp());
    const terms = options.termsOf(() => this.#json);
    this.#endLease = beginResponse(terms, (error) => this.#lose(error));
    if (!WITH_BODY.has(request.method)) this.#forward(null);
    else if (isWholeJson(request.headers)) {
      readBody(res, MAX_WHOLE_BYTES)
        .then((json) => {
          if (!this.#isOver) this.#forward(request.bodyOf(json));
        })
        .catch((thrown: unknown) => this.#onError(toGatewayError(thrown)));
    } else {
      // A stream has as much in memory as it may, at most.
      try {
        bodyAllowance(res)?.hold(UPLOAD_BYTES);
      } catch (thrown) {
        this.#onError(toGatewayError(thrown));
        return;
      }
      const { clock, counters } = options;
      this.#upload = new UploadBody(res, {
        clock,
        onPiece: () => this.#proxied?.touch(),
        pass: (bytes) => bodyAllowance(res)?.pass(bytes) ?? 0,
        onSlowed: () => {
          counters.uploadsSlowed += 1;
        },
      });
      this.#forward(this.#upload);
    }
  }

  #forward(body: string | Readable | null): void {
    const { method, path, subject } = this.#request;
    const json = typeof body === "string" ? body : null;
    this.#json = json;
    const headers = json === null ? this.#request.headers : withLength(this.#request.headers, json);
    const group = groupOf(method, path, json);
    this.#proxied = this.#options.forward(
      { method, path, headers, body, group, subject },
      {
        head: (status, headers) => this.#onHead(status, headers),
        data: (piece) => this.#onData(piece),
        end: () => this.#onEnd(),
        error: (error) => this.#onError(error),
      },
    );
  }

  #onHead(status: number, headers: HeaderList): void {
    if (this.#isOver) return;
    this.#hasNoBody = this.#hasNoBody || status === 204 || status === 304;
    const length = headers.find(([name]) => name === "content-length")?.[1];
    const cost = headers.find(([name]) => name === "character-cost")?.[1];
    const requestId = headers.find(([name]) => name === "request-id")?.[1] ?? null;
    this.#answer = { status, cost: charactersOf(cost), requestId };
    this.#settle(status, charactersOf(cost));
    this.#options.span?.set({ "http.response.status_code": status });
    this.#length = length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : null;
    this.#res.onWritable((offset) => this.#onWritable(offset));
    this.#note().head = { status, headers: headersForClient(headers) };
    this.#upload?.goOn();
  }

  /** `cost`: what the upstream says that it bills. */
  #settle(status: number, cost: number | null): void {
    this.#options.settle(cost ?? (status < FIRST_ERROR_STATUS ? null : 0));
  }

  #onData(piece: Uint8Array): void {
    if (this.#isOver || this.#hasNoBody) return;
    if (this.#left !== null) {
      // The upstream had this in hand when it was paused.
      const { bytes, offset } = this.#left;
      this.#left = { bytes: Buffer.concat([bytes, piece]), offset };
      return;
    }
    this.#note().pieces.push(piece);
  }

  /** Head, body and end of a short answer come in one read: sent one by one they would wake the client three times. */
  #note(): News {
    if (this.#news === null) {
      this.#news = { head: null, pieces: [] };
      queueMicrotask(() => this.#flush());
    }
    return this.#news;
  }

  #flush(): void {
    const news = this.#news;
    this.#news = null;
    if (news === null || this.#isOver) return;
    this.#res.cork(() => {
      if (news.head !== null) this.#writeHead(news.head);
      const [only = NOTHING, ...more] = news.pieces;
      if (news.pieces.length > 0) this.#write(more.length === 0 ? only : Buffer.concat(news.pieces));
      if (this.#isEnded && this.#left === null) this.#finish();
    });
  }

  #writeHead({ status, headers }: Head): void {
    this.#isHeadWritten = true;
    this.#res.writeStatus(`${status} ${STATUS_CODES[status] ?? ""}`.trim());
    const ours = notedHeaders(this.#res);
    // One by one: a header may come more than once. What we say of the caller's limits wins over what is said of ours.
    for (const [name, value] of headers) {
      if (!SERVERS_OWN.has(name) && !Object.hasOwn(ours, name)) this.#res.writeHeader(name, value);
    }
    writeHeaders(this.#res, {});
  }

  /** Within a cork. */
  #write(bytes: Uint8Array): void {
    const res = this.#res;
    const total = this.#length;
    if (total === null) {
      // Taken in all the same: the socket only says that it has enough.
      if (!res.write(bytes)) this.#hold(NOTHING, 0);
      return;
    }
    const offset = res.getWriteOffset();
    const [ok, isDone] = res.tryEnd(bytes, total);
    if (isDone) this.#markOver();
    else if (!ok) this.#hold(bytes.slice(), offset);
  }

  #hold(bytes: Uint8Array, offset: number): void {
    this.#left = { bytes, offset };
    this.#proxied?.pause();
  }

  /** `offset`: how much of the body the socket has taken by now. */
  #onWritable(offset: number): boolean {
    if (this.#isOver || this.#left === null) return true;
    const { bytes, offset: from } = this.#left;
    const rest = this.#length === null ? bytes : bytes.subarray(offset - from);
    this.#left = null;
    this.#res.cork(() => {
      if (rest.length > 0) this.#write(rest);
      if (this.#isEnded && this.#left === null) this.#finish();
    });
    if (this.#left !== null) return false;
    if (!this.#isEnded) this.#proxied?.resume();
    return true;
  }

  #onEnd(): void {
    this.#leave();
    this.#upload?.goOn();
    this.#isEnded = true;
    // What is left goes first.
    if (this.#left === null) this.#note();
  }

  /** Within a cork. */
  #finish(): void {
    if (this.#isOver) return;
    this.#markOver();
    const res = this.#res;
    const total = this.#length;
    if (this.#hasNoBody || total === 0) endWithoutBody(res, total);
    else if (total === null) res.end();
    // Shorter than it said: the client has to see that.
    else res.close();
  }

  /** It is over, for all but the client. */
  #leave(): void {
    this.#options.onEnd?.();
    bodyAllowance(this.#res)?.letGo();
  }

  #onError(error: GatewayError): void {
    this.#endSpan(error.code);
    // Unless it was answered before.
    this.#options.settle(0);
    this.#leave();
    if (this.#isOver) return;
    this.#upload?.goOn();
    this.#markOver();
    if (this.#isHeadWritten) this.#res.close();
    else new Reply(this.#res).fail(error);
  }

  /** Its key or token holds no more. */
  #lose(error: GatewayError): void {
    this.#endSpan(error.code);
    this.#abandon();
    this.#upload?.end();
    this.#proxied?.abort();
    this.#leave();
    this.#markOver();
    if (this.#isHeadWritten) this.#res.close();
    else new Reply(this.#res).failAndClose(error);
  }

  #markOver(): void {
    this.#endSpan(null);
    this.#isOver = true;
    this.#upload?.end();
    this.#endLease();
  }

  /** The first call counts. */
  #endSpan(error: string | null): void {
    this.#options.span?.end(this.#options.clock.nowMs(), error);
    if (this.#isNoted) return;
    this.#isNoted = true;
    if (this.#proxied === null) return;
    this.#options.note?.({ json: this.#json, answer: this.#answer, error });
  }

  /** Nobody waits for the answer any more: what has gone upstream may be billed all the same. */
  #abandon(): void {
    this.#options.settle(this.#proxied === null ? 0 : null);
  }

  #giveUp(): void {
    this.#endSpan("client_left");
    this.#abandon();
    this.#leave();
    if (this.#isOver && this.#isEnded) return;
    this.#markOver();
    this.#proxied?.abort();
  }
}
