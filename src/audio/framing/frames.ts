/** What makes exact frames of audio, and who gets them. */
import type { GatewayError } from "../../errors.ts";

/** Called in order; neither may throw. */
export interface FrameHandlers {
  /**
   * Whole frames of `frameBytes` each, one or more in a row. The bytes may be a view into a larger buffer that was pushed:
   * copy what is kept for long.
   */
  frames(bytes: Uint8Array, frameBytes: number): void;
  /**
   * Frames were lost or cannot be made. Opus only, when its encoder fails: frames already promised still come, as
   * packets that decoders conceal, so that the timeline stays true. The maker stays usable.
   */
  error(error: GatewayError): void;
}

export interface FrameMaker {
  /** Samples at `rate` Hz (8000-48000); a change of rate drains what the former rate left in the resampler. */
  pushPcm(pcm: Int16Array, rate: number): void;
  /** Bytes that already are in this codec and rate; Opus: exactly one packet of `frameMs`. */
  pushPassThrough(bytes: Uint8Array): void;
  /** Silence, counted at the rendition's own rate. */
  pushSilence(samples: number): void;
  /** Drains the resampler and pads the last frame with silence; returns the padded samples at the rendition's rate. */
  flush(): number;
  /** Frames emitted, plus those that will be emitted later for what was pushed. */
  readonly framesPromised: number;
  /**
   * Drops the partial frame, the resampler's and encoder's state and what was promised and is still to come, but for the
   * oldest `keptFrames` of it, default 0.
   */
  reset(keptFrames?: number): void;
  /**
   * Nobody waits for more for now: an encoder goes back with its last packet. What was pushed comes out all the same; where
   * more is pushed, another encoder begins with the next frame.
   */
  releaseEncoder(): void;
  /** Idempotent; nothing is emitted any more. */
  close(): void;
}
