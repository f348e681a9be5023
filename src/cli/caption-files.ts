/**
 * Writes what is said as WebVTT and SRT, cue by cue. Text comes before its words; times are counted from the first
 * frame that was received, so that the captions fit the audio file beside them. What is written stays: a word waits
 * until it has been heard, since it may be cut, and one whose upstream breaks off is told anew.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import type { TakenUp } from "../client/taken-up.ts";
import { GatewayError } from "../errors.ts";
import { srtCue, VTT_HEADER, vttCue } from "../protocol/captions.ts";
import type { Word, WordsEvent } from "../protocol/events.ts";
import { BoundaryFinder } from "../text/boundaries.ts";
import { type Cue, CueBuilder, type CueVoice } from "../timing/cues.ts";
import type { Output } from "./io.ts";
import type { FedText } from "./text-feeder.ts";

export interface CaptionFilesOptions {
  /** Paths; `-` is stdout, undefined = none. */
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
  readonly stdout: Output;
}

/** A stretch of text with cues of its own: an utterance, or a line of a dialogue. */
interface Part {
  readonly utteranceId: string;
  /** Offsets into the utterance's text. */
  readonly start: number;
  end: number;
  /** All of it: after a cut it may go on anywhere. */
  text: string;
  /** Offset into `text` where the builder's begins, once it was cut. */
  base: number;
  isCut: boolean;
  /** None before its first word, nor after a cut. */
  builder: CueBuilder | undefined;
  readonly voice: CueVoice | undefined;
}

/** A word that may still be cut or told anew. */
interface HeldWord {
  readonly part: Part;
  readonly word: Word;
  readonly timing: WordsEvent["timing"];
}

type Format = (cue: Cue, number: number) => string;

export class CaptionFiles {
  #originMs = 0;
  readonly #files: {
    readonly write: (text: string) => void;
    readonly close: () => void;
    readonly format: Format;
  }[] = [];
  /** Parts whose cues are not all written, in the order of their text; the first one is being spoken. */
  readonly #parts: Part[] = [];
  /** Words that were not heard to their end, in the order they came: those of a lead and an event or two. */
  readonly #held: HeldWord[] = [];
  #mustBreak = false;
  #count = 0;
  #lastEndSeconds = 0;

  /** Throws `invalid_config` where a file can't be written. */
  constructor({ vtt, srt, stdout }: CaptionFilesOptions) {
    if (vtt !== undefined) {
      const file = openText(vtt, stdout);
      file.write(VTT_HEADER);
      this.#files.push({ ...file, format: (cue) => vttCue(cue, { hasWordTimes: true }) });
    }
    if (srt !== undefined) this.#files.push({ ...openText(srt, stdout), format: srtCue });
  }

  /** Timeline position of the first frame, ms: zero of the files' times. */
  get originMs(): number {
    return this.#originMs;
  }
  /** Another timeline begins: words that wait belong to the one before. */
  set originMs(ms: number) {
    this.#settle(Number.POSITIVE_INFINITY);
    this.#mustBreak = true;
    this.#originMs = ms;
  }

  /** `ms` of the timeline are not in the audio beside; words of what follows may have come already. */
  skip(ms: number): void {
    this.#originMs += ms;
  }

  /** Cues that were written. */
  get count(): number {
    return this.#count;
  }

  /** More text of an utterance. */
  text({ utteranceId, start, text, voice }: FedText): void {
    if (this.#files.length === 0) return;
    const last = this.#parts.at(-1);
    const isContinued = !this.#mustBreak && last?.utteranceId === utteranceId && last.end === start;
    this.#mustBreak = false;
    if (!isContinued || last === undefined) {
      const end = start + text.length;
      this.#parts.push({ utteranceId, start, end, text, base: 0, isCut: false, builder: undefined, voice });
      return;
    }
    last.end += text.length;
    last.text += text;
    last.builder?.append(text);
  }

  /** The text that follows begins cues of its own. */
  break(): void {
    this.#mustBreak = true;
  }

  /** `heardMs`: what is before it on the timeline has been heard. */
  words(event: WordsEvent, heardMs: number): void {
    if (this.#files.length === 0) return;
    this.#settle(heardMs);
    for (const word of event.words) {
      const part = this.#parts.findLast(
        ({ utteranceId, start }) => utteranceId === event.utterance_id && start <= word.start,
      );
      // Somebody else's words, whose text we do not have.
      if (part !== undefined) this.#held.push({ part, word, timing: event.timing });
    }
  }

  /** Drops the words of an utterance from an offset on: they come anew. */
  takenUp({ utterance_id, start }: TakenUp): void {
    const kept = this.#held.filter(
      ({ part, word }) => part.utteranceId !== utterance_id || word.start < start,
    );
    this.#held.splice(0, this.#held.length, ...kept);
  }

  /** Nobody hears what is behind `atMs`: words that begin there are dropped, what stands there ends. It may come anew. */
  cut(atMs: number): void {
    for (const held of this.#held.splice(0)) {
      const { word } = held;
      if (word.start_ms < atMs)
        this.#word({ ...held, word: { ...word, end_ms: Math.min(word.end_ms, atMs) } });
    }
    const atSeconds = this.#secondsOf(atMs);
    for (const part of this.#parts) {
      if (part.builder === undefined) continue;
      const heard = part.builder
        .flush(atSeconds)
        .filter(({ startSeconds }) => startSeconds < atSeconds)
        .map((cue) => ({ ...cue, endSeconds: Math.min(cue.endSeconds, atSeconds) }));
      part.builder = undefined;
      part.isCut = true;
      this.#write(part, heard);
    }
  }

  /** Writes what is left and completes the files. Idempotent. */
  close(): void {
    this.#settle(Number.POSITIVE_INFINITY);
    for (const part of this.#parts.splice(0)) this.#write(part, part.builder?.flush() ?? []);
    for (const file of this.#files.splice(0)) file.close();
  }

  /** Words that end before `heardMs` stay as they are. */
  #settle(heardMs: number): void {
    while (this.#held[0] !== undefined && this.#held[0].word.end_ms <= heardMs) {
      const held = this.#held.shift();
      if (held !== undefined) this.#word(held);
    }
  }

  #word({ part, word, timing }: HeldWord): void {
    const index = this.#parts.indexOf(part);
    if (index < 0) return;
    const startSeconds = this.#secondsOf(word.start_ms);
    for (const done of this.#parts.splice(0, index))
      this.#write(done, done.builder?.flush(startSeconds) ?? []);
    if (part.builder === undefined) {
      part.base = part.isCut ? word.start - part.start : 0;
      part.builder = new CueBuilder({ breaks: new BoundaryFinder(), notBeforeSeconds: this.#lastEndSeconds });
      part.builder.append(part.text.slice(part.base));
    }
    const from = part.start + part.base;
    const timed = { text: word.text, start: word.start - from, end: word.end - from, startSeconds, timing };
    this.#write(part, part.builder.push([{ ...timed, endSeconds: this.#secondsOf(word.end_ms) }]));
  }

  #secondsOf(ms: number): number {
    return Math.max(0, ms - this.#originMs) / 1000;
  }

  #write({ voice }: Part, cues: readonly Cue[]): void {
    for (const bare of cues) {
      const cue = voice === undefined ? bare : { ...bare, voice };
      this.#count++;
      this.#lastEndSeconds = cue.endSeconds;
      for (const file of this.#files) file.write(file.format(cue, this.#count));
    }
  }
}

/** Opens a file for text; `-` is stdout. Throws `invalid_config` where it can't be written. */
export function openText(path: string, stdout: Output): { write(text: string): void; close(): void } {
  if (path === "-") return { write: (text) => stdout.write(text), close: () => undefined };
  try {
    const descriptor = openSync(path, "w");
    return { write: (text) => void writeSync(descriptor, text), close: () => closeSync(descriptor) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new GatewayError("invalid_config", `Captions "${path}" can't be written: ${reason}`, { cause });
  }
}
