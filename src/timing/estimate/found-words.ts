/** Words that were found in the audio of a response, and the times of the text between them. */
import type { FoundWord } from "../aligner.ts";
import type { AudioSpan, TextPart } from "../spans.ts";
import type { SpokenClock } from "../timing-estimator.ts";
import { speechWeight } from "./speech-weight.ts";

/** bench/align.bench.ts measures it on voices that nothing was tuned on. */
const FOUND_SECONDS = 0.25;

export class FoundWords {
  #words: FoundWord[] = [];

  /** Rising. */
  add(words: readonly FoundWord[]): void {
    this.#words.push(...words);
  }

  clear(): void {
    this.#words = [];
  }

  /** Nobody asks for text before that any more. */
  forgetBefore(seconds: number): void {
    if ((this.#words[0]?.endSeconds ?? seconds) < seconds)
      this.#words = this.#words.filter(({ endSeconds }) => endSeconds >= seconds);
  }

  /** Those of a part of the text that lie in some audio. */
  within({ text, from }: TextPart, { startSeconds, endSeconds }: AudioSpan): FoundWord[] {
    return this.#words.filter(
      (word) =>
        word.start >= from &&
        word.end <= from + text.length &&
        word.endSeconds > startSeconds &&
        word.startSeconds < endSeconds,
    );
  }
}

interface Knot {
  readonly offset: number;
  readonly seconds: number;
}

/** A first word that was found so little behind the first sound begins with it: no sound is left without text. */
const NEAR_SECONDS = 0.03;

/** Between what was found, text takes time by its letters, and what stands between words takes the silence. */
export class FoundClock implements SpokenClock {
  readonly boundSeconds = FOUND_SECONDS;
  readonly #text: string;
  readonly #knots: readonly Knot[];

  /** `soundSeconds`: where the first sound is. */
  constructor(
    { text, from }: TextPart,
    span: AudioSpan,
    { words, soundSeconds }: { readonly words: readonly FoundWord[]; readonly soundSeconds: number },
  ) {
    this.#text = text;
    const inside = (seconds: number): number =>
      Math.min(Math.max(seconds, span.startSeconds), span.endSeconds);
    this.#knots = [
      { offset: 0, seconds: span.startSeconds },
      ...words.flatMap(({ start, end, startSeconds, endSeconds }, i) => {
        const isFirst = from === 0 && i === 0 && startSeconds - soundSeconds <= NEAR_SECONDS;
        return [
          {
            offset: start - from,
            seconds: inside(isFirst ? Math.min(startSeconds, soundSeconds) : startSeconds),
          },
          { offset: end - from, seconds: inside(endSeconds) },
        ];
      }),
      { offset: text.length, seconds: span.endSeconds },
    ];
  }

  secondsAt(offset: number): number {
    const last = this.#knots.findLastIndex((knot) => knot.offset <= offset);
    const [before, behind] = [this.#knots[last], this.#knots[last + 1]];
    if (before === undefined) return 0;
    if (behind === undefined) return before.seconds;
    const total = speechWeight(this.#text.slice(before.offset, behind.offset));
    const said = speechWeight(this.#text.slice(before.offset, offset));
    const share = total > 0 ? Math.min(said / total, 1) : 0;
    return before.seconds + (behind.seconds - before.seconds) * share;
  }
}
