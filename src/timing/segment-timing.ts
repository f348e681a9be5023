/**
 * The timing of one upstream response: takes the alignments as they come with the chunks, and gives the characters of
 * the client's text with times that rise, never restart, and never reach beyond the audio.
 */
import type { Silence } from "../audio/pause-finder.ts";
import type { SoundFrames } from "../audio/sound-meter.ts";
import type { Timing } from "../protocol/vocabulary.ts";
import type { Alignment } from "./alignment.ts";
import { type AlignmentEntry, AlignmentReader } from "./alignment-entries.ts";
import { AlignmentWalk, type Placed } from "./alignment-walk.ts";
import {
  charactersOf,
  type Draft,
  isTimed,
  MIN_PACE_SECONDS,
  speechWeight,
  TYPICAL_WEIGHT_A_SECOND,
} from "./draft.ts";
import { HeardText } from "./heard-text.ts";
import { LateTimes } from "./late-times.ts";
import type { ChunkSpan } from "./pace.ts";
import { NEAR_SECONDS } from "./pace-evidence.ts";
import { Pauses } from "./pauses.ts";
import { ResponseClock, scale } from "./response-clock.ts";
import { Sounds } from "./sounds.ts";
import { type TimedCharacters, weaker } from "./timed.ts";

export interface SegmentTimingOptions {
  /** The text as it was sent upstream. */
  readonly text: string;
  /** UTF-16 offset of that text in the client's text. */
  readonly textStart: number;
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

/** Rounding on the wire: repairs below it leave the label as it is. */
const EXACT_SECONDS = 0.0015;
/** Times this near to where a gap in them began go on from there. */
const LATE_SECONDS = 0.05;
/** Characters that were moved and are no further apart than this meet: no one hears what lies between. */
const JOIN_SECONDS = 0.005;
/** How far a character's end may be ahead of the audio received: what an encoder holds back (an Opus packet and more). */
const AHEAD_SECONDS = 0.08;
/** What sums of such numbers may be off. */
const FLOAT_SECONDS = 1e-9;

export class SegmentTiming {
  readonly #text: string;
  readonly #textStart: number;
  readonly #reader = new AlignmentReader();
  readonly #walk: AlignmentWalk;
  readonly #clock = new ResponseClock();
  readonly #late = new LateTimes();
  readonly #pauses = new Pauses();
  readonly #sounds = new Sounds();
  /** In the order of the text, without holes: not emitted yet. */
  #drafts: Draft[] = [];
  #emittedTo = 0;
  #lastEnd = 0;
  /** Of the last character given. */
  #lastTiming: Timing = "exact";
  #audioSeconds: number | undefined;
  #isFinished = false;
  /** Audio that came without timing since the last timing: where it begins, in the response and in the text. */
  #gap: { readonly fromSeconds: number; readonly textFrom: number } | null = null;
  /** Entries that a response may still have: an upstream that never stops must not fill the memory. */
  #budget: number;

  constructor({ text, textStart }: SegmentTimingOptions) {
    this.#text = text;
    this.#textStart = textStart;
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
    if (facts.pauses !== undefined) this.#pauses.add(facts.pauses);
    if (facts.sound) this.#sounds.add(facts.sound);
    const source = hasCharacters(alignment) ? alignment : normalized;
    const entries = source === null ? [] : this.#withinBudget(this.#reader.read(source));
    const span = this.#spanOf(entries, fromSeconds);
    if (entries.length === 0 && span !== null && span.endSeconds > span.startSeconds) {
      this.#gap ??= { fromSeconds: span.startSeconds, textFrom: this.#walk.at };
    }
    const times = timesOf(entries);
    const placed = this.#walkOn(entries, span?.startSeconds ?? 0);
    const drafts = this.#clock.place(placed, span, times?.startSeconds);
    if (drafts.length > 0) this.#drafts = this.#drafts.concat(drafts);
    // What is spread between times that are doubted would not change with them.
    if (this.#clock.isInDoubt) return null;
    this.#fillBetween();
    this.#meetEnd(this.#audioSeconds ?? 0);
    return this.#emit(this.#countSettled());
  }

  /**
   * The response is complete: the characters that waited or never got a time, or null. `audioSeconds`: its audio's real
   * length; everything ends with it. `soundSeconds`: up to its last sound, 0 where that is not known. Only for a response that
   * ended well: it takes all of the text for spoken.
   */
  finish(audioSeconds: number, soundSeconds = 0): TimedCharacters | null {
    if (this.#isFinished) return null;
    this.#isFinished = true;
    this.#drafts = this.#drafts.concat(this.#clock.place(this.#walk.finish()));
    this.#clock.finish(audioSeconds, soundSeconds);
    if (!(audioSeconds > 0)) return null;
    const last = this.#drafts.at(-1);
    if (last !== undefined && this.#isEndOpen(last))
      last.endSeconds = Math.max(last.endSeconds, audioSeconds);
    this.#squeezeTo(Math.max(audioSeconds, this.#lastEnd));
    if (this.#walk.at < this.#text.length) {
      const [startSeconds, endSeconds] = [Number.NaN, Number.NaN];
      this.#drafts.push({ end: this.#text.length, startSeconds, endSeconds, timing: "exact" });
    }
    this.#fillBetween(Math.max(audioSeconds, this.#lastEnd));
    this.#meetEnd(audioSeconds);
    return this.#emit(this.#drafts.length);
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
    const silent = this.#pauses.within(gap.fromSeconds, startSeconds);
    const silentSeconds = silent.reduce((sum, pause) => sum + pause.endSeconds - pause.startSeconds, 0);
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
    const [pauses, sound] = [this.#pauses.within(from, until), this.#sounds.within(from, until)];
    const heard = new HeardText(text, { from, until, pauses, sound });
    let at = 0;
    return drafts.flatMap(({ end, timing }) =>
      charactersOf(text.slice(at, end - textFrom)).map((character) => {
        const startSeconds = heard.secondsAt(at);
        at += character.length;
        const isSpace = character.trim() === "";
        return {
          end: textFrom + at,
          startSeconds,
          endSeconds: heard.secondsAt(at),
          // White space has nothing to be wrong about.
          timing: isSpace ? timing : "estimated",
        };
      }),
    );
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
  #squeezeTo(endSeconds: number): void {
    const timed = this.#drafts.filter(isTimed);
    const first = timed[0]?.startSeconds ?? 0;
    const last = timed.reduce((end, draft) => Math.max(end, draft.endSeconds), 0);
    if (last <= endSeconds + EXACT_SECONDS) {
      for (const draft of timed) {
        draft.startSeconds = Math.min(draft.startSeconds, endSeconds);
        draft.endSeconds = Math.min(draft.endSeconds, endSeconds);
      }
      return;
    }
    const to = first < endSeconds ? Math.max(first, this.#lastEnd) : this.#lastEnd;
    const factor = last > first ? Math.max(endSeconds - to, 0) / (last - first) : 0;
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
      if (parts.length > 1) timing = weaker(timing, draft.timing === "exact" ? "scaled" : draft.timing);
      for (const part of divide(draft, parts)) {
        characters.push(part.text);
        startSeconds.push(part.startSeconds);
        endSeconds.push(part.endSeconds);
      }
      this.#emittedTo = draft.end;
      this.#lastEnd = draft.endSeconds;
    }
    this.#drafts = this.#drafts.slice(count);
    this.#pauses.forgetBefore(this.#lastEnd);
    this.#sounds.forgetBefore(this.#lastEnd);
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

/** Makes a draft rise from the one before it and end before the next starts; returns its label. */
function settle(
  draft: Draft,
  before: { readonly end: number; readonly timing: Timing },
  nextStart: number,
): Timing {
  // An end that was guessed at the end of the audio that had come is short of it by what an encoder held back.
  const behindSeconds = before.timing === "exact" ? 0 : EXACT_SECONDS;
  const joinSeconds = draft.timing === "exact" ? behindSeconds : JOIN_SECONDS;
  const isJoined = draft.startSeconds - before.end <= joinSeconds;
  const start = isJoined ? before.end : draft.startSeconds;
  const end = Math.max(start, Math.min(draft.endSeconds, nextStart));
  const moved = Math.max(Math.abs(start - draft.startSeconds), Math.abs(end - draft.endSeconds));
  if (moved > EXACT_SECONDS) draft.timing = weaker(draft.timing, "scaled");
  draft.startSeconds = start;
  draft.endSeconds = end;
  return draft.timing;
}

interface Part {
  readonly text: string;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** One draft's time over its characters. */
function divide(draft: Draft, parts: readonly string[]): Part[] {
  const [only] = parts;
  const { startSeconds, endSeconds } = draft;
  if (only !== undefined && parts.length === 1) return [{ text: only, startSeconds, endSeconds }];
  const total = parts.reduce((sum, part) => sum + speechWeight(part), 0) || 1;
  let said = 0;
  return parts.map((text) => {
    const start = startSeconds + ((endSeconds - startSeconds) * said) / total;
    said += speechWeight(text);
    return {
      text,
      startSeconds: start,
      endSeconds: startSeconds + ((endSeconds - startSeconds) * said) / total,
    };
  });
}

/** Where the times of a chunk begin and end; null: it has none. */
function timesOf(entries: readonly AlignmentEntry[]): { startSeconds: number; endSeconds: number } | null {
  const first = entries.find((entry) => !Number.isNaN(entry.startSeconds));
  const last = entries.findLast((entry) => !Number.isNaN(entry.startSeconds));
  if (first === undefined || last === undefined) return null;
  const endSeconds = Number.isNaN(last.endSeconds) ? last.startSeconds : last.endSeconds;
  return { startSeconds: first.startSeconds, endSeconds };
}

function hasCharacters(alignment: Alignment | null): alignment is Alignment {
  return alignment !== null && alignment.characters.length > 0;
}
