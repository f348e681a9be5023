/**
 * A cache of spoken phrases in front of an upstream: what was asked for before is spoken again with its timing, and who
 * asks for what is on its way shares it. What it costs and when not to use it: docs/phrase-cache.md.
 */
import { type Clock, systemClock, type Timer } from "../../kit/clock.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest, Upstream } from "../types.ts";
import { PHRASE_OVERHEAD_BYTES, type Room } from "./phrase-cache-chunks.ts";
import { type PhraseKeys, phraseKeys } from "./phrase-cache-key.ts";
import { Recording } from "./phrase-cache-recording.ts";

export interface PhraseCacheOptions {
  readonly upstream: Upstream;
  /** Most memory for all phrases, those on their way included. */
  readonly maxBytes: number;
  /** Most for one; default a quarter of it all, at most 4 MiB. */
  readonly maxPhraseBytes?: number;
  /** Longest text that is looked at, UTF-16 code units; default 500. Longer ones are hardly said twice. */
  readonly maxPhraseChars?: number;
  /** How long a phrase is kept; default as long as there is room. */
  readonly ttlMs?: number;
  readonly clock?: Clock;
}

export interface PhraseCacheStats {
  /** Requests answered out of the cache. */
  readonly hits: number;
  /** Requests that went to the upstream and could have been answered out of it. */
  readonly misses: number;
  /** Requests answered by one that was open already. */
  readonly shared: number;
  /** Memory of all phrases, those on their way included. */
  readonly bytes: number;
  /** Phrases kept. */
  readonly entries: number;
}

interface Kept {
  readonly recording: Recording;
  readonly sinceMs: number;
}

const DEFAULT_MAX_PHRASE_BYTES = 4 * 1024 * 1024;
const DEFAULT_MAX_PHRASE_CHARS = 500;
/** What has expired is dropped within this part of its time, asked for or not. */
const SWEEPS_PER_TTL = 10;

export class PhraseCache implements Upstream {
  readonly #options: PhraseCacheOptions;
  readonly #clock: Clock;
  readonly #maxPhraseBytes: number;
  readonly #maxPhraseChars: number;
  readonly #ttlMs: number;
  readonly #room: Room;
  /** Whole ones, the least recently asked for first. */
  readonly #kept = new Map<string, Kept>();
  /** On their way, and to be joined. */
  readonly #coming = new Map<string, Recording>();
  #bytes = 0;
  #hits = 0;
  #misses = 0;
  #shared = 0;
  #sweepTimer: Timer | null = null;
  #isClosed = false;

  constructor(options: PhraseCacheOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { maxBytes } = options;
    this.#maxPhraseBytes = options.maxPhraseBytes ?? Math.min(maxBytes / 4, DEFAULT_MAX_PHRASE_BYTES);
    this.#maxPhraseChars = options.maxPhraseChars ?? DEFAULT_MAX_PHRASE_CHARS;
    this.#ttlMs = options.ttlMs ?? Number.POSITIVE_INFINITY;
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
    const kept = this.#findKept(keys);
    if (kept !== undefined) {
      this.#hits += 1;
      return kept.read(request, handlers);
    }
    const coming = this.#findComing(keys, request.priority ?? 0);
    if (coming !== undefined) {
      this.#shared += 1;
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
      bytes: this.#bytes,
      entries: this.#kept.size,
    };
  }

  /** Forgets every phrase and keeps none from now on; what is being read goes on to its end. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#sweepTimer?.cancel();
    this.#sweepTimer = null;
    for (const key of [...this.#kept.keys()]) this.#drop(key);
    this.#coming.clear();
  }

  #findKept(keys: PhraseKeys): Recording | undefined {
    for (const key of keys.serving) {
      const kept = this.#kept.get(key);
      if (kept === undefined) continue;
      if (this.#isExpired(kept)) {
        this.#drop(key);
        continue;
      }
      // A map keeps the order of insertion: to the end, as the one asked for last.
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept.recording;
    }
    return undefined;
  }

  /** Who is more urgent does not wait for a connection behind who is less. */
  #findComing(keys: PhraseKeys, priority: number): Recording | undefined {
    for (const key of keys.serving) {
      const coming = this.#coming.get(key);
      if (coming === undefined || coming.isDoubted) continue;
      if (coming.isAnswered || coming.priority >= priority) return coming;
    }
    return undefined;
  }

  #record(keys: PhraseKeys, request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    const recording = new Recording(request, {
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

  #keep(keys: PhraseKeys, recording: Recording): void {
    this.#drop(keys.own);
    if (keys.replaced !== null) this.#drop(keys.replaced);
    this.#kept.set(keys.own, { recording, sinceMs: this.#clock.nowMs() });
    this.#armSweep();
  }

  #drop(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.#kept.delete(key);
    kept.recording.forget();
  }

  /** Drops what was not asked for longest; what is being read would still take its memory, so it stays. */
  #takeRoom(bytes: number): boolean {
    const { maxBytes } = this.#options;
    if (bytes > maxBytes) return false;
    for (const [key, { recording }] of this.#kept) {
      if (this.#bytes + bytes <= maxBytes) break;
      if (!recording.isBeingRead) this.#drop(key);
    }
    if (this.#bytes + bytes > maxBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  #isExpired({ sinceMs }: Kept): boolean {
    return this.#clock.nowMs() >= sinceMs + this.#ttlMs;
  }

  #armSweep(): void {
    if (this.#sweepTimer !== null || this.#kept.size === 0 || !Number.isFinite(this.#ttlMs)) return;
    this.#sweepTimer = this.#clock.at(this.#clock.nowMs() + this.#ttlMs / SWEEPS_PER_TTL, () => {
      this.#sweepTimer = null;
      for (const [key, kept] of this.#kept) if (this.#isExpired(kept)) this.#drop(key);
      this.#armSweep();
    });
  }
}
