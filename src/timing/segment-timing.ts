/**
 * The timing of one upstream response: takes the alignments as they come with the chunks, and gives the characters of
 * the client's text with times that rise, never restart, and never reach beyond the audio.
 */
import type { Silence } from "../audio/pause-finder.ts";
import type { SoundFrames } from "../audio/sound-meter.ts";
import type { Timing } from "../protocol/vocabulary.ts";
import { type Alignment, hasCharacters } from "./alignment.ts";
import { type AlignmentEntry, AlignmentReader, timesOf } from "./alignment-reader.ts";
import { AlignmentWalk, type Placed } from "./alignment-walk.ts";
import {
  charactersOf,
  type Draft,
  dividedTiming,
  isTimed,
  MIN_PACE_SECONDS,
  TYPICAL_WEIGHT_A_SECOND,
  weaken,
} from "./draft.ts";
import { HeardText } from "./estimate/aligned-text.ts";
import { HeardAudio } from "./estimate/audio-features.ts";
import {
  estimateOpen,
  estimateTo,
  type MarkedPause,
  markedPauses,
  movedBy,
  type Needed,
  type OpenEstimate,
  type OpenSpeech,
  type VoicePace,
} from "./estimate/open-text.ts";
import type { ChunkSpan } from "./repair/clock-drift.ts";
import { NEAR_SECONDS } from "./repair/drift-evidence.ts";
import { LateTimes } from "./repair/late-times.ts";
import { ResponseClock, scale } from "./repair/response-clock.ts";
import { divide, draftsOf, EXACT_SECONDS, JOIN_SECONDS, settle } from "./settled.ts";
import { type TimedCharacters, weaker } from "./timed.ts";

export interface SegmentTimingOptions {
  /** The text as it was sent upstream. */
  readonly text: string;
  /** UTF-16 offset of that text in the client's text. */
  readonly textStart: number;
  /** How the voice has spoken so far, if that is known. */
  readonly pace?: VoicePace | null;
}

export interface ChunkFacts {
  /**
   * Seconds of the response's audio received so far, this chunk's included, to the sample. Characters beyond it wait for
   * their audio. Chunks without an alignment have to be pushed, too, or the next one's audio seems to begin with theirs.
   */
  readonly audioSeconds?: number;
  /** Silences in the audio of a chunk without an alignment, as far as they are known. */
  readonly pauses?: readonly Silence[];
  /** How loud and bright that audio is, as far as it is known. */
  readonly sound?: SoundFrames | null;
}

/** Times this near to where a gap in them began go on from there. */
const LATE_SECONDS = 0.05;
/** How far a character's end may be ahead of the audio received: what an encoder holds back (an Opus packet and more). */
const AHEAD_SECONDS = 0.08;
const ENDS_IN_LETTER = /[\p{L}\p{M}\p{N}]\s*$/u;
/** What sums of such numbers may be off. */
const FLOAT_SECONDS = 1e-9;

export class SegmentTiming {
  readonly #text: string;
  readonly #textStart: number;
  readonly #reader = new AlignmentReader();
  readonly #walk: AlignmentWalk;
  readonly #clock = new ResponseClock();
  readonly #late = new LateTimes();
  readonly #heard: HeardAudio;
  /** In the order of the text, without holes: not emitted yet. */
  #drafts: Draft[] = [];
  #emittedTo = 0;
  #lastEnd = 0;
  /** Of the last character given. */
  #lastTiming: Timing = "exact";
  #audioSeconds: number | undefined;
  #isFinished = false;
  /** The last one that a guess ended with. */
  #toldPause: MarkedPause | null = null;
  /** Where in the text the last times that came begin. */
  #lastTimesFrom = 0;
  /** Audio that came without timing since the last timing: where it begins, in the response and in the text. */
  #gap: { readonly fromSeconds: number; readonly textFrom: number } | null = null;
  /** Entries that a response may still have: an upstream that never stops must not fill the memory. */
  #budget: number;

  constructor({ text, textStart, pace }: SegmentTimingOptions) {
    this.#text = text;
    this.#textStart = textStart;
    this.#heard = new HeardAudio(pace ?? null);
    this.#walk = new AlignmentWalk(text);
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
    const fromSeconds = this.#audioSeconds ?? 0;
    this.#audioSeconds = facts.audioSeconds ?? this.#audioSeconds;
    this.#heard.add(facts.pauses, facts.sound);
    const source = hasCharacters(alignment) ? alignment : normalized;
    const entries = source === null ? [] : this.#withinBudget(this.#reader.read(source));
    const span = this.#spanOf(entries, fromSeconds);
    if (entries.length === 0 && span !== null && span.endSeconds > span.startSeconds) {
      this.#gap ??= { fromSeconds: span.startSeconds, textFrom: this.#walk.at };
    }
    const times = timesOf(entries);
    if (entries.length > 0) this.#lastTimesFrom = this.#walk.at;
    const placed = this.#walkOn(entries, span?.startSeconds ?? 0);
    const drafts = this.#clock.place(placed, span, times?.startSeconds);
    if (drafts.length > 0) this.#drafts = this.#drafts.concat(this.#withoutTold(drafts));
    // What is spread between times that are doubted would not change with them.
    if (this.#clock.isInDoubt) return null;
    this.#fillBetween();
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
    this.#drafts = this.#drafts.concat(this.#withoutTold(this.#clock.place(this.#walk.finish())));
    this.#clock.finish(audioSeconds, soundSeconds);
    if (!(audioSeconds > 0)) return null;
    const last = this.#drafts.at(-1);
    if (last !== undefined && this.#isEndOpen(last))
      last.endSeconds = Math.max(last.endSeconds, audioSeconds);
    this.#squeezeTo(Math.max(audioSeconds, this.#lastEnd), soundSeconds);
    if (this.#walk.at < this.#text.length && this.#emittedTo < this.#text.length) {
      const [startSeconds, endSeconds] = [Number.NaN, Number.NaN];
      this.#drafts.push({ end: this.#text.length, startSeconds, endSeconds, timing: "exact" });
    }
    this.#fillBetween(Math.max(audioSeconds, this.#lastEnd));
    this.#meetEnd(audioSeconds);
    return this.#emit(this.#drafts.length);
  }

  /**
   * No times have come for what is spoken up to `neededSeconds`, and nobody can wait for them any longer: those that can be
   * guessed from the audio that has come, as far as that is needed, or null; what waits for the end of the last times' audio
   * is told as it is. Times that come later for the same text count for nothing. Compressed audio: null.
   */
  estimateUpTo(needed: Needed): TimedCharacters | null {
    if (this.#isFinished || this.#clock.isInDoubt) return null;
    if (this.#drafts.length > 0) return this.#emit(this.#countSettled());
    return this.#tellOpen((text, speech) => estimateOpen(text, speech, needed));
  }

  /**
   * No more comes, and times are waited for no longer: the pauses whose marks are known, rising; the last one that was
   * told already, and those behind what was told, which are no surer than that. Offsets in the client's text.
   */
  markedPauses(): readonly MarkedPause[] {
    const told = this.#toldPause;
    const before = told === null ? [] : [told];
    const speech = this.#openSpeech;
    if (this.#isFinished || this.#clock.isInDoubt || this.#drafts.length > 0 || speech === null)
      return before;
    const toldSureness = told?.sureness ?? (() => Number.POSITIVE_INFINITY);
    const behind = markedPauses(this.#text.slice(this.#emittedTo), speech).map((pause) => ({
      ...movedBy(this.#textStart + this.#emittedTo, pause),
      sureness: () => Math.min(pause.sureness(), toldSureness()),
    }));
    return before.concat(behind);
  }

  /** The text up to a pause of those that `markedPauses` gave; null where that was told already. */
  estimateTo(pause: MarkedPause): TimedCharacters | null {
    const from = this.#textStart + this.#emittedTo;
    if (pause.end <= from) return null;
    return this.#tellOpen((text, speech) => estimateTo(movedBy(-from, pause), text, speech));
  }

  /** `estimate`: of the text that is not told. */
  #tellOpen(estimate: (text: string, speech: OpenSpeech) => OpenEstimate | null): TimedCharacters | null {
    const [textFrom, speech] = [this.#emittedTo, this.#openSpeech];
    const text = this.#text.slice(textFrom);
    const open = speech === null ? null : estimate(text, speech);
    if (open === null) return null;
    const { end, heard, pause } = open;
    if (pause !== null) this.#toldPause = movedBy(this.#textStart + textFrom, pause);
    this.#heard.learnPace(text.slice(0, end), this.#lastEnd, heard.secondsAt(end));
    this.#drafts = draftsOf([{ end: textFrom + end, timing: "exact" }], heard, { text, textFrom });
    return this.#emit(this.#drafts.length);
  }

  get #openSpeech(): OpenSpeech | null {
    return this.#heard.openSpeech(this.#lastEnd, this.#audioSeconds ?? 0);
  }

  /** How fast the voice speaks, as far as text without times tells; null: it does not. */
  get voicePace(): VoicePace | null {
    return this.#heard.voicePace;
  }

  /** End of the times given so far, seconds of the response. */
  get timedToSeconds(): number {
    return this.#lastEnd;
  }

  /** UTF-16 offset in the client's text of the response's n-th character, as voice segments count them. */
  textOffsetOf(characterIndex: number): number {
    return this.#textStart + this.#walk.offsetOf(characterIndex);
  }

  /** The audio that a chunk's times are of; null where that is not known. `fromSeconds`: where its own begins. */
  #spanOf(entries: readonly AlignmentEntry[], fromSeconds: number): ChunkSpan | null {
    const endSeconds = this.#audioSeconds;
    if (endSeconds === undefined || endSeconds <= 0) return null;
    const own = { startSeconds: fromSeconds, endSeconds };
    const times = timesOf(entries);
    const first = times && { ...times, isTextStart: this.#walk.at === 0 && this.#walk.readsOn(entries) };
    return this.#late.spanOf(endSeconds > fromSeconds ? own : null, first) ?? own;
  }

  /** Audio without timing was somewhere in the text: how far it went is told by how fast the text was spoken before. */
  #walkOn(entries: readonly AlignmentEntry[], startSeconds: number): Placed[] {
    const gap = this.#gap;
    if (gap === null || entries.length === 0) return this.#walk.push(entries);
    this.#gap = null;
    const isRateKnown = gap.fromSeconds > MIN_PACE_SECONDS && gap.textFrom > 0;
    const perSecond = isRateKnown ? gap.textFrom / gap.fromSeconds : TYPICAL_WEIGHT_A_SECOND;
    const first = entries.find((entry) => !Number.isNaN(entry.startSeconds))?.startSeconds ?? Number.NaN;
    // What begins where the gap began is what was missing, late, and no text lies before it.
    if (Math.abs(first - gap.fromSeconds) <= LATE_SECONDS) return this.#walk.pushBehindGap(entries, 0);
    const silentSeconds = this.#heard.silentSeconds(gap.fromSeconds, startSeconds);
    // Nor is any spoken in silence.
    if (silentSeconds >= startSeconds - gap.fromSeconds - LATE_SECONDS) {
      return this.#walk.pushBehindGap(entries, 0);
    }
    return this.#walk.pushBehindGap(entries, Math.round((startSeconds - gap.fromSeconds) * perSecond));
  }

  #withinBudget(entries: AlignmentEntry[]): AlignmentEntry[] {
    const taken = entries.length > this.#budget ? entries.slice(0, this.#budget) : entries;
    this.#budget -= taken.length;
    return taken;
  }

  /** Spreads text without times over the gap between its neighbours' times; `endSeconds` stands for the last neighbour. */
  #fillBetween(endSeconds = Number.NaN): void {
    if (this.#drafts.every(isTimed)) return;
    const filled: Draft[] = [];
    let untimed: Draft[] = [];
    let gap = { textFrom: this.#emittedTo, from: this.#lastEnd };
    for (const draft of this.#drafts) {
      if (!isTimed(draft)) {
        untimed.push(draft);
        continue;
      }
      filled.push(...this.#spread(untimed, { ...gap, until: draft.startSeconds }), draft);
      untimed = [];
      gap = { textFrom: draft.end, from: Math.max(gap.from, draft.endSeconds) };
    }
    const isOpen = Number.isNaN(endSeconds);
    this.#drafts = filled.concat(isOpen ? untimed : this.#spread(untimed, { ...gap, until: endSeconds }));
  }

  /** The same text with times, character by character: held to what is heard of it. */
  #spread(drafts: readonly Draft[], gap: { textFrom: number; from: number; until: number }): Draft[] {
    if (drafts.length === 0) return [];
    const [{ textFrom, from }, until] = [gap, Math.max(gap.until, gap.from)];
    const text = this.#text.slice(textFrom, drafts.at(-1)?.end ?? textFrom);
    const { pauses, sound } = this.#heard.within(from, until);
    if (sound !== null) this.#heard.learnPace(text, from, until);
    return draftsOf(drafts, new HeardText(text, { from, until, pauses, sound }), { text, textFrom });
  }

  /** What was estimated already is told. */
  #withoutTold(drafts: Draft[]): Draft[] {
    return drafts.filter(({ end }) => end > this.#emittedTo);
  }

  /**
   * Drafts from the front that have their times, and whose audio is there. What is told can't be taken back, and nothing
   * may end behind the audio: so none but those that an encoder may have held back, and that have text behind them.
   */
  #countSettled(): number {
    const received = (this.#audioSeconds ?? Number.POSITIVE_INFINITY) + FLOAT_SECONDS;
    const timedTo = this.#drafts.findLast(isTimed)?.endSeconds ?? 0;
    const isHeldBack = timedTo <= received + AHEAD_SECONDS;
    const unsettled = this.#drafts.findIndex((draft) => {
      const { end, endSeconds, timing } = draft;
      const mayBeAhead = isHeldBack && end < this.#text.length;
      const aheadSeconds = timing === "exact" ? AHEAD_SECONDS : NEAR_SECONDS;
      const limit = mayBeAhead ? received + aheadSeconds : received;
      return !isTimed(draft) || endSeconds > limit || this.#isEndOpen(draft);
    });
    return unsettled < 0 ? this.#drafts.length : unsettled;
  }

  /**
   * Drafts from the front that are not better waited with. Where all text has its times, and they end far behind the audio
   * received, there is more to come, or they are too long, and then all of the last chunk's are.
   */
  #countDue(): number {
    const timedTo = this.#drafts.findLast(isTimed)?.endSeconds ?? 0;
    const received = this.#audioSeconds ?? Number.POSITIVE_INFINITY;
    if (this.#walk.at < this.#text.length || timedTo <= received + AHEAD_SECONDS) return this.#drafts.length;
    const first = this.#drafts.findIndex(({ end }) => end > this.#lastTimesFrom);
    return first < 0 ? this.#drafts.length : first;
  }

  /** The last character of the text, its end guessed where the audio ends so far: some may still be with an encoder. */
  #isEndOpen({ end, endSeconds, timing }: Draft): boolean {
    if (timing !== "estimated" || end < this.#text.length || this.#audioSeconds === undefined) return false;
    return Math.abs(this.#audioSeconds - endSeconds) <= JOIN_SECONDS;
  }

  /** The last character of the text ends with the audio where times are rounded, or samples are those of another rate. */
  #meetEnd(audioSeconds: number): void {
    const last = this.#drafts.at(-1);
    if (last === undefined || last.end < this.#text.length) return;
    const shortSeconds = audioSeconds - last.endSeconds;
    if (shortSeconds > 0 && shortSeconds <= EXACT_SECONDS) last.endSeconds = audioSeconds;
  }

  /** The alignment is longer than the audio: what is left of it shrinks into what is left of that. */
  #squeezeTo(endSeconds: number, soundSeconds: number): void {
    const all = this.#drafts.filter(isTimed);
    const last = all.reduce((end, draft) => Math.max(end, draft.endSeconds), 0);
    // Of several chunks' times mostly the last one's are too long.
    const before = all.findLast(({ end }) => end <= this.#lastTimesFrom);
    const isLastAlone = before === undefined || before.endSeconds <= endSeconds;
    const timed = isLastAlone ? all.filter(({ end }) => end > this.#lastTimesFrom) : all;
    const first = timed[0]?.startSeconds ?? 0;
    if (last <= endSeconds + EXACT_SECONDS) {
      for (const draft of all) {
        draft.startSeconds = Math.min(draft.startSeconds, endSeconds);
        draft.endSeconds = Math.min(draft.endSeconds, endSeconds);
      }
      return;
    }
    const earliest = isLastAlone && before !== undefined ? before.endSeconds : this.#lastEnd;
    const to = first < endSeconds ? Math.max(first, earliest) : earliest;
    // The silence behind a mark is the mark's; a letter ends about with its sound.
    const isLetter = ENDS_IN_LETTER.test(this.#text);
    if (isLetter) weaken(timed);
    const until = isLetter && soundSeconds > to ? Math.min(soundSeconds, endSeconds) : endSeconds;
    const factor = last > first ? Math.max(until - to, 0) / (last - first) : 0;
    scale(timed, { from: first, to, factor });
  }

  #emit(count: number): TimedCharacters | null {
    if (count === 0) return null;
    const start = this.#emittedTo;
    const characters: string[] = [];
    const startSeconds: number[] = [];
    const endSeconds: number[] = [];
    let timing: Timing = "exact";
    for (let i = 0; i < count; i++) {
      const draft = this.#drafts[i];
      if (draft === undefined) break;
      const next = this.#drafts[i + 1];
      const isNextTimed = next !== undefined && isTimed(next);
      const nextStart = isNextTimed ? next.startSeconds : Number.POSITIVE_INFINITY;
      const before = { end: this.#lastEnd, timing: this.#lastTiming };
      timing = weaker(timing, settle(draft, before, nextStart));
      this.#lastTiming = draft.timing;
      const parts = charactersOf(this.#text.slice(this.#emittedTo, draft.end));
      if (parts.length > 1) timing = weaker(timing, weaker(draft.timing, dividedTiming(parts.join(""))));
      for (const part of divide(draft, parts)) {
        characters.push(part.text);
        startSeconds.push(part.startSeconds);
        endSeconds.push(part.endSeconds);
      }
      this.#emittedTo = draft.end;
      this.#lastEnd = draft.endSeconds;
    }
    this.#drafts = this.#drafts.slice(count);
    this.#heard.forgetBefore(this.#lastEnd);
    return {
      start: this.#textStart + start,
      end: this.#textStart + this.#emittedTo,
      characters,
      startSeconds,
      endSeconds,
      timing,
    };
  }
}
