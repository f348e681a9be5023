/**
 * What a session says: its utterances in the order of the timeline. It owns them: every change of an utterance's state is
 * made here. `RequestScheduler` has what was asked of the upstream for them, `Renderer` pushes what has come.
 *
 *   #utterances   [rendered, failed, ..., speaking,  queued, queued, ...]
 *                  the playhead has not   audio is   nothing of them
 *                  passed their end       rendered     was rendered
 */
import type { GatewayError } from "../../errors.ts";
import type { Segment } from "../../text/segmenter.ts";
import type { Marks } from "../client-marks.ts";
import { writeError, writeIgnored, writeStarted } from "../events/utterance-events.ts";
import type { ComingAudio } from "../heard-share.ts";
import { voiceFor } from "../language-voices.ts";
import type { RenderedAudio } from "../output/rendered-audio.ts";
import { heardFactsOf, receiptOf } from "../receipts.ts";
import { remainderOf } from "../remainder.ts";
import { InterruptedUtterances } from "../resume/interrupted-utterances.ts";
import { takeSnapshot } from "../resume/resume-point.ts";
import { RequestScheduler } from "../synthesis/request-scheduler.ts";
import { TextStall } from "../text-input/text-stall.ts";
import { Renderer } from "./renderer.ts";
import type { Resumption, Snapshot, Utterance } from "./utterance.ts";
import { countHeard, endUtterance } from "./utterance-end.ts";
import { LATE_PLAYER_TICKS, type WriteHeadOptions } from "./write-head.ts";

export interface PlaybackQueueOptions extends WriteHeadOptions {
  readonly marks: Marks;
  /** Somebody listens, or `nobody-listens` is `speak`. */
  readonly maySpeak: () => boolean;
  /** Whether the speaker of a text was asked to pause. */
  readonly isPaused: (utterance: Utterance) => boolean;
  /** There is room for more text of this utterance. */
  readonly onTaken: (utterance: Utterance) => void;
  /** Its text was taken to be complete, because none came. */
  readonly onIdled: (utterance: Utterance) => void;
  /** No more text is wanted for it. */
  readonly onTextOver: (utterance: Utterance) => void;
  /** There may be more to render: audio, times or an end have come, or text. */
  readonly onProgress: () => void;
  /** An utterance was played to its end. */
  readonly onPassed: (utterance: Utterance) => void;
}

export class PlaybackQueue {
  readonly #options: PlaybackQueueOptions;
  /** What was asked of the upstream, and what renders its answers. */
  readonly requests: RequestScheduler;
  readonly renderer: Renderer;
  readonly #textStall: TextStall;
  readonly #interrupted: InterruptedUtterances;
  #utterances: Utterance[] = [];
  #lastPlayed: Utterance | null = null;
  /** Whose listeners know that some of its settings do nothing. */
  readonly #warned = new WeakSet<Utterance>();

  constructor(options: PlaybackQueueOptions) {
    this.#options = options;
    const { deps, output } = options;
    this.#interrupted = new InterruptedUtterances(deps.clock, deps.settings.resumeMs, (utterance) =>
      utterance.interrupt(null),
    );
    this.requests = new RequestScheduler({
      deps,
      output,
      maySpeak: options.maySpeak,
      isMixed: () => !options.under.isEmpty,
      playheadTicks: options.playheadTicks,
      writeTicks: () => this.writeTicks,
      segmentRendererOf: (attempt) => this.renderer.segmentRendererOf(attempt),
      onTaken: options.onTaken,
      onNews: () => {
        this.renderer.recover();
        this.requestNext();
        options.onProgress();
      },
      onNoVoice: (error) => {
        const waiting = this.#utterances.find((utterance) => !utterance.isSettled && !utterance.namesVoice);
        if (waiting !== undefined) this.#fail(waiting, error);
      },
      onIgnored: (utterance, fields) => this.#noteIgnored(utterance, fields),
    });
    this.renderer = new Renderer({
      ...options,
      onTimes: options.onProgress,
      requests: this.requests,
      current: () => this.#utterances[this.#settledCount],
      isFollowed: () => this.#utterances.length - this.#settledCount > 1,
      onBegun: (utterance, startTicks, spokenStart) => {
        utterance.begin(startTicks);
        writeStarted(options.writer, utterance, spokenStart);
      },
      onEnded: (utterance) =>
        this.#settle(utterance, () => utterance.end(this.renderer.writeHead.endAudio(utterance))),
      onFailed: (utterance, error) => this.#fail(utterance, error),
      onSegmentEnded: () => this.requestNext(),
    });
    this.#textStall = new TextStall({
      clock: deps.clock,
      counters: deps.counters,
      stallMs: deps.settings.stallMs,
      idleMs: deps.settings.textIdleMs,
      waiting: () => this.#waitingForText(),
      isPaused: options.isPaused,
      handMs: () => this.requests.unheardMs,
      onSegment: () => {
        this.requestNext();
        options.onProgress();
      },
      onIdled: options.onIdled,
      onSettled: options.onTaken,
    });
  }

  // ---- what is there ---------------------------------------------------------------------------------------------

  /** End of all audio rendered. */
  get writeTicks(): number {
    return this.renderer.writeHead.ticks;
  }
  /** The rendered audio, for a listener that begins at `fromTicks`. */
  renderedAudio(fromTicks: number): RenderedAudio {
    const { recent, ticks: writeTicks } = this.renderer.writeHead;
    const placeTicks = Math.max(fromTicks, recent.startTicks ?? 0);
    const current = this.#utterances.findLast(
      ({ startTicks }) => startTicks !== null && startTicks <= placeTicks,
    );
    return {
      writeTicks,
      recent,
      utteranceTicks: current?.startTicks ?? null,
      isOpen:
        this.renderer.writeHead.isUnderOnly ||
        this.#utterances.some(({ state }) => state.kind === "speaking"),
    };
  }
  /** Memory of the audio that is kept for `resume` while it is spoken. */
  get recentAudioBytes(): number {
    return this.renderer.writeHead.recent.bytes;
  }
  /** The audio that has come of the utterance's segment that is being rendered. */
  comingOf(utterance: Utterance): ComingAudio | null {
    return this.requests.first?.utterance === utterance ? this.requests.coming : null;
  }
  /** Utterances that are not over for a listener without delay. */
  get notOver(): readonly Utterance[] {
    return [...this.#utterances];
  }
  /** The first one that is not over for a listener without delay; null: none. */
  get first(): Utterance | null {
    return this.#utterances[0] ?? null;
  }
  get length(): number {
    return this.#utterances.length;
  }
  /** Utterances of which nothing has been spoken. */
  get unbegun(): readonly Utterance[] {
    return this.#utterances.filter(({ state }) => state.kind === "queued");
  }
  /** The one that was played last, where a player was late then by its own word: it may be cut yet, for that player. */
  get lastPlayed(): Utterance | null {
    return this.#lastPlayed;
  }
  get isIdle(): boolean {
    return this.#utterances.length === 0;
  }
  /** Timeline position at which the next utterance will have been played; null when none waits for that. */
  get nextEndTicks(): number | null {
    const [first] = this.#utterances;
    return first?.isSettled ? first.endTicks : null;
  }
  /** One that is not over. */
  find(id: string): Utterance | undefined {
    return this.#utterances.find((utterance) => utterance.id === id);
  }
  /** One that is not over, or that was interrupted and may go on. */
  findAny(id: string): Utterance | undefined {
    return this.find(id) ?? this.#interrupted.find(id);
  }
  /** Those that came in tokens, of whoever has this name, that may still be spoken. */
  textsOf(holder: string): readonly Utterance[] {
    const { latest } = this.#interrupted;
    return [...this.#utterances, ...(latest === null ? [] : [latest])].filter(
      (utterance) =>
        utterance.template.kind === "tokens" && utterance.holder === holder && !utterance.hasFailed,
    );
  }

  // ---- what drives it --------------------------------------------------------------------------------------------

  /** Asks the upstream for the next segment if it is time. */
  requestNext(): void {
    this.requests.requestNext(this.#utterances);
    this.#textStall.look();
  }

  /** Somebody asks for captions while something is spoken. */
  layOutCues(): void {
    this.renderer.layOutCues(this.#utterances);
  }

  /** Ends every utterance that the playhead has passed, where it stands at `playheadTicks`. */
  endPassed(playheadTicks: number): void {
    this.renderer.writeHead.forgetHeard(this.#utterances[this.#settledCount], playheadTicks);
    for (;;) {
      const [first] = this.#utterances;
      if (!first?.isSettled || (first.endTicks ?? 0) > playheadTicks) return;
      this.#utterances.shift();
      first.leaveQueue();
      this.#emitOver(first);
      this.#options.onPassed(first);
      this.endWithSpeech();
    }
  }

  /** Sounds under speech end that last as long as anything is queued, where nothing is. */
  endWithSpeech(): void {
    if (!this.isIdle) return;
    this.#options.under.endWithSpeech();
    this.endStopped();
  }

  /** Sounds under speech that are to end are over, where none is made. */
  endStopped(): void {
    const isSpeaking = this.#utterances.some(({ state }) => state.kind === "speaking");
    if (!isSpeaking && !this.renderer.writeHead.isUnderOnly) this.renderer.writeHead.endStopped();
  }

  // ---- what changes it -------------------------------------------------------------------------------------------

  /** Queues it before those of a lower priority that were not asked for yet; returns how many stand before it. */
  add(utterance: Utterance): number {
    const isBehind = (other: Utterance): boolean =>
      other.priority < utterance.priority && other.state.kind === "queued" && !this.requests.hasAny(other);
    const index = this.#utterances.findIndex(isBehind);
    this.#utterances.splice(index < 0 ? this.#utterances.length : index, 0, utterance);
    const ahead = this.#utterances.indexOf(utterance);
    this.requestNext();
    return ahead;
  }

  /**
   * Goes on with an utterance that was interrupted, before all others that have not begun: the one that is named, or the last.
   * Throws nothing_to_resume, resume_expired.
   */
  resume(id: string | undefined): void {
    const { utterance, snapshot } = this.#interrupted.take(id);
    const nowMs = this.#options.deps.clock.nowMs();
    this.#putBackUnbegun();
    utterance.resume(snapshot, nowMs);
    const first = this.#utterances.findIndex(({ state }) => state.kind === "queued");
    this.#utterances.splice(first < 0 ? this.#utterances.length : first, 0, utterance);
    this.requestNext();
  }

  /** Another node has spoken an utterance up to a word: it goes on from there. It has not begun here. */
  continueFrom(utterance: Utterance, heard: Pick<Resumption, "spokenStart" | "heardTicks">): void {
    const restOf = (segment: Segment): Segment | null => remainderOf(utterance, segment, heard.spokenStart);
    utterance.continueFrom(heard, restOf, this.#options.deps.clock.nowMs());
  }

  /** Takes out an utterance that has not begun. */
  cancel(utterance: Utterance): void {
    this.#remove(utterance);
    utterance.interrupt(null);
  }

  /**
   * Takes an utterance out and keeps what can be spoken later, if it was heard up to `cutTicks` or waits to go on; true where
   * it can be resumed. Its audio is the caller's to cut.
   */
  interrupt(utterance: Utterance, cutTicks: number | null): boolean {
    const snapshot = cutTicks === null ? null : this.#snapshotOf(utterance, cutTicks);
    this.#remove(utterance);
    utterance.interrupt(this.#interrupted.isKept ? snapshot : null);
    if (cutTicks === null) this.#interrupted.noteGone(utterance);
    else this.#interrupted.noteInterrupted(utterance);
    return utterance.state.kind === "interrupted" && utterance.state.snapshot !== null;
  }

  /** After a cut: the timeline goes on at `writeTicks`; these utterances are said again, before all others. */
  restart(writeTicks: number, rewound: readonly Utterance[]): void {
    this.renderer.writeHead.cutTo(writeTicks);
    for (const utterance of rewound) {
      this.#remove(utterance);
      utterance.rewind(this.#options.deps.clock.nowMs());
    }
    // Requests are spoken in their order: what was asked for others has to stand behind that of these.
    if (rewound.length > 0) this.#putBackUnbegun();
    this.#utterances.splice(this.#settledCount, 0, ...rewound);
    this.requestNext();
  }

  /** Idempotent. */
  close(): void {
    this.#interrupted.close();
    this.#textStall.close();
    this.requests.close();
    for (const utterance of this.notOver) {
      this.#countHeard(utterance);
      this.#remove(utterance);
      utterance.leaveQueue();
      utterance.trace?.abandon(this.#options.deps.clock.nowMs());
    }
    this.renderer.close();
  }

  /** Counts what was heard of an utterance that is not over: another node may say the rest. */
  #countHeard(utterance: Utterance): void {
    if (utterance.startTicks === null) return;
    const { deps, playheadTicks } = this.#options;
    const atTicks = Math.max(
      utterance.startTicks,
      Math.min(playheadTicks(), utterance.endTicks ?? this.writeTicks),
    );
    countHeard(utterance, deps.counters, { end: heardEndOf(utterance, atTicks), atTicks });
  }

  /** How many wait for the playhead alone; they stand before all others. */
  get #settledCount(): number {
    let count = 0;
    while (this.#utterances[count]?.isSettled === true) count += 1;
    return count;
  }

  #snapshotOf(utterance: Utterance, cutTicks: number): Snapshot | null {
    // There is no word in it to go on from.
    if (utterance.isSound) return null;
    const nowMs = this.#options.deps.clock.nowMs();
    if (utterance.startTicks === null) {
      // One that waits to go on is cut again: nothing has changed.
      this.#remove(utterance);
      utterance.rewind(nowMs);
      const { replays, resumption } = utterance;
      const { spokenStart, timing } = resumption ?? { spokenStart: 0, timing: "exact" };
      return { replays, spokenStart, fromTicks: 0, rest: [], timing };
    }
    const attempts = [...this.requests.attemptsOf(utterance), ...utterance.replays];
    const [first] = attempts;
    const segmentRenderer = first === undefined ? null : this.renderer.segmentRendererOf(first);
    return takeSnapshot({
      utterance,
      cutTicks,
      writeTicks: utterance.endTicks ?? this.writeTicks,
      recent: this.renderer.writeHead.recent,
      segmentRenderer,
      coming: this.comingOf(utterance),
      behind: segmentRenderer === null ? attempts : attempts.slice(1),
      nowMs,
    });
  }

  /** Its requests are aborted. */
  #remove(utterance: Utterance): void {
    this.#utterances = this.#utterances.filter((other) => other !== utterance);
    if (this.#lastPlayed === utterance) this.#lastPlayed = null;
    this.#abort(utterance);
  }

  #abort(utterance: Utterance): void {
    this.requests.abort(utterance);
    this.renderer.drop(utterance);
  }

  /** Aborts the requests of utterances that have not begun: they are made again in their turn. */
  #putBackUnbegun(): void {
    const nowMs = this.#options.deps.clock.nowMs();
    for (const other of this.unbegun) if (this.requests.abort(other).length > 0) other.rewind(nowMs);
  }

  /** The utterance that would be asked for next if only its text had come. */
  #waitingForText(): Utterance | null {
    if (!this.requests.hasRoom || !this.#options.maySpeak()) return null;
    const next = this.#utterances.find((utterance) => !utterance.isSettled && !utterance.isExhausted);
    return next !== undefined && !next.hasSegment && !next.input.isEnded ? next : null;
  }

  /** Once, however many segments it has. */
  #noteIgnored(utterance: Utterance, fields: readonly string[]): void {
    if (this.#warned.has(utterance)) return;
    const { deps, writer } = this.#options;
    const voice = voiceFor(deps.settings.languageVoices, utterance.languageCode ?? undefined);
    // A language that has chosen the voice was not ignored.
    const isChosen = voice !== undefined && utterance.voiceIds.includes(voice);
    const ignored = isChosen ? fields.filter((field) => field !== "language_code") : fields;
    if (ignored.length === 0) return;
    this.#warned.add(utterance);
    writeIgnored(writer, { utterance, fields: ignored, atTicks: this.writeTicks });
  }

  #fail(utterance: Utterance, error: GatewayError): void {
    const { deps, writer } = this.#options;
    deps.log.warn({ utterance: utterance.id, code: error.code, detail: error.message }, "Utterance failed");
    // What came of it may still be heard: where that is cut, `resume` asks for the rest again.
    // Without the rest of one that was recovered: that is a segment of its own.
    const lost = this.requests
      .attemptsOf(utterance)
      .map((attempt) => this.renderer.segmentRendererOf(attempt)?.segment ?? attempt.segment);
    this.#abort(utterance);
    writeError(writer, { utterance, error, atTicks: this.writeTicks });
    this.#settle(utterance, () =>
      utterance.fail(this.renderer.writeHead.endAudio(utterance), { error, lost }),
    );
    this.requestNext();
  }

  /** All its audio is rendered, or no more comes: it waits for the playhead, behind the others that do. */
  #settle(utterance: Utterance, transition: () => void): void {
    this.#options.onTextOver(utterance);
    this.#utterances = this.#utterances.filter((other) => other !== utterance);
    const settledCount = this.#settledCount;
    if (this.#utterances.length === settledCount) this.renderer.forgetMemory();
    utterance.input.end(this.#options.deps.clock.nowMs());
    transition();
    this.#utterances.splice(settledCount, 0, utterance);
    this.#lastPlayed = null;
  }

  #emitOver(utterance: Utterance): void {
    const { deps, writer, marks } = this.#options;
    const { state } = utterance;
    const error = state.kind === "failed" ? state.error : null;
    const atTicks = utterance.endTicks ?? 0;
    if (error === null) deps.counters.utterancesDone += 1;
    else deps.counters.utterancesFailed += 1;
    endUtterance(writer, deps, {
      utterance,
      outcome: error === null ? "done" : "failed",
      atTicks,
      error,
      heardEnd: error === null ? utterance.text.length : heardEndOf(utterance, atTicks),
    });
    marks.emit(utterance, atTicks);
    this.#lastPlayed = this.#options.behindTicks() > LATE_PLAYER_TICKS ? utterance : null;
  }
}

/** How far an utterance that failed was heard: no more comes behind that. */
function heardEndOf(utterance: Utterance, atTicks: number): number {
  const place = { ticks: atTicks, source: "estimate", boundMs: 0 } as const;
  return receiptOf(heardFactsOf(utterance, null), place).end;
}
