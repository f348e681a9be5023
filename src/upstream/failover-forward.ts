/**
 * A request that is passed on, over several regions. The client has seen nothing until the head of the answer; up to there
 * another region may be asked
 *
 *   whatever the request, as long as nothing was sent: no connection, or no place in the queue
 *   GET and HEAD, and what only generates (its text is whole in the body): also after it was sent
 *
 * Anything else may have been carried out before its answer was lost, and is not sent twice.
 */
import type { GatewayError } from "../errors.ts";
import type { Forwarded, ForwardHandlers, ForwardRequest } from "./forward.ts";
import type { Region } from "./region.ts";
import { mayMove, type RegionSet, type Unsent } from "./region-set.ts";

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
}

export class FailoverForward implements Forwarded, ForwardHandlers, Unsent {
  readonly #regions: RegionSet;
  readonly #headersMs: number;
  readonly #request: ForwardRequest;
  readonly #handlers: ForwardHandlers;
  readonly #tried = new Set<Region>();
  #region: Region;
  #forwarded: Forwarded;
  #isPaused = false;
  #isOver = false;
  #isSent = false;
  #hasHead = false;

  constructor({ regions, first, headersMs, request, handlers }: FailoverForwardOptions) {
    this.#regions = regions;
    this.#headersMs = headersMs;
    this.#request = request;
    this.#handlers = handlers;
    this.#region = first;
    this.#forwarded = this.#begin(first);
  }

  get region(): Region {
    return this.#region;
  }

  // ---- Forwarded -------------------------------------------------------------------------------------------------

  pause(): void {
    this.#isPaused = true;
    this.#forwarded.pause();
  }
  resume(): void {
    this.#isPaused = false;
    this.#forwarded.resume();
  }
  touch(): void {
    this.#forwarded.touch();
  }
  abort(): void {
    this.#finish();
    this.#forwarded.abort();
  }

  // ---- ForwardHandlers: the region's side; one that was given up says nothing any more -----------------------------

  sent(): void {
    this.#isSent = true;
    this.#regions.forget(this);
  }

  head(status: number, headers: readonly (readonly [name: string, value: string])[]): void {
    const next = status >= 500 ? this.#next() : undefined;
    if (next !== undefined) {
      this.#forwarded.abort();
      this.#goTo(next);
      return;
    }
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
    const next = this.#hasHead || !mayMove(error) ? undefined : this.#next();
    if (next !== undefined) {
      this.#goTo(next);
      return;
    }
    this.#finish();
    this.#handlers.error(error);
  }

  // ---- Unsent ----------------------------------------------------------------------------------------------------

  moveOn(): void {
    const next = this.#isMovable ? this.#regions.nextHealthy(this.#tried) : undefined;
    if (next === undefined) return;
    this.#forwarded.abort();
    this.#goTo(next);
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  #next(): Region | undefined {
    return this.#isMovable ? this.#regions.next(this.#tried) : undefined;
  }

  get #isMovable(): boolean {
    const { body } = this.#request;
    if (typeof body === "string" || body === null) return !this.#isSent || this.#isRepeatable;
    // Of what streams nothing may have been taken: it would be missing.
    return !this.#isSent && !body.readableDidRead && !body.destroyed;
  }

  get #isRepeatable(): boolean {
    const { method, path } = this.#request;
    return this.#isRead || (method === "POST" && GENERATION.test(path));
  }

  get #isRead(): boolean {
    return this.#request.method === "GET" || this.#request.method === "HEAD";
  }

  #goTo(next: Region): void {
    this.#region.failovers += 1;
    this.#region = next;
    this.#isSent = false;
    this.#forwarded = this.#begin(next);
    if (this.#isPaused) this.#forwarded.pause();
  }

  #begin(region: Region): Forwarded {
    this.#tried.add(region);
    this.#regions.remember(this);
    // What generates may take its time: whole answers begin when they are made.
    const isImpatient = this.#isRead && this.#regions.nextHealthy(this.#tried) !== undefined;
    const attempt = isImpatient ? { headersMs: this.#headersMs } : {};
    return region.use().forward(this.#request, this, { ...attempt, keepsBody: true });
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#regions.forget(this);
    const { body } = this.#request;
    if (typeof body !== "string") body?.destroy();
  }
}
