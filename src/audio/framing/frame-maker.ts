/**
 * Audio in, exact frames out: what a rendition is made with. Samples are resampled, encoded and cut into frames of one
 * duration; bytes that already are in the codec are only cut.
 */
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import type { OpusPool } from "../codecs/opus-pool.ts";
import { OpusFrameMaker } from "./frame-maker-opus.ts";
import { SampleFrameMaker } from "./frame-maker-samples.ts";
import type { FrameHandlers, FrameMaker } from "./frames.ts";

export type { FrameHandlers, FrameMaker };

export interface FrameMakerOptions {
  readonly format: AudioFormat;
  /** As `isFrameLengthAllowed` has it. */
  readonly frameMs: number;
  /** Needed for opus_48000 only. */
  readonly opusPool?: OpusPool;
}

/** Frames come out synchronously for G.711 and PCM, later (in order) for Opus. */
export function createFrameMaker(options: FrameMakerOptions, handlers: FrameHandlers): FrameMaker {
  const { format, frameMs, opusPool } = options;
  if (format !== "opus_48000") return new SampleFrameMaker({ format, frameMs }, handlers);
  if (opusPool === undefined) throw new TypeError("Cannot make Opus frames: opusPool is missing");
  return new OpusFrameMaker({ frameMs, opusPool }, handlers);
}
