/**
 * The session's unit of time. One tick is the largest span of which every supported sample is a whole multiple, so
 * that positions of frames in different renditions compare exactly, however long the session lasts.
 */
import { GatewayError } from "../errors.ts";

/** A multiple of each rate of AUDIO_FORMATS, the least one. A day is 1.2e12: exact. */
export const TICKS_PER_SECOND = 14_112_000;

export const TICKS_PER_MS = TICKS_PER_SECOND / 1000;

/** Ticks that one sample lasts. `sampleRate`: hertz, of AUDIO_FORMATS. */
export function ticksPerSample(sampleRate: number): number {
  const ticks = TICKS_PER_SECOND / sampleRate;
  if (!Number.isSafeInteger(ticks) || ticks <= 0) {
    throw new GatewayError(
      "internal",
      `Can't place samples on the timeline: rate ${sampleRate} Hz, expected a divisor of ${TICKS_PER_SECOND}`,
    );
  }
  return ticks;
}

/** Milliseconds for events: rounded to 0.001 ms, far below a sample, so that JSON stays short. */
export function msOfTicks(ticks: number): number {
  return Math.round((ticks * 1_000_000) / TICKS_PER_SECOND) / 1000;
}
