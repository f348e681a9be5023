/**
 * The timing of one upstream response: takes the alignments as they come with the chunks, and gives the characters of
 * the text that was sent with times that rise, never restart, and never reach beyond the audio.
 *
 *   alignment -> entries (alignment-reader.ts) -> spans of the text (text-walk.ts) -> times that are believed (SpanTimes)
 *             -> the rest estimated (TimingEstimator) -> emitted once their audio is there (emission.ts)
 */
import type { Silence } from "../audio/analysis/pause-finder.ts";
import type { FoundWord } from "./aligner.ts";
import { type Alignment, hasCharacters } from "./alignment.ts";
import { type AlignmentEntry, AlignmentReader, timesOf } from "./alignment-reader.ts";
import { type Emitted, EXACT_SECONDS, emit, JOIN_SECONDS } from "./emission.ts";
import { RepeatedEntries } from "./repeated-entries.ts";
import type { SpanTimes } from "./span-times.ts";
import { type AudioSpan, charactersOf, isTimed, type Span, type TextPart } from "./spans.ts";
import { TextWalk } from "./text-walk.ts";
import type { TimedCharacters } from "./timed.ts";
import type { Needed, OpenEstimate, SpeakingRate, SpokenClock, TimingEstimator } from "./timing-estimator.ts";

export interface ResponseTimesOptions {
  /** The text as it was sent upstream. */
  readonly text: string;
  readonly times: SpanTimes;
  readonly estimator: TimingEstimator;
}

interface ChunkFacts {
  /**
   * Seconds of the response's audio received so far, this chunk's included, to the sample. Characters beyond it wait for
   * their audio. Chunks without an alignment have to be pushed, too, or the next one's audio seems to begin with theirs.
   */
  readonly audioSeconds?: number;
  /** Silences in the audio of a chunk without an alignment; absent: they are not known. */
  readonly pauses?: readonly Silence[] | undefined;
}

/** Times this near to where a gap in them began go on from there. */
const LATE_SECONDS = 0.05;
/** How far a character's end may be ahead of the audio received: what an encoder holds back (an Opus packet and more). */
const AHEAD_SECONDS = 0.08;
/** The same of a time that was changed or guessed. */
const CHANGED_AHEAD_SECONDS = 0.005;
/** What sums of such numbers may be off. */
const FLOAT_SECONDS = 1e-9;
/** Text a second, UTF-16, before a response has shown its own. */
const TYPICAL_CHARS_A_SECOND = 15;
const MIN_RATE_SECONDS = 0.5;
const ENDS_IN_LETTER = /[\p{L}\p{M}\p{N}]\s*$/u;

export class ResponseTimes {
  readonly #text: string;
  readonly #reader = new AlignmentReader();
  readonly #repeated = new RepeatedEntries();
  readonly #walk: TextWalk;
  readonly #times: SpanTimes;
  readonly #estimator: TimingEstimator;
  /** In the order of the text, without holes: not emitted yet. */
  #spans: Span[] = [];
  readonly #emitted: Emitted = { to: 0, endSeconds: 0, timing: "exact" };
  #audioSeconds: number | undefined;
  #isFinished = false;
  /** Where in the text the last times that came begin. */
  #lastTimesFrom = 0;
  /** Audio that came without timing since the last timing: where it begins, in the response and in the text. */
  #gap: { readonly fromSeconds: number; readonly textFrom: number } | null = null;
  /** Entries that a response may still have: an upstream that never stops must not fill the memory. */
  #budget: number;

  constructor({ text, times, estimator }: ResponseTimesOptions) {
    this.#text = text;
    this.#times = times;
    this.#estimator = estimator;
    this.#walk = new TextWalk(text);
    this.#budget = 8 * text.length + 4096;
  }

  /**
   * The characters whose times this chunk settles, or null. `alignment` is that of the text as it was sent;
   * `normalized` helps out where it is missing.
   */
  push(
    alignment: Alignment | null,
    normalized: Alignment | null,
    facts: ChunkFacts = {},
  ): TimedCharacters | null {
    if (this.#isFinished) return null;
    const audio = this.#receive(facts);
    const source = hasCharacters(alignment) ? alignment : normalized;
    const read = source === null ? [] : this.#withinBudget(this.#reader.read(source));
    const entries = this.#repeated.blank(read, (those) => this.#walk.readsOn(those));
    const isTextStart = this.#walk.at === 0 && this.#walk.readsOn(entries);
    if (entries.length > 0) this.#lastTimesFrom = this.#walk.at;
    else if (audio !== null && audio.endSeconds > audio.startSeconds)
      this.#gap ??= { fromSeconds: audio.startSeconds, textFrom: this.#walk.at };
    const walked = this.#walkOn(entries, audio?.startSeconds ?? 0);
    this.#add(this.#times.push({ spans: walked, audio, isTextStart }));
    this.#estimateBetween();
    this.#meetEnd(this.#audioSeconds ?? 0);
    return this.#emit(Math.min(this.#countSettled(), this.#countDue()));
  }

  /**
   * The response is complete: the characters that waited or never got a time, or null. `audioSeconds`: its audio's real
   * length; everything ends with it. `soundSeconds`: up to its last sound, 0 where that is not known. Only for a response that
   * ended well: it takes all of the text for spoken.
   */
  finish(audioSeconds: number, soundSeconds = 0): TimedCharacters | null {
    if (this.#isFinished) return null;
    this.#isFinished = true;
    if (!(audioSeconds > 0)) return null;
    this.#add(this.#times.push({ spans: this.#walk.finish(), audio: null, isTextStart: false }));
    const endSeconds = Math.max(audioSeconds, this.#emitted.endSeconds);
    const end = { audioSeconds, soundSeconds, endsInLetter: ENDS_IN_LETTER.test(this.#text) };
    const waiting = {
      spans: this.#spans,
      fromSeconds: this.#emitted.endSeconds,
      lastFrom: this.#lastTimesFrom,
    };
    this.#add(this.#times.finish(end, waiting));
    const last = this.#spans.at(-1);
    if (last !== undefined && this.#isEndOpen(last))
      last.endSeconds = Math.max(last.endSeconds, audioSeconds);
    for (const span of this.#spans) {
      span.startSeconds = Math.min(span.startSeconds, endSeconds);
      span.endSeconds = Math.min(span.endSeconds, endSeconds);
    }
    if (this.#textTo < this.#text.length) this.#spans.push(untimed(this.#text.length));
    this.#estimateBetween(endSeconds);
    this.#meetEnd(audioSeconds);
    return this.#emit(this.#spans.length);
  }

  /**
   * No times have come for what is spoken up to `neededSeconds`, and nobody can wait for them any longer: those that can be
   * guessed from the audio that has come, as far as that is needed, or null; what waits for the end of the last times' audio
   * is emitted as it is. Times that come later for the same text count for nothing. Compressed audio: null.
   */
  estimateUpTo(needed: Needed): TimedCharacters | null {
    if (this.#spans.length > 0 && !this.#isFinished) return this.#emit(this.#countSettled());
    const open = this.#openAudio;
    if (open === null) return null;
    return this.#emitOpen(this.#estimator.open(this.#openText, open, needed));
  }

  /** Words that were found in the audio: in the order of the text, each once. */
  find(words: readonly FoundWord[]): void {
    this.#estimator.find(words);
  }

  /** The audio does not say the text: what was found and not emitted yet counts for nothing. */
  dropFound(): void {
    this.#estimator.dropFound();
  }

  /** What was found behind the times given so far, or null. */
  takeFound(): TimedCharacters | null {
    const open = this.#openAudio;
    return open === null ? null : this.#emitOpen(this.#estimator.found(this.#openText, open));
  }

  /** How fast the voice speaks, where text without times has shown it; null: not known. */
  get speakingRate(): SpeakingRate | null {
    return this.#estimator.speakingRate;
  }

  /** End of the times given so far, seconds of the response. */
  get timedToSeconds(): number {
    return this.#emitted.endSeconds;
  }

  /** UTF-16 offset in the text of the response's n-th character, as voice segments count them. */
  textOffsetOf(characterIndex: number): number {
    return this.#walk.offsetOf(characterIndex);
  }

  get #openText(): TextPart {
    return { text: this.#text.slice(this.#emitted.to), from: this.#emitted.to };
  }

  /** Audio without times behind what was emitted; null where some wait: for their audio, or until they are believed. */
  get #openAudio(): AudioSpan | null {
    const isWaiting = this.#spans.length > 0 || this.#walk.at > this.#emitted.to;
    if (this.#isFinished || isWaiting) return null;
    return { startSeconds: this.#emitted.endSeconds, endSeconds: this.#audioSeconds ?? 0 };
  }

  #emitOpen(open: OpenEstimate | null): TimedCharacters | null {
    if (open === null) return null;
    const { end, clock } = open;
    const textFrom = this.#emitted.to;
    this.#spans = clocked([untimed(textFrom + end)], clock, this.#openText);
    return this.#emit(this.#spans.length);
  }

  /** The chunk's own audio; null where that is not known. */
  #receive({ audioSeconds, pauses }: ChunkFacts): AudioSpan | null {
    const startSeconds = this.#audioSeconds ?? 0;
    this.#audioSeconds = audioSeconds ?? this.#audioSeconds;
    this.#estimator.hear(pauses);
    const endSeconds = this.#audioSeconds;
    return endSeconds === undefined || endSeconds <= 0 ? null : { startSeconds, endSeconds };
  }

  /** Audio without timing was somewhere in the text: how far it went follows from how fast the text was spoken before. */
  #walkOn(entries: readonly AlignmentEntry[], startSeconds: number): Span[] {
    const gap = this.#gap;
    if (gap === null || entries.length === 0) return this.#walk.push(entries);
    this.#gap = null;
    const isRateKnown = gap.fromSeconds > MIN_RATE_SECONDS && gap.textFrom > 0;
    const perSecond = isRateKnown ? gap.textFrom / gap.fromSeconds : TYPICAL_CHARS_A_SECOND;
    const first = timesOf(entries)?.startSeconds ?? Number.NaN;
    const silentSeconds = this.#estimator.silentSeconds({
      startSeconds: gap.fromSeconds,
      endSeconds: startSeconds,
    });
    const gapSeconds = startSeconds - gap.fromSeconds;
    // What begins where the gap began is what was missing, late, and no text lies before it; nor is any spoken in silence.
    const isNone =
      Math.abs(first - gap.fromSeconds) <= LATE_SECONDS || silentSeconds >= gapSeconds - LATE_SECONDS;
    return this.#walk.pushBehindGap(entries, isNone ? 0 : Math.round(gapSeconds * perSecond));
  }

  #withinBudget(entries: AlignmentEntry[]): AlignmentEntry[] {
    const taken = entries.length > this.#budget ? entries.slice(0, this.#budget) : entries;
    this.#budget -= taken.length;
    return taken;
  }

  /** End of the text that has spans. */
  get #textTo(): number {
    return this.#spans.at(-1)?.end ?? this.#emitted.to;
  }

  /** What was estimated already is emitted. */
  #add(spans: readonly Span[]): void {
    if (spans.length > 0) this.#spans = this.#spans.concat(spans.filter(({ end }) => end > this.#emitted.to));
  }

  /** Spreads text without times over the gap between its neighbours' times; `endSeconds` stands for the last neighbour. */
  #estimateBetween(endSeconds = Number.NaN): void {
    if (this.#spans.every(isTimed)) return;
    const filled: Span[] = [];
    let open: Span[] = [];
    let gap = { textFrom: this.#emitted.to, from: this.#emitted.endSeconds };
    for (const span of this.#spans) {
      if (!isTimed(span)) {
        open.push(span);
        continue;
      }
      filled.push(...this.#spread(open, { ...gap, until: span.startSeconds }), span);
      open = [];
      gap = { textFrom: span.end, from: Math.max(gap.from, span.endSeconds) };
    }
    const isOpen = Number.isNaN(endSeconds);
    this.#spans = filled.concat(isOpen ? open : this.#spread(open, { ...gap, until: endSeconds }));
  }

  #spread(spans: readonly Span[], gap: { textFrom: number; from: number; until: number }): Span[] {
    if (spans.length === 0) return [];
    const { textFrom, from } = gap;
    const text = this.#text.slice(textFrom, spans.at(-1)?.end ?? textFrom);
    const span = { startSeconds: from, endSeconds: Math.max(gap.until, from) };
    const part = { text, from: textFrom };
    return clocked(spans, this.#estimator.within(part, span), part);
  }

  /**
   * Spans from the front that have their times, and whose audio is there. What is emitted can't be taken back, and nothing
   * may end behind the audio: so none but those that an encoder may have held back, and that have text behind them.
   */
  #countSettled(): number {
    const received = (this.#audioSeconds ?? Number.POSITIVE_INFINITY) + FLOAT_SECONDS;
    const timedTo = this.#spans.findLast(isTimed)?.endSeconds ?? 0;
    const isHeldBack = timedTo <= received + AHEAD_SECONDS;
    const unsettled = this.#spans.findIndex((span) => {
      const { end, endSeconds, timing } = span;
      const mayBeAhead = isHeldBack && end < this.#text.length;
      const aheadSeconds = timing === "exact" ? AHEAD_SECONDS : CHANGED_AHEAD_SECONDS;
      const limit = mayBeAhead ? received + aheadSeconds : received;
      return !isTimed(span) || endSeconds > limit || this.#isEndOpen(span);
    });
    return unsettled < 0 ? this.#spans.length : unsettled;
  }

  /**
   * Spans from the front that are not better waited with. Where all text has its times, and they end far behind the audio
   * received, there is more to come, or they are too long, and then all of the last chunk's are.
   */
  #countDue(): number {
    const timedTo = this.#spans.findLast(isTimed)?.endSeconds ?? 0;
    const received = this.#audioSeconds ?? Number.POSITIVE_INFINITY;
    if (this.#walk.at < this.#text.length || timedTo <= received + AHEAD_SECONDS) return this.#spans.length;
    const first = this.#spans.findIndex(({ end }) => end > this.#lastTimesFrom);
    return first < 0 ? this.#spans.length : first;
  }

  /** The last character of the text, its end guessed where the audio ends so far: some may still be with an encoder. */
  #isEndOpen({ end, endSeconds, timing }: Span): boolean {
    if (timing !== "estimated" || end < this.#text.length || this.#audioSeconds === undefined) return false;
    return Math.abs(this.#audioSeconds - endSeconds) <= JOIN_SECONDS;
  }

  /** The last character of the text ends with the audio where times are rounded, or samples are those of another rate. */
  #meetEnd(audioSeconds: number): void {
    const last = this.#spans.at(-1);
    if (last === undefined || last.end < this.#text.length) return;
    const shortSeconds = audioSeconds - last.endSeconds;
    if (shortSeconds > 0 && shortSeconds <= EXACT_SECONDS) last.endSeconds = audioSeconds;
  }

  #emit(count: number): TimedCharacters | null {
    if (count === 0) return null;
    const spans = this.#spans.slice(0, count);
    const timed = emit(spans, this.#spans[count], { text: this.#text, emitted: this.#emitted });
    this.#spans = this.#spans.slice(count);
    this.#estimator.forgetBefore(this.#emitted.endSeconds);
    return timed;
  }
}

function untimed(end: number): Span {
  return { end, startSeconds: Number.NaN, endSeconds: Number.NaN, timing: "exact" };
}

/** Spans character by character, at their times on a clock. */
function clocked(spans: readonly Span[], clock: SpokenClock, { text, from }: TextPart): Span[] {
  let at = 0;
  return spans.flatMap(({ end, timing }) =>
    charactersOf(text.slice(at, end - from)).map((character): Span => {
      const startSeconds = clock.secondsAt(at);
      at += character.length;
      // White space has nothing to be wrong about.
      const label = character.trim() === "" ? timing : "estimated";
      const endSeconds = clock.secondsAt(at);
      return { end: from + at, startSeconds, endSeconds, timing: label, boundSeconds: clock.boundSeconds };
    }),
  );
}
