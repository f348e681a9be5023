/**
 * One upstream request for one segment, and what has come of it and was not taken yet. Its owner holds it back and lets
 * it read on (`hold`, `readOn`): a held request stops reading, its kernel buffer fills and the upstream waits.
 *
 * Before any audio has come, a retryable failure is tried again; after that it is the utterance's failure.
 */
import type { GatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Counters } from "../metrics/counters.ts";
import type { Segment } from "../text/segmenter.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHead,
  SynthesisRequest,
  Upstream,
} from "../upstream/types.ts";

/** Waits before the second, third, ... try, ms: long enough for a speech service to be started anew. */
const RETRY_DELAYS_MS = [100, 300, 900, 1500];

export interface RunTimes {
  /** When the request left, when its headers and its first audio came; clock ms. */
  requestedMs: number;
  headersMs: number;
  firstByteMs: number;
}

export interface SegmentRunOptions {
  readonly upstream: Upstream;
  readonly request: SynthesisRequest;
  readonly segment: Segment;
  readonly clock: Clock;
  readonly counters: Counters;
  /** Something new can be taken, or the run ended or failed. */
  readonly onProgress: () => void;
}

export class SegmentRun {
  readonly segment: Segment;
  readonly sourceFormat: string;
  readonly times: RunTimes = { requestedMs: 0, headersMs: 0, firstByteMs: 0 };
  readonly #options: SegmentRunOptions;
  #synthesis: Synthesis | null = null;
  #retryTimer: Timer | null = null;
  #tries = 0;
  #chunks: SynthesisChunk[] = [];
  #bytes = 0;
  #isHeld = false;
  #isEnded = false;
  #error: GatewayError | null = null;
  characterCost: number | null = null;

  constructor(options: SegmentRunOptions) {
    this.#options = options;
    this.segment = options.segment;
    this.sourceFormat = options.request.outputFormat;
    this.#open();
  }

  /** The upstream has said everything (or failed): the next segment may be requested. */
  get isComplete(): boolean {
    return this.#isEnded || this.#error !== null;
  }
  get error(): GatewayError | null {
    return this.#error;
  }
  get hasChunk(): boolean {
    return this.#chunks.length > 0;
  }

  /** Bytes of audio that came and were not taken. */
  get waitingBytes(): number {
    return this.#bytes;
  }

  /** Reads nothing more from the upstream until `readOn`. Idempotent. */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#synthesis?.pause();
  }

  /** Idempotent. */
  readOn(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#synthesis?.resume();
  }

  /** The oldest chunk not taken yet, or undefined. */
  take(): SynthesisChunk | undefined {
    const chunk = this.#chunks.shift();
    if (chunk === undefined) return undefined;
    this.#bytes -= chunk.audio.byteLength;
    return chunk;
  }

  /** Stops the upstream and forgets what came. Idempotent. */
  abort(): void {
    this.#retryTimer?.cancel();
    this.#retryTimer = null;
    this.#synthesis?.abort();
    this.#synthesis = null;
    this.#chunks = [];
    this.#bytes = 0;
    this.#isEnded = true;
  }

  #open(): void {
    const { clock, counters } = this.#options;
    this.#tries += 1;
    this.times.requestedMs = clock.nowMs();
    counters.upstreamRequests += 1;
    this.#synthesis = this.#options.upstream.open(this.#options.request, {
      requestSent: () => {
        this.times.requestedMs = clock.nowMs();
      },
      head: (head) => this.#onHead(head),
      chunk: (chunk) => this.#onChunk(chunk),
      end: () => this.#onEnd(),
      error: (error) => this.#onError(error),
    });
    if (this.#isHeld) this.#synthesis.pause();
  }

  #onHead(head: SynthesisHead): void {
    this.times.headersMs = this.#options.clock.nowMs();
    this.characterCost = head.characterCost ?? null;
  }

  #onChunk(chunk: SynthesisChunk): void {
    if (this.times.firstByteMs === 0 && chunk.audio.byteLength > 0) {
      this.times.firstByteMs = this.#options.clock.nowMs();
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.audio.byteLength;
    this.#options.onProgress();
  }

  #onEnd(): void {
    this.#isEnded = true;
    this.#synthesis = null;
    this.#options.onProgress();
  }

  #onError(error: GatewayError): void {
    this.#synthesis = null;
    this.#options.counters.upstreamErrors += 1;
    const delayMs = RETRY_DELAYS_MS[this.#tries - 1];
    if (error.isRetryable && this.times.firstByteMs === 0 && delayMs !== undefined) {
      this.#options.counters.upstreamRetries += 1;
      const waitMs = Math.max(delayMs, Math.min(error.retryAfterMs ?? 0, 5000));
      this.#retryTimer = this.#options.clock.at(this.#options.clock.nowMs() + waitMs, () => this.#open());
      return;
    }
    this.#error = error;
    this.#options.onProgress();
  }
}
