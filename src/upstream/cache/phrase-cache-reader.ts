/** One who hears a phrase of the cache, kept or still coming: where it stands in it, and its own pause and end. */
import { type GatewayError, toGatewayError } from "../../errors.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
  SynthesisRequest,
  Upstream,
} from "../types.ts";

/** How a phrase ended; `error` null: cleanly. */
export interface PhraseEnding {
  readonly error: GatewayError | null;
}

/** What a reader reads: the phrase, as far as it has come. */
export interface PhraseSource {
  /** Whether the upstream has answered. */
  readonly isAnswered: boolean;
  /** Chunks that have come. */
  readonly length: number;
  /** null while more may come. */
  readonly ending: PhraseEnding | null;
  /** For one reader; null before the upstream has answered. */
  takeHead(): SynthesisHead | null;
  /** For one reader; null: the body says nothing of it. */
  takeBilled(): number | null;
  /** The receiver's own; undefined where it has not come. */
  takeChunk(index: number): SynthesisChunk | undefined;
  /** The reader paused, reads on, or has read. */
  onMoved(): void;
  /** Once: the reader needs nothing any more. */
  onLeft(reader: PhraseReader): void;
}

export interface PhraseReaderOptions {
  readonly source: PhraseSource;
  readonly request: SynthesisRequest;
  readonly handlers: SynthesisHandlers;
  /** For a request of its own, should it have to go alone. */
  readonly upstream: Upstream;
}

export class PhraseReader implements Synthesis {
  readonly #source: PhraseSource;
  readonly #handlers: SynthesisHandlers;
  readonly #upstream: Upstream;
  readonly #wantsTiming: boolean;
  /** null once it has begun: it can't go alone then, and the text need not be held. */
  #request: SynthesisRequest | null;
  /** Its own request, where it went alone. */
  #own: Synthesis | null = null;
  #cursor = 0;
  #isPaused = false;
  #isScheduled = false;
  #isDelivering = false;
  #isOver = false;
  /** No handler may be called any more. */
  #isSilent = false;

  constructor(options: PhraseReaderOptions) {
    this.#source = options.source;
    this.#handlers = options.handlers;
    this.#upstream = options.upstream;
    this.#request = options.request;
    this.#wantsTiming = options.request.wantsTiming;
  }

  /** The chunk that it takes next. */
  get cursor(): number {
    return this.#cursor;
  }
  get isPaused(): boolean {
    return this.#isPaused;
  }
  /** Whether it has got anything of the answer. */
  get hasBegun(): boolean {
    return this.#request === null;
  }

  // ---- Synthesis -------------------------------------------------------------------------------------------------

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#own?.pause();
    if (!this.#isOver) this.#source.onMoved();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#own?.resume();
    if (this.#isOver) return;
    this.schedule();
    this.#source.onMoved();
  }

  abort(): void {
    this.#isSilent = true;
    this.#own?.abort();
    this.#own = null;
    this.#leave();
  }

  // ---- the phrase's side -----------------------------------------------------------------------------------------

  /** Delivers what is there soon, and not inside the caller's own call (`open` and `resume` call no handler). */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.deliver();
    });
  }

  /** The phrase's request was sent to the upstream. */
  sent(firstAudioMs?: number): void {
    if (!this.#isOver) this.#handlers.requestSent?.(firstAudioMs);
  }

  /** It was turned away and waits for its turn again. */
  turnedAway(): void {
    if (!this.#isOver) this.#handlers.requestTurnedAway?.();
  }

  /** Delivers what there is, as far as it is not paused. */
  deliver(): void {
    this.#guarded(() => this.#deliverAll());
    // Only now: the upstream may go on inside this call, and what comes is to be delivered.
    if (!this.#isOver) this.#source.onMoved();
  }

  /** Takes a chunk that is not kept. false: it can't now, as it is paused or what was before it is still to come. */
  takeAtOnce(chunk: SynthesisChunk): boolean {
    if (this.#isOver || this.#isPaused || this.#isDelivering) return false;
    if (!this.hasBegun || this.#cursor < this.#source.length) return false;
    this.#guarded(() => this.#deliverChunk(chunk));
    return true;
  }

  /** It has begun and can't get the rest. */
  fail(error: GatewayError): void {
    if (this.#isOver) return;
    this.#leave();
    this.#isSilent = true;
    this.#handlers.error(error);
  }

  /** Reads on a request of its own, from the beginning. Only before it has begun. */
  goAlone(): void {
    const request = this.#request;
    if (request === null || this.#isOver) return;
    this.#leave();
    this.#own = this.#upstream.open(request, this.#handlers);
    if (this.#isPaused) this.#own.pause();
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  #deliverAll(): void {
    if (!this.#isPaused && !this.hasBegun) this.#deliverHead();
    while (!this.#isOver && !this.#isPaused) {
      const chunk = this.#source.takeChunk(this.#cursor);
      if (chunk === undefined) break;
      this.#cursor += 1;
      this.#deliverChunk(chunk);
    }
    if (!this.#isOver) this.#deliverEnding();
  }

  #deliverHead(): void {
    const head = this.#source.takeHead();
    if (head === null) return;
    this.#request = null;
    this.#handlers.head(head);
  }

  #deliverChunk(chunk: SynthesisChunk): void {
    if (this.#wantsTiming) this.#handlers.chunk(chunk);
    // The phrase may have been asked for with timing by another; a record without audio is nothing then.
    else if (chunk.audio.byteLength > 0) {
      const { audio } = chunk;
      this.#handlers.chunk({ audio, alignment: null, normalizedAlignment: null, voiceSegments: [] });
    }
  }

  /** The end holds nothing back, so a pause does not keep it: as with the upstream's own. */
  #deliverEnding(): void {
    const { ending, length, isAnswered } = this.#source;
    if (ending === null || this.#cursor < length || (isAnswered && !this.hasBegun)) return;
    this.#leave();
    if (ending.error === null) {
      const billed = this.#source.takeBilled();
      if (billed !== null) this.#handlers.billed?.(billed);
      this.#handlers.end();
    } else {
      this.#isSilent = true;
      this.#handlers.error(ending.error);
    }
  }

  /** A handler that throws fails its own reader, as it does with the upstream's client, and nobody else. */
  #guarded(action: () => void): void {
    if (this.#isOver || this.#isDelivering) return;
    this.#isDelivering = true;
    try {
      action();
    } catch (thrown) {
      if (this.#isSilent) throw thrown;
      this.#isSilent = true;
      this.#leave();
      this.#handlers.error(toGatewayError(thrown));
    } finally {
      this.#isDelivering = false;
    }
  }

  #leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#request = null;
    this.#source.onLeft(this);
  }
}
