/** Text without times, laid over its audio: punctuation over pauses, and letters between by how long they take against each other. */
import type { Silence } from "../../audio/analysis/pause-finder.ts";
import type { AudioSpan } from "../spans.ts";
import type { SpokenClock } from "../timing-estimator.ts";
import { matchPauses } from "./pause-matching.ts";
import { soundClock } from "./pauses.ts";
import { letterWeights, type Punctuation, punctuationOf, weightsBefore } from "./punctuation.ts";
import { speechWeight } from "./speech-weight.ts";

/** A position in a text, and its time. */
interface Knot {
  readonly offset: number;
  readonly seconds: number;
}

/** bench/align.bench.ts measures it. */
const GUESSED_SECONDS = 0.8;
/** How many letters longer the last word before punctuation lasts, however long it is. */
const FINAL_WEIGHT = 3;
/** How much of its time punctuation takes that no pause was heard for. */
const UNPAUSED_FACTOR = 0.15;
/** In a script without spaces no more is taken for that word; UTF-16 units. */
const MAX_FINAL_CHARS = 16;
/** A silence that ends no further from the end is the one behind the last word; less where a letter may come behind it. */
const TRAIL_SECONDS = 0.05;
const TRAIL_BEHIND_LETTER_SECONDS = 0.01;
/** No letter takes less: where silences leave less, they are no pauses, but all of it is quiet. */
const MIN_LETTER_SECONDS = 0.005;

/** The audio in which a text is spoken. */
interface HeardAudio extends AudioSpan {
  /** Pauses in it, rising; null: they are not known. */
  readonly pauses: readonly Silence[] | null;
}

interface KnownAudio extends AudioSpan {
  readonly pauses: readonly Silence[];
}

/** A text that is spoken in some audio, with the times that are known of it. Offsets into the text, UTF-16. */
export class AlignedText implements SpokenClock {
  readonly boundSeconds = GUESSED_SECONDS;
  /** Weight of all before each offset. */
  readonly #weights: Float64Array;
  /** Its ends, and what is known between; offsets and times rise, or stay. */
  readonly #knots: readonly Knot[];

  constructor(text: string, heard: HeardAudio) {
    const punctuation = punctuationOf(text);
    this.#weights = weightsOf(text, punctuation, heard.pauses === null ? 1 : UNPAUSED_FACTOR);
    const known = { ...heard, pauses: heard.pauses ?? [] };
    const pauses = leaveTimeFor(text, known) ? known.pauses : [];
    this.#knots = this.#knotsAtPauses(text, { ...heard, pauses }, punctuation);
  }

  /** When the text has come to an offset: between two knots by how long its characters take against each other. */
  secondsAt(offset: number): number {
    const knots = this.#knots;
    let [low, high] = [0, knots.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((knots[middle]?.offset ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const [before, behind] = [knots[low], knots[low + 1]];
    if (before === undefined) return 0;
    if (behind === undefined) return before.seconds;
    const said = this.#weight(before.offset, offset);
    const total = this.#weight(before.offset, behind.offset);
    // Said already behind the first half of a surrogate pair; and rounding may pass the knot.
    if (said >= total) return behind.seconds;
    return Math.min(before.seconds + ((behind.seconds - before.seconds) * said) / total, behind.seconds);
  }

  #weight(from: number, to: number): number {
    return (this.#weights[to] ?? 0) - (this.#weights[from] ?? 0);
  }

  #knotsAtPauses(
    text: string,
    { startSeconds: from, endSeconds: until, pauses }: KnownAudio,
    punctuation: readonly Punctuation[],
  ): readonly Knot[] {
    const [first, last] = [
      { offset: 0, seconds: from },
      { offset: text.length, seconds: until },
    ];
    // Before the first word nothing is said, and behind the last one neither.
    const textEnd = text.trimEnd().length;
    const isFinal = ({ end }: Punctuation): boolean => end >= textEnd;
    const finalPunctuation = punctuation.find(isFinal);
    const trailSeconds = finalPunctuation === undefined ? TRAIL_BEHIND_LETTER_SECONDS : TRAIL_SECONDS;
    const lead = pauses.find(({ startSeconds }) => startSeconds <= from);
    const trail = pauses.find((pause) => pause !== lead && pause.endSeconds >= until - trailSeconds);
    const between = punctuation.filter((each) => !isFinal(each));
    const inside = pauses.filter((pause) => pause !== lead && pause !== trail);
    const weights = letterWeights(text, punctuation);
    const soundBefore = soundClock(from, pauses);
    const [soundSeconds, endWeight] = [soundBefore(until), weights[text.length] ?? 0];
    const { pairs } = matchPauses(
      {
        places: between.map(({ start, isStop }) => ({ weight: weights[start] ?? 0, isStop })),
        pauses: inside.map(({ startSeconds }) => soundBefore(startSeconds)),
        soundSeconds,
        endWeight,
      },
      endWeight / soundSeconds,
    );
    const paused = pairs.flatMap(([place, pause]) => [
      { offset: between[place]?.start ?? 0, seconds: inside[pause]?.startSeconds ?? from },
      { offset: between[place]?.end ?? 0, seconds: inside[pause]?.endSeconds ?? from },
    ]);
    const knots = [first, ...paused, last];
    if (lead !== undefined) knots.splice(1, 0, { offset: 0, seconds: lead.endSeconds });
    // Punctuation and spaces alone take what sound there is.
    const saidTo = Math.min(finalPunctuation?.start ?? textEnd, textEnd);
    if (trail !== undefined && saidTo > 0)
      knots.splice(-1, 0, { offset: saidTo, seconds: trail.startSeconds });
    return knots;
  }
}

function leaveTimeFor(text: string, { startSeconds: from, endSeconds: until, pauses }: KnownAudio): boolean {
  const silent = pauses.reduce((sum, { startSeconds, endSeconds }) => sum + endSeconds - startSeconds, 0);
  const letters = text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  return until - from - silent > letters * MIN_LETTER_SECONDS;
}

/** The last word before punctuation takes longer than others of as many letters; punctuation takes its time in pauses. */
function weightsOf(
  text: string,
  punctuation: readonly Punctuation[],
  punctuationFactor: number,
): Float64Array {
  const spans = punctuation.flatMap(({ start, end }) => {
    const wordStart = lastWordStart(text, start);
    const weight = speechWeight(text.slice(wordStart, start));
    const factor = weight === 0 ? 1 : 1 + FINAL_WEIGHT / weight;
    return [
      { start: wordStart, end: start, factor },
      { start, end, factor: punctuationFactor },
    ];
  });
  return weightsBefore(text, spans);
}

function lastWordStart(text: string, end: number): number {
  const start = text.slice(Math.max(0, end - MAX_FINAL_CHARS), end).search(/(?<!\S)\S+$/);
  return start < 0 ? end : Math.max(0, end - MAX_FINAL_CHARS) + start;
}
