/** A cache in front of an upstream that a test plays by hand, at the interface between the two. */
import type { GatewayError } from "../../../src/errors.ts";
import { PhraseCache, type PhraseCacheOptions } from "../../../src/upstream/cache/phrase-cache.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
  SynthesisRequest,
  Upstream,
} from "../../../src/upstream/types.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

/** One request that the upstream was asked. */
export class Asked implements Synthesis {
  readonly request: SynthesisRequest;
  readonly #handlers: SynthesisHandlers;
  isPaused = false;
  aborts = 0;

  constructor(request: SynthesisRequest, handlers: SynthesisHandlers) {
    this.request = request;
    this.#handlers = handlers;
  }

  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  abort(): void {
    this.aborts += 1;
  }

  sent(): this {
    this.#handlers.requestSent?.();
    return this;
  }
  turnedAway(): this {
    this.#handlers.requestTurnedAway?.();
    return this;
  }
  head(head: SynthesisHead = { requestId: "r1", characterCost: 17 }): this {
    this.#handlers.head(head);
    return this;
  }
  chunks(...chunks: readonly SynthesisChunk[]): this {
    for (const chunk of chunks) this.#handlers.chunk(copyOf(chunk));
    return this;
  }
  end(): this {
    this.#handlers.end();
    return this;
  }
  fail(error: GatewayError): this {
    this.#handlers.error(error);
    return this;
  }
  /** The whole answer. */
  answer(...chunks: readonly SynthesisChunk[]): this {
    return this.head()
      .chunks(...chunks)
      .end();
  }
}

/** Receivers own their chunks: each gets one that no other has. */
function copyOf(chunk: SynthesisChunk): SynthesisChunk {
  return { ...structuredClone(chunk), audio: Uint8Array.from(chunk.audio) };
}

export interface CacheRig {
  readonly cache: PhraseCache;
  readonly clock: FakeClock;
  /** In the order they came. */
  readonly asked: Asked[];
  /** The latest. */
  last(): Asked;
}

export function rig(options: Partial<PhraseCacheOptions> = {}): CacheRig {
  const asked: Asked[] = [];
  const upstream: Upstream = {
    open(request, handlers) {
      const one = new Asked(request, handlers);
      asked.push(one);
      return one;
    },
  };
  const clock = new FakeClock();
  const cache = new PhraseCache({ upstream, maxBytes: 1_000_000, clock, ...options });
  const last = (): Asked => {
    const one = asked.at(-1);
    if (one === undefined) throw new Error("The upstream was asked nothing");
    return one;
  };
  return { cache, clock, asked, last };
}

/** A record of so many bytes of audio, with its timing. */
export function timed(audioBytes: number, { fill = 7, startSeconds = 0 } = {}): SynthesisChunk {
  const alignment = {
    characters: ["H", "i", "\u{1f600}"],
    character_start_times_seconds: [startSeconds, startSeconds + 0.1, startSeconds + 0.2],
    character_end_times_seconds: [startSeconds + 0.1, startSeconds + 0.2, startSeconds + 0.35],
  };
  return {
    audio: new Uint8Array(audioBytes).fill(fill),
    alignment,
    normalizedAlignment: { ...alignment, characters: ["h", "i", "!"] },
    voiceSegments: [],
  };
}

/** A piece of bare audio. */
export function bare(audioBytes: number, fill = 7): SynthesisChunk {
  const audio = new Uint8Array(audioBytes).fill(fill);
  return { audio, alignment: null, normalizedAlignment: null, voiceSegments: [] };
}

/** Chunks in a form that is compared quickly: the audio as one string. */
export function shown(chunks: readonly SynthesisChunk[]): readonly object[] {
  return chunks.map(({ audio, ...timing }) => ({ ...timing, audio: Buffer.from(audio).toString("latin1") }));
}
