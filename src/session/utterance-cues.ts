/** The cues of one utterance in one style, made of its words as they are timed and of its text as it grows. */
import { BoundaryFinder } from "../text/boundaries.ts";
import type { SpokenText } from "../text/spoken-text.ts";
import { type CueStyle, cueNumbers } from "../timing/cue-profiles.ts";
import { RollUp } from "../timing/cue-roll-up.ts";
import { type Cue, CueBuilder } from "../timing/cues.ts";
import type { TimedWord } from "../timing/timed.ts";
import type { EventBuilder } from "./event-writer.ts";
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
  /** Where in the client's text the builder's begins. */
  #base: number;
  /** Text up to here was given to the builder. */
  #spokenTo: number;
  #clientTo: number;
  /** Client's ranges that were taken out, behind the words that were shown. */
  #removed: { readonly start: number; readonly end: number }[] = [];
  /** When the last cue goes. */
  lastEndSeconds: number;

  readonly #voices: readonly VoicePart[];
  readonly #style: CueStyle;
  readonly #rollUp: RollUp | null;

  constructor(text: SpokenText, { style, from, notBeforeSeconds, voices }: UtteranceCuesOptions) {
    this.#text = text;
    this.#style = style;
    this.#voices = voices;
    this.#rollUp = style.mode === "roll-up" ? new RollUp() : null;
    this.lastEndSeconds = notBeforeSeconds;
    this.#spokenTo = from;
    this.#clientTo = text.clientEnd(from);
    this.#base = this.#clientTo;
    this.#builder = this.#newBuilder();
  }

  /** Words in order, with the client's offsets, in seconds of the timeline. */
  push(words: readonly TimedWord[]): Cue[] {
    this.#append();
    const shown = words.map((word) => ({
      ...word,
      text: this.#shown(word),
      start: word.start - this.#base,
      end: word.end - this.#base,
    }));
    return this.#placed(this.#builder.push(shown));
  }

  /**
   * No word before `next` in the spoken text follows: its cues are told, or they would come behind its sound. They stay
   * until `untilSeconds` at most.
   */
  endSegment(next: number, untilSeconds: number): Cue[] {
    this.#append();
    const cues = this.#placed(this.#builder.flush(untilSeconds));
    this.#spokenTo = next;
    this.#clientTo = this.#text.clientEnd(next);
    this.#base = this.#clientTo;
    this.#removed = [];
    this.#builder = this.#newBuilder();
    return cues;
  }

  /** Remembers how a cue is told. */
  note(startTicks: number, endTicks: number, build: EventBuilder): void {
    this.#recent = [...this.#recent.slice(1 - MAX_REMEMBERED), { startTicks, endTicks, build }];
  }

  /** The cue that stands at a place of the timeline and began before it. */
  at(ticks: number): EventBuilder | undefined {
    return this.#recent.find((cue) => cue.startTicks < ticks && ticks < cue.endTicks)?.build;
  }

  /** A word without what was taken out inside it. */
  #shown(word: TimedWord): string {
    let shown = "";
    let at = word.start;
    for (const { start, end } of this.#removed) {
      if (start < word.start || end > word.end) continue;
      shown += this.#text.client.slice(at, start);
      at = end;
    }
    if (at === word.start) return word.text;
    this.#removed = this.#removed.filter(({ start }) => start >= word.end);
    return shown + this.#text.client.slice(at, word.end);
  }

  /** With the client's offsets. */
  #placed(cues: readonly Cue[]): Cue[] {
    const by = this.#base;
    this.lastEndSeconds = cues.at(-1)?.endSeconds ?? this.lastEndSeconds;
    const moved = <T extends { readonly start: number; readonly end: number }>(placed: T): T => ({
      ...placed,
      start: placed.start + by,
      end: placed.end + by,
    });
    const placed = cues.map((cue) => ({
      ...moved(cue),
      ...this.#voiceAt(cue.start + by),
      lines: cue.lines.map((line) => ({ ...line, words: line.words.map(moved) })),
    }));
    const rollUp = this.#rollUp;
    return rollUp === null ? placed : placed.flatMap((cue) => rollUp.push(cue));
  }

  #newBuilder(): CueBuilder {
    const builder = new CueBuilder({
      breaks: new BoundaryFinder(),
      numbers: cueNumbers(this.#style),
      notBeforeSeconds: this.lastEndSeconds,
    });
    for (const { end } of this.#voices) if (end > this.#base) builder.noteVoice(end - this.#base);
    return builder;
  }

  /** Who says what stands there in the client's text. */
  #voiceAt(offset: number): Pick<Cue, "voice"> {
    const part = this.#voices.find(({ end }) => offset < end) ?? this.#voices.at(-1);
    if (part === undefined) return {};
    const { voiceId, speaker } = part;
    return { voice: { voiceId, ...(speaker === undefined ? {} : { speaker }) } };
  }

  /** What was taken out of the text (Markdown signs) is not shown either. */
  #append(): void {
    const { client, spoken } = this.#text;
    for (const piece of this.#text.pieces(this.#spokenTo, spoken.length, true)) {
      const isRemoved = piece.spokenStart === piece.spokenEnd;
      const start = Math.max(piece.clientStart, this.#clientTo);
      const shown = client.slice(start, piece.clientEnd);
      if (isRemoved && shown !== "") this.#removed.push({ start, end: piece.clientEnd });
      this.#builder.append(isRemoved ? " ".repeat(shown.length) : shown);
      this.#clientTo = Math.max(this.#clientTo, piece.clientEnd);
    }
    this.#spokenTo = spoken.length;
  }
}
