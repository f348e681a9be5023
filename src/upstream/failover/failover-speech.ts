/**
 * One synthesis over several regions. What a region has answered is held until its first chunk is there; as long as nothing
 * was handed on, whatever fails there is asked of the next region at once: nothing of it was played.
 */
import type { GatewayError } from "../../errors.ts";
import type { RequestOptions } from "../transport/requester.ts";
import type { SpeechStream } from "../transport/speech-stream.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
  SynthesisRequest,
} from "../types.ts";
import { FailoverTries } from "./failover-tries.ts";
import type { Region } from "./region.ts";
import { mayMove, type RegionSet } from "./region-set.ts";

export interface FailoverSpeechOptions {
  readonly regions: RegionSet;
  /** The one to begin with. */
  readonly first: Region;
  /** Longest wait for headers, and from there for the first piece, where a healthy region is left to go to; ms. */
  readonly failoverMs: number;
  readonly request: SynthesisRequest;
  readonly handlers: SynthesisHandlers;
  /** For the last region that is left. */
  readonly requestOptions: RequestOptions;
}

export class FailoverSpeech implements Synthesis, SynthesisHandlers {
  readonly #failoverMs: number;
  readonly #request: SynthesisRequest;
  readonly #handlers: SynthesisHandlers;
  readonly #requestOptions: RequestOptions;
  readonly #tries: FailoverTries<SpeechStream>;
  #isOver = false;
  /** Not handed on yet. */
  #head: SynthesisHead | null = null;
  #isHandedOn = false;

  constructor({ regions, first, failoverMs, request, handlers, requestOptions }: FailoverSpeechOptions) {
    this.#requestOptions = requestOptions;
    this.#failoverMs = failoverMs;
    this.#request = request;
    this.#handlers = handlers;
    this.#tries = new FailoverTries({
      regions,
      first,
      begin: (region, hasOther) => this.#open(region, hasOther),
      isMovable: () => true,
    });
  }

  // ---- Synthesis -------------------------------------------------------------------------------------------------

  pause(): void {
    this.#tries.pause();
  }
  resume(): void {
    this.#tries.resume();
  }
  abort(): void {
    this.#finish();
    this.#tries.current.abort();
  }

  // ---- SynthesisHandlers: the region's side; one that was given up says nothing any more ---------------------------

  requestSent(firstAudioMs?: number): void {
    this.#tries.noteSent();
    this.#handlers.requestSent?.(firstAudioMs);
  }

  requestTurnedAway(): void {
    this.#handlers.requestTurnedAway?.();
  }

  head(head: SynthesisHead): void {
    this.#head = head;
  }

  billed(characters: number): void {
    this.#handlers.billed?.(characters);
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
    const status = this.#tries.current.refusedWith;
    const isRefused = status !== null && status >= 400 && status < 500;
    if (!this.#isHandedOn && !isRefused && mayMove(error) && this.#tries.tryNext()) return;
    this.#finish();
    this.#handlers.error(error);
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  #open(region: Region, hasOther: boolean): SpeechStream {
    this.#head = null;
    const requestOptions = hasOther
      ? { headersMs: this.#failoverMs, firstPieceMs: this.#failoverMs }
      : this.#requestOptions;
    return region.use().open(this.#request, this, requestOptions);
  }

  #handHead(): void {
    this.#isHandedOn = true;
    const head = this.#head;
    this.#head = null;
    if (head !== null) this.#handlers.head(head);
  }

  #finish(): void {
    this.#isOver = true;
    this.#tries.settle();
  }
}
