/** One thing that is said in the session, as the page knows it: its text, its words so far, and how it stands. */
import type { InterruptedEvent } from "../../protocol/events.ts";
import type { ShownWord } from "./shown-words.ts";

/** `lost`: the connection went away in the middle of it; it speaks on where events of it come again. */
export type UtteranceState = "queued" | "speaking" | "done" | "interrupted" | "cancelled" | "failed" | "lost";

/** A paragraph of an utterance: one input of a dialogue, or all of a plain text. `start`/`end` are offsets into its text. */
export interface Line {
  readonly start: number;
  end: number;
  voiceId: string | null;
}

export interface Receipt {
  readonly heardEnd: number;
  readonly heardMs: number;
  readonly source: InterruptedEvent["heard"]["source"];
  readonly boundMs: number;
  /** Listeners that each reported their own; the receipt is of the one that heard least. 0 = they do not differ. */
  readonly listeners: number;
}

export class Utterance {
  readonly id: string;
  state: UtteranceState = "queued";
  text = "";
  lines: Line[] = [{ start: 0, end: 0, voiceId: null }];
  /** In the order of their offsets and of their times. */
  words: ShownWord[] = [];
  startMs: number | null = null;
  /** Where on the timeline it went on after it was interrupted, ms, in order. */
  resumedMs: number[] = [];
  /** No sound of it after this; unknown until it is over. */
  endMs: number | null = null;
  receipt: Receipt | null = null;
  /** The connection did not come back to it: from this offset on it was not played here. null = it may be. */
  lostFrom: number | null = null;
  /** How many were before it when it was accepted. */
  ahead = 0;
  /** The text is ours and complete; otherwise it is put together from events. */
  readonly isOwn: boolean;

  constructor(id: string, isOwn: boolean) {
    this.id = id;
    this.isOwn = isOwn;
  }

  append(text: string): void {
    this.text += text;
    const last = this.lines.at(-1);
    if (last !== undefined) last.end = this.text.length;
  }

  /** Where the stretch of it begins that holds a position of the timeline, or was played last before it; null = none. */
  stretchStart(positionMs: number): number | null {
    const resumed = this.resumedMs.findLast((startMs) => startMs <= positionMs);
    if (resumed !== undefined) return resumed;
    return this.startMs !== null && this.startMs <= positionMs ? this.startMs : null;
  }

  get isOver(): boolean {
    return this.state !== "queued" && this.state !== "speaking";
  }

  /** Writes a piece of text at its offset; a hole before it (a space that nobody timed) becomes spaces. */
  place(start: number, text: string): void {
    const before = this.text.slice(0, start).padEnd(start, " ");
    this.text = before + text + this.text.slice(start + text.length);
    const last = this.lines.at(-1);
    if (last !== undefined) last.end = this.text.length;
  }

  /** The line that begins at `start`: a listener learns of a dialogue's lines as they begin. */
  lineAt(start: number): Line {
    const found = this.lines.find((line) => line.start === start);
    if (found !== undefined) return found;
    const line: Line = { start, end: Math.max(start, this.text.length), voiceId: null };
    const last = this.lines.at(-1);
    if (last !== undefined) last.end = start;
    this.lines.push(line);
    return line;
  }
}
