/**
 * A cache of spoken phrases in front of an upstream: what was asked for before is spoken again with its timing, and who
 * asks for what is on its way shares it. What it costs and when not to use it: docs/phrase-cache.md.
 */
import { LRUCache } from "lru-cache";
import { type Clock, systemClock } from "../../kit/clock.ts";
import type { LedgerSink } from "../../ledger/entries.ts";
import { askedBy } from "../request-cost.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest, Upstream } from "../types.ts";
import { PHRASE_OVERHEAD_BYTES, type Room } from "./phrase-cache-chunks.ts";
import { type PhraseKeys, phraseKeys } from "./phrase-cache-key.ts";
import { PhraseRecording } from "./phrase-cache-recording.ts";

export interface PhraseCacheOptions {
  readonly upstream: Upstream;
  /** Most memory for all phrases, those on their way included. */
  readonly maxBytes: number;
  /** Most for one; default a quarter of it all, at most 4 MiB. */
  readonly maxPhraseBytes?: number;
  /** Longest text that is looked at, UTF-16 code units; default 500. Longer ones are hardly said twice. */
  readonly maxPhraseChars?: number;
  readonly clock?: Clock;
  /** Where it is written down what was answered out of it. Default: nowhere. */
  readonly ledger?: LedgerSink | undefined;
}

export interface PhraseCacheStats {
  /** Requests answered out of the cache. */
  readonly hits: number;
  /** Requests that went to the upstream and could have been answered out of it. */
  readonly misses: number;
  /** Requests answered by one that was open already. */
  readonly shared: number;
  /** Characters of the texts of both. */
  readonly savedCharacters: number;
  /** Memory of all phrases, those on their way included. */
  readonly bytes: number;
  /** Phrases kept. */
  readonly entries: number;
}

const DEFAULT_MAX_PHRASE_BYTES = 4 * 1024 * 1024;
const DEFAULT_MAX_PHRASE_CHARS = 500;

export class PhraseCache implements Upstream {
  readonly #options: PhraseCacheOptions;
  readonly #clock: Clock;
  readonly #maxPhraseBytes: number;
  readonly #maxPhraseChars: number;
  readonly #room: Room;
  /** Whole ones. */
  readonly #kept: LRUCache<string, PhraseRecording>;
  /** On their way, and to be joined. */
  readonly #coming = new Map<string, PhraseRecording>();
  #bytes = 0;
  #hits = 0;
  #misses = 0;
  #shared = 0;
  #savedCharacters = 0;
  #isClosed = false;

  constructor(options: PhraseCacheOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { maxBytes } = options;
    this.#maxPhraseBytes = options.maxPhraseBytes ?? Math.min(maxBytes / 4, DEFAULT_MAX_PHRASE_BYTES);
    this.#maxPhraseChars = options.maxPhraseChars ?? DEFAULT_MAX_PHRASE_CHARS;
    this.#kept = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ bytes }) => bytes,
      dispose: (recording) => recording.forget(),
    });
    this.#room = {
      take: (bytes) => this.#takeRoom(bytes),
      charge: (bytes) => {
        this.#bytes += bytes;
      },
      release: (bytes) => {
        this.#bytes -= bytes;
      },
    };
  }

  /**
   * As the upstream's own: calls no handler before it returns, and every error of the upstream comes through. Where audio is
   * there already no `requestSent` comes, and the head says what was billed: `characterCost` 0, with the `requestId` of the
   * speech (that later requests can go on from) as long as the upstream knows it.
   */
  open(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    const keys = this.#isClosed ? null : phraseKeys(request, this.#maxPhraseChars);
    if (keys === null) return this.#options.upstream.open(request, handlers);
    const hit = keys.serving.find((key) => this.#kept.has(key));
    const kept = hit === undefined ? undefined : this.#kept.get(hit);
    if (kept !== undefined) {
      this.#hits += 1;
      this.#savedCharacters += charactersOf(request);
      this.#note(request);
      return kept.read(request, handlers);
    }
    const coming = this.#findComing(keys, request);
    if (coming !== undefined) {
      this.#shared += 1;
      this.#savedCharacters += charactersOf(request);
      this.#note(request);
      return coming.read(request, handlers);
    }
    this.#misses += 1;
    if (!this.#takeRoom(PHRASE_OVERHEAD_BYTES)) return this.#options.upstream.open(request, handlers);
    return this.#record(keys, request, handlers);
  }

  stats(): PhraseCacheStats {
    return {
      hits: this.#hits,
      misses: this.#misses,
      shared: this.#shared,
      savedCharacters: this.#savedCharacters,
      bytes: this.#bytes,
      entries: this.#kept.size,
    };
  }

  /** Forgets every phrase and keeps none from now on; what is being read goes on to its end. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#kept.clear();
    this.#coming.clear();
  }

  /** It costs nothing: where its phrase is lost on the way, the request that is then made has a line of its own. */
  #note(request: SynthesisRequest): void {
    this.#options.ledger?.add({
      type: "request",
      ...askedBy(request),
      upstream: "cache",
      region: "",
      chars_billed: 0,
      source: "cache",
      audio_ms: null,
      cached: true,
      outcome: "done",
      request_id: null,
    });
  }

  /** Nobody waits for a connection behind what is less urgent, or another's. */
  #findComing(keys: PhraseKeys, { priority = 0, subject }: SynthesisRequest): PhraseRecording | undefined {
    for (const key of keys.serving) {
      const coming = this.#coming.get(key);
      if (coming === undefined || coming.isDoubted) continue;
      const isAsOurs = coming.priority >= priority && coming.subjectId === subject?.id;
      if (coming.isAnswered || isAsOurs) return coming;
    }
    return undefined;
  }

  #record(keys: PhraseKeys, request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    const recording = new PhraseRecording(request, {
      upstream: this.#options.upstream,
      clock: this.#clock,
      room: this.#room,
      maxBytes: this.#maxPhraseBytes,
      onSettled: (settled, isWhole) => {
        if (this.#coming.get(keys.own) === settled) this.#coming.delete(keys.own);
        if (!isWhole) return;
        if (this.#isClosed) settled.forget();
        else this.#keep(keys, settled);
      },
    });
    this.#coming.set(keys.own, recording);
    return recording.begin(request, handlers);
  }

  #keep(keys: PhraseKeys, recording: PhraseRecording): void {
    this.#kept.set(keys.own, recording);
    if (keys.replaced !== null) this.#kept.delete(keys.replaced);
  }

  /**
   * Room is bounded here and not by the library: phrases on their way count too, and what is being read stays, since it would
   * still take its memory.
   */
  #takeRoom(bytes: number): boolean {
    const { maxBytes } = this.#options;
    if (bytes > maxBytes) return false;
    while (this.#bytes + bytes > maxBytes) {
      const key = this.#leastUsed();
      if (key === undefined) return false;
      this.#kept.delete(key);
    }
    this.#bytes += bytes;
    return true;
  }

  /** The one asked for longest ago among those that nobody reads. */
  #leastUsed(): string | undefined {
    for (const key of this.#kept.rkeys()) if (this.#kept.peek(key)?.isBeingRead === false) return key;
    return undefined;
  }
}

function charactersOf(request: SynthesisRequest): number {
  if (request.kind === "speech") return request.text.length;
  return request.inputs.reduce((characters, { text }) => characters + text.length, 0);
}
