/** Draws a timeline on a canvas: what is said, with its words and splices, what has happened, and where each listener is. */

export type SpanState = "coming" | "speaking" | "played" | "interrupted" | "failed";

export interface TimelineSpan {
  readonly startMs: number;
  readonly endMs: number;
  readonly state: SpanState;
  readonly label: string;
  /** Where one segment meets the next. */
  readonly splicesMs: readonly number[];
}

export interface TimelineWord {
  readonly startMs: number;
  readonly endMs: number;
  /** Empty: it is not known here. */
  readonly text: string;
}

export interface TimelineEvent {
  readonly atMs: number;
  readonly label: string;
  readonly isBad: boolean;
}

export interface TimelineLane {
  readonly label: string;
  readonly atMs: number;
  readonly isLate: boolean;
}

export interface TimelineScene {
  readonly playheadMs: number;
  /** End of the audio that is rendered. */
  readonly renderedMs: number;
  readonly spans: readonly TimelineSpan[];
  readonly words: readonly TimelineWord[];
  readonly events: readonly TimelineEvent[];
  readonly lanes: readonly TimelineLane[];
}

const PX_PER_MS = 0.085;
/** Where the playhead stands, as a part of the width. */
const PLAYHEAD_AT = 0.72;
const AXIS_PX = 24;
const SPAN_TOP_PX = AXIS_PX + 24;
const SPAN_PX = 40;
const WORD_PX = 26;
const LANES_TOP_PX = SPAN_TOP_PX + SPAN_PX + WORD_PX + 10;
const LANE_PX = 24;
const BOTTOM_PX = 8;
const MAX_LANES = 8;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/** Pixels that a picture of so many listeners is high. */
export function timelineHeight(lanes: number): number {
  return LANES_TOP_PX + Math.min(MAX_LANES, Math.max(1, lanes)) * LANE_PX + BOTTOM_PX;
}

interface Picture {
  readonly context: CanvasRenderingContext2D;
  readonly scene: TimelineScene;
  readonly colors: Colors;
  readonly widthPx: number;
  readonly heightPx: number;
  xOf(ms: number): number;
}

export class TimelineDrawing {
  readonly #canvas: HTMLCanvasElement;
  readonly #motion = matchMedia("(prefers-reduced-motion: reduce)");
  #colors: Colors;
  #widthPx = 0;
  #heightPx = 0;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#colors = readColors();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#colors = readColors();
    });
    new ResizeObserver(([entry]) => {
      if (entry !== undefined) this.#resize(entry.contentRect);
    }).observe(canvas);
  }

  draw(scene: TimelineScene): void {
    const context = this.#canvas.getContext("2d");
    if (context === null || this.#widthPx === 0) return;
    const fromMs = this.#fromMs(scene.playheadMs);
    const picture: Picture = {
      context,
      scene,
      colors: this.#colors,
      widthPx: this.#widthPx,
      heightPx: this.#heightPx,
      xOf: (ms) => (ms - fromMs) * PX_PER_MS,
    };
    const scale = this.#canvas.width / this.#widthPx;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.#widthPx, this.#heightPx);
    drawAxis(picture, fromMs);
    drawSpans(picture);
    drawWords(picture);
    drawLanes(picture);
    drawEvents(picture);
    drawPlayhead(picture);
  }

  /** The picture slides under a playhead that stands still; for those who want no motion it turns like pages. */
  #fromMs(playheadMs: number): number {
    const spanMs = this.#widthPx / PX_PER_MS;
    return this.#motion.matches
      ? Math.floor(playheadMs / spanMs) * spanMs
      : playheadMs - spanMs * PLAYHEAD_AT;
  }

  #resize(rect: DOMRectReadOnly): void {
    const scale = Math.min(3, globalThis.devicePixelRatio || 1);
    this.#widthPx = rect.width;
    this.#heightPx = rect.height;
    this.#canvas.width = Math.round(rect.width * scale);
    this.#canvas.height = Math.round(rect.height * scale);
  }
}

function drawAxis({ context, colors, widthPx, heightPx, xOf }: Picture, fromMs: number): void {
  context.font = `12px ${FONT}`;
  context.textBaseline = "middle";
  const lastMs = fromMs + widthPx / PX_PER_MS;
  context.textAlign = "center";
  for (let second = Math.max(0, Math.floor(fromMs / 1000)); second * 1000 <= lastMs; second += 1) {
    const x = Math.round(xOf(second * 1000)) + 0.5;
    context.fillStyle = colors.line;
    context.globalAlpha = 0.5;
    context.fillRect(x, AXIS_PX, 1, heightPx - AXIS_PX);
    context.globalAlpha = 1;
    context.fillStyle = colors.muted;
    context.fillText(`${second} s`, x, AXIS_PX / 2 - 3);
  }
  context.textAlign = "start";
}

function drawSpans({ context, colors, scene, widthPx, xOf }: Picture): void {
  for (const span of scene.spans) {
    const left = xOf(span.startMs);
    const right = xOf(span.endMs);
    if (right < 0 || left > widthPx) continue;
    const width = Math.max(2, right - left - 1);
    context.fillStyle = colors[span.state];
    context.beginPath();
    context.roundRect(left, SPAN_TOP_PX, width, SPAN_PX, 7);
    context.fill();
    if (span.state === "speaking") shadeComing({ context, colors, scene, xOf }, { left, right });
    for (const spliceMs of span.splicesMs) {
      context.fillStyle = colors.panel;
      context.fillRect(xOf(spliceMs) - 1, SPAN_TOP_PX, 2, SPAN_PX);
    }
    context.save();
    context.beginPath();
    context.rect(left, SPAN_TOP_PX, width, SPAN_PX);
    context.clip();
    context.font = `600 12px ${FONT}`;
    context.fillStyle = colors[`${span.state}Ink`];
    context.fillText(span.label, Math.max(left, 0) + 9, SPAN_TOP_PX + SPAN_PX / 2 + 1);
    context.restore();
  }
}

/** What is made and not heard yet stands lighter. */
function shadeComing(
  { context, colors, scene, xOf }: Pick<Picture, "context" | "colors" | "scene" | "xOf">,
  { left, right }: { readonly left: number; readonly right: number },
): void {
  const from = Math.max(left, xOf(scene.playheadMs));
  if (from >= right) return;
  context.globalAlpha = 0.55;
  context.fillStyle = colors.panel;
  context.fillRect(from, SPAN_TOP_PX, right - from, SPAN_PX);
  context.globalAlpha = 1;
}

function drawWords({ context, colors, scene, widthPx, xOf }: Picture): void {
  const top = SPAN_TOP_PX + SPAN_PX + 6;
  let freeFrom = Number.NEGATIVE_INFINITY;
  context.font = `13px ${FONT}`;
  for (const { startMs, endMs, text } of scene.words) {
    const left = xOf(startMs);
    const right = xOf(endMs);
    if (right < 0 || left > widthPx) continue;
    const isLit = startMs <= scene.playheadMs && scene.playheadMs < endMs;
    context.fillStyle = isLit ? colors.accent : startMs > scene.playheadMs ? colors.line : colors.past;
    context.fillRect(left, top, Math.max(1, right - left - 1.5), 3);
    if (text === "" || left < freeFrom) continue;
    context.fillStyle = isLit ? colors.accent : startMs > scene.playheadMs ? colors.muted : colors.ink;
    context.fillText(text, left, top + 14);
    freeFrom = left + context.measureText(text).width + 5;
  }
}

function drawLanes({ context, colors, scene, widthPx, xOf }: Picture): void {
  const playhead = xOf(scene.playheadMs);
  scene.lanes.slice(0, MAX_LANES).forEach(({ label, atMs, isLate }, index) => {
    const middle = LANES_TOP_PX + index * LANE_PX + LANE_PX / 2;
    context.fillStyle = colors.line;
    context.fillRect(0, middle - 0.5, widthPx, 1);
    const at = Math.max(6, xOf(atMs));
    context.fillStyle = isLate ? colors.trouble : colors.accent;
    if (at < playhead) context.fillRect(at, middle - 1.5, playhead - at, 3);
    context.beginPath();
    context.arc(at, middle, 5, 0, Math.PI * 2);
    context.fill();
    labelOn(context, { text: label, x: 6, y: middle, colors, ink: isLate ? colors.trouble : colors.muted });
  });
}

function drawEvents({ context, colors, scene, widthPx, heightPx, xOf }: Picture): void {
  context.font = `12px ${FONT}`;
  for (const { atMs, label, isBad } of scene.events) {
    const x = xOf(atMs);
    if (x < -80 || x > widthPx) continue;
    const ink = isBad ? colors.trouble : colors.muted;
    context.fillStyle = ink;
    context.fillRect(x - 0.75, SPAN_TOP_PX - 6, 1.5, heightPx - SPAN_TOP_PX);
    labelOn(context, { text: label, x: x + 2, y: SPAN_TOP_PX - 12, colors, ink });
  }
}

function drawPlayhead({ context, colors, scene, heightPx, xOf }: Picture): void {
  const x = xOf(scene.playheadMs);
  context.fillStyle = colors.accent;
  context.fillRect(x - 1, AXIS_PX - 4, 2, heightPx - AXIS_PX + 4);
  context.beginPath();
  context.moveTo(x - 5, AXIS_PX - 8);
  context.lineTo(x + 5, AXIS_PX - 8);
  context.lineTo(x, AXIS_PX);
  context.fill();
}

/** Text with the paper behind it, so that lines do not run through it. */
function labelOn(
  context: CanvasRenderingContext2D,
  label: {
    readonly text: string;
    readonly x: number;
    readonly y: number;
    readonly colors: Colors;
    readonly ink: string;
  },
): void {
  context.font = `12px ${FONT}`;
  const width = context.measureText(label.text).width;
  context.fillStyle = label.colors.panel;
  context.fillRect(label.x - 2, label.y - 8, width + 6, 16);
  context.fillStyle = label.ink;
  context.fillText(label.text, label.x, label.y + 0.5);
}

type Ink = `${SpanState}Ink`;
type Colors = Readonly<
  Record<SpanState | Ink | "panel" | "line" | "ink" | "muted" | "accent" | "past" | "trouble", string>
>;

function readColors(): Colors {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  return {
    coming: color("--sunk"),
    comingInk: color("--muted"),
    speaking: color("--accent"),
    speakingInk: color("--accent-ink"),
    played: color("--accent-soft"),
    playedInk: color("--lit-ink"),
    interrupted: color("--trouble-soft"),
    interruptedInk: color("--trouble"),
    failed: color("--trouble-soft"),
    failedInk: color("--trouble"),
    panel: color("--panel"),
    line: color("--line"),
    ink: color("--ink"),
    muted: color("--muted"),
    accent: color("--accent"),
    past: color("--wave-past"),
    trouble: color("--trouble"),
  };
}
