/**
 * Where in what is spoken of an utterance its speech may go on again, and so where a receipt may divide its text: not inside
 * a word or markup, and not inside what stands for something else in the client's text, so that the rest of that text is
 * spoken as it would have been.
 */
import { WordPositions } from "../text/word-positions.ts";
import type { SegmentSpan } from "./heard-share.ts";
import type { Utterance } from "./playback/utterance.ts";

export class RestartPlaces {
  readonly #utterance: Utterance;
  /** Of the segments that were asked about: words as their events have them. */
  readonly #words = new Map<SegmentSpan, WordPositions>();

  constructor(utterance: Utterance) {
    this.#utterance = utterance;
  }

  /** The last such place up to `at`. Offsets in the spoken text. */
  before(at: number): number {
    const place = this.#utterance.transcript.segments.findLast(({ start }) => start < at);
    const wordPlace = place === undefined ? at : place.start + this.wordsOf(place).before(at - place.start);
    const next = this.#utterance.spoken.placeBefore(wordPlace, Number.POSITIVE_INFINITY);
    return next === at ? at : this.before(next);
  }

  /** Offsets from the segment's beginning. */
  wordsOf(place: SegmentSpan): WordPositions {
    const known = this.#words.get(place);
    if (known !== undefined) return known;
    const { spoken, joints, isExpressive } = this.#utterance;
    const words = new WordPositions(spoken.spoken.slice(place.start, place.end), {
      joints: joints.map((at) => at - place.start).filter((at) => at > 0),
      hasDirections: isExpressive,
    });
    this.#words.set(place, words);
    return words;
  }
}
