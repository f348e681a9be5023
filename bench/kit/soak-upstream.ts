/** A speech service inside the process that answers at once: audio and exact alignment, as fast as it is read. */
import type { Alignment, VoiceSegment } from "../../src/timing/alignment.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest, Upstream } from "../../src/upstream/types.ts";
import type { Random } from "./random.ts";

const MS_PER_CHARACTER = 20;
/** Of the prepared audio, of which responses are cut. */
const PREPARED_BYTES = 1024 * 1024;

export interface UpstreamFaults {
  /** Share of the responses that fail on the way. */
  readonly share: number;
  readonly error: () => Parameters<SynthesisHandlers["error"]>[0];
}

export class SoakUpstream implements Upstream {
  readonly random: Random;
  readonly faults: UpstreamFaults;
  readonly audio = Uint8Array.from({ length: PREPARED_BYTES }, (_, index) => (index * 31) & 0xff);
  opened = 0;
  ended = 0;
  failed = 0;
  aborted = 0;

  constructor(random: Random, faults: UpstreamFaults) {
    this.random = random;
    this.faults = faults;
  }

  /** Responses that are under way. */
  get underWay(): number {
    return this.opened - this.ended - this.failed - this.aborted;
  }

  open(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    this.opened += 1;
    return new Response(this, request, handlers);
  }
}

class Response implements Synthesis {
  readonly #upstream: SoakUpstream;
  readonly #request: SynthesisRequest;
  readonly #handlers: SynthesisHandlers;
  readonly #characters: readonly string[];
  readonly #bytesPerMs: number;
  readonly #failsAt: number;
  #sent = 0;
  #isHeadSent = false;
  #isPaused = false;
  #isDue = false;
  #isOver = false;

  constructor(upstream: SoakUpstream, request: SynthesisRequest, handlers: SynthesisHandlers) {
    this.#upstream = upstream;
    this.#request = request;
    this.#handlers = handlers;
    const text =
      request.kind === "speech" ? request.text : request.inputs.map((input) => input.text).join("");
    this.#characters = [...text];
    this.#bytesPerMs = bytesPerMsOf(request.outputFormat);
    const isFailing = upstream.random.chance(upstream.faults.share);
    this.#failsAt = isFailing ? upstream.random.below(this.#characters.length) : Number.POSITIVE_INFINITY;
    this.#goOn();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#goOn();
  }

  abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#upstream.aborted += 1;
  }

  #goOn(): void {
    if (this.#isDue || this.#isOver) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (!this.#isOver && !this.#isPaused) this.#step();
    });
  }

  #step(): void {
    if (!this.#isHeadSent) {
      this.#isHeadSent = true;
      this.#handlers.requestSent?.();
      this.#handlers.head({ requestId: `r${this.#upstream.opened}`, characterCost: this.#characters.length });
      if (this.#isOver) return;
    }
    if (this.#sent >= this.#failsAt) {
      this.#isOver = true;
      this.#upstream.failed += 1;
      this.#handlers.error(this.#upstream.faults.error());
    } else if (this.#sent >= this.#characters.length) {
      this.#isOver = true;
      this.#upstream.ended += 1;
      this.#handlers.end();
    } else {
      this.#sendChunk(Math.min(this.#characters.length - this.#sent, 5 + this.#upstream.random.below(25)));
      this.#goOn();
    }
  }

  #sendChunk(count: number): void {
    const first = this.#sent;
    this.#sent += count;
    const bytes = count * MS_PER_CHARACTER * this.#bytesPerMs;
    // On a sample's start, whatever the width.
    const from = this.#upstream.random.below((PREPARED_BYTES - bytes) / 2) * 2;
    const { wantsTiming } = this.#request;
    this.#handlers.chunk({
      audio: this.#upstream.audio.slice(from, from + bytes),
      alignment: wantsTiming ? this.#alignment(first, count) : null,
      normalizedAlignment: null,
      voiceSegments: wantsTiming && first === 0 ? this.#segments() : [],
    });
  }

  #alignment(first: number, count: number): Alignment {
    const seconds = (index: number): number => ((first + index) * MS_PER_CHARACTER) / 1000;
    return {
      characters: this.#characters.slice(first, first + count),
      character_start_times_seconds: Array.from({ length: count }, (_, index) => seconds(index)),
      character_end_times_seconds: Array.from({ length: count }, (_, index) => seconds(index + 1)),
    };
  }

  #segments(): VoiceSegment[] {
    if (this.#request.kind === "speech") return [];
    let at = 0;
    return this.#request.inputs.map((input, index) => {
      const start = at;
      at += [...input.text].length;
      return {
        voice_id: input.voiceId,
        start_time_seconds: (start * MS_PER_CHARACTER) / 1000,
        end_time_seconds: (at * MS_PER_CHARACTER) / 1000,
        character_start_index: start,
        character_end_index: at,
        dialogue_input_index: index,
      };
    });
  }
}

/** Throws for formats other than ulaw_8000, alaw_8000 and pcm_*. */
function bytesPerMsOf(format: string): number {
  const rate = Number(/_(\d+)$/.exec(format)?.[1]);
  if (!/^(?:[ua]law_8000|pcm_\d+)$/.test(format))
    throw new Error(`Soak can't make ${format}: expected ulaw_8000, alaw_8000 or pcm_*`);
  return (rate * (format.startsWith("pcm") ? 2 : 1)) / 1000;
}
