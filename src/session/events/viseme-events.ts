/** The `viseme` events of one segment, in every set that somebody has asked for: where nobody has, nothing is made. */
import { VISEME_KINDS, type VisemeSet } from "../../protocol/vocabulary.ts";
import type { TimedCharacters, TimedWord } from "../../timing/timed.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { EventBuilder } from "./event-writer.ts";
import { VisemeTrack } from "./viseme-track.ts";

export type VisemeKind = (typeof VISEME_KINDS)[VisemeSet];

const SETS = Object.entries(VISEME_KINDS) as [VisemeSet, VisemeKind][];

export interface VisemeEventsOptions {
  readonly utterance: Utterance;
  readonly wants: (kind: VisemeKind) => boolean;
  /** Where on the timeline a moment of the response is. */
  readonly ticksAt: (seconds: number) => number;
  /** Offset in the spoken text from which on nothing is emitted: the response broke off there. */
  readonly spokenBreakOff: () => number;
  /** Takes an event that belongs at `ticks` of the timeline, and is made when it is emitted. */
  readonly add: (kind: VisemeKind, ticks: number, build: () => EventBuilder | null) => void;
}

export class VisemeEvents {
  readonly #options: VisemeEventsOptions;
  /** null until somebody asks. */
  #track: VisemeTrack | null = null;

  constructor(options: VisemeEventsOptions) {
    this.#options = options;
  }

  /** When letters of the spoken text are said; before the words that have them. */
  noteCharacters(timed: TimedCharacters): void {
    this.#wantedTrack()?.noteCharacters(timed);
  }

  /** Words of the spoken text, in order. */
  noteWords(words: readonly TimedWord[]): void {
    const [first] = words;
    const track = first === undefined ? null : this.#wantedTrack();
    if (first === undefined || track === null) return;
    const batch = track.noteWords(words);
    const { wants, add, spokenBreakOff, ticksAt } = this.#options;
    const ticks = ticksAt(first.startSeconds);
    for (const [set, kind] of SETS) {
      if (wants(kind)) add(kind, ticks, () => track.builder(batch, set, spokenBreakOff()));
    }
  }

  /** The pause behind the last word, once it is known where the audio ends. */
  close(endTicks: number): void {
    const track = this.#track;
    const last = track?.lastWord;
    if (track === null || last === undefined) return;
    const { wants, add, ticksAt } = this.#options;
    const ticks = ticksAt(last.endSeconds);
    for (const [set, kind] of SETS) {
      if (wants(kind)) add(kind, ticks, () => track.closing(set, endTicks));
    }
  }

  #wantedTrack(): VisemeTrack | null {
    const { utterance, wants, ticksAt } = this.#options;
    if (!SETS.some(([, kind]) => wants(kind))) return null;
    const { id, languageCode, spoken } = utterance;
    this.#track ??= new VisemeTrack({
      utteranceId: id,
      language: languageCode ?? undefined,
      text: () => spoken.spoken,
      ticksAt,
    });
    return this.#track;
  }
}
