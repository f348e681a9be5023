/**
 * Which position of the session's timeline is played at a moment of the audio clock. The timeline stands still
 * between utterances and the audio clock does not, so the two are tied together piece by piece ("runs"):
 *
 *   audio clock  ---[run: 0-1980 ms]-------silence-------[run: 1980-3400 ms]---underrun--[run: 3400-...]
 */

interface Run {
  /** When its first sample is played, seconds of the audio clock. */
  readonly startS: number;
  /** Timeline position of that sample, ms. */
  readonly atMs: number;
  durationMs: number;
}

/** Enough for minutes of stuttering; older runs are never asked for again. */
const MAX_RUNS = 256;
/** Two pieces this close are one: a hundredth of a sample at 48 kHz. */
const CLOSE_S = 2e-7;
const CLOSE_MS = 0.01;

export class Playhead {
  #runs: Run[] = [];
  #restMs: number;

  /** `restMs`: the position before anything is scheduled. */
  constructor(restMs = 0) {
    this.#restMs = restMs;
  }

  schedule(piece: { readonly startS: number; readonly atMs: number; readonly durationMs: number }): void {
    const last = this.#runs.at(-1);
    if (
      last !== undefined &&
      Math.abs(last.startS + last.durationMs / 1000 - piece.startS) < CLOSE_S &&
      Math.abs(last.atMs + last.durationMs - piece.atMs) < CLOSE_MS
    ) {
      last.durationMs += piece.durationMs;
      return;
    }
    this.#runs.push({ ...piece });
    if (this.#runs.length > MAX_RUNS) this.#runs.shift();
  }

  /** Timeline position played at `timeS`, ms: that of the run then playing, or the end of the one before. */
  positionAt(timeS: number): number {
    for (let index = this.#runs.length - 1; index >= 0; index -= 1) {
      const run = this.#runs[index];
      if (run === undefined || run.startS > timeS) continue;
      return run.atMs + Math.min((timeS - run.startS) * 1000, run.durationMs);
    }
    return this.#runs[0] === undefined ? this.#restMs : Math.min(this.#restMs, this.#runs[0].atMs);
  }

  /** Nothing after `timeS` will be heard. */
  cut(timeS: number): void {
    this.#restMs = this.positionAt(timeS);
    this.#runs = this.#runs.filter((run) => run.startS <= timeS);
    const last = this.#runs.at(-1);
    if (last !== undefined)
      last.durationMs = Math.min(last.durationMs, Math.max(0, timeS - last.startS) * 1000);
  }
}
