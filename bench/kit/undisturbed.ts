/**
 * Durations measured while the host of a virtual machine let it have its cores: what a frame waited for a processor that
 * somebody else had says nothing of who sends it. Whole seconds are counted or left out, never single frames.
 */
import { stolenMs } from "./cpu.ts";
import { Histogram } from "./histogram.ts";

const WINDOW_MS = 1000;
/** What the host may take in a window, of all cores together: what is left of two ticks of the kernel's count. */
const MAX_STOLEN_MS = 20;

interface Window {
  readonly histogram: Histogram;
  readonly isLeftAlone: boolean;
}

export class Undisturbed {
  /** Of the windows that were left alone, as were those before and behind them. */
  readonly histogram = new Histogram();
  readonly #stolenMs: () => number;
  #current = new Histogram();
  #endMs = Number.NEGATIVE_INFINITY;
  #stolenBefore = 0;
  /** The one before the current one, and whether the one before that was left alone. */
  #last: Window | null = null;
  #wasLeftAlone = false;

  /** `stolen`: what the host took so far, ms; the kernel's count where it is left out. */
  constructor(stolen: () => number = stolenMs) {
    this.#stolenMs = stolen;
  }

  /** `atMs`: now, of a clock that only rises. */
  add(ms: number, atMs: number): void {
    if (atMs >= this.#endMs) this.#turn(atMs);
    this.#current.add(ms);
  }

  #turn(atMs: number): void {
    const stolen = this.#stolenMs();
    const isLeftAlone = this.#endMs > 0 && stolen - this.#stolenBefore <= MAX_STOLEN_MS;
    if (this.#last !== null) {
      if (this.#wasLeftAlone && this.#last.isLeftAlone && isLeftAlone)
        this.histogram.merge(this.#last.histogram);
      this.#wasLeftAlone = this.#last.isLeftAlone;
    }
    this.#last = { histogram: this.#current, isLeftAlone };
    this.#current = new Histogram();
    this.#stolenBefore = stolen;
    this.#endMs = atMs + WINDOW_MS;
  }
}
