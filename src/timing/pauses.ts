/**
 * Text without times, held to the silences in its audio: where the voice pauses, it has most likely come to a stop or a
 * comma. What lies between two such places is spread over the sound between them.
 */
import { characterWeight } from "./draft.ts";

/** Seconds of a response in which nothing sounds. */
export interface Pause {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** A place in a text, and its time. */
interface Knot {
  readonly offset: number;
  readonly seconds: number;
}

/** Shorter silences are in every word with a "t" or a "k". */
const MIN_PAUSE_SECONDS = 0.09;
/** Silences that are no further apart are one: audio that came in two pieces. */
const JOINT_SECONDS = 0.002;
/** What it costs to leave a mark in the text without a pause; a pause without a mark costs its length; seconds. */
const UNPAUSED_STOP_SECONDS = 0.3;
const UNPAUSED_CLAUSE_SECONDS = 0.1;
/** Cost of a second between where a mark is expected and its pause: what is expected is a rough guess. */
const DISTANCE_COST = 0.5;
/** How much longer the letters of the last word before a mark last. */
const FINAL_FACTOR = 1.25;
/** Of a script without spaces no more is taken for that word; UTF-16 units. */
const MAX_FINAL_CHARS = 16;
/** More than that in one gap are not matched: time grows with their product. */
const MAX_PLACES = 256;

/** A mark that is followed by space, with the space; wide marks need none. */
const PLACES =
  /[\p{Terminal_Punctuation}…–—]\p{P}*(?:\s+|$)|[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]+\s*|\s[-–—]\s+|\n+/gu;
const STOP = /[\p{Sentence_Terminal}…\n]/u;

/** The silences of one response, rising. */
export class Pauses {
  #pauses: Pause[] = [];

  add(pauses: readonly Pause[]): void {
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
  within(fromSeconds: number, untilSeconds: number): Pause[] {
    return this.#pauses
      .map(({ startSeconds, endSeconds }) => ({
        startSeconds: Math.max(startSeconds, fromSeconds),
        endSeconds: Math.min(endSeconds, untilSeconds),
      }))
      .filter(({ startSeconds, endSeconds }) => endSeconds - startSeconds >= MIN_PAUSE_SECONDS);
  }

  /** Nothing is asked any more of what lies before. */
  forgetBefore(seconds: number): void {
    if ((this.#pauses[0]?.endSeconds ?? seconds) < seconds)
      this.#pauses = this.#pauses.filter(({ endSeconds }) => endSeconds >= seconds);
  }
}

interface Place {
  readonly start: number;
  readonly end: number;
  /** Middle of where it is expected. */
  readonly seconds: number;
  readonly unpausedCost: number;
}

/** A text that is spoken in a stretch of audio, with the times that are known of it. Offsets into the text. */
export class PausedText {
  /** Weight of all before each offset. */
  readonly #weights: Float64Array;
  /** Its ends, and where a pause begins and ends; rising. */
  readonly #knots: readonly Knot[];

  /** `from`, `until`: of the stretch, seconds; `pauses`: those in it. */
  constructor(
    text: string,
    {
      from,
      until,
      pauses,
    }: { readonly from: number; readonly until: number; readonly pauses: readonly Pause[] },
  ) {
    const marks = [...text.matchAll(PLACES)].slice(0, MAX_PLACES);
    this.#weights = weightsOf(text, marks);
    this.#knots = this.#knotsOf(text, { from, until, pauses, marks });
  }

  /** When the text has come to an offset: between two knots by how long its characters take against each other. */
  secondsAt(offset: number): number {
    let [before = { offset: 0, seconds: 0 }] = this.#knots;
    for (const knot of this.#knots) {
      if (knot.offset > offset) {
        const said = this.#weight(before.offset, offset);
        const total = this.#weight(before.offset, knot.offset) || 1;
        return before.seconds + ((knot.seconds - before.seconds) * said) / total;
      }
      before = knot;
    }
    return before.seconds;
  }

  #weight(from: number, to: number): number {
    return (this.#weights[to] ?? 0) - (this.#weights[from] ?? 0);
  }

  #knotsOf(
    text: string,
    of: {
      readonly from: number;
      readonly until: number;
      readonly pauses: readonly Pause[];
      readonly marks: readonly RegExpExecArray[];
    },
  ): Knot[] {
    const { from, until, pauses, marks } = of;
    const [first, last] = [
      { offset: 0, seconds: from },
      { offset: text.length, seconds: until },
    ];
    const [lead] = pauses;
    if (lead === undefined) return [first, last];
    const perWeight = (until - from) / (this.#weight(0, text.length) || 1);
    const places = marks.map((mark): Place => {
      const [start, end] = [mark.index, mark.index + mark[0].length];
      const middle = this.#weight(0, start) + this.#weight(start, end) / 2;
      const unpausedCost = STOP.test(mark[0]) ? UNPAUSED_STOP_SECONDS : UNPAUSED_CLAUSE_SECONDS;
      return { start, end, seconds: from + middle * perWeight, unpausedCost };
    });
    // Before the first word nothing is said.
    const isLead = lead.startSeconds <= from;
    const paused = matched(places, isLead ? pauses.slice(1) : pauses).flatMap(([place, pause]) => [
      { offset: place.start, seconds: pause.startSeconds },
      { offset: place.end, seconds: pause.endSeconds },
    ]);
    return [first, ...(isLead ? [{ offset: 0, seconds: lead.endSeconds }] : []), ...paused, last];
  }
}

/** The last word before a mark takes longer than others of as many letters. */
function weightsOf(text: string, marks: readonly RegExpExecArray[]): Float64Array {
  const weights = new Float64Array(text.length + 1);
  const finals = marks.map(({ index }) => ({ start: lastWordStart(text, index), end: index }));
  let weight = 0;
  let next = 0;
  for (let at = 0; at < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    while (at >= (finals[next]?.end ?? Number.POSITIVE_INFINITY)) next += 1;
    const isFinal = at >= (finals[next]?.start ?? Number.POSITIVE_INFINITY);
    weight += characterWeight(character) * (isFinal ? FINAL_FACTOR : 1);
    for (let unit = 0; unit < character.length; unit += 1) weights[++at] = weight;
  }
  return weights;
}

function lastWordStart(text: string, end: number): number {
  const start = text.slice(Math.max(0, end - MAX_FINAL_CHARS), end).search(/\S+$/);
  return start < 0 ? end : Math.max(0, end - MAX_FINAL_CHARS) + start;
}

/** Which mark each pause stands for, in order, so that the sum of all costs is least. */
function matched(places: readonly Place[], pauses: readonly Pause[]): [Place, Pause][] {
  const some = pauses.slice(0, MAX_PLACES);
  const width = some.length + 1;
  const costs = new Float64Array((places.length + 1) * width);
  const costOf = (place: number, pause: number): number => costs[place * width + pause] ?? 0;
  const skipPlace = (place: number): number => places[place]?.unpausedCost ?? 0;
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
  const pairs: [Place, Pause][] = [];
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

function lengthOf(pause: Pause | undefined): number {
  return pause === undefined ? 0 : pause.endSeconds - pause.startSeconds;
}

function middleOf(pause: Pause | undefined): number {
  return pause === undefined ? 0 : (pause.startSeconds + pause.endSeconds) / 2;
}
