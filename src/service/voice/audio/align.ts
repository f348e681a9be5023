/**
 * Times for every character of a piece, from the engine's word and phoneme events. A word event anchors a character
 * to its onset; characters between anchors follow the phonemes; spaces and punctuation fill the silence between words.
 */

import type { EngineEvent } from "../engine/engine.ts";
import { UNSPACED } from "../engine/languages.ts";
import type { Spoken } from "../plan/spoken.ts";

/** Onset and end of each character from the start of the piece, ms; starts and ends never fall. */
export interface CharacterTimes {
  readonly startMs: Float64Array;
  readonly endMs: Float64Array;
}

/** A place between words where the audio, the text and what is said can all be cut. */
export interface Cut {
  readonly original: number;
  readonly normalized: number;
  readonly atMs: number;
}

export interface PieceTiming {
  readonly original: CharacterTimes;
  readonly normalized: CharacterTimes;
  /** Ascending; the last one is the end of what is known. */
  readonly cuts: readonly Cut[];
  /** The engine's word events as they came, by character said. */
  readonly words: readonly { readonly normalized: number; readonly length: number; readonly atMs: number }[];
}

interface Anchor {
  /** Index of the character said. */
  readonly at: number;
  readonly onsetMs: number;
  /** Onsets of the phonemes from here to the next anchor. */
  readonly phonemesMs: number[];
  /** Where the silence after the last phoneme began; null while speech goes on. */
  pauseMs: number | null;
}

const SPACE = /\s/u;
/** Neither heard nor part of a letter: gets a share of the silence. */
const FILLER = /[\s\p{P}\p{Z}\p{Cc}]/u;
/** Read aloud by the engine although punctuation. */
const READ_ALOUD = /[@#%&*/\\_]/u;
/** Belongs to the letter before it and takes no time of its own. */
const MARK = /[\p{M}\p{Cf}]/u;

function isFiller(char: string): boolean {
  return FILLER.test(char) && !READ_ALOUD.test(char);
}

export interface PieceLength {
  /** Length of what is said, with its own silence; behind it a tag is acted on. */
  readonly speechMs: number;
  /** Length of all the piece's audio. */
  readonly endMs: number;
}

/** Without its length the piece is still being spoken, and only what lies before its latest word is certain (`cuts`). */
export function alignPiece(
  spoken: Spoken,
  events: readonly EngineEvent[],
  length?: PieceLength,
): PieceTiming {
  const anchors = findAnchors(spoken, events);
  const lastMs = anchors.at(-1)?.onsetMs ?? 0;
  const normalized = timesOfSaid(spoken.normalized, anchors, length?.speechMs ?? lastMs);
  return {
    normalized,
    original: timesOfWritten(spoken, normalized, length?.endMs ?? lastMs),
    cuts: findCuts(spoken, anchors, length?.endMs),
    words: events
      .filter((event) => event.kind === "word")
      .map((event) => ({
        normalized: spoken.engineToNormalized[event.textIndex] ?? spoken.normalized.length,
        length: event.length,
        atMs: event.atMs,
      })),
  };
}

function findAnchors(spoken: Spoken, events: readonly EngineEvent[]): Anchor[] {
  const anchors: Anchor[] = [];
  for (const event of events) {
    const last = anchors.at(-1);
    if (event.kind === "phoneme") {
      if (last === undefined) continue;
      if (event.isPause) last.pauseMs ??= event.atMs;
      else {
        last.phonemesMs.push(event.atMs);
        last.pauseMs = null;
      }
      continue;
    }
    // Whatever is said goes on at a repeated word event: several words for one number, one emoji, one letter.
    const at = anchorIndex(spoken, event.textIndex);
    if (at === undefined || (last !== undefined && at <= last.at)) {
      if (last !== undefined) last.pauseMs = null;
      continue;
    }
    anchors.push({ at, onsetMs: Math.max(event.atMs, last?.onsetMs ?? 0), phonemesMs: [], pauseMs: null });
  }
  return anchors;
}

/**
 * The character that a word event is about. Events inside digits count on past the number that they read, so a place
 * between words means the word before; an opening quote or bracket means the word that it opens.
 */
function anchorIndex(spoken: Spoken, textIndex: number): number | undefined {
  const { normalized, engineToNormalized } = spoken;
  let at = engineToNormalized[textIndex];
  if (at === undefined) return undefined;
  const isTokenStart = at === 0 || SPACE.test(normalized[at - 1] ?? "");
  if (!isTokenStart && isDigit(normalized[at - 1]) && isDigit(normalized[at])) return undefined;
  while (at < normalized.length && isFiller(normalized[at] ?? "")) {
    if (SPACE.test(normalized[at] ?? "")) return undefined;
    at++;
  }
  if (at >= normalized.length || MARK.test(normalized[at] ?? "")) return undefined;
  return at;
}

function isDigit(char: string | undefined): boolean {
  return char !== undefined && /\p{Nd}/u.test(char);
}

function timesOfSaid(chars: readonly string[], anchors: readonly Anchor[], knownMs: number): CharacterTimes {
  const startMs = new Float64Array(chars.length);
  const endMs = new Float64Array(chars.length);
  const first = anchors[0];
  spread(
    { startMs, endMs },
    { from: 0, to: first?.at ?? chars.length, beginMs: 0, finishMs: first?.onsetMs ?? knownMs },
  );
  for (const [index, anchor] of anchors.entries()) {
    const next = anchors[index + 1];
    const to = next?.at ?? chars.length;
    const finishMs = Math.max(anchor.onsetMs, next?.onsetMs ?? knownMs);
    const speechEndMs = clamp(anchor.pauseMs ?? finishMs, anchor.onsetMs, finishMs);
    let coreEnd = to;
    while (coreEnd > anchor.at + 1 && isFiller(chars[coreEnd - 1] ?? "")) coreEnd--;
    followPhonemes({ startMs, endMs }, chars, { from: anchor.at, to: coreEnd, anchor, speechEndMs });
    spread({ startMs, endMs }, { from: coreEnd, to, beginMs: speechEndMs, finishMs });
  }
  return { startMs, endMs };
}

interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly beginMs: number;
  readonly finishMs: number;
}

/** Equal shares of the time for each character. */
function spread(times: CharacterTimes, { from, to, beginMs, finishMs }: Stretch): void {
  const share = (finishMs - beginMs) / Math.max(1, to - from);
  for (let index = from; index < to; index++) {
    times.startMs[index] = beginMs + share * (index - from);
    times.endMs[index] = index === to - 1 ? finishMs : beginMs + share * (index - from + 1);
  }
}

/** Letters take their times from the phonemes: the k-th part of the letters begins with the k-th part of the phonemes. */
function followPhonemes(
  times: CharacterTimes,
  chars: readonly string[],
  word: { readonly from: number; readonly to: number; readonly anchor: Anchor; readonly speechEndMs: number },
): void {
  const bounds = [word.anchor.onsetMs];
  for (const atMs of word.anchor.phonemesMs.slice(1)) {
    bounds.push(clamp(atMs, bounds.at(-1) ?? 0, word.speechEndMs));
  }
  bounds.push(word.speechEndMs);
  const weight = (index: number) => (isFiller(chars[index] ?? "") || MARK.test(chars[index] ?? "") ? 0 : 1);
  let total = 0;
  for (let index = word.from; index < word.to; index++) total += weight(index);
  let passed = 0;
  for (let index = word.from; index < word.to; index++) {
    times.startMs[index] = at(bounds, passed / Math.max(1, total));
    passed += weight(index);
    times.endMs[index] = at(bounds, passed / Math.max(1, total));
  }
}

/** The time at `part` (0-1) of the way along `bounds`. */
function at(bounds: readonly number[], part: number): number {
  const place = part * (bounds.length - 1);
  const index = Math.min(Math.floor(place), bounds.length - 2);
  const fromMs = bounds[index] ?? 0;
  const toMs = bounds[index + 1] ?? fromMs;
  return fromMs + (toMs - fromMs) * (place - index);
}

/** Written characters take the times of what is said for them; dropped ones fill the gap that they stand in. */
function timesOfWritten(spoken: Spoken, said: CharacterTimes, knownMs: number): CharacterTimes {
  const startMs = new Float64Array(spoken.original.length);
  const endMs = new Float64Array(spoken.original.length);
  let lastEndMs = 0;
  for (const span of spoken.spans) {
    const from = span.originalFrom;
    if (span.isIdentity) {
      startMs.set(said.startMs.subarray(span.normalizedFrom, span.normalizedTo), from);
      endMs.set(said.endMs.subarray(span.normalizedFrom, span.normalizedTo), from);
    } else {
      const isDropped = span.normalizedFrom === span.normalizedTo;
      const next = said.startMs[span.normalizedTo] ?? knownMs;
      const beginMs = isDropped ? lastEndMs : (said.startMs[span.normalizedFrom] ?? lastEndMs);
      const finishMs = isDropped ? next : (said.endMs[span.normalizedTo - 1] ?? beginMs);
      spread(
        { startMs, endMs },
        { from, to: span.originalTo, beginMs, finishMs: Math.max(beginMs, finishMs) },
      );
    }
    if (span.originalTo > from) lastEndMs = endMs[span.originalTo - 1] ?? lastEndMs;
  }
  return { startMs, endMs };
}

function findCuts(spoken: Spoken, anchors: readonly Anchor[], endMs: number | undefined): Cut[] {
  const cuts: Cut[] = [];
  let spanIndex = 0;
  for (const [index, anchor] of anchors.entries()) {
    const previous = anchors[index - 1];
    if (previous === undefined) continue;
    const normalized = wordStart(spoken.normalized, previous.at, anchor.at);
    if (normalized === undefined) continue;
    while ((spoken.spans[spanIndex]?.normalizedTo ?? Infinity) <= normalized) spanIndex++;
    const span = spoken.spans[spanIndex];
    if (span === undefined || (!span.isIdentity && span.normalizedFrom !== normalized)) continue;
    const original = span.originalFrom + (normalized - span.normalizedFrom);
    cuts.push({ original, normalized, atMs: anchor.onsetMs });
  }
  if (endMs !== undefined) {
    cuts.push({ original: spoken.original.length, normalized: spoken.normalized.length, atMs: endMs });
  }
  return cuts;
}

/** Where the word at `to` begins, opening quotes included; undefined where it hangs on the word before. */
function wordStart(chars: readonly string[], from: number, to: number): number | undefined {
  for (let index = to; index > from; index--) {
    if (SPACE.test(chars[index - 1] ?? "")) return index;
  }
  return UNSPACED.test(chars[to] ?? "") ? to : undefined;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
