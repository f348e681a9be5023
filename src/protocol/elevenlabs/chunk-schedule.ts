/** When enough text waits to be spoken: the n-th generation of a context starts at the n-th length. */

const DEFAULT_SCHEDULE: readonly number[] = [120, 160, 250, 290];
const MIN_CHARS = 50;
const MAX_CHARS = 500;
/** With `try_trigger_generation`. */
const TRY_CHARS = 50;

export class ChunkSchedule {
  readonly #lengths: readonly number[];
  #generations = 0;

  /** Lengths outside 50 to 500 are taken as the nearest of these: what the vendor does is not known. */
  constructor(lengths: readonly number[] = DEFAULT_SCHEDULE) {
    this.#lengths = lengths.map((length) => Math.min(MAX_CHARS, Math.max(MIN_CHARS, Math.round(length))));
  }

  /** Characters (UTF-16) at which the next generation starts. */
  get nextChars(): number {
    return this.#lengths[Math.min(this.#generations, this.#lengths.length - 1)] ?? MAX_CHARS;
  }

  isDue(waitingChars: number, triesToStart: boolean): boolean {
    return waitingChars >= (triesToStart ? Math.min(TRY_CHARS, this.nextChars) : this.nextChars);
  }

  /** A generation has started, for whatever reason. */
  advance(): void {
    this.#generations += 1;
  }
}
