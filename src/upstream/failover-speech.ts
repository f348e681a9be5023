/**
 * One synthesis over several regions. What a region has answered is held until its first chunk is there; as long as nothing
 * was handed on, whatever fails there is asked of the next region at once: nothing of it was heard.
 */
import type { GatewayError } from "../errors.ts";
import type { Region } from "./region.ts";
import { mayMove, type RegionSet, type Unsent } from "./region-set.ts";
import type { SpeechStream } from "./speech-stream.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
  SynthesisRequest,
} from "./types.ts";

export interface FailoverSpeechOptions {
  readonly regions: RegionSet;
  /** The one to begin with. */
  readonly first: Region;
  /** Longest wait for headers, and from there for the first piece, where a healthy region is left to go to; ms. */
  readonly failoverMs: number;
  readonly request: SynthesisRequest;
  readonly handlers: SynthesisHandlers;
}

export class FailoverSpeech implements Synthesis, SynthesisHandlers, Unsent {
  readonly #regions: RegionSet;
  readonly #failoverMs: number;
  readonly #request: SynthesisRequest;
  readonly #handlers: SynthesisHandlers;
  readonly #tried = new Set<Region>();
  #region: Region;
  #stream: SpeechStream;
  #isPaused = false;
  #isOver = false;
  /** Not handed on yet. */
  #head: SynthesisHead | null = null;
  #isHandedOn = false;

  constructor({ regions, first, failoverMs, request, handlers }: FailoverSpeechOptions) {
    this.#regions = regions;
    this.#failoverMs = failoverMs;
    this.#request = request;
    this.#handlers = handlers;
    this.#region = first;
    this.#stream = this.#open(first);
  }

  get region(): Region {
    return this.#region;
  }

  // ---- Synthesis -------------------------------------------------------------------------------------------------

  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }
  resume(): void {
    this.#isPaused = false;
    this.#stream.resume();
  }
  abort(): void {
    this.#finish();
    this.#stream.abort();
  }

  // ---- SynthesisHandlers: the region's side; one that was given up says nothing any more ---------------------------

  requestSent(): void {
    this.#regions.forget(this);
    this.#handlers.requestSent?.();
  }

  requestTurnedAway(): void {
    this.#handlers.requestTurnedAway?.();
  }

  head(head: SynthesisHead): void {
    this.#head = head;
  }

  chunk(chunk: SynthesisChunk): void {
    this.#handHead();
    if (!this.#isOver) this.#handlers.chunk(chunk);
  }

  end(): void {
    this.#handHead();
    if (this.#isOver) return;
    this.#finish();
    this.#handlers.end();
  }

  error(error: GatewayError): void {
    const status = this.#stream.refusedWith;
    const isRefused = status !== null && status >= 400 && status < 500;
    const next =
      this.#isHandedOn || isRefused || !mayMove(error) ? undefined : this.#regions.next(this.#tried);
    if (next !== undefined) {
      this.#goTo(next);
      return;
    }
    this.#finish();
    this.#handlers.error(error);
  }

  // ---- Unsent ----------------------------------------------------------------------------------------------------

  moveOn(): void {
    const next = this.#regions.nextHealthy(this.#tried);
    if (next === undefined) return;
    this.#stream.abort();
    this.#goTo(next);
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  #goTo(next: Region): void {
    this.#region.failovers += 1;
    this.#region = next;
    this.#head = null;
    this.#stream = this.#open(next);
    if (this.#isPaused) this.#stream.pause();
  }

  #open(region: Region): SpeechStream {
    this.#tried.add(region);
    this.#regions.remember(this);
    const attempt =
      this.#regions.nextHealthy(this.#tried) === undefined
        ? {}
        : { headersMs: this.#failoverMs, firstPieceMs: this.#failoverMs };
    return region.use().open(this.#request, this, attempt);
  }

  #handHead(): void {
    this.#isHandedOn = true;
    const head = this.#head;
    this.#head = null;
    if (head !== null) this.#handlers.head(head);
  }

  #finish(): void {
    this.#isOver = true;
    this.#regions.forget(this);
  }
}
