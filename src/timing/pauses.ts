/**
 * The silences of a response, and what in its text they stand for: where the voice pauses, it has most likely come to a
 * stop or a comma.
 */
import type { Silence } from "../audio/pause-finder.ts";

/** Shorter silences are in words with a "t" or a "k". */
const MIN_PAUSE_SECONDS = 0.12;
/** At either end of what is looked at: what goes on there is not seen. */
const MIN_EDGE_SECONDS = 0.09;
/** Silences that are no further apart are one: audio that came in two pieces, or a click. */
const JOINT_SECONDS = 0.002;
/** What it costs to leave a mark in the text without a pause; a pause without a mark costs its length; seconds. */
const UNPAUSED_STOP_SECONDS = 0.3;
const UNPAUSED_CLAUSE_SECONDS = 0.2;
/** Cost of a second between where a mark is expected and its pause: what is expected is a rough guess. */
const DISTANCE_COST = 0.5;
/** More than that in one gap are not matched: time grows with their product. */
export const MAX_PLACES = 256;

/** The silences of one response, rising. */
export class Pauses {
  #pauses: Silence[] = [];

  add(pauses: readonly Silence[]): void {
    for (const pause of pauses) {
      const last = this.#pauses.at(-1);
      if (last !== undefined && pause.startSeconds - last.endSeconds <= JOINT_SECONDS) {
        this.#pauses[this.#pauses.length - 1] = {
          startSeconds: last.startSeconds,
          endSeconds: pause.endSeconds,
        };
      } else this.#pauses.push(pause);
    }
  }

  /** Those long enough to be heard as pauses, as far as they lie in a stretch. */
  within(fromSeconds: number, untilSeconds: number): Silence[] {
    return this.#pauses
      .map(({ startSeconds, endSeconds }) => ({
        startSeconds: Math.max(startSeconds, fromSeconds),
        endSeconds: Math.min(endSeconds, untilSeconds),
      }))
      .filter(({ startSeconds, endSeconds }) => {
        const isAtEdge = startSeconds === fromSeconds || endSeconds === untilSeconds;
        return endSeconds - startSeconds >= (isAtEdge ? MIN_EDGE_SECONDS : MIN_PAUSE_SECONDS);
      });
  }

  /** Nothing is asked any more of what lies before. */
  forgetBefore(seconds: number): void {
    if ((this.#pauses[0]?.endSeconds ?? seconds) < seconds)
      this.#pauses = this.#pauses.filter(({ endSeconds }) => endSeconds >= seconds);
  }
}

/** A mark in the text. Offsets into it, UTF-16. */
export interface PausePlace {
  readonly start: number;
  readonly end: number;
  /** Middle of where it is expected. */
  readonly seconds: number;
  /** Of a sentence's end, not of a clause's. */
  readonly isStop: boolean;
}

/** Which mark each pause stands for, in order, so that the sum of all costs is least. */
export function matchPauses(
  places: readonly PausePlace[],
  pauses: readonly Silence[],
): [PausePlace, Silence][] {
  const some = pauses.slice(0, MAX_PLACES);
  const width = some.length + 1;
  const costs = new Float64Array((places.length + 1) * width);
  const costOf = (place: number, pause: number): number => costs[place * width + pause] ?? 0;
  const skipPlace = (place: number): number => unpausedCost(places[place]);
  const skipPause = (pause: number): number => lengthOf(some[pause]);
  const match = (place: number, pause: number): number =>
    DISTANCE_COST * Math.abs((places[place]?.seconds ?? 0) - middleOf(some[pause]));
  for (let i = places.length; i >= 0; i--) {
    for (let j = some.length; j >= 0; j--) {
      if (i === places.length && j === some.length) continue;
      const least = Math.min(
        i < places.length ? skipPlace(i) + costOf(i + 1, j) : Number.POSITIVE_INFINITY,
        j < some.length ? skipPause(j) + costOf(i, j + 1) : Number.POSITIVE_INFINITY,
        i < places.length && j < some.length ? match(i, j) + costOf(i + 1, j + 1) : Number.POSITIVE_INFINITY,
      );
      costs[i * width + j] = least;
    }
  }
  const pairs: [PausePlace, Silence][] = [];
  for (let i = 0, j = 0; i < places.length && j < some.length; ) {
    const [place, pause] = [places[i], some[j]];
    const cost = costOf(i, j);
    if (place !== undefined && pause !== undefined && cost === match(i, j) + costOf(i + 1, j + 1)) {
      pairs.push([place, pause]);
      i += 1;
      j += 1;
    } else if (cost === skipPlace(i) + costOf(i + 1, j)) i += 1;
    else j += 1;
  }
  return pairs;
}

function unpausedCost(place: PausePlace | undefined): number {
  if (place === undefined) return 0;
  return place.isStop ? UNPAUSED_STOP_SECONDS : UNPAUSED_CLAUSE_SECONDS;
}

function lengthOf(pause: Silence | undefined): number {
  return pause === undefined ? 0 : pause.endSeconds - pause.startSeconds;
}

function middleOf(pause: Silence | undefined): number {
  return pause === undefined ? 0 : (pause.startSeconds + pause.endSeconds) / 2;
}
