/**
 * What a session has asked of the upstream: at most two requests, in the order in which they are spoken. The next one
 * leaves when the one before has been answered in full, somebody listens, and no more is unheard than the speculation
 * budget allows.
 */

import { bytesPerMs } from "../../audio/formats.ts";
import { type GatewayError, toGatewayError } from "../../errors.ts";
import { soon } from "../../kit/clock.ts";
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { StitchBy } from "../../upstream/stitching.ts";
import { READ_BYTES } from "../../upstream/types.ts";
import type { ComingAudio } from "../heard-share.ts";
import type { OutputRouter } from "../output/output-router.ts";
import type { StagedSegment } from "../playback/segment-queue.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { SessionDeps } from "../session-deps.ts";
import { keepsBytes } from "../source.ts";
import { whenSettled } from "../tape/tape.ts";
import type { Attempt } from "./attempt.ts";
import { chooseFormat, chooseLevel, openAttempt } from "./segment-request.ts";
import { type SpeculatedText, Speculation } from "./speculation.ts";
import type { UpstreamAttempt } from "./upstream-attempt.ts";

/** With so much audio in hand, ms, reading can wait for the next wake: the next timing is among it. */
const CALM_AHEAD_MS = 250;
/**
 * A request that was full is read on when less than this is left; one read brings seconds of telephone sound. A renderer never
 * holds back as much (a second, and a quarter of `ahead-ms`), so what is left does come below it.
 */
const READ_ON_MS = 1250;
/** Share of the audio that may be in hand under which one is read on whose times have not come. */
const UNTIMED_SHARE = 0.9;
const MAX_OPEN = 2;

interface OpenAttempt {
  readonly attempt: Attempt;
  readonly utterance: Utterance;
  readonly budgeted: SpeculatedText;
  /** More audio waits than its bound, and most of that was not used since. */
  isFull: boolean;
  /** It broke off, and what is left of its text is asked for again. */
  isRecovered: boolean;
}

export interface RequestSchedulerOptions {
  readonly deps: SessionDeps;
  readonly output: OutputRouter;
  /** Somebody listens, or `nobody-listens` is `speak`. */
  readonly maySpeak: () => boolean;
  /** Whether its samples are mixed with others. */
  readonly isMixed: () => boolean;
  readonly playheadTicks: () => number;
  readonly writeTicks: () => number;
  /** What was taken of an attempt and not rendered; null: nothing is taken of it yet. */
  readonly segmentRendererOf: (
    attempt: Attempt,
  ) => { readonly bufferedTicks: number; readonly isUntimed: boolean } | null;
  /** Text of the utterance was asked for: there is room for more. */
  readonly onTaken: (utterance: Utterance) => void;
  /** See UpstreamAttempt; also when the default voice is known. */
  readonly onNews: () => void;
  readonly onNoVoice: (error: GatewayError) => void;
  /** The utterance's upstream can't do what these fields of it ask for. */
  readonly onIgnored: (utterance: Utterance, fields: readonly string[]) => void;
}

export class RequestScheduler {
  readonly #options: RequestSchedulerOptions;
  readonly #speculation = new Speculation();
  #attempts: OpenAttempt[] = [];
  #defaultVoice: string | null = null;
  #isAskingVoice = false;
  #isClosed = false;
  /** Utterances whose upstream refused the text around a segment: the rest of them is asked for without it. */
  readonly #stitchBy = new WeakMap<Utterance, StitchBy>();

  constructor(options: RequestSchedulerOptions) {
    this.#options = options;
  }

  /** The oldest request that is not over. */
  get first(): OpenAttempt | undefined {
    return this.#attempts[0];
  }

  /** Whether a further request may be made as far as those before it are concerned. */
  get hasRoom(): boolean {
    const last = this.#attempts.at(-1);
    // Behind one that broke off stands what is left of its own text, and that is not known at once.
    return (
      this.#attempts.length < MAX_OPEN &&
      (last === undefined || (last.attempt.isComplete && (last.attempt.error === null || last.isRecovered)))
    );
  }

  /** Whether an answer is coming that is to be read on. */
  get isReading(): boolean {
    for (const { attempt, isFull } of this.#attempts) if (!isFull && !attempt.isComplete) return true;
    return false;
  }

  /** Speech in hand that a listener without delay has not heard, ms. */
  get unheardMs(): number {
    const { writeTicks, playheadTicks } = this.#options;
    let ms = (writeTicks() - playheadTicks()) / TICKS_PER_MS;
    for (const open of this.#attempts) ms += this.#inHandMs(open);
    return ms;
  }

  /** What has come of the oldest request, as its place on the timeline. */
  get coming(): ComingAudio | null {
    const open = this.first;
    if (open === undefined) return null;
    const endTicks = this.#options.writeTicks() + this.#inHandMs(open) * TICKS_PER_MS;
    return { endTicks, isWhole: open.attempt.isComplete && open.attempt.error === null };
  }

  /** Asks for the next segment of the first utterance that has one, if it is time. */
  requestNext(queue: readonly Utterance[]): void {
    if (this.#attempts[1]?.attempt.hasChunk === true) this.first?.attempt.giveWay?.();
    if (this.#isClosed || !this.hasRoom || !this.#options.maySpeak() || !this.#isInBudget()) return;
    for (const utterance of queue) {
      if (utterance.isSettled) continue;
      if (utterance.hasSegment) {
        this.#open(utterance);
        return;
      }
      if (!utterance.isExhausted) return;
    }
  }

  /** The oldest request has been spoken: it is over. */
  shift(): void {
    this.#attempts.shift();
  }

  /** Whether anything of the utterance has been asked for and is not over. */
  hasAny(utterance: Utterance): boolean {
    return this.#attempts.some((open) => open.utterance === utterance);
  }

  /** Whether a request behind the oldest one is the utterance's too. */
  isFurther(utterance: Utterance): boolean {
    return this.#attempts[1]?.utterance === utterance;
  }

  /** What was asked for the utterance and is not over, in its order. */
  attemptsOf(utterance: Utterance): Attempt[] {
    return this.#attempts.filter((open) => open.utterance === utterance).map(({ attempt }) => attempt);
  }

  /** Aborts the utterance's requests; returns their segments. */
  abort(utterance: Utterance): StagedSegment[] {
    const aborted = this.#attempts.filter((open) => open.utterance === utterance);
    if (aborted.length === 0) return [];
    this.#attempts = this.#attempts.filter((open) => open.utterance !== utterance);
    for (const { attempt, budgeted } of aborted) {
      attempt.abort();
      this.#speculation.withdraw(budgeted);
    }
    return aborted.map(({ attempt }) => attempt.segment);
  }

  /**
   * Stops reading from upstreams that are far enough ahead: a full second request, or (where the listeners do not wait
   * for it) more than a little audio in hand. What comes meanwhile gathers in the kernel and is read in one go at the
   * next wake: a system call each wake, not one for each piece that an upstream sends.
   */
  holdReading(isAwaited: boolean): void {
    for (const open of this.#attempts) {
      const inHandMs = this.#inHandMs(open);
      if (inHandMs > this.#fullMs(open)) open.isFull = true;
      // Times that are behind their audio are waited for as audio is.
      const isCalm = !isAwaited && inHandMs > CALM_AHEAD_MS && !this.#isUntimed(open.attempt);
      if (open.isFull || isCalm) open.attempt.hold?.();
    }
  }

  /** Lets upstreams send again that are not full, or have been mostly used up since they were. */
  readOn(): void {
    for (const open of this.#attempts) {
      if (this.#inHandMs(open) < this.#readOnMs(open)) open.isFull = false;
      if (!open.isFull) open.attempt.readOn?.();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const { attempt } of this.#attempts) attempt.abort();
    this.#attempts = [];
  }

  #readOnMs({ attempt }: OpenAttempt): number {
    const { aheadMs } = this.#options.deps.settings;
    return this.#isUntimed(attempt) ? aheadMs * UNTIMED_SHARE : Math.min(READ_ON_MS, aheadMs / 2);
  }

  /** The more audio is there the better its times can be estimated. */
  #isUntimed(attempt: Attempt): boolean {
    return this.#options.segmentRendererOf(attempt)?.isUntimed === true;
  }

  /**
   * With more than so much in hand another read may bring more than there is to be. Silence that may be trimmed has to fit:
   * of a response that is nothing else yet no sound is taken.
   */
  #fullMs(open: OpenAttempt): number {
    const { aheadMs, trimMs } = this.#options.deps.settings;
    const readMs = READ_BYTES / bytesPerMs(open.attempt.sourceFormat);
    return Math.max(aheadMs - readMs, Math.min(aheadMs, this.#readOnMs(open) + trimMs));
  }

  #inHandMs({ attempt }: OpenAttempt): number {
    const bufferedTicks = this.#options.segmentRendererOf(attempt)?.bufferedTicks ?? 0;
    return bufferedTicks / TICKS_PER_MS + attempt.waitingBytes / bytesPerMs(attempt.sourceFormat);
  }

  #isInBudget(): boolean {
    const { speculateMs, speculateChars } = this.#options.deps.settings;
    const unheardMs = this.unheardMs;
    if (unheardMs <= 0) return true;
    return (
      unheardMs <= speculateMs &&
      this.#speculation.unheardChars(this.#options.playheadTicks()) <= speculateChars
    );
  }

  #open(utterance: Utterance): void {
    const kept = utterance.takeReplay();
    if (kept !== undefined) {
      if (!kept.isLevelled && utterance.levels === null) chooseLevel(this.#options.deps, utterance);
      this.#add(kept, utterance);
      return;
    }
    if (!utterance.namesVoice && this.#defaultVoice === null) {
      this.#askDefaultVoice();
      return;
    }
    const segment = utterance.takeSegment();
    if (segment === undefined) return;
    this.#options.onTaken(utterance);
    this.#add(this.#request(utterance, segment), utterance);
  }

  #add(attempt: Attempt, utterance: Utterance): void {
    const budgeted = this.#speculation.ask(attempt.segment.text.length);
    this.#attempts.push({ attempt, utterance, isFull: false, isRecovered: false, budgeted });
    // What was kept is there at once.
    if (attempt.isComplete) soon(this.#options.deps.clock, this.#options.onNews);
  }

  #request(utterance: Utterance, segment: StagedSegment): UpstreamAttempt {
    const { deps, output } = this.#options;
    utterance.useVoice(this.#defaultVoice ?? "");
    if (utterance.sourceFormat === "") {
      chooseFormat(deps, utterance, { needs: output.renditionsInUse(), isMixed: this.#options.isMixed() });
    }
    return openAttempt(deps, {
      utterance,
      segment,
      requestIds: [...utterance.requestIds, ...this.#unspokenIds(utterance)],
      wantsTiming: output.wantsTiming || utterance.isTimed,
      aheadMs: this.#isGoingOn(segment) ? Math.max(0, this.unheardMs) : undefined,
      stitchBy: this.#stitchBy,
      ...(keepsBytes(utterance.sourceFormat) ? {} : { blocks: deps.blocks }),
      onBilled: (characters) => utterance.noteBilled(characters),
      onIgnored: (fields) => this.#options.onIgnored(utterance, fields),
      onNews: this.#options.onNews,
    });
  }

  /** Something is heard before the segment, or was heard of its utterance. */
  #isGoingOn({ start }: StagedSegment): boolean {
    return start > 0 || this.unheardMs > 0;
  }

  /** Ids of its requests that were answered and are still being spoken: what is asked for next follows on them. */
  #unspokenIds(utterance: Utterance): string[] {
    const own = this.#attempts.filter((open) => open.utterance === utterance);
    return own.flatMap(({ attempt }) =>
      attempt.isComplete && attempt.error === null && attempt.requestId !== null ? [attempt.requestId] : [],
    );
  }

  #askDefaultVoice(): void {
    if (this.#isAskingVoice) return;
    this.#isAskingVoice = true;
    const settle = (use: () => void): void => {
      this.#isAskingVoice = false;
      if (this.#isClosed) return;
      use();
      this.#options.onNews();
    };
    const { deps } = this.#options;
    whenSettled(deps.tape, deps.defaultVoice(), {
      done: (voice) => settle(() => (this.#defaultVoice = voice)),
      failed: (thrown) => settle(() => this.#options.onNoVoice(toGatewayError(thrown))),
    });
  }
}
