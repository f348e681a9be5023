/**
 * Where on the session's timeline each received frame stands. Frames carry no position of their own: the first one
 * stands at the description's `start_ms`, every next one `frame_ms` later, a `gap` skips what was never sent, an
 * `interrupted` names the place of the next frame, and a new description (`configured`) starts over.
 */
import type { AudioDescription, GapEvent } from "../protocol/vocabulary.ts";

export interface FramePosition {
  /** Frames received before this one on this connection. */
  readonly index: number;
  /** Start of the frame on the session's timeline, ms. */
  readonly atMs: number;
}

export class FrameClock {
  #index = 0;
  #anchorIndex = 0;
  #anchorMs = 0;
  #frameMs = 0;

  /** The frames that follow are described by `audio`; null = no frames will come. */
  restart(audio: AudioDescription | null): void {
    this.#anchorIndex = this.#index;
    this.#anchorMs = audio?.start_ms ?? 0;
    this.#frameMs = audio?.frame_ms ?? 0;
  }

  /** Frames were left out before the next one. */
  skip(gap: Pick<GapEvent, "frames">): void {
    this.#anchorMs += gap.frames * this.#frameMs;
  }

  /** The next frame stands at `nextMs`: what was made before a cut and not sent will never come. */
  moveTo(nextMs: number): void {
    this.#anchorIndex = this.#index;
    this.#anchorMs = nextMs;
  }

  /** Position of the frame that has just come. */
  next(): FramePosition {
    // A product and not a running sum: a thousand additions of 2.5 ms would drift.
    const atMs = this.#anchorMs + (this.#index - this.#anchorIndex) * this.#frameMs;
    const index = this.#index;
    this.#index += 1;
    return { index, atMs };
  }
}
