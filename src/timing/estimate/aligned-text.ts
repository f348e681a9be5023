/**
 * Text without times, held to what is heard of it: marks to the silences in its audio, letters to how loud and bright the
 * sound between them is, and where that says nothing, letters to how long they take against each other.
 */
import type { Silence } from "../../audio/pause-finder.ts";
import { charactersOf } from "../draft.ts";
import { partOf, type SoundTrack } from "./feature-track.ts";
import { type Letter, placeLetters } from "./forced-alignment.ts";
import { isBlank, SOUND_SHAPES, soundKindOf, soundShareOf } from "./letter-features.ts";
import { matchMarks } from "./pause-matching.ts";
import { soundClock } from "./pauses.ts";
import { letterWeights, type Mark, marksOf, weightsBefore } from "./punctuation.ts";

/** A place in a text, and its time. */
interface Knot {
  readonly offset: number;
  readonly seconds: number;
}

/** How much longer the letters of the last word before a mark last. */
const FINAL_FACTOR = 1.25;
/** Of a script without spaces no more is taken for that word; UTF-16 units. */
const MAX_FINAL_CHARS = 16;
/** A silence that ends no further from the end is the one behind the last word; less where a letter may come behind it. */
const TRAIL_SECONDS = 0.05;
const TRAIL_BEHIND_LETTER_SECONDS = 0.01;
/** No letter takes less: where silences leave less, they are no pauses, but all of it is quiet. */
const MIN_LETTER_SECONDS = 0.005;
/** Share of the letters whose sound has to be known. */
const MIN_KNOWN = 0.5;

export interface Hearing {
  /** The stretch of the response in which the text is spoken, seconds. */
  readonly from: number;
  readonly until: number;
  /** Pauses in it, rising. */
  readonly pauses: readonly Silence[];
  /** Its sound; null = not known. */
  readonly sound: SoundTrack | null;
}

/** A text that is spoken in a stretch of audio, with the times that are known of it. Offsets into the text, UTF-16. */
export class HeardText {
  /** Weight of all before each offset. */
  readonly #weights: Float64Array;
  /** Its ends, and what is known between; offsets and times rise, or stay. */
  readonly #knots: readonly Knot[];

  constructor(text: string, hearing: Hearing) {
    const marks = marksOf(text);
    this.#weights = weightsOf(text, marks);
    const { sound } = hearing;
    const pauses = leaveTimeFor(text, hearing) ? hearing.pauses : [];
    const knots = this.#knotsAtPauses(text, { ...hearing, pauses }, marks);
    this.#knots =
      sound === null
        ? knots
        : knots.flatMap((knot, i) => [knot, ...this.#knotsWithin(text, sound, knot, knots[i + 1])]);
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

  #knotsAtPauses(text: string, { from, until, pauses }: Hearing, marks: readonly Mark[]): readonly Knot[] {
    const [first, last] = [
      { offset: 0, seconds: from },
      { offset: text.length, seconds: until },
    ];
    // Before the first word nothing is said, and behind the last one neither.
    const textEnd = text.trimEnd().length;
    const isFinal = ({ end }: Mark): boolean => end >= textEnd;
    const finalMark = marks.find(isFinal);
    const trailSeconds = finalMark === undefined ? TRAIL_BEHIND_LETTER_SECONDS : TRAIL_SECONDS;
    const lead = pauses.find(({ startSeconds }) => startSeconds <= from);
    const trail = pauses.find((pause) => pause !== lead && pause.endSeconds >= until - trailSeconds);
    const between = marks.filter((mark) => !isFinal(mark));
    const inside = pauses.filter((pause) => pause !== lead && pause !== trail);
    const weights = letterWeights(text, marks);
    const soundBefore = soundClock(from, pauses);
    const [soundSeconds, endWeight] = [soundBefore(until), weights[text.length] ?? 0];
    const { pairs } = matchMarks(
      {
        marks: between.map(({ start, isStop }) => ({ weight: weights[start] ?? 0, isStop })),
        pauses: inside.map(({ startSeconds }) => soundBefore(startSeconds)),
        soundSeconds,
        endWeight,
      },
      endWeight / soundSeconds,
    );
    const paused = pairs.flatMap(([mark, pause]) => [
      { offset: between[mark]?.start ?? 0, seconds: inside[pause]?.startSeconds ?? from },
      { offset: between[mark]?.end ?? 0, seconds: inside[pause]?.endSeconds ?? from },
    ]);
    const knots = [first, ...paused, last];
    if (lead !== undefined) knots.splice(1, 0, { offset: 0, seconds: lead.endSeconds });
    // Marks and spaces alone take what sound there is.
    const saidTo = Math.min(finalMark?.start ?? textEnd, textEnd);
    if (trail !== undefined && saidTo > 0)
      knots.splice(-1, 0, { offset: saidTo, seconds: trail.startSeconds });
    return knots;
  }

  /** Where each letter between two knots is heard to begin. */
  #knotsWithin(text: string, sound: SoundTrack, from: Knot, until: Knot | undefined): readonly Knot[] {
    const track = until === undefined ? null : partOf(sound, from.seconds, until.seconds);
    if (until === undefined || track === null) return [];
    const letters: (Letter & { readonly start: number })[] = [];
    let [at, before] = [from.offset, ""];
    for (const character of charactersOf(text.slice(from.offset, until.offset))) {
      const start = at;
      at += character.length;
      const kind = soundKindOf(character);
      const share = soundShareOf(character, before);
      before = character;
      letters.push({ kind, start, weight: this.#weight(start, at) * SOUND_SHAPES[kind].weight * share });
    }
    const places = areMostKnown(letters) ? placeLetters(letters, track) : null;
    if (places === null) return [];
    const frameSeconds = (until.seconds - from.seconds) / track.levels.length;
    return letters.slice(1).map(({ start }, i) => {
      const seconds = from.seconds + (places[i + 1] ?? 0) * frameSeconds;
      return { offset: start, seconds: Math.min(seconds, until.seconds) };
    });
  }
}

function leaveTimeFor(text: string, { from, until, pauses }: Hearing): boolean {
  const silent = pauses.reduce((sum, { startSeconds, endSeconds }) => sum + endSeconds - startSeconds, 0);
  const letters = text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  return until - from - silent > letters * MIN_LETTER_SECONDS;
}

/** Whether it is known how they sound: in some scripts a letter may be any sound. */
function areMostKnown(letters: readonly Letter[]): boolean {
  const said = letters.filter(({ kind }) => !isBlank(kind));
  return said.length > 0 && said.filter(({ kind }) => kind !== "other").length >= MIN_KNOWN * said.length;
}

/** The last word before a mark takes longer than others of as many letters. */
function weightsOf(text: string, marks: readonly Mark[]): Float64Array {
  const finals = marks.map(({ start }) => ({ start: lastWordStart(text, start), end: start }));
  return weightsBefore(text, finals, FINAL_FACTOR);
}

function lastWordStart(text: string, end: number): number {
  const start = text.slice(Math.max(0, end - MAX_FINAL_CHARS), end).search(/(?<!\S)\S+$/);
  return start < 0 ? end : Math.max(0, end - MAX_FINAL_CHARS) + start;
}
