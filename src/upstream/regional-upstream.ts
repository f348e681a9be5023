/**
 * The way to a speech service over HTTP: bounded, with deadlines, and every failure as one of our errors. The same code
 * for the vendor, a gateway of one's own and the embedded service: a base URL and a key, or several URLs of which the
 * first healthy one is asked. Nothing is ever sent to another than those.
 */
import { GatewayError } from "../errors.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { type Logger, silentLog } from "../kit/log.ts";
import type { LedgerSink } from "../ledger/entries.ts";
import { FailoverForward, type FailoverForwardOptions } from "./failover/failover-forward.ts";
import { FailoverSpeech } from "./failover/failover-speech.ts";
import { Region, type RegionStats } from "./failover/region.ts";
import { RegionSet } from "./failover/region-set.ts";
import { type FetchedBody, fetchBody } from "./transport/fetch-body.ts";
import type { Forwarded, ForwardHandlers, ForwardRequest } from "./transport/forward.ts";
import { isFilteredKey } from "./transport/key-filter.ts";
import type { RequestOptions, UpstreamStats } from "./transport/requester.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest } from "./types.ts";
import type { UpstreamClient } from "./upstream-client.ts";
import { regionNames } from "./vendors/vendor-regions.ts";

export interface UpstreamOptions {
  /**
   * http or https; a path is kept as a prefix, e.g. `https://proxy.example/speech`. Several (at most 8) in order of
   * preference: regions that answer the same requests.
   */
  readonly baseUrl: string | readonly string[];
  /** Sent as xi-api-key; empty: not sent. */
  readonly key: string;
  /** Most requests open at once, and so most connections; of each base URL. */
  readonly maxConnections: number;
  /** Most requests that wait for a connection, of each base URL; 0 = none waits. */
  readonly maxQueued: number;
  /** Longest wait for headers, and between two pieces of a body that is not paused, ms. */
  readonly timeoutMs: number;
  /** How long speech is asked for again that was turned away for too many requests (429), ms; 0: not at all. */
  readonly patienceMs: number;
  /** As HttpUpstreamOptions. */
  readonly isEmbedded?: boolean | undefined;
  /**
   * With several base URLs: longest wait for the headers of speech, and from there to its first piece, before the next
   * healthy region is asked, ms.
   */
  readonly failoverMs: number;
  /** There is another upstream to go to: also a single base URL is checked while nobody asks. Default false. */
  readonly hasSubstitutes?: boolean;
  /** Hears when a region goes down and when it is back, and why a request failed below HTTP. */
  readonly log?: Logger;
  readonly clock?: Clock;
  /**
   * Called behind each piece of an answer that was read: a turn of the event loop reads all that has come on all
   * connections, and what falls due meanwhile need not wait for its end. Must not throw.
   */
  readonly onRead?: () => void;
  /** Where it is written down what requests cost. Default: nowhere. */
  readonly ledger?: LedgerSink | undefined;
}

/** Each has connections, checks and series of its own. */
const MAX_REGIONS = 8;

/** Throws invalid_config. */
export function createUpstream(options: UpstreamOptions): UpstreamClient {
  return new RegionalUpstream(options);
}

class RegionalUpstream implements UpstreamClient {
  readonly #regions: RegionSet;
  readonly #preferred: Region;
  readonly #hasSeveral: boolean;
  readonly #failoverMs: number;
  readonly #timeoutMs: number;

  constructor(options: UpstreamOptions) {
    const { baseUrl, failoverMs, timeoutMs, patienceMs } = options;
    const urls = typeof baseUrl === "string" ? [baseUrl] : baseUrl;
    this.#hasSeveral = urls.length > 1;
    this.#failoverMs = Math.min(failoverMs, timeoutMs);
    this.#timeoutMs = timeoutMs;
    const log = options.log ?? silentLog;
    if (options.key !== "" && !isFilteredKey(options.key)) {
      log.warn({}, "Setting upstream-key is shorter than 16 characters: answers are not searched for it");
    }
    const regions = new RegionSet();
    const names = regionNames(urls);
    const all = urls.map(
      (url, index) =>
        new Region({
          name: names[index] ?? url,
          baseUrl: url,
          key: options.key,
          maxConnections: options.maxConnections,
          maxQueued: options.maxQueued,
          timeoutMs,
          patienceMs,
          isEmbedded: options.isEmbedded,
          clock: options.clock ?? systemClock,
          ledger: options.ledger,
          onRead: options.onRead ?? (() => undefined),
          log,
          onDown: (region) => regions.onDown(region),
        }),
    );
    const [preferred] = all;
    if (preferred === undefined || urls.length > MAX_REGIONS) throw wrongCount(urls.length);
    regions.fill(all);
    if (this.#hasSeveral || options.hasSubstitutes === true) for (const region of all) region.health.watch();
    this.#regions = regions;
    this.#preferred = preferred;
  }

  open(
    request: SynthesisRequest,
    handlers: SynthesisHandlers,
    requestOptions: RequestOptions = {},
  ): Synthesis {
    if (!this.#hasSeveral) return this.#preferred.use().open(request, handlers, requestOptions);
    const [regions, failoverMs] = [this.#regions, this.#failoverMs];
    return new FailoverSpeech({
      regions,
      first: this.#first(),
      failoverMs,
      request,
      handlers,
      requestOptions,
    });
  }

  get(path: string): Promise<FetchedBody> {
    const request: ForwardRequest = { method: "GET", path, headers: [], body: null, group: "" };
    const requestOptions = { timeoutMs: this.#timeoutMs, patienceMs: 0 };
    return fetchBody((handlers) =>
      this.#forward({ request, handlers, requestOptions, headersMs: this.#failoverMs }),
    );
  }

  forward(request: ForwardRequest, handlers: ForwardHandlers): Forwarded {
    return this.#forward({ request, handlers, requestOptions: {}, headersMs: this.#timeoutMs });
  }

  limitOpen(max: number): void {
    for (const { upstream } of this.#regions.all) upstream.limitOpen(max);
  }

  stats(): UpstreamStats {
    const all = this.#regions.all.map(({ upstream }) => upstream.stats());
    return {
      open: sum(all.map(({ open }) => open)),
      queued: sum(all.map(({ queued }) => queued)),
      refused: sum(all.map(({ refused }) => refused)),
      connected: sum(all.map(({ connected }) => connected)),
    };
  }

  regions(): readonly RegionStats[] {
    return this.#regions.all.map((region) => region.stats());
  }

  async warm(): Promise<void> {
    const warmed = await Promise.allSettled(this.#regions.all.map(({ upstream }) => upstream.warm()));
    const failed = warmed.filter((result) => result.status === "rejected");
    if (failed.length === warmed.length) throw failed[0]?.reason;
  }

  async close(): Promise<void> {
    await Promise.all(this.#regions.all.map((region) => region.close()));
  }

  #forward(
    asked: Omit<FailoverForwardOptions, "regions" | "first"> & { readonly requestOptions: RequestOptions },
  ): Forwarded {
    const { request, handlers, requestOptions } = asked;
    if (!this.#hasSeveral) return this.#preferred.use().forward(request, handlers, requestOptions);
    return new FailoverForward({ ...asked, regions: this.#regions, first: this.#first() });
  }

  #first(): Region {
    return this.#regions.next(NONE_TRIED) ?? this.#preferred;
  }
}

const NONE_TRIED: ReadonlySet<Region> = new Set();

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function wrongCount(count: number): GatewayError {
  return new GatewayError(
    "invalid_config",
    `Setting upstream-url can't be used: ${count} base URLs, expected 1 to ${MAX_REGIONS}`,
    { field: "upstream-url" },
  );
}
