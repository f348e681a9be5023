/**
 * Turns text of any length, in any pieces, into `text` commands that a gateway takes: no piece larger than a
 * message may be, no utterance longer than its limit; a long text becomes several utterances, cut at a space.
 */
export interface FedText {
  readonly utteranceId: string;
  /** Offset of `text` in its utterance. */
  readonly start: number;
  readonly text: string;
}

export interface EndOfUtterance {
  readonly utteranceId: string;
  readonly text: null;
}

export interface FeederOptions {
  /** Most UTF-16 code units of one utterance. */
  readonly maxUtteranceChars: number;
  /** Most UTF-16 code units of one piece; at least 2. */
  readonly maxPieceChars: number;
  newUtteranceId(): string;
}

/** Share of an utterance's limit from which on it ends at the next space. */
const NEARLY_FULL = 0.9;

/** The last sentence mark that a space or the end of the text follows, or that needs none (Chinese, Japanese). */
const LAST_SENTENCE_END = /(?:(?<=[.!?])\s|[。！？])(?!.*(?:[.!?]\s|[。！？]))/su;

export class TextFeeder {
  readonly #options: FeederOptions;
  /** The utterance that takes text; undefined before the first piece and after each end. */
  #current: { readonly id: string; length: number; endsWithSpace: boolean } | undefined;

  constructor(options: FeederOptions) {
    this.#options = options;
  }

  /** What is to be sent of it, in order. */
  *push(text: string): Generator<FedText | EndOfUtterance> {
    let rest = text;
    while (true) {
      // Blanks before an utterance say nothing: without this a last newline could become an utterance of its own.
      if (this.#current === undefined) rest = rest.trimStart();
      if (rest === "") return;
      const { maxUtteranceChars, maxPieceChars } = this.#options;
      const length = this.#current?.length ?? 0;
      const room = maxUtteranceChars - length;
      // Nearly full: the next space is a better place to go on in a new utterance than the middle of a word.
      if (room === 0 || (length > maxUtteranceChars * NEARLY_FULL && /^\s/u.test(rest))) {
        yield* this.end();
        continue;
      }
      const limit = Math.min(room, maxPieceChars);
      const taken = rest.length <= limit ? rest.length : cutAt(rest, limit);
      // The next word does not fit any more: it is the first one of the next utterance.
      const isInsideWord = taken < rest.length && !/\s$/u.test(rest.slice(0, taken));
      if (isInsideWord && limit === room && this.#current?.endsWithSpace) {
        yield* this.end();
        continue;
      }
      // 0 where a pair does not fit into the last unit of room.
      if (taken > 0) yield this.#piece(rest.slice(0, taken));
      rest = rest.slice(taken);
      if (rest !== "" && limit === room) yield* this.end();
    }
  }

  /** Ends the current utterance; more text begins another. */
  *end(): Generator<EndOfUtterance> {
    if (this.#current === undefined) return;
    const { id: utteranceId } = this.#current;
    this.#current = undefined;
    yield { utteranceId, text: null };
  }

  #piece(text: string): FedText {
    this.#current ??= { id: this.#options.newUtteranceId(), length: 0, endsWithSpace: false };
    const { id: utteranceId, length: start } = this.#current;
    this.#current.length += text.length;
    this.#current.endsWithSpace = /\s$/u.test(text);
    return { utteranceId, start, text };
  }
}

/**
 * Behind the last sentence in the second half of `limit`, else behind the last space before it; else at the limit,
 * but never between the halves of a surrogate pair.
 */
function cutAt(text: string, limit: number): number {
  const half = limit >> 1;
  const sentence = text.slice(half, limit).search(LAST_SENTENCE_END);
  if (sentence >= 0) return half + sentence + 1;
  const space = text.lastIndexOf(" ", limit - 1);
  if (space > 0) return space + 1;
  const isPair = /[\ud800-\udbff]/.test(text[limit - 1] ?? "") && /[\udc00-\udfff]/.test(text[limit] ?? "");
  return isPair ? limit - 1 : limit;
}
