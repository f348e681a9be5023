/**
 * What a session says: the queue of utterances and the edge of the timeline, that is, the end of all audio pushed so
 * far. `RequestScheduler` has what was asked of the upstream for them.
 *
 *   #queue   [speaking, queued, queued, ...]      utterances with audio still to be pushed
 *   #played  [pushed, ...]                         all audio pushed, the playhead has not passed their end
 */
import { type GatewayError, toGatewayError } from "../../errors.ts";
import type { Segment } from "../../text/segmenter.ts";
import { writeError } from "../events/utterance-events.ts";
import type { ComingAudio } from "../heard-share.ts";
import type { Marks } from "../marks.ts";
import type { RenderedAudio } from "../rendered-audio.ts";
import { takeSnapshot } from "../resume/resume-point.ts";
import type { Snapshot } from "../resume/snapshot.ts";
import { RequestScheduler } from "../synthesis/request-scheduler.ts";
import type { Attempt } from "../synthesis/upstream-attempt.ts";
import { TextStall } from "../text-input/text-stall.ts";
import { CarryOver } from "./carry-over.ts";
import { PlayedOut } from "./played-out.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import { emitRecovered, recover } from "./recovery.ts";
import { SegmentPlayer } from "./segment-player.ts";
import type { UnsentSegments } from "./unsent-segments.ts";
import type { Utterance } from "./utterance.ts";
import { WriteHead, type WriteHeadOptions } from "./write-head.ts";

/** Audio is pushed in multiples of this, so that most frames are cut out of one piece without copying. */
const PUSH_TICKS = 20 * TICKS_PER_MS;
/** How much to player, places on the timeline. */
export interface RenderLimits {
  readonly untilTicks: number;
  /** Up to here a word may be pushed in parts, because listeners have nothing else. */
  readonly neededTicks: number;
  /** So much more of the same segment, ticks, where it is there. */
  readonly surplusTicks: number;
}

export interface PlaybackQueueOptions extends WriteHeadOptions {
  readonly marks: Marks;
  readonly isListened: () => boolean;
  /** There is room for more text of this utterance. */
  readonly onTaken: (utterance: Utterance) => void;
  /** Its text was taken to be complete, because none came. */
  readonly onIdled: (utterance: Utterance) => void;
  /** No more text is wanted for it. */
  readonly onOver: (utterance: Utterance) => void;
  /** An upstream has something new. */
  readonly onProgress: () => void;
}

export class PlaybackQueue {
  readonly #options: PlaybackQueueOptions;
  readonly #requests: RequestScheduler;
  readonly #textStall: TextStall;
  #queue: Utterance[] = [];
  readonly played: PlayedOut;
  #player: SegmentPlayer | null = null;
  readonly #carryOver = new CarryOver();
  readonly #edge: WriteHead;

  constructor(options: PlaybackQueueOptions) {
    this.#options = options;
    const { deps, output } = options;
    this.played = new PlayedOut(options);
    this.#edge = new WriteHead(options);
    this.#requests = new RequestScheduler({
      deps,
      output,
      isListened: options.isListened,
      playheadTicks: options.playheadTicks,
      writeTicks: () => this.writeTicks,
      playerOf: (attempt) => (this.#player?.attempt === attempt ? this.#player : null),
      onTaken: options.onTaken,
      onProgress: () => {
        this.#recover();
        this.openNext();
        options.onProgress();
      },
      onNoVoice: (error) => {
        const waiting = this.#queue.find((utterance) => !utterance.namesVoice);
        if (waiting !== undefined) this.#fail(waiting, error);
      },
    });
    this.#textStall = new TextStall({
      clock: deps.clock,
      counters: deps.counters,
      stallMs: deps.tuning.stallMs,
      idleMs: deps.tuning.textIdleMs,
      waiting: () => this.#waitingForText(),
      handMs: () => this.#requests.unheardMs,
      onCut: () => {
        this.openNext();
        options.onProgress();
      },
      onIdled: options.onIdled,
      onSettled: options.onTaken,
    });
  }

  /** End of all audio pushed. */
  get writeTicks(): number {
    return this.#edge.ticks;
  }
  /** The audio made, for a listener that begins at `fromTicks`. */
  renderedAudio(fromTicks: number): RenderedAudio {
    const begun = this.unplayed.filter(({ startTicks }) => startTicks !== null);
    const { recent, ticks: writeTicks } = this.#edge;
    const placeTicks = Math.max(fromTicks, recent.startTicks ?? 0);
    return {
      writeTicks,
      recent,
      utteranceTicks: begun.findLast(({ startTicks }) => (startTicks ?? 0) <= placeTicks)?.startTicks ?? null,
      isOpen: this.#queue.some((utterance) => begun.includes(utterance)),
    };
  }
  /** Memory of the audio that is kept for `resume` while it is spoken. */
  get recentAudioBytes(): number {
    return this.#edge.recent.bytes;
  }
  /** Segments of which no frame has left. */
  get unsent(): UnsentSegments {
    return this.#edge.unsent;
  }
  /** Of the utterance's segment that is being pushed: the audio that has come of it. */
  comingOf(utterance: Utterance): ComingAudio | null {
    return this.#requests.first?.utterance === utterance ? this.#requests.coming : null;
  }
  /** Utterances that are not over for the listener. */
  get unplayed(): Utterance[] {
    return [...this.played.utterances, ...this.#queue];
  }
  /** Utterances of which nothing has been spoken. */
  get unbegun(): Utterance[] {
    return this.#queue.filter((utterance) => utterance.startTicks === null);
  }
  get isIdle(): boolean {
    return this.#queue.length === 0 && this.played.isEmpty;
  }
  /** Whether anything has come for what is being spoken that was not looked at, or is on its way. */
  get hasUnread(): boolean {
    return this.#requests.isReading || this.#player?.hasUnread === true;
  }
  /** Timeline position at which the next utterance will have been played; null when none waits for that. */
  get nextEndTicks(): number | null {
    return this.played.nextEndTicks;
  }

  /** Queues it before those of a lower priority that were not asked for yet; returns how many stand before it. */
  add(utterance: Utterance): number {
    const isBehind = (other: Utterance): boolean =>
      other.priority < utterance.priority && other.startTicks === null && !this.#requests.hasAny(other);
    const index = this.#queue.findIndex(isBehind);
    this.#queue.splice(index < 0 ? this.#queue.length : index, 0, utterance);
    const ahead = this.unplayed.indexOf(utterance);
    this.openNext();
    return ahead;
  }

  /** Puts an utterance that was cut before all others that have not begun. */
  resume(kept: Snapshot, nowMs: number): void {
    this.#putBackUnbegun();
    kept.utterance.resume(kept, nowMs);
    const begun = this.#queue.filter((other) => other.startTicks !== null).length;
    this.#queue.splice(begun, 0, kept.utterance);
    this.openNext();
  }

  find(id: string): Utterance | undefined {
    return this.unplayed.find((utterance) => utterance.id === id);
  }

  /** Asks the upstream for the next segment if it is time. */
  openNext(): void {
    this.#requests.openNext(this.#queue);
    this.#textStall.look();
  }

  /** Somebody asks for captions in the middle of what is said. */
  layOutCues(): void {
    this.#edge.layOutCues(this.unplayed, this.#player);
  }

  holdReading(isAwaited: boolean): void {
    this.#requests.holdReading(isAwaited);
  }

  readOn(): void {
    this.#requests.readOn();
  }

  /** Pushes audio to the listeners until the edge reaches `untilTicks` or there is none; true if any was pushed. */
  render(limits: RenderLimits): boolean {
    const before = this.writeTicks;
    for (;;) {
      const isEnough = this.writeTicks >= limits.untilTicks;
      const player = isEnough ? this.#player : (this.#player ?? this.#nextPlayer());
      if (player === null) break;
      try {
        if (isEnough) {
          player.look();
          player.tellUpTo(this.writeTicks);
          break;
        }
        const slice = player.next({
          maxTicks: this.#pushTicksTo(limits.untilTicks),
          neededTicks: this.#pushTicksTo(limits.neededTicks),
          surplusTicks: limits.surplusTicks,
        });
        if (slice !== undefined) {
          this.#edge.push(slice);
          player.tellUpTo(this.writeTicks);
        } else if (player.isOver) this.#finishPlayer(player);
        else break;
      } catch (thrown) {
        this.#fail(player.utterance, toGatewayError(thrown));
      }
    }
    return this.writeTicks > before;
  }

  #pushTicksTo(ticks: number): number {
    return Math.ceil((ticks - this.writeTicks) / PUSH_TICKS) * PUSH_TICKS;
  }

  /** Tells of every utterance that has been played when the playhead stands at `playheadTicks`. */
  tellPlayed(playheadTicks: number): void {
    this.#edge.forgetHeard(this.#queue[0], playheadTicks);
    this.played.tell(playheadTicks);
  }

  /** Takes an utterance out; its requests are aborted. Its audio is the caller's to cut. */
  remove(utterance: Utterance): void {
    this.#queue = this.#queue.filter((queued) => queued !== utterance);
    this.played.remove(utterance);
    this.#abortAttempts(utterance);
  }

  /** As `remove`, but what can be spoken later is kept; null where nothing can. */
  removeKeeping(utterance: Utterance, cutTicks: number): Snapshot | null {
    if (utterance.startTicks === null) return this.#removeWaiting(utterance);
    const player = this.#player?.utterance === utterance ? this.#player : null;
    const kept = takeSnapshot({
      utterance,
      cutTicks,
      writeTicks: utterance.endTicks ?? this.writeTicks,
      recent: this.#edge.recent,
      player,
      coming: this.comingOf(utterance),
      behind: [...this.#requests.attemptsOf(utterance), ...utterance.replays].filter(
        (attempt) => attempt !== player?.attempt,
      ),
      nowMs: this.#options.deps.clock.nowMs(),
    });
    this.remove(utterance);
    return kept;
  }

  /** Aborts the requests of what has not begun, to be asked for again in their turn. */
  #putBackUnbegun(): void {
    const nowMs = this.#options.deps.clock.nowMs();
    for (const other of this.unbegun) if (this.#requests.abort(other).length > 0) other.rewind(nowMs);
  }

  /** One that waits to go on is cut again: nothing has changed. */
  #removeWaiting(utterance: Utterance): Snapshot {
    this.remove(utterance);
    utterance.rewind(this.#options.deps.clock.nowMs());
    const { replays, resumedStart: spokenStart, resumedTiming: timing } = utterance;
    return { utterance, replays, spokenStart, fromTicks: 0, rest: [], timing };
  }

  /** After a cut: the timeline goes on at `writeTicks`; these utterances are said anew, before all others. */
  restart(writeTicks: number, rewound: readonly Utterance[]): void {
    this.#edge.cutTo(writeTicks);
    for (const utterance of rewound) {
      this.remove(utterance);
      utterance.rewind(this.#options.deps.clock.nowMs());
    }
    // RequestScheduler are spoken in their order: what was asked for others has to stand behind that of these.
    if (rewound.length > 0) this.#putBackUnbegun();
    this.#queue.unshift(...rewound);
    this.openNext();
  }

  close(): void {
    this.#textStall.close();
    this.#requests.close();
    for (const utterance of this.unplayed) this.remove(utterance);
    this.#closePlayer();
    this.#edge.recent.clear();
  }

  /** The utterance that would be asked for next if only its text had come. */
  #waitingForText(): Utterance | null {
    if (!this.#requests.hasRoom || !this.#options.isListened()) return null;
    const next = this.#queue.find((utterance) => !utterance.isExhausted);
    return next !== undefined && !next.hasSegment && !next.isTextEnded ? next : null;
  }

  /** The player of the oldest request once it has audio; utterances that turn out empty end here. */
  #nextPlayer(): SegmentPlayer | null {
    const [first] = this.#queue;
    const open = this.#requests.first;
    if (first?.isExhausted && open?.utterance !== first) {
      this.#finishUtterance(first, null);
      return this.#nextPlayer();
    }
    if (open === undefined) return null;
    const { attempt, utterance } = open;
    if (!attempt.hasChunk && !attempt.isComplete) return null;
    if (utterance.startTicks === null && attempt.hasChunk) {
      this.#edge.startUtterance(utterance, attempt.segment.start);
    }
    this.#edge.startSegment(utterance, attempt);
    const { tuning } = this.#options.deps;
    open.asked.startTicks = this.writeTicks;
    this.#player = new SegmentPlayer({
      attempt,
      utterance,
      carryOver: this.#carryOver,
      baseTicks: this.writeTicks,
      writer: this.#options.writer,
      aheadTicks: tuning.aheadMs * TICKS_PER_MS,
      trimTicks: tuning.splices.trimMs * TICKS_PER_MS,
      wants: (kind) => this.#options.output.wasWanted(kind),
      isFollowed: () => this.#queue.length > 1,
    });
    this.#recover();
    return this.#player;
  }

  #finishPlayer(player: SegmentPlayer): void {
    const { attempt, utterance } = player;
    if (attempt.error !== null && !player.isWhole) {
      this.#fail(utterance, attempt.error);
      return;
    }
    const isLastOfUtterance = utterance.isExhausted && !this.#requests.isFurther(utterance);
    player.finish();
    if (attempt.error !== null) emitRecovered(player, { ...this.#options, atTicks: this.writeTicks });
    else if (attempt.requestId !== null) utterance.noteRequest(attempt.requestId);
    this.#edge.endSegment(player);
    this.#closePlayer();
    const open = this.#requests.first;
    if (open !== undefined) open.asked.endTicks = this.writeTicks;
    this.#requests.shift();
    if (isLastOfUtterance) this.#finishUtterance(utterance, null);
    this.openNext();
  }

  /** A response that broke off: its rest is asked for at once, before what is here has been heard. */
  #recover(): void {
    const player = this.#player;
    const open = this.#requests.first;
    if (
      player === null ||
      open?.attempt !== player.attempt ||
      player.attempt.error === null ||
      player.isWhole
    )
      return;
    try {
      open.isRecovered = recover(player, this.#options.deps.clock.nowMs());
    } catch (thrown) {
      this.#fail(player.utterance, toGatewayError(thrown));
    }
  }

  #fail(utterance: Utterance, error: GatewayError): void {
    this.#options.deps.log.warn(
      { utterance: utterance.id, code: error.code, detail: error.message },
      "Utterance failed",
    );
    // What came of it may still be heard: where that is cut, `resume` asks for the rest again.
    utterance.failed = this.#requests.attemptsOf(utterance).map((attempt) => this.#segmentOf(attempt));
    this.#abortAttempts(utterance);
    writeError(this.#options.writer, { utterance, error, atTicks: this.writeTicks });
    this.#finishUtterance(utterance, error);
    this.openNext();
  }

  #finishUtterance(utterance: Utterance, error: GatewayError | null): void {
    this.#options.onOver(utterance);
    this.#queue = this.#queue.filter((queued) => queued !== utterance);
    if (this.#queue.length === 0) this.#carryOver.store = null;
    utterance.endText(this.#options.deps.clock.nowMs());
    this.#edge.endUtterance(utterance);
    this.played.add(utterance, error);
  }

  /** Of one that broke off and was recovered, without the rest, which is a segment of its own. */
  #segmentOf(attempt: Attempt): Segment {
    return this.#player?.attempt === attempt ? this.#player.segment : attempt.segment;
  }

  #abortAttempts(utterance: Utterance): void {
    this.#requests.abort(utterance);
    if (this.#player?.utterance === utterance) this.#closePlayer();
  }

  #closePlayer(): void {
    this.#player?.close();
    this.#player = null;
  }
}
