/** Drives a speech view by the playout clock: redraws when another word is due, nothing otherwise. */
import type { Clock, Timer } from "../../kit/clock.ts";
import type { SpeechView } from "./karaoke.ts";
import type { PlayoutClock } from "./playout.ts";
import type { Script } from "./script.ts";

const TICK_MS = 33;
const TICKS_PER_PROGRESS = 6;

export interface LiveDisplayOptions {
  readonly clock: Clock;
  readonly script: Script;
  readonly playout: PlayoutClock;
  readonly view: SpeechView;
  /** Called a few times a second with how far the playout is: that makes a receipt of an interrupt exact. */
  readonly onProgress?: ((positionMs: number) => void) | undefined;
}

export class LiveDisplay {
  readonly #options: LiveDisplayOptions;
  #timer: Timer | undefined;
  /** What was drawn last. */
  #drawn = "";
  #ticks = 0;
  #waiting: { readonly untilMs: number; resolve(): void } | undefined;

  constructor(options: LiveDisplayOptions) {
    this.#options = options;
  }

  start(): void {
    this.#tick();
  }

  /** Resolves when the playout has reached `untilMs` on the timeline, or all audio that came, and at `stop()`. Once. */
  played(untilMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { untilMs, resolve };
    });
  }

  /** Ends the display where the playout is; the words so far stay on the screen. Idempotent. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const { script, playout, view } = this.#options;
    view.finish(script.text, script.spanAt(playout.positionMs()).end);
    this.#waiting?.resolve();
  }

  #tick(): void {
    const { clock, script, playout, view } = this.#options;
    const positionMs = playout.positionMs();
    const span = script.spanAt(positionMs);
    const drawing = `${script.text.length}:${span.start}:${span.end}`;
    if (drawing !== this.#drawn && script.text !== "") {
      this.#drawn = drawing;
      view.draw(script.text, span);
    }
    if (playout.hasBegun && ++this.#ticks % TICKS_PER_PROGRESS === 0) this.#options.onProgress?.(positionMs);
    // Audio that never came (a gap at the end) is never played: what has arrived is all there is to wait for.
    const untilMs = Math.min(this.#waiting?.untilMs ?? Number.POSITIVE_INFINITY, playout.receivedMs);
    if (positionMs >= untilMs) this.#waiting?.resolve();
    this.#timer = clock.at(clock.nowMs() + TICK_MS, () => this.#tick());
  }
}
