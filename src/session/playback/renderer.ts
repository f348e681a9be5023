/**
 * Places the answers of the upstream on the timeline: takes them in the order of their requests, one segment after the other,
 * and pushes their audio at the write head, never further than it is asked to.
 */

import { type GatewayError, toGatewayError } from "../../errors.ts";
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { Attempt } from "../synthesis/attempt.ts";
import type { RequestScheduler } from "../synthesis/request-scheduler.ts";
import { CarryOver } from "./carry-over.ts";
import { emitRecovered, recover } from "./recovery.ts";
import { SegmentRenderer } from "./segment-renderer.ts";
import type { Utterance } from "./utterance.ts";
import { WriteHead, type WriteHeadOptions } from "./write-head.ts";

/** Audio is rendered in multiples of this, so that most frames are cut out of one piece without copying. */
const PUSH_TICKS = 20 * TICKS_PER_MS;

/** How much to render: `surplusTicks` is a length, the others are positions on the timeline. */
interface RenderLimits {
  readonly untilTicks: number;
  /** Up to here a word may be rendered in parts, because listeners have nothing else. */
  readonly neededUntilTicks: number;
  /** So much more of the same segment, where it is there. */
  readonly surplusTicks: number;
  /** Up to here sounds under speech go on where nothing is spoken. */
  readonly underOnlyTicks: number;
}

export interface RendererOptions extends WriteHeadOptions {
  readonly requests: RequestScheduler;
  /** The utterance whose audio is rendered, or is to be next. */
  readonly current: () => Utterance | undefined;
  /** Whether another utterance waits for the end of that one. */
  readonly isFollowed: () => boolean;
  /** First audio of an utterance stands at the write head; `spokenStart`: where in the spoken text it begins. */
  readonly onBegun: (utterance: Utterance, startTicks: number, spokenStart: number) => void;
  /** All its audio is rendered. */
  readonly onEnded: (utterance: Utterance) => void;
  readonly onFailed: (utterance: Utterance, error: GatewayError) => void;
  /** Times have come that no chunk has brought, or are waited for no longer. */
  readonly onTimes: () => void;
  /** A request is over: there is room for another. */
  readonly onSegmentEnded: () => void;
}

export class Renderer {
  readonly writeHead: WriteHead;
  readonly #options: RendererOptions;
  readonly #carryOver = new CarryOver();
  #segmentRenderer: SegmentRenderer | null = null;

  constructor(options: RendererOptions) {
    this.#options = options;
    this.writeHead = new WriteHead(options);
  }

  /** Renders the segment that is under way, where that is of this attempt. */
  segmentRendererOf(attempt: Attempt): SegmentRenderer | null {
    return this.#segmentRenderer?.attempt === attempt ? this.#segmentRenderer : null;
  }

  /** Whether anything has come for what is being rendered that was not looked at. */
  get hasUnread(): boolean {
    return this.#segmentRenderer?.hasUnread === true;
  }

  /** Pushes audio until the write head reaches `untilTicks` or there is none; true if any was rendered. */
  render(limits: RenderLimits): boolean {
    const before = this.writeHead.ticks;
    for (;;) {
      const isEnough = this.writeHead.ticks >= limits.untilTicks;
      const segmentRenderer = isEnough
        ? this.#segmentRenderer
        : (this.#segmentRenderer ?? this.#nextSegmentRenderer());
      if (segmentRenderer === null) {
        // Between the segments of an utterance as little is put as anywhere in it.
        if ((this.#options.current()?.startTicks ?? null) === null)
          this.writeHead.goOnUnderOnly(limits.underOnlyTicks);
        break;
      }
      try {
        if (isEnough) {
          segmentRenderer.look();
          segmentRenderer.emitUpTo(this.writeHead.ticks);
          break;
        }
        const slice = segmentRenderer.next({
          maxTicks: this.#pushTicksTo(limits.untilTicks),
          neededTicks: this.#pushTicksTo(limits.neededUntilTicks),
          surplusTicks: limits.surplusTicks,
        });
        if (slice !== undefined) {
          this.writeHead.push(slice);
          segmentRenderer.emitUpTo(this.writeHead.ticks);
        } else if (segmentRenderer.isOver) this.#finish(segmentRenderer);
        else break;
      } catch (thrown) {
        this.#options.onFailed(segmentRenderer.utterance, toGatewayError(thrown));
      }
    }
    return this.writeHead.ticks > before;
  }

  /** A response that broke off: its rest is asked for at once, before what is here has been heard. */
  recover(): void {
    const segmentRenderer = this.#segmentRenderer;
    const open = this.#options.requests.first;
    if (
      segmentRenderer === null ||
      open?.attempt !== segmentRenderer.attempt ||
      segmentRenderer.attempt.error === null ||
      segmentRenderer.isWhole
    )
      return;
    try {
      open.isRecovered = recover(segmentRenderer, this.#options.deps.clock.nowMs());
    } catch (thrown) {
      this.#options.onFailed(segmentRenderer.utterance, toGatewayError(thrown));
    }
  }

  /** Somebody asks for captions while `utterances` are spoken: those that have begun get some. */
  layOutCues(utterances: readonly Utterance[]): void {
    this.writeHead.layOutCues(utterances, this.#segmentRenderer);
  }

  /** Pushes no more of the utterance. */
  drop(utterance: Utterance): void {
    if (this.#segmentRenderer?.utterance === utterance) this.#close();
    utterance.levels?.learn();
  }

  /** Nothing waits to be rendered: memory for the next segment is let go. */
  forgetMemory(): void {
    this.#carryOver.store = null;
  }

  /** Idempotent. */
  close(): void {
    this.#close();
    this.writeHead.recent.clear();
  }

  #pushTicksTo(ticks: number): number {
    return Math.ceil((ticks - this.writeHead.ticks) / PUSH_TICKS) * PUSH_TICKS;
  }

  /** The oldest request, to be rendered once it has audio; utterances that turn out empty end here. */
  #nextSegmentRenderer(): SegmentRenderer | null {
    const { requests, current } = this.#options;
    const first = current();
    const open = requests.first;
    if (first?.isExhausted && open?.utterance !== first) {
      this.#options.onEnded(first);
      return this.#nextSegmentRenderer();
    }
    if (open === undefined) return null;
    const { attempt, utterance } = open;
    if (!attempt.hasChunk && !attempt.isComplete) return null;
    if (utterance.startTicks === null && attempt.hasChunk) {
      this.#options.onBegun(utterance, this.writeHead.moveToFrameEnd(), attempt.segment.start);
    }
    this.writeHead.startSegment(utterance, attempt);
    const { settings } = this.#options.deps;
    open.budgeted.startTicks = this.writeHead.ticks;
    try {
      this.#segmentRenderer = new SegmentRenderer({
        attempt,
        utterance,
        carryOver: this.#carryOver,
        baseTicks: this.writeHead.ticks,
        writer: this.#options.writer,
        aheadTicks: Math.min(settings.aheadMs, attempt.mostAheadMs ?? settings.aheadMs) * TICKS_PER_MS,
        trimTicks: utterance.isSound ? 0 : settings.trimMs * TICKS_PER_MS,
        wasWanted: (kind) => this.#options.output.wasWanted(kind),
        isFollowed: this.#options.isFollowed,
        aligner: this.#options.deps.aligner,
        clock: this.#options.deps.clock,
        counters: this.#options.deps.counters,
        onTimes: this.#options.onTimes,
      });
    } catch (thrown) {
      // Such as a format that can't be cut into frames: nobody waits for audio that never comes.
      this.#options.onFailed(utterance, toGatewayError(thrown));
      return this.#nextSegmentRenderer();
    }
    this.recover();
    return this.#segmentRenderer;
  }

  #finish(segmentRenderer: SegmentRenderer): void {
    const { requests } = this.#options;
    const { attempt, utterance } = segmentRenderer;
    if (attempt.error !== null && !segmentRenderer.isWhole) {
      this.#options.onFailed(utterance, attempt.error);
      return;
    }
    const isLastOfUtterance = utterance.isExhausted && !requests.isFurther(utterance);
    segmentRenderer.finish();
    if (attempt.error !== null)
      emitRecovered(segmentRenderer, { ...this.#options, atTicks: this.writeHead.ticks });
    else if (attempt.requestId !== null) utterance.noteRequest(attempt.requestId);
    this.writeHead.endSegment(segmentRenderer);
    this.#close();
    const open = requests.first;
    if (open !== undefined) open.budgeted.endTicks = this.writeHead.ticks;
    requests.shift();
    if (isLastOfUtterance) {
      utterance.levels?.learn();
      this.#options.onEnded(utterance);
    }
    this.#options.onSegmentEnded();
  }

  #close(): void {
    this.#segmentRenderer?.close();
    this.#segmentRenderer = null;
  }
}
