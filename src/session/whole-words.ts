/**
 * The words of a response whose last character has its time, where they end on the timeline, and so up to where the
 * response is whole if it breaks off.
 */
import type { Timing } from "../protocol/vocabulary.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { SpokenTime } from "./utterance.ts";

/** Times are rounded. */
const TOLERANCE_TICKS = 10 * TICKS_PER_MS;
/** Words behind the audio pushed are let go of when there are so many. */
const MAX_WORDS = 128;

interface WholeWord {
  /** The utterance's own: it moves with the silence that is trimmed. */
  readonly time: SpokenTime;
  readonly timing: Timing;
}

export interface Response {
  /** End of the audio pushed, and up to where a word may end to be here. */
  readonly edgeTicks: number;
  readonly receivedTicks: number;
  /** Up to where its characters have times. */
  readonly timedTicks: number;
  /** Whether a place in the text may be an end: in the middle of a stretch that stands for another it may not. */
  readonly mayEndAt: (spokenEnd: number) => boolean;
}

/** Where a response that broke off is whole. */
export interface WholeEnd {
  /** Offset in the spoken text; null: at the beginning of the response's own. */
  readonly spokenEnd: number | null;
  /** Where on the timeline; null: at its beginning. */
  readonly ticks: number | null;
}

export class WholeWords {
  #words: WholeWord[] = [];
  #hasForgotten = false;

  note(time: SpokenTime, timing: Timing): void {
    this.#words.push({ time, timing });
  }

  /** End of the last word, ticks of the timeline; 0 where there is none. */
  get endTicks(): number {
    return this.#words.at(-1)?.time.endTicks ?? 0;
  }

  /** What ends before is pushed and stays as it is. */
  forgetBefore(ticks: number): void {
    if (this.#words.length <= MAX_WORDS) return;
    const last = this.#words.at(-1);
    const count = this.#words.length;
    this.#words = this.#words.filter((word) => word.time.endTicks > ticks || word === last);
    this.#hasForgotten ||= this.#words.length < count;
  }

  /**
   * Up to where all is whole and exactly timed, so that what follows can be said anew and nothing is said twice; null
   * where more was pushed than that and not only a part of the word that follows.
   */
  endOf({ edgeTicks, receivedTicks, timedTicks, mayEndAt }: Response): WholeEnd | null {
    const here = this.#words.filter(({ time }) => time.endTicks <= receivedTicks);
    const index = here.findLastIndex(({ time, timing }) => timing === "exact" && mayEndAt(time.end));
    const last = here[index];
    const next = here[index + 1];
    const knownTicks = Math.max(last?.time.endTicks ?? 0, timedTicks) + TOLERANCE_TICKS;
    const isSure = next === undefined ? edgeTicks <= knownTicks : edgeTicks < next.time.endTicks;
    if (!isSure || (last === undefined && this.#hasForgotten)) return null;
    return { spokenEnd: last?.time.end ?? null, ticks: last?.time.endTicks ?? null };
  }
}
