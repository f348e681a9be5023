/** An upstream with all that the gateway asks of it: speech, other paths of its interface, its state and its end. */
import type { RegionStats } from "./failover/region.ts";
import type { FetchedBody } from "./transport/fetch-body.ts";
import type { Forwarded, ForwardHandlers, ForwardRequest } from "./transport/forward.ts";
import type { RequestOptions, UpstreamStats } from "./transport/requester.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest, Upstream } from "./types.ts";

/**
 * `open` calls no handler before it returns; every failure comes through `error`. With several regions what fails before
 * its first chunk was handed on is asked of the next one. But for that, and for 429s within `patienceMs`, nothing is asked
 * for again here: only the session knows what was said already.
 */
export interface UpstreamClient extends Upstream {
  /** `requestOptions`: where no other healthy base URL is left to go to. */
  open(request: SynthesisRequest, handlers: SynthesisHandlers, requestOptions?: RequestOptions): Synthesis;
  /** GETs a path of the interface with the key added, whatever status is answered; at most 8 MiB. Rejects with GatewayError. */
  get(path: string): Promise<FetchedBody>;
  /** Passes a request on with the key added; every failure comes through `error`, after this returned. */
  forward(request: ForwardRequest, handlers: ForwardHandlers): Forwarded;
  /** From now on so many requests may be open at once, of each base URL and of `maxConnections`; what is open goes on. */
  limitOpen(max: number): void;
  /** Figures of all regions together. */
  stats(): UpstreamStats;
  /** In order of preference. */
  regions(): readonly RegionStats[];
  /** Connects to every region, so that the first request need not. Rejects with upstream_unreachable where none can be reached. */
  warm(): Promise<void>;
  /** Fails what is open and waiting with `draining`, and closes every connection. Idempotent. */
  close(): Promise<void>;
}
