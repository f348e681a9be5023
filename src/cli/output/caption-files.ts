/**
 * Writes a session's cues as WebVTT and SRT. Times are counted from the first frame that was received, so that the
 * captions fit the audio file beside them. What is written stays: a cue waits until it has been played, since it may be cut.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { GatewayError } from "../../errors.ts";
import { cueOfEvent, srtCue, VTT_HEADER, vttCue } from "../../protocol/captions.ts";
import type { CueEvent, InterruptedEvent, UtteranceDoneEvent } from "../../protocol/events.ts";
import { cutCue, FinalCues } from "../../protocol/final-cues.ts";
import type { Cue } from "../../timing/cues/cue-builder.ts";
import type { Output } from "../io.ts";

export interface CaptionFilesOptions {
  /** Paths; `-` is stdout, undefined = none. */
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
  readonly stdout: Output;
}

/** A cue, and what cuts and settles cues. */
export type CaptionEvent = CueEvent | InterruptedEvent | UtteranceDoneEvent;

type Format = (cue: Cue, number: number) => string;

export class CaptionFiles {
  #originMs = 0;
  readonly #files: {
    readonly write: (text: string) => void;
    readonly close: () => void;
    readonly format: Format;
  }[] = [];
  readonly #settling = new FinalCues();
  #lastWritten: CueEvent | undefined;
  #lastEndSeconds = 0;
  #count = 0;

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
  /** Another timeline begins: cues that wait belong to the one before. */
  set originMs(ms: number) {
    this.#write(this.#settling.flush());
    this.#lastWritten = undefined;
    this.#originMs = ms;
  }

  /** `ms` of the timeline from `fromMs` on are not in the audio beside; cues of what follows may have come already. */
  skip(ms: number, fromMs: number): void {
    this.#write(this.#settling.takeBefore(fromMs));
    this.#originMs += ms;
  }

  /** Cues that were written. */
  get count(): number {
    return this.#count;
  }

  /** `playedMs`: what is before it on the timeline has been played. */
  event(event: CaptionEvent, playedMs: number): void {
    if (event.type === "cue" && this.#isKnown(event)) return;
    this.#write(this.#settling.push(event, playedMs));
    // What is left stands before the cut: nothing changes it any more.
    if (event.type === "interrupted" && event.next_ms !== null)
      this.#write(this.#settling.flush(event.at_ms));
  }

  /** Captions behind `atMs` are not played here: they are left out. */
  endAt(atMs: number): void {
    const begun = this.#settling.flush().filter((cue) => cue.start_ms < atMs);
    // A caption may stay longer than its words are heard.
    this.#write(
      begun.map((cue) => ({ ...cutCue(cue, atMs), end_ms: hasWordFrom(cue, atMs) ? atMs : cue.end_ms })),
    );
  }

  /** Writes what is left and completes the files. Idempotent. */
  close(): void {
    this.#write(this.#settling.flush());
    for (const file of this.#files.splice(0)) file.close();
  }

  /** Who joins again may get the cue that stands once more. */
  #isKnown(cue: CueEvent): boolean {
    const isSame = (other: CueEvent | undefined): boolean =>
      other?.utterance_id === cue.utterance_id &&
      other.start_ms === cue.start_ms &&
      other.start === cue.start;
    return isSame(this.#lastWritten) || this.#settling.open.some(isSame);
  }

  #write(events: readonly CueEvent[]): void {
    for (const event of events) {
      const cue = cueOfEvent(event, this.#originMs);
      // One that stood when we came begins with the file, or behind what is there.
      const startSeconds = Math.max(cue.startSeconds, this.#lastEndSeconds);
      if (cue.endSeconds <= startSeconds) continue;
      this.#lastWritten = event;
      this.#lastEndSeconds = cue.endSeconds;
      this.#count += 1;
      for (const file of this.#files) file.write(file.format({ ...cue, startSeconds }, this.#count));
    }
  }
}

function hasWordFrom(cue: CueEvent, atMs: number): boolean {
  return cue.lines.some((line) => line.words.some((word) => word.start_ms >= atMs));
}

/** Opens a file for text; `-` is stdout. Throws `invalid_config` where it can't be written. */
function openText(path: string, stdout: Output): { write(text: string): void; close(): void } {
  if (path === "-") return { write: (text) => stdout.write(text), close: () => undefined };
  try {
    const descriptor = openSync(path, "w");
    return { write: (text) => void writeSync(descriptor, text), close: () => closeSync(descriptor) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new GatewayError("invalid_config", `Captions "${path}" can't be written: ${reason}`, { cause });
  }
}
