/**
 * A decorator in front of the core's clock, for upstreams whose times do not count from the response's start at the rate of
 * its audio. Each chunk is one of these:
 *
 *   times go on       at one rate for the whole response (clock-drift.ts): `exact`, or `scaled` where that is not the audio's
 *   times go back     and fit if they count from their chunk's audio (the vendor's SDK says that they do): `scaled`
 *   neither           laid over their chunk's audio: `estimated`
 */
import type { Timing } from "../../protocol/vocabulary.ts";
import {
  type ChunkTimes,
  completeTimes,
  type ResponseEnd,
  type SpanTimes,
  type Waiting,
} from "../span-times.ts";
import { type AudioSpan, dropTimes, isTimed, type Span, TOLERANCE_SECONDS } from "../spans.ts";
import { weaker } from "../timed.ts";
import { ClockDrift, NEAR_SECONDS, type Verdict } from "./clock-drift.ts";
import { LateTimes } from "./late-times.ts";
import { shrinkLong, stretch, weaken } from "./stretch.ts";

/** How far times that count from their chunk may reach beyond its audio: an Opus packet that an encoder holds back, and more. */
const BEYOND_CHUNK_SECONDS = 0.08;

const LABELS: Readonly<Record<Verdict, Timing>> = {
  open: "estimated",
  steady: "exact",
  scaled: "scaled",
  unknown: "estimated",
};

interface Chunk extends ChunkTimes {
  /** Its spans that have times, which rise. */
  readonly run: readonly Span[];
  /** It says something of the rate of the times. */
  readonly isMeasured: boolean;
}

export class RepairedTimes implements SpanTimes {
  readonly #next: SpanTimes;
  readonly #late = new LateTimes();
  readonly #drift = new ClockDrift();
  /** Chunks that wait until the drift is known, and those behind them. */
  #held: Chunk[] = [];
  /** End of the times that were handed on; and of all so far, as the upstream counts them. */
  #lastEnd = 0;
  #timesEnd = 0;
  /** By how much all audio is late, as an encoder holds some back; null: the clock does not count from its chunks. */
  #heldBackSeconds: number | null = null;
  /** Times went back, and no clock explains them: none that go back later can be believed. */
  #isLost = false;

  constructor(next: SpanTimes) {
    this.#next = next;
  }

  push(given: ChunkTimes): readonly Span[] {
    const { spans } = given;
    dropOutliers(spans);
    const ending = spans.findLast(hasTime);
    const isEndKnown = ending?.timing === "exact" && !Number.isNaN(ending.startSeconds + ending.endSeconds);
    completeTimes(spans);
    // Nearly always all of them: no second list then.
    const run = spans.every(isTimed) ? spans : spans.filter(isTimed);
    const last = run.at(-1);
    const firstEnd = given.isTextStart && last !== undefined ? last.endSeconds : null;
    const audio = this.#late.spanOf(given.audio, last !== undefined, firstEnd);
    const { isTextStart } = given;
    const chunk: Chunk = { spans, audio, isTextStart, run, isMeasured: isEndKnown && audio !== null };
    if (audio !== null && last !== undefined) return this.#take(chunk, audio);
    if (audio !== null) this.#drift.pass(audio);
    return this.#hold(chunk);
  }

  finish(end: ResponseEnd, waiting: Waiting): readonly Span[] {
    this.#drift.finish(end.audioSeconds, end.soundSeconds);
    const released = this.#release();
    shrinkLong([...waiting.spans, ...released].filter(isTimed), end, waiting);
    return [...released, ...this.#next.finish(end, waiting)];
  }

  #take(chunk: Chunk, audio: AudioSpan): readonly Span[] {
    const { run, isMeasured } = chunk;
    const [first, last] = [run[0], run.at(-1)];
    const timesFromSeconds = first?.startSeconds ?? 0;
    if (timesFromSeconds < this.#timesEnd - TOLERANCE_SECONDS) {
      this.#drift.settle();
      const released = this.#release();
      this.#goBack(run, audio);
      const spans = this.#handOn(chunk);
      this.#timesEnd = this.#lastEnd;
      return [...released, ...spans];
    }
    this.#timesEnd = last?.endSeconds ?? this.#timesEnd;
    const ends = {
      timesFromSeconds,
      firstToSeconds: first?.endSeconds ?? timesFromSeconds,
      lastFromSeconds: last?.startSeconds ?? timesFromSeconds,
      timesSeconds: isMeasured ? (last?.endSeconds ?? Number.NaN) : Number.NaN,
      audio,
    };
    this.#drift.meet(ends);
    if (this.#drift.verdict !== "open" && this.#drift.contradicts(ends)) weaken(run);
    return this.#hold(chunk);
  }

  #hold(chunk: Chunk): readonly Span[] {
    if (this.#held.length === 0 && this.#drift.verdict !== "open") return this.#correct(chunk);
    this.#held.push(chunk);
    const isOpen = this.#drift.verdict === "open" && this.#held.some(({ isMeasured }) => isMeasured);
    return isOpen ? [] : this.#release();
  }

  #release(): Span[] {
    return this.#held.splice(0).flatMap((chunk) => this.#correct(chunk));
  }

  /** Hands its times on at the rate of the audio, labelled by what is known of that rate. */
  #correct(chunk: Chunk): readonly Span[] {
    const { verdict, rate } = this.#drift;
    const timing = chunk.audio === null && verdict === "open" ? "exact" : LABELS[verdict];
    for (const span of chunk.run) {
      span.startSeconds /= rate;
      span.endSeconds /= rate;
      span.timing = weaker(span.timing, timing);
    }
    return this.#handOn(chunk);
  }

  #handOn(chunk: Chunk): readonly Span[] {
    const last = chunk.run.at(-1);
    if (last !== undefined) this.#lastEnd = Math.max(this.#lastEnd, last.endSeconds);
    return this.#next.push(chunk);
  }

  /** Times that go back: that they count from their chunk is clear where they end with its audio, or go on, or once it was. */
  #goBack(run: readonly Span[], audio: AudioSpan): void {
    const [first, last] = [run[0]?.startSeconds ?? 0, run.at(-1)?.endSeconds ?? 0];
    // What was negative, say, was cut off at zero: characters that take no time at all have none.
    if (last <= first) {
      for (const span of run) dropTimes(span);
      return;
    }
    const behindSeconds = first + audio.startSeconds - this.#lastEnd;
    const isWithin = last + audio.startSeconds <= audio.endSeconds + BEYOND_CHUNK_SECONDS;
    const isClear = isWithin || this.#heldBackSeconds !== null || behindSeconds <= TOLERANCE_SECONDS;
    if (audio.startSeconds <= TOLERANCE_SECONDS || behindSeconds < -TOLERANCE_SECONDS || !isClear) {
      this.#isLost = true;
      layOver(run, {
        startSeconds: Math.max(this.#lastEnd, audio.startSeconds),
        endSeconds: audio.endSeconds,
      });
      return;
    }
    const heldBackSeconds = behindSeconds < 0 && behindSeconds >= -NEAR_SECONDS ? -behindSeconds : 0;
    this.#heldBackSeconds ??= heldBackSeconds;
    const lastFrom = run.findLast((span) => span.endSeconds > span.startSeconds)?.startSeconds ?? last;
    const lengthSeconds = audio.endSeconds - audio.startSeconds;
    // Times that don't end with their audio may be at any rate.
    const isInLast = lastFrom <= lengthSeconds + NEAR_SECONDS && last >= lengthSeconds - NEAR_SECONDS;
    if (this.#isLost || !isInLast) weaken(run);
    stretch(run, { from: 0, to: audio.startSeconds + this.#heldBackSeconds, factor: 1 });
  }
}

function hasTime({ startSeconds, endSeconds }: Span): boolean {
  return !(Number.isNaN(startSeconds) && Number.isNaN(endSeconds));
}

function layOver(run: readonly Span[], { startSeconds, endSeconds }: AudioSpan): void {
  const [first, last] = [run[0]?.startSeconds ?? 0, run.at(-1)?.endSeconds ?? 0];
  const lengthSeconds = Math.max(endSeconds - startSeconds, 0);
  stretch(run, { from: first, to: startSeconds, factor: last > first ? lengthSeconds / (last - first) : 0 });
  weaken(run);
}

/** Single times outside the order of their neighbours are none, nor are those behind a clock that goes back in its chunk. */
function dropOutliers(spans: readonly Span[]): void {
  let before = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < spans.length; i += 1) {
    const span = spans[i];
    if (span === undefined || Number.isNaN(span.startSeconds)) continue;
    const next = nextStart(spans, i + 1);
    const isHigh = span.startSeconds > next + TOLERANCE_SECONDS && next >= before - TOLERANCE_SECONDS;
    if (isHigh || span.startSeconds < before - TOLERANCE_SECONDS) dropTimes(span);
    else before = span.startSeconds;
  }
}

/** Start of the first span from `from` on that has one. */
function nextStart(spans: readonly Span[], from: number): number {
  for (let i = from; i < spans.length; i += 1) {
    const start = spans[i]?.startSeconds ?? Number.NaN;
    if (!Number.isNaN(start)) return start;
  }
  return Number.POSITIVE_INFINITY;
}
