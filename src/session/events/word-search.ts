/**
 * The words of one response, found in its audio by another thread. It is asked once the response has begun without times: at
 * the first audio where the voice had none before, else a little later.
 */

import type { Clock, Timer } from "../../kit/clock.ts";
import type {
  Aligner,
  AlignmentJob,
  AlignmentOutcome,
  AlignmentRequest,
  FoundWord,
} from "../../timing/aligner.ts";
import { TICKS_PER_SECOND } from "../../timing/ticks.ts";

/** So much audio without times begins a response that has none, unless its times come within a while behind it. */
const UNTIMED_TICKS = 0.3 * TICKS_PER_SECOND;
const LATE_TIMES_MS = 50;
/** Audio that is kept until then. */
const MAX_FIRST_BYTES = 256 * 1024;
/** Longest wait for the next words. A thread that has to start takes most of it, where others use the processor. */
const MAX_WAIT_MS = 3000;
/** The same where listeners need what follows: a thread that is awake has looked at all of it by then. */
const HURRIED_WAIT_MS = 60;

export interface WordSearchOptions {
  readonly aligner: Aligner;
  readonly request: AlignmentRequest;
  readonly clock: Clock;
  /** It is asked at once: the voice spoke without times before, or its service says that it has none. */
  readonly isNeeded: boolean;
  readonly onFound: (words: readonly FoundWord[]) => void;
  /** The audio does not say the text. */
  readonly onUnlike: () => void;
  /** Words were found, or no more are waited for. */
  readonly onTimes: () => void;
}

export class WordSearch {
  readonly #options: WordSearchOptions;
  /** Copies of the first audio, until it is known that it is needed. */
  #first: Uint8Array[] = [];
  #firstBytes = 0;
  /** It will be asked. */
  #opening: Timer | null = null;
  /** null: not asked, or not any more. */
  #job: AlignmentJob | null = null;
  /** When it last said anything. */
  #heardMs = 0;
  #isOver = false;
  #isEnded = false;
  #outcome: AlignmentOutcome | null = null;
  #timer: Timer | null = null;
  #endedMs = 0;

  constructor(options: WordSearchOptions) {
    this.#options = options;
  }

  /** Words are looked for, and it is not too long that any came. */
  get isBusy(): boolean {
    const isAsked = this.#job !== null || this.#opening !== null;
    return isAsked && this.#options.clock.nowMs() - this.#heardMs < MAX_WAIT_MS;
  }

  /** All words were found. */
  get isComplete(): boolean {
    return this.#outcome === "complete";
  }

  /** All audio is there, and its last words are still looked for. */
  get isAwaited(): boolean {
    return this.#isEnded && this.#job !== null;
  }

  /** Audio without times, behind all before. `ticks`: of all audio so far. */
  push(audio: Uint8Array, ticks: number): void {
    if (this.#isOver) return;
    if (this.#job !== null) {
      this.#job.push(audio);
      return;
    }
    this.#first.push(audio.slice());
    this.#firstBytes += audio.length;
    const { isNeeded } = this.#options;
    if (this.#firstBytes > MAX_FIRST_BYTES) this.#open();
    else if (isNeeded || ticks >= UNTIMED_TICKS) this.#openIn(isNeeded ? 0 : LATE_TIMES_MS);
  }

  /** Nothing of the response follows. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#first.length > 0) this.#open();
    this.#job?.finish();
    if (this.#job === null) return;
    const { clock, onTimes } = this.#options;
    this.#endedMs = clock.nowMs();
    this.#timer = clock.at(this.#endedMs + MAX_WAIT_MS, () => {
      this.close();
      onTimes();
    });
  }

  /** Listeners need what follows. */
  hurry(): void {
    if (this.isAwaited && this.#options.clock.nowMs() - this.#endedMs >= HURRIED_WAIT_MS) this.close();
  }

  /** Nobody wants words any more: the response has times, or is over. Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#first = [];
    this.#opening?.cancel();
    this.#opening = null;
    this.#timer?.cancel();
    this.#job?.close();
    this.#job = null;
  }

  /** Not in the call that brings the audio: to ask takes time, and its first frames would leave behind that. */
  #openIn(ms: number): void {
    if (this.#opening !== null) return;
    const { clock } = this.#options;
    this.#heardMs = clock.nowMs();
    this.#opening = clock.at(this.#heardMs + ms, () => this.#open());
  }

  #open(): void {
    if (this.#isOver) return;
    this.#opening?.cancel();
    this.#opening = null;
    const { aligner, clock, request, onFound, onTimes } = this.#options;
    this.#heardMs = clock.nowMs();
    this.#job = aligner.open(request, {
      found: (words) => {
        this.#heardMs = clock.nowMs();
        onFound(words);
        onTimes();
      },
      ended: (outcome) => {
        this.#job = null;
        this.#outcome = outcome;
        if (outcome === "unlike") this.#options.onUnlike();
        this.close();
        onTimes();
      },
    });
    if (this.#job === null) this.close();
    for (const piece of this.#first) this.#job?.push(piece);
    this.#first = [];
  }
}
