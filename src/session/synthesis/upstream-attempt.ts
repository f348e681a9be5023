/**
 * One segment's request to the upstream, and what has come of it and was not taken yet. Its owner holds it back and lets
 * it read on (`hold`, `readOn`): a held request stops reading, its kernel buffer fills and the upstream waits.
 *
 * While nothing of it was taken, a retryable failure is tried again, and what came is forgotten; after that the response
 * has broken off, and playback/recovery.ts decides how speech goes on. No audio within `firstAudioMs` is such a
 * failure too.
 */
import { GatewayError } from "../../errors.ts";
import type { BlockPool } from "../../kit/block-pool.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Counters } from "../../metrics/counters.ts";
import type { Timing } from "../../protocol/vocabulary.ts";
import type { Span } from "../../tracing/span.ts";
import type { Traced } from "../../tracing/tracer.ts";
import { type StitchBy, stitchInstead } from "../../upstream/stitching.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHead,
  SynthesisRequest,
  Upstream,
} from "../../upstream/types.ts";
import type { StagedSegment } from "../playback/segment-queue.ts";
import type { Attempt } from "./attempt.ts";
import { requestSpan } from "./request-span.ts";
import { SoundFinder } from "./sound-finder.ts";
import { WaitingChunks } from "./waiting-chunks.ts";

/** Waits before the second, third, ... try, ms: long enough for a speech service to be started again. */
const RETRY_DELAYS_MS = [100, 300, 900, 1500];
/** Tries of a service that may take longer than others: one that is silent for so long may still make what was asked before. */
const SLOW_TRIES = 2;

export interface UpstreamAttemptOptions {
  readonly upstream: Upstream;
  readonly request: SynthesisRequest;
  /** The same speech with less said of the text around, where the upstream refuses it. Default: it is not asked for so. */
  readonly restitched?: (by: StitchBy) => SynthesisRequest;
  readonly segment: StagedSegment;
  readonly clock: Clock;
  readonly counters: Counters;
  /**
   * Longest wait for audio once the request has left, ms, twice as long with each further try; 0: no limit. Longer where the
   * upstream says so.
   */
  readonly firstAudioMs: number;
  /**
   * Where audio waits: for one who is done with what `take` returned at its next call. Default: what comes is kept as it is,
   * and is the taker's to keep.
   */
  readonly blocks?: BlockPool;
  /** The upstream has said what a try costs, characters; also of one whose audio is not spoken. */
  readonly onBilled?: (characters: number) => void;
  /** The upstream can't do what these fields of the request ask for. */
  readonly onIgnored?: (fields: readonly string[]) => void;
  /** Something new can be taken, or the attempt ended or failed. */
  readonly onNews: () => void;
  /** Each try is a span in it. Default: it is not traced. */
  readonly traced?: Traced | undefined;
}

export class UpstreamAttempt implements Attempt {
  readonly segment: StagedSegment;
  readonly sourceFormat: string;
  timing: Timing = "exact";
  readonly isLevelled = false;
  readonly wantsTiming: boolean;
  #sound: SoundFinder;
  readonly #options: UpstreamAttemptOptions;
  #request: SynthesisRequest;
  #synthesis: Synthesis | null = null;
  #retryTimer: Timer | null = null;
  #lateTimer: Timer | null = null;
  #tries = 0;
  /** The try that runs counts among the requests: what the phrase cache answers never leaves. */
  #isCounted = false;
  /** Span of the try that runs; null: it is not traced. */
  #span: Span | null = null;
  /** What the upstream says that it may need for its first audio. */
  #serviceMs = 0;
  #isTaken = false;
  readonly #chunks: WaitingChunks;
  #isHeld = false;
  #isEnded = false;
  #error: GatewayError | null = null;
  requestId: string | null = null;
  hasSteadyTimes = false;
  hasNoTimes = false;
  standIn: string | null = null;

  constructor(options: UpstreamAttemptOptions) {
    this.#options = options;
    this.#request = options.request;
    this.segment = options.segment;
    this.sourceFormat = options.request.outputFormat;
    this.wantsTiming = options.request.wantsTiming;
    this.#sound = new SoundFinder(this.sourceFormat);
    this.#chunks = new WaitingChunks({ pool: options.blocks ?? null, mayDivide: !this.wantsTiming });
    this.segment.stages.openedMs = options.clock.nowMs();
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
    return !this.#chunks.isEmpty;
  }

  /** Bytes of audio that came and were not taken. */
  get waitingBytes(): number {
    return this.#chunks.audioBytes;
  }

  /** UTF-16 code units of text that are timed by what came and was not taken; counted at each call. */
  get waitingTimedChars(): number {
    return this.#chunks.timedChars;
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
    const chunk = this.#chunks.take();
    if (chunk !== undefined) this.#isTaken = true;
    return chunk;
  }

  /** Stops the upstream and forgets what came. Idempotent. */
  abort(): void {
    this.#endSpan("aborted");
    this.#retryTimer?.cancel();
    this.#retryTimer = null;
    this.#stopWaiting();
    this.#synthesis?.abort();
    this.#synthesis = null;
    this.#chunks.clear();
    this.#isEnded = true;
  }

  #open(): void {
    const { clock } = this.#options;
    this.#tries += 1;
    const { stages } = this.segment;
    stages.sentMs = clock.nowMs();
    this.#isCounted = false;
    this.#span = requestSpan(this.#options.traced, this.#request, {
      startMs: stages.sentMs,
      tries: this.#tries,
    });
    this.#synthesis = this.#options.upstream.open(this.#requestWithTries(), {
      requestSent: (firstAudioMs) => {
        stages.sentMs = clock.nowMs();
        this.#count();
        this.#serviceMs = firstAudioMs ?? 0;
        this.#awaitAudio();
      },
      requestTurnedAway: () => this.#stopWaiting(),
      head: (head) => this.#onHead(head),
      chunk: (chunk) => this.#onChunk(chunk),
      billed: (characters) => this.#noteBilled(characters),
      end: () => this.#onEnd(),
      error: (error) => this.#onError(error),
    });
    if (this.#isHeld) this.#synthesis.pause();
  }

  #count(): void {
    if (this.#isCounted) return;
    this.#isCounted = true;
    this.#options.counters.upstreamRequests += 1;
  }

  /** The request, and for the ledger how often it was made. */
  #requestWithTries(): SynthesisRequest {
    return this.#tries === 1 ? this.#request : { ...this.#request, tries: this.#tries };
  }

  /** Counts from when the request left: before, it waited for its turn. */
  #awaitAudio(): void {
    this.#stopWaiting();
    const { clock, firstAudioMs } = this.#options;
    if (firstAudioMs === 0 || this.segment.stages.firstByteMs > 0) return;
    const waitMs = Math.max(firstAudioMs, this.#serviceMs) * 2 ** (this.#tries - 1);
    this.#lateTimer = clock.at(clock.nowMs() + waitMs, () => this.#onLate(waitMs));
  }

  #onLate(waitMs: number): void {
    this.#lateTimer = null;
    // Nothing can come while it is not read.
    if (this.#isHeld) {
      this.#awaitAudio();
      return;
    }
    this.#synthesis?.abort();
    this.#options.counters.upstreamLateFirstAudio += 1;
    this.#onError(
      new GatewayError("upstream_timeout", `The upstream sent no audio within ${waitMs} ms of the request`),
    );
  }

  #stopWaiting(): void {
    this.#lateTimer?.cancel();
    this.#lateTimer = null;
  }

  #onHead(head: SynthesisHead): void {
    this.segment.stages.headersMs = this.#options.clock.nowMs();
    this.requestId = head.requestId ?? null;
    this.#span?.set({ "vw.request_id": head.requestId });
    this.hasSteadyTimes = head.timesFrom === "response";
    this.hasNoTimes = head.timesFrom === "nowhere";
    this.standIn = head.standIn ?? null;
    this.timing = head.hasEstimatedTimes === true ? "estimated" : "exact";
    if (head.characterCost !== undefined) this.#noteBilled(head.characterCost);
    if (head.ignored !== undefined) this.#options.onIgnored?.(head.ignored);
  }

  #noteBilled(characters: number): void {
    this.#span?.set({ "vw.characters_billed": characters });
    this.#options.counters.characters.billed += characters;
    this.#options.onBilled?.(characters);
  }

  #onChunk(chunk: SynthesisChunk): void {
    if (chunk.audio.byteLength > 0) this.#noteAudio(chunk.audio);
    this.#chunks.push(chunk);
    this.#options.onNews();
  }

  #noteAudio(audio: Uint8Array): void {
    const { stages } = this.segment;
    if (stages.firstSoundMs > 0) return;
    const nowMs = this.#options.clock.nowMs();
    if (stages.firstByteMs === 0) {
      stages.firstByteMs = nowMs;
      this.#span?.event("first_byte", nowMs);
      this.#stopWaiting();
    }
    const silenceMs = this.#sound.push(audio);
    if (silenceMs === null) return;
    stages.firstSoundMs = nowMs;
    stages.leadingSilenceMs = this.#sound.isLooking ? silenceMs : null;
  }

  #onEnd(): void {
    this.#stopWaiting();
    this.#endSpan(null);
    this.#isEnded = true;
    this.#synthesis = null;
    this.#options.onNews();
  }

  #onError(error: GatewayError): void {
    this.#stopWaiting();
    this.#endSpan(error.code);
    this.#synthesis = null;
    const { clock, counters } = this.#options;
    this.#count();
    counters.upstreamErrors += 1;
    const delayMs = this.#isTaken ? undefined : this.#delayBeforeNext(error);
    if (delayMs === undefined) {
      this.#error = error;
      this.#options.onNews();
      return;
    }
    counters.upstreamRetries += 1;
    this.#forget();
    const waitMs = Math.max(delayMs, Math.min(error.retryAfterMs ?? 0, 5000));
    this.#retryTimer = clock.at(clock.nowMs() + waitMs, () => this.#open());
  }

  /** How long to wait before it is asked for again, ms; undefined: it is not. A refusal of context is answered at once. */
  #delayBeforeNext(error: GatewayError): number | undefined {
    const { restitched } = this.#options;
    const instead = restitched === undefined ? null : stitchInstead(this.#request, error);
    if (restitched !== undefined && instead !== null) {
      this.#request = restitched(instead);
      if (!isWorthAnotherTry(error)) return 0;
    }
    const isSlow = error.code === "upstream_timeout" && this.#serviceMs > this.#options.firstAudioMs;
    if (!isWorthAnotherTry(error) || (isSlow && this.#tries >= SLOW_TRIES)) return undefined;
    return RETRY_DELAYS_MS[this.#tries - 1];
  }

  #endSpan(error: string | null): void {
    this.#span?.end(this.#options.clock.nowMs(), error);
    this.#span = null;
  }

  /** What came of this try is not spoken. */
  #forget(): void {
    this.#chunks.clear();
    this.#isHeld = false;
    this.#sound = new SoundFinder(this.sourceFormat);
    this.requestId = null;
    const { stages } = this.segment;
    stages.headersMs = 0;
    stages.firstByteMs = 0;
    stages.firstSoundMs = 0;
    stages.leadingSilenceMs = null;
  }
}

/**
 * Whether the same request may do better. A request that was turned away for too many (429) was asked for again already,
 * until patience was over (upstream/transport/exchange.ts).
 */
export function isWorthAnotherTry(error: GatewayError): boolean {
  return error.isRetryable && error.code !== "upstream_rate_limited";
}
