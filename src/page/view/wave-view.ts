/** Draws the sound around the playhead: bars from the decoded samples, ticks and names where words begin. */

import { BAR_MS, type WaveHistory } from "../sound/wave-history.ts";
import type { ShownWord } from "../speech/shown-words.ts";
import { byId } from "./dom.ts";

const BAR_PX = 3;
const BAR_GAP_PX = 2;
const PX_PER_MS = (BAR_PX + BAR_GAP_PX) / BAR_MS;
/** Where the playhead stands, as a part of the width: the rest is what is about to be heard. */
const PLAYHEAD_AT = 0.8;
const LABEL_PX = 18;
/** Speech rarely peaks above this; bars fill the height at it. */
const FULL_PEAK = 0.6;

export interface Scene {
  readonly positionMs: number;
  readonly litWord: ShownWord | null;
  wordsBetween(fromMs: number, toMs: number): readonly ShownWord[];
}

interface Colors {
  readonly past: string;
  readonly lit: string;
  readonly ahead: string;
  readonly line: string;
  readonly label: string;
}

export class WaveView {
  readonly #canvas = byId("wave", HTMLCanvasElement);
  readonly #wave: WaveHistory;
  readonly #motion = matchMedia("(prefers-reduced-motion: reduce)");
  #colors: Colors;
  #widthPx = 0;
  #heightPx = 0;
  /** What the last picture showed; the same again is not drawn. */
  #drawn = "";

  constructor(wave: WaveHistory) {
    this.#wave = wave;
    this.#colors = readColors();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#colors = readColors();
      this.#drawn = "";
    });
    new ResizeObserver(([entry]) => {
      if (entry !== undefined) this.#resize(entry.contentRect);
    }).observe(this.#canvas);
  }

  draw(scene: Scene): void {
    const context = this.#canvas.getContext("2d");
    const key = `${scene.positionMs.toFixed(1)}/${this.#wave.version}/${scene.litWord?.start_ms}`;
    if (context === null || this.#widthPx === 0 || key === this.#drawn) return;
    this.#drawn = key;
    const fromMs = this.#fromMs(scene.positionMs);
    const toMs = fromMs + this.#widthPx / PX_PER_MS;
    const scale = this.#canvas.width / this.#widthPx;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.#widthPx, this.#heightPx);
    this.#drawBars(context, fromMs, scene);
    this.#drawWords(context, fromMs, scene.wordsBetween(fromMs, toMs), scene);
    context.fillStyle = this.#colors.lit;
    context.fillRect((scene.positionMs - fromMs) * PX_PER_MS - 1, 0, 2, this.#heightPx - LABEL_PX);
  }

  /** The picture slides under a playhead that stands still; for those who want no motion it turns like pages. */
  #fromMs(positionMs: number): number {
    const spanMs = this.#widthPx / PX_PER_MS;
    return this.#motion.matches
      ? Math.floor(positionMs / spanMs) * spanMs
      : positionMs - spanMs * PLAYHEAD_AT;
  }

  #drawBars(context: CanvasRenderingContext2D, fromMs: number, scene: Scene): void {
    const middlePx = (this.#heightPx - LABEL_PX) / 2;
    const lastBar = Math.ceil((fromMs + this.#widthPx / PX_PER_MS) / BAR_MS);
    for (let bar = Math.floor(fromMs / BAR_MS); bar <= lastBar; bar += 1) {
      const xPx = (bar * BAR_MS - fromMs) * PX_PER_MS;
      const peak = this.#wave.peak(bar);
      const halfPx = peak === null ? 0.5 : Math.max(1, Math.min(1, peak / FULL_PEAK) ** 0.7 * (middlePx - 2));
      context.fillStyle = this.#barColor(bar * BAR_MS, peak, scene);
      context.beginPath();
      context.roundRect(xPx, middlePx - halfPx, BAR_PX, halfPx * 2, BAR_PX / 2);
      context.fill();
    }
  }

  #barColor(atMs: number, peak: number | null, { positionMs, litWord }: Scene): string {
    if (peak === null) return this.#colors.line;
    if (atMs > positionMs) return this.#colors.ahead;
    if (litWord !== null && atMs >= litWord.start_ms - BAR_MS && atMs < litWord.end_ms)
      return this.#colors.lit;
    return this.#colors.past;
  }

  #drawWords(
    context: CanvasRenderingContext2D,
    fromMs: number,
    words: readonly ShownWord[],
    scene: Scene,
  ): void {
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "alphabetic";
    let freePx = Number.NEGATIVE_INFINITY;
    for (const word of words) {
      const xPx = (word.start_ms - fromMs) * PX_PER_MS;
      context.fillStyle = this.#colors.line;
      context.fillRect(xPx, this.#heightPx - LABEL_PX - 5, 1, 5);
      if (xPx < freePx) continue;
      context.fillStyle = word === scene.litWord ? this.#colors.lit : this.#colors.label;
      context.fillText(word.text, xPx, this.#heightPx - 4);
      freePx = xPx + context.measureText(word.text).width + 6;
    }
  }

  #resize(rect: DOMRectReadOnly): void {
    const scale = Math.min(3, globalThis.devicePixelRatio || 1);
    this.#widthPx = rect.width;
    this.#heightPx = rect.height;
    this.#canvas.width = Math.round(rect.width * scale);
    this.#canvas.height = Math.round(rect.height * scale);
    this.#drawn = "";
  }
}

function readColors(): Colors {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  return {
    past: color("--wave-past"),
    lit: color("--accent"),
    ahead: color("--wave-ahead"),
    line: color("--line"),
    label: color("--muted"),
  };
}
