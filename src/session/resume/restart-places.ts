/**
 * Where the speech of an utterance may go on after a cut. A receipt divides the text there, too. It is never inside a word or
 * markup, nor inside a replacement: so the rest is spoken as it would have been.
 */
import type { SpokenText } from "../../text/spoken-text.ts";
import { WordPositions } from "../../text/word-positions.ts";
import type { SegmentSpan } from "../heard-share.ts";

/** An utterance, as far as its text goes. */
interface SegmentedText {
  readonly transcript: { readonly segments: readonly SegmentSpan[] };
  readonly spoken: SpokenText;
  readonly joints: readonly number[];
  readonly isExpressive: boolean;
}

interface KnownWords {
  readonly spoken: SpokenText;
  readonly start: number;
  readonly end: number;
  readonly words: WordPositions;
}

export class RestartPlaces {
  readonly #utterance: SegmentedText;
  /** Words of the segment that was asked about last, as their events have them. */
  #last: KnownWords | null = null;

  constructor(utterance: SegmentedText) {
    this.#utterance = utterance;
  }

  /** The last such place up to `at`. Offsets in the spoken text. */
  placeUpTo(at: number): number {
    const place = this.#utterance.transcript.segments.findLast(({ start }) => start < at);
    const wordPlace = place === undefined ? at : place.start + this.wordsOf(place).before(at - place.start);
    const next = this.#utterance.spoken.placeBefore(wordPlace, Number.POSITIVE_INFINITY);
    return next === at ? at : this.placeUpTo(next);
  }

  /** Offsets from the segment's beginning. */
  wordsOf({ start, end }: SegmentSpan): WordPositions {
    const { spoken, joints, isExpressive } = this.#utterance;
    const last = this.#last;
    if (last?.spoken === spoken && last.start === start && last.end === end) return last.words;
    const words = new WordPositions(spoken.spoken.slice(start, end), {
      joints: joints.map((at) => at - start).filter((at) => at > 0),
      hasDirections: isExpressive,
    });
    this.#last = { spoken, start, end, words };
    return words;
  }
}
