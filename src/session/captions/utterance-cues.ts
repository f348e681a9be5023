/** The cues of one utterance in one style, made of its words as they are timed and of its text as it grows. */
import { BoundaryFinder } from "../../text/boundaries.ts";
import { ShownText } from "../../text/shown-text.ts";
import type { SpokenText } from "../../text/spoken-text.ts";
import { type Cue, CueBuilder } from "../../timing/cues/cue-builder.ts";
import { type CueStyle, cueNumbers } from "../../timing/cues/cue-profiles.ts";
import { RollUp } from "../../timing/cues/cue-roll-up.ts";
import type { TimedWord } from "../../timing/timed.ts";
import type { EventBuilder } from "../events/event-writer.ts";
import type { VoicePart } from "./voice-parts.ts";

/** Cues that are remembered for late joiners. */
const MAX_REMEMBERED = 4;

export interface UtteranceCuesOptions {
  readonly style: CueStyle;
  /** Where in the spoken text they begin, if somebody asked for cues in the middle of it. */
  readonly from: number;
  /** No cue starts earlier. */
  readonly notBeforeSeconds: number;
  readonly voices: readonly VoicePart[];
}

export class UtteranceCues {
  #recent: { readonly startTicks: number; readonly endTicks: number; readonly build: EventBuilder }[] = [];
  readonly #text: SpokenText;
  #builder: CueBuilder;
  /** What the builder was given: its offsets are those of this text. */
  #shown: ShownText;
  /** Where in the client's text the words are that were given to the builder, by where they are shown. */
  readonly #clientRanges = new Map<number, { readonly start: number; readonly end: number }>();
  /** Spoken text up to here was given to the builder. */
  #spokenTo: number;
  /** Voices whose end is not given to the builder yet. */
  #voicesAhead: readonly VoicePart[] = [];
  /** When the last cue disappears. */
  #lastEndSeconds: number;

  readonly #voices: readonly VoicePart[];
  readonly #style: CueStyle;
  readonly #rollUp: RollUp | null;

  constructor(text: SpokenText, { style, from, notBeforeSeconds, voices }: UtteranceCuesOptions) {
    this.#text = text;
    this.#style = style;
    this.#voices = voices;
    this.#rollUp = style.mode === "roll-up" ? new RollUp() : null;
    this.#lastEndSeconds = notBeforeSeconds;
    this.#spokenTo = from;
    this.#shown = new ShownText(text.clientEnd(from));
    this.#builder = this.#newBuilder();
  }

  /** Words in order, with the client's offsets, in seconds of the timeline. */
  push(words: readonly TimedWord[]): Cue[] {
    this.#append();
    return this.#placed(this.#builder.push(words.map((word) => this.#shownWord(word))));
  }

  /**
   * No word before `next` in the spoken text follows: its cues go out now, or they would come behind its sound. They stay
   * until `untilSeconds` at most.
   */
  endSegment(next: number, untilSeconds: number): Cue[] {
    this.#append();
    const cues = this.#placed(this.#builder.flush(untilSeconds));
    this.#spokenTo = next;
    this.#shown = new ShownText(this.#text.clientEnd(next));
    this.#builder = this.#newBuilder();
    return cues;
  }

  /** Remembers a cue and the event that says it. */
  note(startTicks: number, endTicks: number, build: EventBuilder): void {
    this.#recent = [...this.#recent.slice(1 - MAX_REMEMBERED), { startTicks, endTicks, build }];
  }

  /** The cue that stands at a place of the timeline and began before it. */
  at(ticks: number): EventBuilder | undefined {
    return this.#recent.find((cue) => cue.startTicks < ticks && ticks < cue.endTicks)?.build;
  }

  /** A word where it is shown, without what was taken out inside it. */
  #shownWord(word: TimedWord): TimedWord {
    const { start, end } = this.#shown.wordAt(word.start, word.end);
    this.#clientRanges.set(start, { start: word.start, end: word.end });
    const isWhole = end - start === word.end - word.start;
    return { ...word, start, end, text: isWhole ? word.text : this.#shown.text.slice(start, end) };
  }

  /** With the client's offsets. */
  #placed(cues: readonly Cue[]): Cue[] {
    this.#lastEndSeconds = cues.at(-1)?.endSeconds ?? this.#lastEndSeconds;
    const placed = cues.map((cue) => {
      const lines = cue.lines.map((line) => ({
        ...line,
        words: line.words.map((word) => ({ ...word, ...this.#clientRanges.get(word.start) })),
      }));
      const start = lines[0]?.words[0]?.start ?? cue.start;
      const end = lines.at(-1)?.words.at(-1)?.end ?? cue.end;
      return { ...cue, start, end, ...this.#voiceAt(start), lines };
    });
    const rollUp = this.#rollUp;
    return rollUp === null ? placed : placed.flatMap((cue) => rollUp.push(cue));
  }

  #newBuilder(): CueBuilder {
    this.#clientRanges.clear();
    this.#voicesAhead = this.#voices.filter(({ end }) => end > this.#shown.clientEnd);
    return new CueBuilder({
      breaks: new BoundaryFinder(),
      numbers: cueNumbers(this.#style),
      notBeforeSeconds: this.#lastEndSeconds,
    });
  }

  /** Who says what stands there in the client's text. */
  #voiceAt(offset: number): Pick<Cue, "voice"> {
    const part = this.#voices.find(({ end }) => offset < end) ?? this.#voices.at(-1);
    if (part === undefined) return {};
    const { voiceId, speaker } = part;
    return { voice: { voiceId, ...(speaker === undefined ? {} : { speaker }) } };
  }

  #append(): void {
    const { spoken } = this.#text;
    for (const piece of this.#text.spans(this.#spokenTo, spoken.length, true)) {
      this.#builder.append(this.#shown.append(piece, this.#text));
    }
    this.#spokenTo = spoken.length;
    for (const { end } of this.#voicesAhead)
      if (end <= this.#shown.clientEnd) this.#builder.noteVoice(this.#shown.wordAt(end, end).start);
    this.#voicesAhead = this.#voicesAhead.filter(({ end }) => end > this.#shown.clientEnd);
  }
}
