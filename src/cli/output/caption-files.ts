/**
 * Writes a session's cues as WebVTT and SRT. Times are counted from the first frame that was received, so that the
 * captions fit the audio file beside them. What is written stays: a cue waits until it has been played, since it may be cut.
 */
import { cueOfEvent, srtCue, VTT_HEADER, vttCue } from "../../protocol/captions.ts";
import type { CueEvent, InterruptedEvent, UtteranceDoneEvent } from "../../protocol/events.ts";
import { cutCue, FinalCues } from "../../protocol/final-cues.ts";
import type { Cue } from "../../timing/cues/cue-builder.ts";
import type { Output } from "../io.ts";
import { OutputFile } from "./output-file.ts";

export interface CaptionFilesOptions {
  /** Paths; `-` is stdout, undefined = none. */
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
  readonly stdout: Output;
}

/** A cue, and what cuts and settles cues. */
export type CaptionEvent = CueEvent | InterruptedEvent | UtteranceDoneEvent;

type Format = (cue: Cue, number: number) => string;

interface CaptionFile {
  readonly format: Format;
  write(text: string): void;
  close(): void;
  discard(): void;
}

export class CaptionFiles {
  #originMs = 0;
  readonly #files: CaptionFile[] = [];
  #settling = new FinalCues();
  #lastWritten: CueEvent | undefined;
  #lastEndSeconds = 0;
  #count = 0;

  /** Throws `invalid_config` where a file can't be written. */
  constructor({ vtt, srt, stdout }: CaptionFilesOptions) {
    if (vtt !== undefined) {
      const format: Format = (cue) => vttCue(cue, { hasWordTimes: true });
      this.#files.push({ ...openText(vtt, { stdout, header: VTT_HEADER, flag: "vtt" }), format });
    }
    if (srt !== undefined) {
      this.#files.push({ ...openText(srt, { stdout, header: "", flag: "srt" }), format: srtCue });
    }
  }

  /** Empties the files now, and not with the first cue. */
  begin(): void {
    for (const file of this.#files) file.write("");
  }

  /** Timeline position of the first frame, ms: zero of the files' times. */
  get originMs(): number {
    return this.#originMs;
  }
  /** Another timeline begins: cues that wait belong to the one before. */
  set originMs(ms: number) {
    this.#write(this.#settling.flush());
    this.#settling = new FinalCues();
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

  /** No speech comes: as `close`, but where nothing was written nothing is left. */
  discard(): void {
    this.#write(this.#settling.flush());
    for (const file of this.#files.splice(0)) file.discard();
  }

  /** Who joins again may get the cue that stands once more. */
  #isKnown(cue: CueEvent): boolean {
    const isSame = (other: CueEvent | undefined): boolean =>
      other?.utterance_id === cue.utterance_id &&
      spokenFrom(other) === spokenFrom(cue) &&
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

/** Where its speech begins, ms: what is shown may come later, behind the cue before. */
function spokenFrom(cue: CueEvent): number {
  return cue.lines.at(-1)?.words[0]?.start_ms ?? cue.start_ms;
}

function hasWordFrom(cue: CueEvent, atMs: number): boolean {
  return cue.lines.some((line) => line.words.some((word) => word.start_ms >= atMs));
}

interface TextOptions {
  readonly stdout: Output;
  readonly header: string;
  readonly flag: string;
}

/** Opens a file for text; `-` is stdout. Throws `invalid_config` where it can't be written. */
function openText(path: string, { stdout, header, flag }: TextOptions): Omit<CaptionFile, "format"> {
  if (path === "-") {
    stdout.write(header);
    return { write: (text) => stdout.write(text), close: () => undefined, discard: () => undefined };
  }
  const file = new OutputFile(path, { what: "Captions", flag });
  let start = header;
  const write = (text: string): void => {
    file.append(Buffer.from(start + text));
    start = "";
  };
  const close = (): void => {
    write("");
    file.close();
  };
  return { write, close, discard: () => file.discard() };
}
