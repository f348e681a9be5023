/** When each stage of a segment was reached, and the waterfall that these make. */
import type { Waterfall } from "../../protocol/events.ts";

/** Clock ms; 0 = not reached. `start`, `end`: client's offsets. */
export interface SegmentStages {
  readonly start: number;
  /** Nearer where the response broke off. */
  end: number;
  readonly arrivedMs: number;
  readonly segmentedMs: number;
  openedMs: number;
  sentMs: number;
  headersMs: number;
  firstByteMs: number;
  firstSoundMs: number;
  firstFrameMs: number;
  leadingSilenceMs: number | null;
  /** Its waterfall is in the histograms. */
  isCounted: boolean;
}

export function newStages(
  range: { readonly start: number; readonly end: number },
  since: { readonly arrivedMs: number; readonly segmentedMs: number },
): SegmentStages {
  // Not by spreading: V8 gives each such object a hidden class of its own.
  return {
    start: range.start,
    end: range.end,
    arrivedMs: since.arrivedMs,
    segmentedMs: since.segmentedMs,
    openedMs: 0,
    sentMs: 0,
    headersMs: 0,
    firstByteMs: 0,
    firstSoundMs: 0,
    firstFrameMs: 0,
    leadingSilenceMs: null,
    isCounted: false,
  };
}

/** The stages in whole microseconds, so that they sum to the total; null where no frame was sent. */
export function waterfallOf(stages: SegmentStages): Waterfall | null {
  if (stages.firstByteMs === 0 || stages.firstFrameMs === 0) return null;
  const reached = [
    stages.arrivedMs,
    stages.segmentedMs,
    stages.openedMs,
    stages.sentMs,
    stages.headersMs,
    stages.firstByteMs,
    // All silence, or a codec that is not looked into: its first byte stands for its first sound.
    stages.firstSoundMs === 0 ? stages.firstByteMs : Math.min(stages.firstSoundMs, stages.firstFrameMs),
    stages.firstFrameMs,
  ];
  // A stage that was passed over takes no time, and the next one counts from the same place.
  let last = 0;
  const micros = reached.slice(1).map((ms) => {
    const at = Math.max(last, Math.round((ms - stages.arrivedMs) * 1000));
    const us = at - last;
    last = at;
    return us;
  });
  const stage = (index: number): number => (micros[index] ?? 0) / 1000;
  return {
    text_ms: stage(0),
    queued_ms: stage(1),
    connected_ms: stage(2),
    headers_ms: stage(3),
    first_byte_ms: stage(4),
    first_sound_ms: stage(5),
    first_frame_ms: stage(6),
    total_ms: micros.reduce((sum, us) => sum + us, 0) / 1000,
    leading_silence_ms: stages.leadingSilenceMs,
  };
}

/** When the text up to each offset had come: one entry a push, those of cut text forgotten. */
export class ArrivalTimes {
  #entries: { readonly end: number; readonly atMs: number }[] = [];

  note(end: number, atMs: number): void {
    const last = this.#entries.at(-1);
    if (last === undefined || end > last.end) this.#entries.push({ end, atMs });
  }

  /** When the character at `offset` came; asked in rising order: what is before is forgotten. */
  at(offset: number): number | undefined {
    const index = this.#entries.findIndex((entry) => entry.end > offset);
    if (index < 0) return this.#entries.at(-1)?.atMs;
    if (index > 0) this.#entries = this.#entries.slice(index);
    return this.#entries[0]?.atMs;
  }
}
