/**
 * The words of a response whose last character has its time, where they end on the timeline, and so up to where the
 * response is whole if it breaks off.
 */
import type { Timing } from "../../protocol/vocabulary.ts";
import type { RestartPlaces } from "../restart-places.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { SpokenTime } from "./transcript.ts";

/** Times are rounded. */
const TOLERANCE_TICKS = 10 * TICKS_PER_MS;
/** Times may come a little behind their audio: so much sound that has no times yet, about a word, may be said again. */
const LATE_TICKS = 300 * TICKS_PER_MS;
/** Words behind the audio rendered are let go of when there are so many. */
const MAX_WORDS = 128;

interface WholeWord {
  /** The utterance's own: it moves with the silence that is trimmed. */
  readonly time: SpokenTime;
  readonly timing: Timing;
}

export interface Response {
  /** It may not end inside text that stands for other text of the client. */
  readonly places: Pick<RestartPlaces, "before">;
  /** Whether any of its text behind an offset in the spoken text is still to be said. */
  readonly hasTextBehind: (spokenEnd: number) => boolean;
  /** End of the audio rendered, and up to where a word may end to be here. */
  readonly writeTicks: number;
  readonly receivedTicks: number;
  /** End of the last sound that has come, rendered or not. */
  readonly soundTicks: number;
  /** Up to where its characters have times; null: none has. */
  readonly timedTicks: number | null;
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

  /** What ends before is rendered and stays as it is. */
  forgetBefore(ticks: number): void {
    if (this.#words.length <= MAX_WORDS) return;
    const last = this.#words.at(-1);
    const count = this.#words.length;
    this.#words = this.#words.filter((word) => word.time.endTicks > ticks || word === last);
    this.#hasForgotten ||= this.#words.length < count;
  }

  /**
   * The last word whose time is known (`exact` or `scaled`), so that what follows can be asked for again and nothing is said
   * twice; null where more was rendered than that and a part of the word that follows.
   */
  endOf(response: Response): WholeEnd | null {
    const { places, writeTicks, soundTicks, timedTicks } = response;
    const here = this.#words.filter(({ time }) => time.endTicks <= response.receivedTicks);
    const index = here.findLastIndex(
      ({ time, timing }) => timing !== "estimated" && places.before(time.end) === time.end,
    );
    const last = here[index];
    const next = here[index + 1];
    if (last === undefined && this.#hasForgotten) return null;
    const end = { spokenEnd: last?.time.end ?? null, ticks: last?.time.endTicks ?? null };
    if (next !== undefined) return writeTicks < next.time.endTicks ? end : null;
    if (last !== undefined && !response.hasTextBehind(last.time.end)) return end;
    const knownTicks = Math.max(last?.time.endTicks ?? 0, timedTicks ?? 0) + TOLERANCE_TICKS;
    const lateTicks = timedTicks === null ? 0 : LATE_TICKS;
    if (writeTicks <= knownTicks || Math.min(writeTicks, soundTicks) <= knownTicks + lateTicks) return end;
    return null;
  }
}
