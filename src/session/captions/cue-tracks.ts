/** The cues of one utterance in every style that somebody wants, and who says them. */
import type { CueMode, CueProfile } from "../../protocol/vocabulary.ts";
import type { SpokenText } from "../../text/spoken-text.ts";
import type { Cue } from "../../timing/cues/cue-builder.ts";
import { type CueStyle, styleKey } from "../../timing/cues/cue-profiles.ts";
import type { TimedWord } from "../../timing/timed.ts";
import type { EventBuilder } from "../events/event-writer.ts";
import { UtteranceCues } from "./utterance-cues.ts";
import { type Voiced, type VoicePart, voiceParts } from "./voice-parts.ts";

/** A cue and which style it is of. */
export interface StyledCue {
  readonly cue: Cue;
  /** As `styleKey` names it. */
  readonly style: string;
}

/** The style that a listener's settings name. */
export function styleOf(settings: {
  readonly cue_profile?: CueProfile | undefined;
  readonly cue_mode?: CueMode | undefined;
}): CueStyle {
  return { profile: settings.cue_profile ?? "web", mode: settings.cue_mode ?? "pop-on" };
}

export class CueTracks {
  readonly #spoken: SpokenText;
  readonly #voices: readonly VoicePart[];
  readonly #tracks = new Map<string, UtteranceCues>();

  constructor(utterance: Voiced & { readonly spoken: SpokenText }) {
    this.#spoken = utterance.spoken;
    this.#voices = voiceParts(utterance);
  }

  /** One more style, from `spokenStart` in the spoken text on; null where it is there already. */
  add(style: CueStyle, spokenStart: number, notBeforeSeconds: number): UtteranceCues | null {
    const key = styleKey(style);
    if (this.#tracks.has(key)) return null;
    const options = { style, from: spokenStart, notBeforeSeconds, voices: this.#voices };
    const track = new UtteranceCues(this.#spoken, options);
    this.#tracks.set(key, track);
    return track;
  }

  /** Words in order, with the client's offsets, in seconds of the timeline. */
  push(words: readonly TimedWord[]): StyledCue[] {
    return this.#all((track) => track.push(words));
  }

  /** No word before `next` in the spoken text follows; see `UtteranceCues.endSegment`. */
  endSegment(next: number, untilSeconds: number): StyledCue[] {
    return this.#all((track) => track.endSegment(next, untilSeconds));
  }

  /** Remembers a cue and the event that says it. */
  note(
    style: string,
    place: { readonly startTicks: number; readonly endTicks: number },
    build: EventBuilder,
  ): void {
    this.#tracks.get(style)?.note(place.startTicks, place.endTicks, build);
  }

  /** The cue of a style that stands at a place of the timeline and began before it. */
  at(ticks: number, style: CueStyle): EventBuilder | undefined {
    return this.#tracks.get(styleKey(style))?.at(ticks);
  }

  #all(cuesOf: (track: UtteranceCues) => readonly Cue[]): StyledCue[] {
    return [...this.#tracks].flatMap(([style, track]) => cuesOf(track).map((cue) => ({ style, cue })));
  }
}
