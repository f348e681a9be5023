/**
 * What a session says: the queue of utterances and the edge of the timeline, that is, the end of all audio pushed so
 * far. `Requests` has what was asked of the upstream for them.
 *
 *   #queue   [speaking, queued, queued, ...]      utterances with audio still to be pushed
 *   #pushed  [pushed, ...]                         all audio pushed, the playhead has not passed their end
 */
import { type GatewayError, toGatewayError } from "../errors.ts";
import { TICKS_PER_SECOND } from "../timing/ticks.ts";
import type { Audience } from "./audience.ts";
import type { EventWriter } from "./event-writer.ts";
import { type KeptSpeech, keepSpeech } from "./kept-speech.ts";
import type { Marks } from "./marks.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { SessionDeps } from "./ports.ts";
import { RecentAudio } from "./recent-audio.ts";
import { Requests } from "./requests.ts";
import { seamPauseMs } from "./seam-pause.ts";
import { SegmentFeed } from "./segment-feed.ts";
import type { SegmentTimes } from "./segment-times.ts";
import { type Slice, silenceSlice } from "./source.ts";
import { StallWatch } from "./stall-watch.ts";
import type { Utterance } from "./utterance.ts";
import { UtteranceCues } from "./utterance-cues.ts";
import { writeError, writeFinished, writeStarted } from "./utterance-events.ts";

/** Audio is pushed in multiples of this, so that most frames are cut out of one piece without copying. */
const PUSH_TICKS = 20 * TICKS_PER_MS;
/** Audio that was heard is kept this long: the word in which speech is cut may have begun before. */
const RECENT_TICKS = 2000 * TICKS_PER_MS;
/** The silence that a response still begins with when it was trimmed. */
const LEAD_TICKS = 20 * TICKS_PER_MS;

/** An utterance whose audio is all pushed (or that failed), waiting to be played out. */
interface Pushed {
  readonly utterance: Utterance;
  readonly error: GatewayError | null;
}

export interface SpeechOptions {
  readonly deps: SessionDeps;
  readonly audience: Audience;
  readonly writer: EventWriter;
  readonly marks: Marks;
  readonly isListened: () => boolean;
  readonly playheadTicks: () => number;
  /** There is room for more text of this utterance. */
  readonly onTaken: (utterance: Utterance) => void;
  /** No more text is wanted for it. */
  readonly onOver: (utterance: Utterance) => void;
  /** An upstream has something new. */
  readonly onProgress: () => void;
}

export class Speech {
  readonly #options: SpeechOptions;
  readonly #requests: Requests;
  readonly #stallWatch: StallWatch;
  readonly #recent = new RecentAudio();
  #queue: Utterance[] = [];
  #pushed: Pushed[] = [];
  #feed: SegmentFeed | null = null;
  /** Memory of the feed before, for the next. */
  #spareStore: Uint8Array | null = null;
  #lastCues: UtteranceCues | null = null;
  /** Segments whose first frame has not left, in order. */
  #unsent: SegmentTimes[] = [];
  /** How the last segment ended, for the pause before the next of the same utterance. */
  #seam: { readonly utterance: Utterance; readonly text: string; readonly silenceTicks: number } | null =
    null;
  edgeTicks = 0;

  constructor(options: SpeechOptions) {
    this.#options = options;
    const { deps, audience } = options;
    this.#requests = new Requests({
      deps,
      audience,
      isListened: options.isListened,
      playheadTicks: options.playheadTicks,
      edgeTicks: () => this.edgeTicks,
      bufferedTicks: (run) => (this.#feed?.run === run ? this.#feed.bufferedTicks : 0),
      onTaken: options.onTaken,
      onProgress: () => {
        this.openNext();
        options.onProgress();
      },
      onNoVoice: (error) => {
        const waiting = this.#queue.find((utterance) => !utterance.namesVoice);
        if (waiting !== undefined) this.#fail(waiting, error);
      },
    });
    this.#stallWatch = new StallWatch({
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
      onSettled: options.onTaken,
    });
  }

  get queuedCount(): number {
    return this.#queue.length;
  }
  /** Utterances that are not over for the listener. */
  get unplayed(): Utterance[] {
    return [...this.#pushed.map((entry) => entry.utterance), ...this.#queue];
  }
  /** Utterances of which nothing has been spoken. */
  get unbegun(): Utterance[] {
    return this.#queue.filter((utterance) => utterance.startTicks === null);
  }
  get isIdle(): boolean {
    return this.#queue.length === 0 && this.#pushed.length === 0;
  }
  /** Whether anything has come for what is being spoken that was not looked at, or is on its way. */
  get hasUnread(): boolean {
    return this.#requests.isReading || this.#feed?.hasUnread === true;
  }
  /** Timeline position at which the next utterance will have been played; null when none waits for that. */
  get nextEndTicks(): number | null {
    return this.#pushed[0]?.utterance.endTicks ?? null;
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
  resume(kept: KeptSpeech, nowMs: number): void {
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
    this.#stallWatch.look();
  }

  holdReading(isAwaited: boolean): void {
    this.#requests.holdReading(isAwaited);
  }

  readOn(): void {
    this.#requests.readOn();
  }

  /**
   * Pushes audio to the listeners until the edge reaches `untilTicks` or there is none, and of the same segment up to
   * `surplusTicks` more; true if any was pushed.
   */
  feed(untilTicks: number, surplusTicks = 0): boolean {
    const before = this.edgeTicks;
    for (;;) {
      const isEnough = this.edgeTicks >= untilTicks;
      const feed = isEnough ? this.#feed : (this.#feed ?? this.#nextFeed());
      if (feed === null) break;
      try {
        if (isEnough) {
          feed.look();
          feed.tellUpTo(this.edgeTicks);
          break;
        }
        const wantedTicks = Math.ceil((untilTicks - this.edgeTicks) / PUSH_TICKS) * PUSH_TICKS;
        const slice = feed.next(wantedTicks, surplusTicks);
        if (slice !== undefined) {
          this.#push(slice);
          feed.tellUpTo(this.edgeTicks);
        } else if (feed.isOver) this.#finishFeed(feed);
        else break;
      } catch (thrown) {
        this.#fail(feed.utterance, toGatewayError(thrown));
      }
    }
    return this.edgeTicks > before;
  }

  /** Whether any segment was pushed of which no frame has left. */
  get awaitsSent(): boolean {
    return this.#unsent.length > 0;
  }

  /** Frames up to `sentTicks` have left: the first of every segment that begins before. */
  noteSent(sentTicks: number, nowMs: number): void {
    for (;;) {
      const [times] = this.#unsent;
      if (times === undefined || (times.startTicks ?? 0) >= sentTicks) return;
      times.firstFrameMs = nowMs;
      this.#unsent.shift();
    }
  }

  /** Tells of every utterance that has been played when the playhead stands at `playheadTicks`. */
  tellPlayed(playheadTicks: number): void {
    this.#recent.forgetBefore(playheadTicks - RECENT_TICKS);
    this.#queue[0]?.forgetBefore(playheadTicks - RECENT_TICKS);
    while (this.#pushed[0] !== undefined && (this.#pushed[0].utterance.endTicks ?? 0) <= playheadTicks) {
      const { utterance, error } = this.#pushed[0];
      this.#pushed.shift();
      const { counters } = this.#options.deps;
      if (error === null) counters.utterancesDone += 1;
      else counters.utterancesFailed += 1;
      writeFinished(this.#options.writer, this.#options.deps, {
        utterance,
        outcome: error === null ? "done" : "failed",
        atTicks: utterance.endTicks ?? this.edgeTicks,
        error,
        heardEnd: utterance.spokenClientEnd,
      });
      for (const name of utterance.marks)
        this.#options.marks.note(name, utterance.endTicks ?? this.edgeTicks);
    }
  }

  /** Takes an utterance out; its requests are aborted. Its audio is the caller's to cut. */
  remove(utterance: Utterance): void {
    this.#queue = this.#queue.filter((queued) => queued !== utterance);
    this.#pushed = this.#pushed.filter((entry) => entry.utterance !== utterance);
    this.#abortRuns(utterance);
  }

  /** As `remove`, but what can be spoken later is kept; null where nothing can. */
  removeKeeping(utterance: Utterance, cutTicks: number): KeptSpeech | null {
    if (utterance.startTicks === null) return this.#removeWaiting(utterance);
    const feed = this.#feed?.utterance === utterance ? this.#feed : null;
    const kept = keepSpeech({
      utterance,
      cutTicks,
      edgeTicks: utterance.endTicks ?? this.edgeTicks,
      recent: this.#recent,
      feed,
      behind: this.#requests.segmentsOf(utterance).filter((segment) => segment !== feed?.run.segment),
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
  #removeWaiting(utterance: Utterance): KeptSpeech {
    this.remove(utterance);
    utterance.rewind(this.#options.deps.clock.nowMs());
    return { utterance, run: utterance.keptRun, spokenStart: utterance.resumedStart, fromTicks: 0, rest: [] };
  }

  /** After a cut: the timeline goes on at `edgeTicks`; these utterances are said anew, before all others. */
  restart(edgeTicks: number, rewound: readonly Utterance[]): void {
    this.edgeTicks = edgeTicks;
    this.#recent.clear();
    this.#lastCues = null;
    this.#seam = null;
    this.#unsent = [];
    for (const utterance of rewound) {
      this.remove(utterance);
      utterance.rewind(this.#options.deps.clock.nowMs());
    }
    // Requests are spoken in their order: what was asked for others has to stand behind that of these.
    if (rewound.length > 0) this.#putBackUnbegun();
    this.#queue.unshift(...rewound);
    this.openNext();
  }

  close(): void {
    this.#stallWatch.close();
    this.#requests.close();
    for (const utterance of this.unplayed) this.remove(utterance);
    this.#closeFeed();
    this.#recent.clear();
  }

  /** The utterance that would be asked for next if only its text had come. */
  #waitingForText(): Utterance | null {
    if (!this.#requests.hasRoom || !this.#options.isListened()) return null;
    const next = this.#queue.find((utterance) => !utterance.isExhausted);
    return next !== undefined && !next.hasSegment && !next.isTextEnded ? next : null;
  }

  #push(slice: Slice): void {
    const { resumeMs } = this.#options.deps.tuning;
    this.#options.audience.push(slice);
    if (resumeMs > 0) this.#recent.push(this.edgeTicks, slice);
    this.edgeTicks += slice.ticks;
  }

  /** The feed of the oldest request once it has audio; utterances that turn out empty end here. */
  #nextFeed(): SegmentFeed | null {
    const [first] = this.#queue;
    const open = this.#requests.first;
    if (first?.isExhausted && open?.utterance !== first) {
      this.#finishUtterance(first, null);
      return this.#nextFeed();
    }
    if (open === undefined) return null;
    const { run, utterance } = open;
    if (!run.hasChunk && !run.isComplete) return null;
    if (utterance.startTicks === null && run.hasChunk) this.#startUtterance(utterance, run.segment.start);
    this.#pause(utterance, run.sourceFormat);
    const { tuning } = this.#options.deps;
    this.#noteCues(utterance, run.segment.start);
    run.segment.times.startTicks = this.edgeTicks;
    this.#unsent.push(run.segment.times);
    open.asked.startTicks = this.edgeTicks;
    this.#feed = new SegmentFeed({
      run,
      utterance,
      store: this.#spareStore,
      baseTicks: this.edgeTicks,
      writer: this.#options.writer,
      lookaheadTicks: tuning.aheadMs * TICKS_PER_MS,
      trimTicks: tuning.seams.trimMs * TICKS_PER_MS,
      wants: (kind) => this.#options.audience.wasWanted(kind),
      isFollowed: () => this.#queue.length > 1,
    });
    return this.#feed;
  }

  #startUtterance(utterance: Utterance, spokenStart: number): void {
    this.edgeTicks = this.#options.audience.alignEnds(this.edgeTicks);
    utterance.startTicks = this.edgeTicks;
    this.#seam = null;
    writeStarted(this.#options.writer, utterance, spokenStart);
  }

  /** The silence that punctuation asks for between two segments, less what the upstream has left of its own. */
  #pause(utterance: Utterance, format: string): void {
    const seam = this.#seam;
    this.#seam = null;
    if (seam?.utterance !== utterance) return;
    // Where listeners are waiting already, the pause has been. Those that take it as it comes are not waiting.
    const { audience, playheadTicks } = this.#options;
    if (audience.shape.hasRealtime && this.edgeTicks <= playheadTicks()) return;
    const wantedTicks = seamPauseMs(seam.text, this.#options.deps.tuning.seams) * TICKS_PER_MS;
    const missing = wantedTicks - seam.silenceTicks - LEAD_TICKS;
    if (missing < PUSH_TICKS) return;
    const slice = silenceSlice(format, missing);
    if (slice.ticks > 0) this.#push(slice);
  }

  #noteCues(utterance: Utterance, spokenStart: number): void {
    if (utterance.cues !== null || !this.#options.audience.wants("cues")) return;
    const edgeSeconds = this.edgeTicks / TICKS_PER_SECOND;
    const notBeforeSeconds = Math.max(edgeSeconds, this.#lastCues?.lastEndSeconds ?? 0);
    utterance.cues = new UtteranceCues(utterance.spoken, spokenStart, notBeforeSeconds);
    this.#lastCues = utterance.cues;
  }

  #finishFeed(feed: SegmentFeed): void {
    const { run, utterance } = feed;
    if (run.characterCost !== null) {
      utterance.charactersBilled = (utterance.charactersBilled ?? 0) + run.characterCost;
    }
    if (run.error !== null) {
      this.#fail(utterance, run.error);
      return;
    }
    const isLastOfUtterance = utterance.isExhausted && !this.#requests.isFurther(utterance);
    feed.finish();
    if (run.requestId !== null) utterance.noteRequest(run.requestId);
    this.#seam = { utterance, text: run.segment.text, silenceTicks: feed.trailingSilenceTicks };
    this.#closeFeed();
    const open = this.#requests.first;
    if (open !== undefined) open.asked.endTicks = this.edgeTicks;
    this.#requests.shift();
    if (isLastOfUtterance) this.#finishUtterance(utterance, null);
    this.openNext();
  }

  #fail(utterance: Utterance, error: GatewayError): void {
    this.#options.deps.log.warn(
      { utterance: utterance.id, code: error.code, detail: error.message },
      "Utterance failed",
    );
    this.#abortRuns(utterance);
    writeError(this.#options.writer, { utterance, error, atTicks: this.edgeTicks });
    this.#finishUtterance(utterance, error);
    this.openNext();
  }

  #finishUtterance(utterance: Utterance, error: GatewayError | null): void {
    this.#options.onOver(utterance);
    this.#queue = this.#queue.filter((queued) => queued !== utterance);
    if (this.#queue.length === 0) this.#spareStore = null;
    utterance.endText(this.#options.deps.clock.nowMs());
    utterance.endTicks = this.edgeTicks;
    if (utterance.startTicks !== null) {
      this.edgeTicks = this.#options.audience.flush(this.edgeTicks);
      utterance.padTicks = this.edgeTicks - utterance.endTicks;
    }
    this.#pushed.push({ utterance, error });
  }

  #abortRuns(utterance: Utterance): void {
    this.#requests.abort(utterance);
    if (this.#feed?.utterance === utterance) this.#closeFeed();
  }

  #closeFeed(): void {
    if (this.#feed !== null) this.#spareStore = this.#feed.close();
    this.#feed = null;
  }
}
