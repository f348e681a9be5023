/** Faults as stages that a response's chunks pass through, one after the other. */
import type { Alignment } from "../../timing/alignment.ts";
import type { ChunkTiming, JobChunk } from "../voice/messages.ts";

export interface ChunkStage {
  push(chunk: JobChunk): readonly JobChunk[];
  /** The response is complete: what was held back. */
  end(): readonly JobChunk[];
}

const NO_TIMING: ChunkTiming = {
  alignment: null,
  normalizedAlignment: null,
  voiceSegments: [],
  truth: [],
};

/** What a fault makes of an alignment; the chunk's audio begins at `audioStartSeconds`. */
export type AlignmentChange = (
  alignment: Alignment,
  at: { readonly chunk: number; readonly audioStartSeconds: number },
) => Alignment | null;

/** Changes each chunk's two alignments on its own. The truth is left as it is. */
export class AlignmentStage implements ChunkStage {
  readonly #createChange: () => AlignmentChange;
  readonly #original: AlignmentChange;
  readonly #normalized: AlignmentChange;
  #chunk = 0;

  /** `createChange` is called for each of the two alignments: a change may remember the chunk before. */
  constructor(createChange: () => AlignmentChange) {
    this.#createChange = createChange;
    this.#original = this.#createChange();
    this.#normalized = this.#createChange();
  }

  push(chunk: JobChunk): readonly JobChunk[] {
    if (chunk.timing === null) return [chunk];
    const { alignment, normalizedAlignment, voiceSegments } = chunk.timing;
    const at = { chunk: this.#chunk++, audioStartSeconds: voiceSegments[0]?.start_time_seconds ?? 0 };
    const timing = {
      ...chunk.timing,
      alignment: alignment === null ? null : this.#original(alignment, at),
      normalizedAlignment: normalizedAlignment === null ? null : this.#normalized(normalizedAlignment, at),
    };
    return [{ ...chunk, timing }];
  }

  end(): readonly JobChunk[] {
    return [];
  }
}

/** Timing comes some chunks after its audio; what is left at the end comes in chunks without audio. */
export class LateStage implements ChunkStage {
  readonly #delay: number;
  #held: Pick<ChunkTiming, "alignment" | "normalizedAlignment">[] = [];

  constructor(chunks: number) {
    this.#delay = chunks;
  }

  push(chunk: JobChunk): readonly JobChunk[] {
    if (chunk.timing === null) return [chunk];
    const { alignment, normalizedAlignment } = chunk.timing;
    this.#held.push({ alignment, normalizedAlignment });
    const due = this.#held.length > this.#delay ? this.#held.shift() : undefined;
    return [{ ...chunk, timing: { ...chunk.timing, ...(due ?? NO_ALIGNMENTS) } }];
  }

  end(): readonly JobChunk[] {
    return this.#held
      .splice(0)
      .map((alignments) => ({ audio: new Uint8Array(0), timing: { ...NO_TIMING, ...alignments } }));
  }
}

const NO_ALIGNMENTS = { alignment: null, normalizedAlignment: null };

/** The last chunk that has timing is stretched, so that it ends `seconds` later; every chunk waits for the next one. */
export class LongStage implements ChunkStage {
  readonly #seconds: number;
  #held: JobChunk[] = [];

  constructor(seconds: number) {
    this.#seconds = seconds;
  }

  push(chunk: JobChunk): readonly JobChunk[] {
    const isTimed = (chunk.timing?.alignment ?? null) !== null;
    const before = isTimed ? this.#held.splice(0) : [];
    this.#held.push(chunk);
    return before;
  }

  end(): readonly JobChunk[] {
    return this.#held.splice(0).map((chunk) => {
      if (chunk.timing === null) return chunk;
      const { alignment, normalizedAlignment } = chunk.timing;
      const timing = {
        ...chunk.timing,
        alignment: stretched(alignment, this.#seconds),
        normalizedAlignment: stretched(normalizedAlignment, this.#seconds),
      };
      return { ...chunk, timing };
    });
  }
}

function stretched(alignment: Alignment | null, bySeconds: number): Alignment | null {
  const first = alignment?.character_start_times_seconds[0];
  const last = alignment?.character_end_times_seconds.at(-1);
  if (alignment === null || first === undefined || last === undefined || last <= first) return alignment;
  const factor = (last - first + bySeconds) / (last - first);
  return mapTimes(alignment, (seconds) => first + (seconds - first) * factor);
}

/** Splits each chunk's audio into pieces of these sizes, over and over; its timing stays with its first piece. */
export class SizesStage implements ChunkStage {
  readonly #sizes: readonly number[];
  #next = 0;

  constructor(sizes: readonly number[]) {
    this.#sizes = sizes;
  }

  push(chunk: JobChunk): readonly JobChunk[] {
    const { audio, timing } = chunk;
    const pieces: JobChunk[] = [];
    const rest = timing === null ? null : NO_TIMING;
    let from = 0;
    while (from < audio.length || pieces.length === 0) {
      const size = this.#sizes[this.#next++ % this.#sizes.length] ?? audio.length;
      pieces.push({ audio: audio.subarray(from, from + size), timing: from === 0 ? timing : rest });
      from += size;
    }
    return pieces;
  }

  end(): readonly JobChunk[] {
    return [];
  }
}

/** Remembers each alignment as it was before other stages change it, for those who want the truth. */
export class KeepTruthStage implements ChunkStage {
  push(chunk: JobChunk): readonly JobChunk[] {
    if (chunk.timing === null) return [chunk];
    return [{ ...chunk, timing: { ...chunk.timing, trueAlignment: chunk.timing.alignment } }];
  }

  end(): readonly JobChunk[] {
    return [];
  }
}

export function mapTimes(alignment: Alignment, map: (seconds: number, index: number) => number): Alignment {
  return {
    ...alignment,
    character_start_times_seconds: alignment.character_start_times_seconds.map(map),
    character_end_times_seconds: alignment.character_end_times_seconds.map(map),
  };
}
