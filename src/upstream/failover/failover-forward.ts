/**
 * A request that is passed on, over several regions. The client has seen nothing until the head of the answer; up to there
 * another region may be asked
 *
 *   whatever the request, as long as nothing was sent: no connection, or no place in the queue
 *   GET and HEAD, and what only generates (its text is whole in the body): also after it was sent
 *
 * Anything else may have been carried out before its answer was lost, and is not sent twice.
 */
import type { GatewayError } from "../../errors.ts";
import type { Forwarded, ForwardHandlers, ForwardRequest } from "../transport/forward.ts";
import type { RequestOptions } from "../transport/requester.ts";
import { FailoverTries } from "./failover-tries.ts";
import type { Region } from "./region.ts";
import { mayMove, type RegionSet } from "./region-set.ts";

/** Leaves nothing behind but an entry in the history, and the bill. */
const GENERATION = /^\/v1\/(?:text-to-speech|text-to-dialogue|sound-generation)(?:[/?]|$)/;

export interface FailoverForwardOptions {
  readonly regions: RegionSet;
  /** The one to begin with. */
  readonly first: Region;
  /** Longest wait for the headers of a GET or HEAD where a healthy region is left to go to; ms. */
  readonly headersMs: number;
  readonly request: ForwardRequest;
  readonly handlers: ForwardHandlers;
  /** At each region. */
  readonly requestOptions?: RequestOptions;
}

export class FailoverForward implements Forwarded, ForwardHandlers {
  readonly #headersMs: number;
  readonly #request: ForwardRequest;
  readonly #handlers: ForwardHandlers;
  readonly #requestOptions: RequestOptions;
  readonly #tries: FailoverTries<Forwarded>;
  #isOver = false;
  #hasHead = false;

  constructor({ regions, first, headersMs, request, handlers, requestOptions = {} }: FailoverForwardOptions) {
    this.#headersMs = headersMs;
    this.#request = request;
    this.#handlers = handlers;
    this.#requestOptions = requestOptions;
    this.#tries = new FailoverTries({
      regions,
      first,
      begin: (region, hasOther) => this.#begin(region, hasOther),
      isMovable: () => this.#isMovable,
    });
  }

  // ---- Forwarded -------------------------------------------------------------------------------------------------

  pause(): void {
    this.#tries.pause();
  }
  resume(): void {
    this.#tries.resume();
  }
  touch(): void {
    this.#tries.current.touch();
  }
  abort(): void {
    this.#finish();
    this.#tries.current.abort();
  }

  // ---- ForwardHandlers: the region's side; one that was given up says nothing any more -----------------------------

  sent(): void {
    this.#tries.noteSent();
  }

  head(status: number, headers: readonly (readonly [name: string, value: string])[]): void {
    if (status >= 500 && this.#isMovable && this.#tries.tryNext()) return;
    this.#hasHead = true;
    this.#handlers.head(status, headers);
  }

  data(piece: Uint8Array): void {
    this.#handlers.data(piece);
  }

  end(): void {
    this.#finish();
    this.#handlers.end();
  }

  error(error: GatewayError): void {
    if (!this.#hasHead && mayMove(error) && this.#isMovable && this.#tries.tryNext()) return;
    this.#finish();
    this.#handlers.error(error);
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  get #isMovable(): boolean {
    const { body } = this.#request;
    const { isSent } = this.#tries;
    if (typeof body === "string" || body === null) return !isSent || this.#isRepeatable;
    // A body that streams is sent again only where nothing of it was taken.
    return !isSent && !body.readableDidRead && !body.destroyed;
  }

  get #isRepeatable(): boolean {
    const { method, path } = this.#request;
    return this.#isRead || (method === "POST" && GENERATION.test(path));
  }

  get #isRead(): boolean {
    return this.#request.method === "GET" || this.#request.method === "HEAD";
  }

  #begin(region: Region, hasOther: boolean): Forwarded {
    // What generates may take its time: whole answers begin when they are made.
    const bound = this.#isRead && hasOther ? { headersMs: this.#headersMs } : {};
    return region.use().forward(this.#request, this, { ...this.#requestOptions, ...bound, keepsBody: true });
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tries.settle();
    const { body } = this.#request;
    if (typeof body !== "string") body?.destroy();
  }
}
