/**
 * Where on the session's timeline each received frame stands. Frames carry no position of their own: the first one
 * stands at the description's `start_ms`, every next one `frame_ms` later, a `gap` skips what was never sent, an
 * `interrupted` names the place of the next frame, and a new description (`configured`) starts over. After a
 * reconnect, frames that came on the socket before are known by their place and left out.
 */
import type { AudioDescription, GapEvent } from "../protocol/events.ts";

export interface FramePosition {
  /** Frames handed out before this one on this connection. */
  readonly index: number;
  /** Start of the frame on the session's timeline, ms. */
  readonly atMs: number;
}

export class FrameClock {
  #index = 0;
  #anchorMs = 0;
  #sinceAnchor = 0;
  #audio: AudioDescription | null = null;
  /** Frames before it came on an earlier socket. */
  #floorMs = Number.NEGATIVE_INFINITY;
  #hasSkipped = false;

  /** The frames that follow are described by `audio`; null = no frames will come. */
  restart(audio: AudioDescription | null): void {
    if (!isSameFraming(audio, this.#audio)) this.#floorMs = Number.NEGATIVE_INFINITY;
    this.#audio = audio;
    this.#anchor(audio?.start_ms ?? 0);
  }

  /** Another timeline begins: nothing of it has come. */
  forget(): void {
    this.restart(null);
  }

  /** As `restart`, on the same timeline after a new socket: what came before is not handed out again. Returns the gap, ms. */
  rejoin(audio: AudioDescription | null): number {
    const hasAudio = audio !== null && this.#audio !== null;
    const endMs = this.endMs;
    if (hasAudio) this.#floorMs = endMs;
    this.restart(audio);
    const gapMs = hasAudio ? Math.max(0, audio.start_ms - endMs) : 0;
    this.#hasSkipped = gapMs > 0;
    return gapMs;
  }

  /** End of the audio that has come, ms. */
  get endMs(): number {
    return Math.max(this.#floorMs, this.#nextMs);
  }

  /** Whether the latest `rejoin` left audio out. */
  get hasSkipped(): boolean {
    return this.#hasSkipped;
  }

  /** Frames were left out before the next one. */
  skip(gap: Pick<GapEvent, "frames">): void {
    this.#anchorMs += gap.frames * this.#frameMs;
  }

  /** The next frame stands at `nextMs`: what was made before a cut and not sent will never come. */
  moveTo(nextMs: number): void {
    this.#floorMs = Number.NEGATIVE_INFINITY;
    this.#anchor(nextMs);
  }

  /** Position of the frame that has just come; null where it is one that came before. */
  next(): FramePosition | null {
    const atMs = this.#nextMs;
    this.#sinceAnchor += 1;
    // By its middle: positions of another sample rate may be a rounding apart.
    if (atMs + this.#frameMs / 2 < this.#floorMs) return null;
    const index = this.#index;
    this.#index += 1;
    return { index, atMs };
  }

  get #frameMs(): number {
    return this.#audio?.frame_ms ?? 0;
  }

  get #nextMs(): number {
    // A product and not a running sum: a thousand additions of 2.5 ms would drift.
    return this.#anchorMs + this.#sinceAnchor * this.#frameMs;
  }

  #anchor(atMs: number): void {
    this.#anchorMs = atMs;
    this.#sinceAnchor = 0;
  }
}

function isSameFraming(a: AudioDescription | null, b: AudioDescription | null): boolean {
  return a?.codec === b?.codec && a?.sample_rate === b?.sample_rate && a?.frame_ms === b?.frame_ms;
}
