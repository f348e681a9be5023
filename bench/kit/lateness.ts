/**
 * How late frames are for a listener, against the ideal grid that starts with its first frame.
 *
 * A server that sends `lead` ahead in batches of `batch` has frame k out by its playout time minus (lead - batch);
 * every millisecond after that is lateness, before it is none. The first lead's worth of frames comes at once, so
 * none of them is due before the first. That grid hides what the first frame itself was late: where it matters, the
 * grid is anchored to the server's own playhead instead (`anchor`), and then frames can be told to be early, too.
 */
import type { Grid, GridSummary, LatenessSummary } from "./commands.ts";
import { Histogram } from "./histogram.ts";
import { Undisturbed } from "./undisturbed.ts";

const FRAME_MS = 20;

/** What a group of listeners saw. */
export class GroupLateness {
  late = new Histogram();
  /** The same, in the seconds that the host of a virtual machine left alone. */
  undisturbed = new Undisturbed();
  /** From when a frame may leave to its arrival; anchored grids only. */
  delay = new Histogram();
  readonly #listeners: FrameLateness[] = [];

  join(listener: FrameLateness): void {
    this.#listeners.push(listener);
  }

  /** Its listeners learn from now on how early their frames come. */
  learn(): void {
    for (const listener of this.#listeners) listener.learn();
  }

  /** The earliest frame of each listener since `learn` came as early as a frame may: their grids begin anew from it. */
  rebase(): void {
    for (const listener of this.#listeners) listener.rebase();
  }

  /** Frames that came so far count no more. */
  restart(): void {
    this.late = new Histogram();
    this.undisturbed = new Undisturbed();
    this.delay = new Histogram();
  }

  summary(): LatenessSummary {
    const { late } = this;
    const { histogram } = this.undisturbed;
    return {
      frames: late.count,
      p50Ms: late.at(0.5),
      p99Ms: late.at(0.99),
      maxMs: late.maxMs,
      undisturbed: {
        frames: histogram.count,
        p99Ms: histogram.count > 0 ? histogram.at(0.99) : null,
        maxMs: histogram.maxMs,
      },
    };
  }

  gridSummary(): GridSummary {
    let [spanMs, worst, earlyFrames, earliestMs, xx, xy] = [0, 0, 0, 0, 0, 0];
    for (const listener of this.#listeners) {
      const trend = listener.trend();
      spanMs = Math.max(spanMs, listener.spanMs);
      earlyFrames += listener.earlyFrames;
      earliestMs = Math.max(earliestMs, listener.earliestMs);
      xx += trend.xx;
      xy += trend.xy;
      const ppm = trend.xx > 0 ? (trend.xy / trend.xx) * 1e6 : 0;
      if (Math.abs(ppm) > Math.abs(worst)) worst = ppm;
    }
    return {
      listeners: this.#listeners.length,
      spanMs,
      delayP99Ms: this.delay.at(0.99),
      driftPpm: xx > 0 ? (xy / xx) * 1e6 : Number.NaN,
      worstDriftPpm: worst,
      earlyFrames,
      earliestMs,
    };
  }
}

/** One listener. */
export class FrameLateness {
  readonly #group: GroupLateness;
  readonly #grid: Grid;
  readonly #slackMs: number;
  readonly #countedFromMs: number;
  readonly #framesPerBatch: number;
  #firstMs: number | null = null;
  #frames = 0;
  /** When the timeline's 0 is played, by the server's own word; null = not anchored. */
  #originMs: number | null = null;
  /** Of the frame since `learn` that was furthest ahead of its place; less than 0 = before it. */
  #earliestOffsetMs = Number.POSITIVE_INFINITY;
  earlyFrames = 0;
  /** The furthest that a frame came before its lead, ms. */
  earliestMs = 0;
  /** From the first frame to the latest, ms. */
  spanMs = 0;
  // Sums over (place on the grid, arrival - place) of the frames that the drift is measured with.
  #count = 0;
  #x = 0;
  #y = 0;
  #xx = 0;
  #xy = 0;

  constructor(group: GroupLateness, grid: Grid) {
    this.#group = group;
    this.#grid = grid;
    this.#slackMs = grid.leadMs - grid.batchMs;
    this.#countedFromMs = grid.settleMs ?? 0;
    this.#framesPerBatch = Math.max(1, Math.round(grid.batchMs / FRAME_MS));
    group.join(this);
  }

  /** The grid begins at `originMs` from now on; nothing is counted before that if the grid asks for it. */
  anchor(originMs: number): void {
    this.#originMs = originMs;
  }

  learn(): void {
    this.#earliestOffsetMs = Number.POSITIVE_INFINITY;
  }

  /** Where speech paused, the frames behind it came later than their number says, which is not late. */
  rebase(): void {
    if (this.#originMs === null || this.#earliestOffsetMs === Number.POSITIVE_INFINITY) return;
    this.#originMs += this.#earliestOffsetMs + this.#grid.leadMs;
    this.learn();
  }

  note(atMs: number): void {
    this.#firstMs ??= atMs;
    const placeMs = this.#frames * FRAME_MS;
    this.#frames += 1;
    this.spanMs = atMs - this.#firstMs;
    if (placeMs < this.#countedFromMs || (this.#originMs === null && this.#grid.isAnchored === true)) return;
    const offsetMs = atMs - (this.#originMs ?? this.#firstMs) - placeMs;
    this.#earliestOffsetMs = Math.min(this.#earliestOffsetMs, offsetMs);
    // Without an anchor no frame is due before the first.
    const earliestDueMs = this.#originMs === null ? -placeMs : -this.#slackMs;
    const lateMs = Math.max(0, offsetMs - Math.max(earliestDueMs, -this.#slackMs));
    this.#group.late.add(lateMs);
    this.#group.undisturbed.add(lateMs, atMs);
    if (this.#originMs === null) return;
    const earlyMs = -this.#grid.leadMs - offsetMs;
    this.earliestMs = Math.max(this.earliestMs, earlyMs);
    if (earlyMs > 0) this.earlyFrames += 1;
    this.#group.delay.add(Math.max(0, -earlyMs));
    // One frame a batch: within a batch all come at the same time, which is no drift.
    if (this.#frames % this.#framesPerBatch === 0) this.#noteTrend(placeMs, offsetMs);
  }

  #noteTrend(x: number, y: number): void {
    this.#count += 1;
    this.#x += x;
    this.#y += y;
    this.#xx += x * x;
    this.#xy += x * y;
  }

  /** Centred sums of squares and products: their quotient is the slope, and those of several listeners add up. */
  trend(): { readonly xx: number; readonly xy: number } {
    if (this.#count < 2) return { xx: 0, xy: 0 };
    return {
      xx: this.#xx - (this.#x * this.#x) / this.#count,
      xy: this.#xy - (this.#x * this.#y) / this.#count,
    };
  }
}
