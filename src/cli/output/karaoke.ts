/**
 * Shows a script while it is spoken. On a terminal a live block of up to three lines: spoken words dim, the current
 * one bold and underlined; lines that are done scroll up and stay. Elsewhere the words as plain text as they come.
 */
import type { Output } from "../io.ts";
import type { Span } from "./script.ts";
import { type Line, wrapLines } from "./terminal-text.ts";

/** Draws `text`; everything before `span` is spoken, `span` is being spoken. */
export interface SpeechView {
  draw(text: string, span: Span): void;
  /** Ends the display after what was spoken up to `spokenEnd`; later calls do nothing. */
  finish(text: string, spokenEnd: number): void;
}

const DIM = "\x1b[2m";
const CURRENT = "\x1b[1;4m";
const RESET = "\x1b[0m";
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
const LIVE_LINES = 3;

type TextOutput = Pick<Output, "write" | "columns">;

export class KaraokeView implements SpeechView {
  readonly #output: TextOutput;
  /** Text before this offset has scrolled up and is never drawn again. */
  #committed = 0;
  #liveRows = 0;
  #isFinished = false;

  constructor(output: TextOutput) {
    this.#output = output;
  }

  draw(text: string, span: Span): void {
    if (this.#isFinished) return;
    const done: Line[] = [];
    const live: Line[] = [];
    for (const line of this.#lines(text)) {
      // A line is done once the word being spoken stands on a later one.
      if (live.length === 0 && line.end <= span.start && span.end > line.end) done.push(line);
      else if (live.length < LIVE_LINES) live.push(line);
      else break;
    }
    // The last line stays live however far the span reaches, or it would be drawn again below itself.
    if (live.length === 0) live.push(...done.splice(-1));
    const rows = [...done, ...live].map((line) => paint(text, line, span));
    this.#output.write(`${this.#erase()}${this.#liveRows === 0 ? HIDE_CURSOR : ""}${rows.join("\n")}`);
    this.#committed = live[0]?.start ?? this.#committed;
    this.#liveRows = live.length;
  }

  finish(text: string, spokenEnd: number): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const span = { start: spokenEnd, end: spokenEnd };
    const rows = [...this.#lines(text)].map((line) => `${paint(text, line, span)}\n`);
    this.#output.write(`${this.#erase()}${rows.join("")}${SHOW_CURSOR}`);
  }

  /** One column stays free: a full last column makes terminals differ in where the cursor is. */
  #lines(text: string): Generator<Line> {
    return wrapLines(text, this.#output.columns() - 1, this.#committed);
  }

  #erase(): string {
    if (this.#liveRows === 0) return "";
    return `${this.#liveRows > 1 ? `\x1b[${this.#liveRows - 1}A` : ""}\r\x1b[J`;
  }
}

/** For pipes and files: every word once, when its time has come. */
export class PlainView implements SpeechView {
  readonly #output: Pick<Output, "write">;
  #writtenTo = 0;
  #isFinished = false;

  constructor(output: Pick<Output, "write">) {
    this.#output = output;
  }

  draw(text: string, span: Span): void {
    if (!this.#isFinished) this.#writeTo(text, span.end);
  }

  finish(text: string, spokenEnd: number): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#writeTo(text, spokenEnd);
    if (this.#writtenTo > 0) this.#output.write("\n");
  }

  #writeTo(text: string, end: number): void {
    if (end <= this.#writtenTo) return;
    this.#output.write(text.slice(this.#writtenTo, end));
    this.#writtenTo = end;
  }
}

function paint(text: string, line: Line, span: Span): string {
  const from = Math.min(Math.max(span.start, line.start), line.end);
  const to = Math.min(Math.max(span.end, line.start), line.end);
  const spoken = text.slice(line.start, from);
  const current = text.slice(from, to);
  return [
    spoken === "" ? "" : `${DIM}${spoken}${RESET}`,
    current === "" ? "" : `${CURRENT}${current}${RESET}`,
    text.slice(to, line.end),
  ].join("");
}
