/**
 * When the upstream's normalized characters are spoken ("twelve" for "12"). They come on the clock of the alignment of
 * the same chunk, with all its faults, so its corrections are theirs:
 *
 *   alignment    '1' at 0.5   '2' at 0.7   ' ' at 0.9    as it came
 *   text         '1' at 0.4   '2' at 0.6   ' ' at 0.8    as its times were corrected
 *   normalized   'l' at 0.7                              becomes 0.6
 */
import type { Timing } from "../../protocol/vocabulary.ts";
import type { Alignment } from "../../timing/alignment.ts";
import { type AlignmentEntry, AlignmentReader } from "../../timing/alignment-reader.ts";
import { type TimedCharacters, weaker } from "../../timing/timed.ts";

export interface NormalizedCharacters {
  readonly characters: string[];
  /** Seconds of the response; rising. */
  readonly startSeconds: number[];
  readonly endSeconds: number[];
  /** Offset of the character of the text in which each is spoken. */
  readonly spokenStarts: number[];
  timing: Timing;
}

/** A moment of an alignment as it came, and as it was corrected. */
interface Knot {
  readonly rawSeconds: number;
  readonly seconds: number;
  /** Offset of the character that begins there; where that was said before, what is spoken then is dropped. */
  readonly offset: number;
  readonly isRepeated: boolean;
  readonly timing: Timing;
}

interface Chunk {
  /** What is left of it to be emitted. */
  normalized: AlignmentEntry[];
  /** What is left of the alignment whose text has no times yet. */
  spoken: AlignmentEntry[];
  /** Place of the first one of `spoken` among all characters of the response. */
  index: number;
  /** Rising. */
  readonly knots: Knot[];
}

interface Span {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly timing: Timing;
}

export class NormalizedTimes {
  readonly #text: string;
  readonly #offsetOf: (characterIndex: number) => number;
  readonly #spokenReader = new AlignmentReader();
  readonly #normalizedReader = new AlignmentReader();
  #chunks: Chunk[] = [];
  /** Characters of the text by their offsets, while a chunk waits. */
  readonly #timed = new Map<number, Span>();
  /** The text has its times up to here. */
  #timedTo = { offset: 0, seconds: 0 };
  /** The alignments have come to this place of the text. */
  #saidTo = 0;
  #lastSeconds = 0;
  /** Characters that may still come: an upstream that never stops must not fill the memory. */
  #budget: number;

  /** `offsetOf`: where in the segment's text the n-th character of the response's alignments stands, once that is known. */
  constructor(text: string, offsetOf: (characterIndex: number) => number) {
    this.#text = text;
    this.#offsetOf = offsetOf;
    this.#budget = 8 * text.length + 4096;
  }

  /** `spoken`: the alignment of the same chunk, or the normalized one where there is no other. `index`: place of its first character. */
  push(normalized: Alignment, spoken: Alignment, index: number): void {
    this.#budget -= normalized.characters.length + spoken.characters.length;
    if (this.#budget < 0) return;
    this.#chunks.push({
      normalized: this.#normalizedReader.read(normalized),
      spoken: this.#spokenReader.read(spoken),
      index,
      knots: [],
    });
  }

  /** Text of the segment has got its times: what is spoken in it, or null. `isLast`: nothing follows. */
  settle(timed: TimedCharacters | null, isLast: boolean): NormalizedCharacters | null {
    if (timed !== null) this.#noteTimed(timed);
    const settled: NormalizedCharacters = {
      characters: [],
      startSeconds: [],
      endSeconds: [],
      spokenStarts: [],
      timing: "exact",
    };
    for (const chunk of this.#chunks) {
      this.#addKnots(chunk, isLast);
      this.#emit(chunk, settled);
      if (chunk.normalized.length > 0) break;
    }
    this.#chunks = this.#chunks.filter((chunk) => chunk.normalized.length > 0);
    if (this.#chunks.length === 0) this.#timed.clear();
    return settled.characters.length === 0 ? null : settled;
  }

  #noteTimed({ start, characters, startSeconds, endSeconds, timing }: TimedCharacters): void {
    let offset = start;
    let seconds = this.#timedTo.seconds;
    characters.forEach((character, at) => {
      const from = startSeconds[at] ?? seconds;
      seconds = endSeconds[at] ?? from;
      this.#timed.set(offset, { startSeconds: from, endSeconds: seconds, timing });
      offset += character.length;
    });
    this.#timedTo = { offset, seconds };
  }

  /** Adds the entries whose text has its times by now. */
  #addKnots(chunk: Chunk, isLast: boolean): void {
    const { spoken, knots } = chunk;
    let count = 0;
    for (const entry of spoken) {
      const offset = this.#offsetOf(chunk.index);
      if (offset >= this.#timedTo.offset && !isLast) break;
      count += 1;
      chunk.index += entry.count;
      const end = offset + entry.text.length;
      const isThere = this.#text.startsWith(entry.text, offset);
      const isRepeated = isThere && end > offset && end <= this.#saidTo;
      if (isThere) this.#saidTo = Math.max(this.#saidTo, end);
      const span = this.#timed.get(offset);
      if (span === undefined && !isRepeated) continue;
      const { startSeconds, endSeconds, timing } = span ?? {
        startSeconds: this.#lastSeconds,
        endSeconds: this.#lastSeconds,
        timing: "scaled" as const,
      };
      // Several entries that stand for one place of the text have one time together: that of the first.
      const isFirst = isThere || knots.at(-1)?.offset !== offset;
      const facts = { offset, isRepeated, timing };
      if (isFirst) addRising(knots, { ...facts, rawSeconds: entry.startSeconds, seconds: startSeconds });
      if (count === spoken.length)
        addRising(knots, { ...facts, rawSeconds: entry.endSeconds, seconds: endSeconds });
    }
    chunk.spoken = spoken.slice(count);
  }

  #emit(chunk: Chunk, settled: NormalizedCharacters): void {
    const { normalized, spoken, knots } = chunk;
    const knownSeconds = spoken.length === 0 ? Number.POSITIVE_INFINITY : (knots.at(-1)?.rawSeconds ?? -1);
    let count = 0;
    for (const { text, startSeconds, endSeconds } of normalized) {
      if (endSeconds > knownSeconds || startSeconds > knownSeconds) break;
      count += 1;
      const knot = knotOf(knots, startSeconds, endSeconds);
      if (knot?.isRepeated) continue;
      const start = Math.max(this.#lastSeconds, this.#corrected(knots, startSeconds));
      this.#lastSeconds = Math.max(start, this.#corrected(knots, endSeconds));
      settled.characters.push(text);
      settled.startSeconds.push(start);
      settled.endSeconds.push(this.#lastSeconds);
      settled.spokenStarts.push(knot?.offset ?? this.#timedTo.offset);
      const isSound = knot !== undefined && startSeconds >= 0 && endSeconds >= startSeconds;
      settled.timing = weaker(settled.timing, isSound ? knot.timing : "scaled");
    }
    chunk.normalized = normalized.slice(count);
  }

  /** A character without a time has that of the one before it. */
  #corrected(knots: readonly Knot[], rawSeconds: number): number {
    const index = knots.findLastIndex((knot) => knot.rawSeconds <= rawSeconds);
    const [before, behind] = [knots[index], knots[index + 1]];
    const near = before ?? behind ?? { rawSeconds: 0, seconds: 0 };
    const isBetween = before !== undefined && behind !== undefined;
    const factor = isBetween
      ? (behind.seconds - before.seconds) / (behind.rawSeconds - before.rawSeconds)
      : 1;
    const seconds = near.seconds + (rawSeconds - near.rawSeconds) * factor;
    return Number.isNaN(seconds) ? this.#lastSeconds : Math.min(seconds, this.#timedTo.seconds);
  }
}

/** A single time that is too high makes way; behind a clock that goes back there are no knots, and order is kept. */
function addRising(knots: Knot[], knot: Knot): void {
  const rises = (behind: Knot | undefined): boolean => knot.rawSeconds >= (behind?.rawSeconds ?? 0);
  if (!rises(knots.at(-1)) && rises(knots.at(-2))) knots.pop();
  if (rises(knots.at(-1))) knots.push(knot);
}

/** The character of the text in which a normalized one is spoken. Where several begin at one moment, only the last has a length. */
function knotOf(knots: readonly Knot[], startSeconds: number, endSeconds: number): Knot | undefined {
  if (endSeconds > startSeconds) {
    return knots.findLast((knot) => knot.rawSeconds <= startSeconds) ?? knots[0];
  }
  return knots.find((knot) => knot.rawSeconds >= startSeconds) ?? knots.at(-1);
}
