/** What finds the words of a text in its audio, in another thread: the answers come later, and may stay away. */

/** A word that was found. Offsets in the text, UTF-16; seconds of the audio. */
export interface FoundWord {
  readonly start: number;
  readonly end: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

export interface AlignmentRequest {
  readonly text: string;
  /** As clients name it (`de`, `pt-BR`); null: what the text looks like, or English. */
  readonly language: string | null;
  /** The upstream's format. */
  readonly format: string;
}

/**
 * `complete`: all words of the audio were found. `unlike`: the audio does not say the text, or it is not known how that
 * sounds; words that were found are no better than a guess. `failed`: the thread was lost, or too much waited for it.
 */
export type AlignmentOutcome = "complete" | "unlike" | "failed";

/** Never called from inside `open`, `push` or `finish`. */
export interface AlignmentHandlers {
  /** In the order of the text, each once, and never moved. */
  found(words: readonly FoundWord[]): void;
  /** Nothing follows. */
  ended(outcome: AlignmentOutcome): void;
}

export interface AlignmentJob {
  /** The bytes are copied. */
  push(audio: Uint8Array): void;
  /** No more audio comes. */
  finish(): void;
  /** Nobody wants it any more: no handler is called. Idempotent. */
  close(): void;
}

export interface Aligner {
  /** null: this audio can't be looked into, or there is no room. */
  open(request: AlignmentRequest, handlers: AlignmentHandlers): AlignmentJob | null;
}
