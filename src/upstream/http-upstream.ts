/**
 * One upstream at one base URL that speaks the vendor's interface. The same code for the vendor, a gateway of one's own and
 * the embedded service.
 */
import { toGatewayError } from "../errors.ts";
import type { LedgerSink } from "../ledger/entries.ts";
import type { GroupLimit } from "./governor.ts";
import { countOf } from "./headers.ts";
import { RequestCost } from "./request-cost.ts";
import { checkedKey } from "./transport/base-url.ts";
import type { Exchange } from "./transport/exchange.ts";
import {
  type Forwarded,
  type ForwardHandlers,
  ForwardReceiver,
  type ForwardRequest,
  forwardedHeaders,
} from "./transport/forward.ts";
import {
  Requester,
  type RequesterOptions,
  type RequestOptions,
  type UpstreamStats,
} from "./transport/requester.ts";
import { SpeechStream } from "./transport/speech-stream.ts";
import type { SynthesisHandlers, SynthesisRequest } from "./types.ts";
import { FIRST_UPSTREAM } from "./vendor-options.ts";
import { VendorDialect } from "./vendors/vendor-dialect.ts";
import { wireRequest } from "./vendors/vendor-request.ts";

export interface HttpUpstreamOptions extends Omit<RequesterOptions, "startLimit" | "isAdditive"> {
  readonly key: string;
  readonly patienceMs: number;
  /** Its region, as the ledger has it. Default: none. */
  readonly name?: string;
  /** Default: nothing is written down. */
  readonly ledger?: LedgerSink | undefined;
  /** It is the embedded service, which is told how soon speech is needed. Default false. */
  readonly isEmbedded?: boolean | undefined;
}

/** What is passed on may be a whole answer that takes long to make; the vendor's own client waits as long. */
const FORWARD_TIMEOUT_MS = 240_000;
const AHEAD_HEADER = "x-voicewire-ahead-ms";
const BEHIND_HEADER = "x-voicewire-behind-ms";
const MAX_AHEAD_MS = 999_999;
/** Group of speech that names no model. */
const DEFAULT_LIMIT_GROUP = "default model";
/** What is passed on is waited for longer: a program asks, and not a conversation. */
const FORWARD_PATIENCE = 3;

export class HttpUpstream {
  readonly #requester: Requester;
  readonly #timeoutMs: number;
  readonly #patienceMs: number;
  readonly #key: string;
  readonly #ledger: LedgerSink | undefined;
  readonly #region: string;
  readonly #postHeaders: readonly string[];
  readonly #isEmbedded: boolean;
  #behindMs = 0;

  /** Throws invalid_config. */
  constructor(options: HttpUpstreamOptions) {
    this.#requester = new Requester(options);
    this.#key = options.key;
    this.#ledger = options.ledger;
    this.#region = options.name ?? "";
    const keyHeader = options.key === "" ? [] : ["xi-api-key", checkedKey(options.key)];
    this.#postHeaders = [...keyHeader, "content-type", "application/json"];
    this.#isEmbedded = options.isEmbedded ?? false;
    this.#timeoutMs = options.timeoutMs;
    this.#patienceMs = options.patienceMs;
  }

  /** As UpstreamClient.open. */
  open(
    request: SynthesisRequest,
    handlers: SynthesisHandlers,
    requestOptions: RequestOptions = {},
  ): SpeechStream {
    const place = { upstream: FIRST_UPSTREAM, region: this.#region };
    const cost = this.#ledger === undefined ? null : new RequestCost(this.#ledger, request, place);
    const stream = new SpeechStream(this.#dialectFor(request), handlers, cost);
    try {
      const { path, body } = wireRequest(request);
      const { modelId = DEFAULT_LIMIT_GROUP, priority = 0, subject } = request;
      const wanted = { group: modelId, priority, subject };
      const asked = {
        method: "POST",
        path,
        body,
        headers: this.#headersOf(request),
        receiver: stream,
      } as const;
      stream.attach(
        this.#requester.begin({ ...asked, wanted, patienceMs: this.#patienceMs, ...requestOptions }),
      );
    } catch (thrown) {
      queueMicrotask(() => stream.error(toGatewayError(thrown)));
    }
    return stream;
  }

  /** As UpstreamClient.forward. `keepsBody`: a body that streams is not destroyed when the answer is over. */
  forward(
    request: ForwardRequest,
    handlers: ForwardHandlers,
    { keepsBody = false, ...requestOptions }: RequestOptions & { readonly keepsBody?: boolean } = {},
  ): Forwarded {
    const { body } = request;
    const isStream = typeof body !== "string" && body !== null;
    let exchange: Exchange | null = null;
    const receiver = new ForwardReceiver(handlers, {
      body: isStream && !keepsBody ? body : null,
      key: this.#key,
      giveUp: () => exchange?.abort(),
      onWithheld: (reason) => this.#noteWithheld(request, reason),
    });
    try {
      exchange = this.#requester.begin({
        method: request.method,
        path: request.path,
        headers: forwardedHeaders(request.headers, this.#key),
        body,
        receiver,
        timeoutMs: Math.max(this.#timeoutMs, FORWARD_TIMEOUT_MS),
        wanted: { group: request.group === "" ? null : request.group, priority: 0, subject: request.subject },
        // A body that streams can't be sent twice.
        patienceMs: isStream ? 0 : FORWARD_PATIENCE * this.#patienceMs,
        ...requestOptions,
      });
    } catch (thrown) {
      queueMicrotask(() => receiver.error(toGatewayError(thrown)));
    }
    return {
      pause: () => exchange?.pause(),
      resume: () => exchange?.resume(),
      touch: () => exchange?.touch(),
      abort: () => {
        receiver.abort();
        exchange?.abort();
      },
    };
  }

  /** See Governor.limit. */
  limitOpen(max: number): void {
    this.#requester.limitOpen(max);
  }

  /** Most requests that may hold a connection now. */
  get maxOpen(): number {
    return this.#requester.maxOpen;
  }

  stats(): UpstreamStats {
    return this.#requester.stats();
  }

  /** How late the embedded service was with what is played, ms, as its last answer says; 0 of others, which do not say it. */
  get behindMs(): number {
    return this.#behindMs;
  }

  /** The limits that are known, at most `most` of them. */
  limits(most: number): GroupLimit[] {
    return this.#requester.limits(most);
  }

  warm(): Promise<void> {
    return this.#requester.warm();
  }

  close(): Promise<void> {
    return this.#requester.close();
  }

  #dialectFor(request: SynthesisRequest): VendorDialect {
    return new VendorDialect(request, this.#key, (headers) => {
      this.#behindMs = this.#isEmbedded ? (countOf(headers, BEHIND_HEADER) ?? 0) : 0;
    });
  }

  #headersOf({ aheadMs }: SynthesisRequest): readonly string[] {
    if (!this.#isEmbedded || aheadMs === undefined) return this.#postHeaders;
    return [...this.#postHeaders, AHEAD_HEADER, String(Math.min(Math.floor(aheadMs), MAX_AHEAD_MS))];
  }

  #noteWithheld({ method, path }: ForwardRequest, reason: string): string {
    const where = path.split("?")[0]?.slice(0, 200);
    const { faults } = this.#requester;
    return faults.note("Answer of the upstream was withheld", { cause: reason, method, path: where });
  }
}
