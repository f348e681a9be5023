/** Draws a part of a recorded session: how loud it was, its words, what happened, and a lane for each connection. */
import type { Course, Happening } from "../../recording/course.ts";

/** One peak of the wave, ms. */
const STEP_MS = 20;
const WAVE_PX = 90;
const WORDS_PX = 26;
const EVENT_ROWS = 2;
const EVENT_ROW_PX = 18;
const EVENTS_PX = EVENT_ROWS * EVENT_ROW_PX;
const LANE_PX = 26;
const LABEL_PX = 64;
const MAX_LANES = 12;
/** A word that is narrower would stand over its neighbour. */
const MIN_WORD_GAP_PX = 4;
const FONT = "13px system-ui, sans-serif";

export interface Shown {
  readonly course: Course;
  readonly placeMs: number;
  /** What the width holds, ms. */
  readonly widthMs: number;
}

/** Where the part begins that is shown: the place stands in its middle, but at the ends. */
export function firstShownMs({ course, placeMs, widthMs }: Shown): number {
  return Math.max(0, Math.min(placeMs - widthMs / 2, course.durationMs - widthMs));
}

export function isTrouble({ kind, what }: Happening): boolean {
  return kind === "refused" || /error|upstream_|ended: (?!session_closed)|gap/.test(what);
}

export function drawPicture(canvas: HTMLCanvasElement, shown: Shown): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  const lanes = shown.course.connections.slice(0, MAX_LANES);
  const height = WAVE_PX + WORDS_PX + EVENTS_PX + Math.max(1, lanes.length) * LANE_PX + 10;
  const ratio = devicePixelRatio;
  canvas.style.height = `${height}px`;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context.scale(ratio, ratio);
  context.font = FONT;
  context.textBaseline = "middle";
  new Drawing(context, { shown, width, height }).all();
}

class Drawing {
  readonly #context: CanvasRenderingContext2D;
  readonly #shown: Shown;
  readonly #width: number;
  readonly #height: number;
  readonly #fromMs: number;
  readonly #pxPerMs: number;
  readonly #colours: (name: string) => string;

  constructor(
    context: CanvasRenderingContext2D,
    { shown, width, height }: { readonly shown: Shown; readonly width: number; readonly height: number },
  ) {
    this.#context = context;
    this.#shown = shown;
    this.#width = width;
    this.#height = height;
    this.#fromMs = firstShownMs(shown);
    this.#pxPerMs = (width - LABEL_PX) / Math.max(1, shown.widthMs);
    const style = getComputedStyle(context.canvas);
    this.#colours = (name) => style.getPropertyValue(name).trim();
  }

  all(): void {
    this.#wave();
    this.#words();
    this.#events();
    this.#lanes();
    this.#playhead();
  }

  #x(ms: number): number {
    return LABEL_PX + (ms - this.#fromMs) * this.#pxPerMs;
  }

  #isShown(fromMs: number, toMs: number): boolean {
    return toMs >= this.#fromMs && fromMs <= this.#fromMs + this.#shown.widthMs;
  }

  #label(text: string, y: number): void {
    this.#context.fillStyle = this.#colours("--muted");
    this.#context.fillText(text, 6, y, LABEL_PX - 10);
  }

  #wave(): void {
    const middle = WAVE_PX / 2;
    this.#label("sound", middle);
    for (const { atMs, peaks } of this.#shown.course.wave) {
      if (!this.#isShown(atMs, atMs + peaks.length * STEP_MS)) continue;
      peaks.forEach((peak, index) => {
        const ms = atMs + index * STEP_MS;
        const x = this.#x(ms);
        if (x < LABEL_PX || x > this.#width) return;
        const half = Math.max(0.5, (peak / 255) * (middle - 4));
        const isPast = ms < this.#shown.placeMs;
        this.#context.fillStyle = this.#colours(isPast ? "--accent" : "--wave-past");
        this.#context.fillRect(x, middle - half, Math.max(1, STEP_MS * this.#pxPerMs - 0.5), 2 * half);
      });
    }
  }

  #words(): void {
    const y = WAVE_PX + WORDS_PX / 2;
    this.#label("words", y);
    let freeFrom = LABEL_PX;
    for (const { text, startMs, endMs } of this.#shown.course.words) {
      const x = this.#x(startMs);
      if (!this.#isShown(startMs, endMs) || x < freeFrom) continue;
      const isNow = startMs <= this.#shown.placeMs && this.#shown.placeMs < endMs;
      this.#context.fillStyle = this.#colours(isNow ? "--accent" : "--ink");
      this.#context.fillText(text, x, y);
      freeFrom = x + this.#context.measureText(text).width + MIN_WORD_GAP_PX;
    }
  }

  /** A bar for each; its label stands in the first of two rows that is free there, over the bars. */
  #events(): void {
    const top = WAVE_PX + WORDS_PX;
    this.#label("events", top + EVENTS_PX / 2);
    const shown = this.#shown.course.happenings.filter(({ atMs }) => this.#isShown(atMs, atMs));
    const inkOf = (happening: Happening): string =>
      this.#colours(isTrouble(happening) ? "--trouble" : "--accent");
    for (const happening of shown) {
      this.#context.fillStyle = inkOf(happening);
      this.#context.fillRect(this.#x(happening.atMs), top + 2, 2, EVENTS_PX - 4);
    }
    const freeFrom = Array.from({ length: EVENT_ROWS }, () => LABEL_PX);
    for (const happening of shown) {
      const x = this.#x(happening.atMs) + 5;
      const row = freeFrom.findIndex((free) => x >= free);
      if (row < 0) continue;
      const width = this.#context.measureText(happening.what).width;
      const y = top + (row + 0.5) * EVENT_ROW_PX;
      this.#context.fillStyle = this.#colours("--panel");
      this.#context.fillRect(x - 2, y - EVENT_ROW_PX / 2 + 1, width + 4, EVENT_ROW_PX - 2);
      this.#context.fillStyle = inkOf(happening);
      this.#context.fillText(happening.what, x, y);
      freeFrom[row] = x + width + MIN_WORD_GAP_PX;
    }
  }

  #lanes(): void {
    const top = WAVE_PX + WORDS_PX + EVENTS_PX + 6;
    this.#shown.course.connections.slice(0, MAX_LANES).forEach((connection, index) => {
      const y = top + index * LANE_PX;
      const { id, number, joinedMs, leftMs, deliveries } = connection;
      this.#label(id ?? `#${number}`, y + LANE_PX / 2);
      const from = Math.max(LABEL_PX, this.#x(joinedMs));
      const to = Math.min(this.#width, this.#x(leftMs ?? this.#shown.course.durationMs));
      this.#context.fillStyle = this.#colours("--sunk");
      if (to > from) this.#context.fillRect(from, y + 2, to - from, LANE_PX - 4);
      for (const { atMs, frames, events, isLate } of deliveries) {
        if (!this.#isShown(atMs, atMs)) continue;
        const size = Math.min(LANE_PX - 6, 4 + frames * 1.5);
        this.#context.fillStyle = this.#colours(
          isLate ? "--trouble" : frames > 0 ? "--wave-past" : "--muted",
        );
        this.#context.fillRect(this.#x(atMs), y + LANE_PX - 3 - size, events > 0 ? 3 : 2, size);
      }
    });
  }

  #playhead(): void {
    this.#context.fillStyle = this.#colours("--ink");
    this.#context.fillRect(this.#x(this.#shown.placeMs), 0, 1.5, this.#height);
  }
}
