/**
 * The JSON of timed responses: one object for each streamed chunk, or one for the whole response.
 * With the request header `x-voicewire-truth: 1` they carry `voicewire_words` besides: the engine's own word events,
 * `{normalized_character_index, character_index, length, start_time_seconds}` each, for tests that measure the alignment.
 * Where a scripted fault changed the alignment, `voicewire_alignment` is the one that it would have been.
 * Several events share a character index where the engine says one written word in several (a number, an emoji).
 */
import type { Alignment, VoiceSegment } from "../../../timing/alignment.ts";
import type { ChunkTiming, JobChunk, JobSpec, TruthWord } from "../../voice/messages.ts";

interface Shape {
  readonly isDialogue: boolean;
  readonly spec: JobSpec;
}

/**
 * A streamed chunk. A dialogue's `voice_segments` describe the stretch of this chunk: a voice that speaks over several
 * chunks has one segment in each, next to each other in time and characters, with the same dialogue_input_index.
 */
export function timedChunk(chunk: JobChunk, shape: Shape): object {
  return {
    audio_base64: Buffer.from(chunk.audio.buffer, chunk.audio.byteOffset, chunk.audio.byteLength).toString(
      "base64",
    ),
    alignment: chunk.timing?.alignment ?? null,
    normalized_alignment: chunk.timing?.normalizedAlignment ?? null,
    ...(shape.isDialogue ? { voice_segments: chunk.timing?.voiceSegments ?? [] } : {}),
    ...(shape.spec.wantsTruth ? truthOf(chunk.timing) : {}),
  };
}

function truthOf(timing: ChunkTiming | null): object {
  const before = timing?.trueAlignment;
  return {
    voicewire_words: timing?.truth ?? [],
    ...(before === undefined ? {} : { voicewire_alignment: before }),
  };
}

interface Growing {
  readonly characters: string[];
  readonly character_start_times_seconds: number[];
  readonly character_end_times_seconds: number[];
}

function growing(): Growing {
  return { characters: [], character_start_times_seconds: [], character_end_times_seconds: [] };
}

/** The timing of all chunks of a response; bounded by the longest text. */
export class GatheredTiming {
  readonly #alignment = growing();
  readonly #normalized = growing();
  readonly #segments: VoiceSegment[] = [];
  readonly #truth: TruthWord[] = [];

  add(timing: ChunkTiming): void {
    append(this.#alignment, timing.alignment);
    append(this.#normalized, timing.normalizedAlignment);
    for (const segment of timing.voiceSegments) this.#addSegment(segment);
    for (const word of timing.truth) this.#truth.push(word);
  }

  /** As the history keeps it; null where nothing was timed. */
  get whole(): { readonly alignment: Alignment; readonly normalized_alignment: Alignment } | null {
    if (this.#alignment.characters.length === 0) return null;
    return { alignment: this.#alignment, normalized_alignment: this.#normalized };
  }

  /** What follows the audio in the object: from the quote that ends it to the closing brace. */
  json(shape: Shape): string {
    const fields = {
      alignment: this.#alignment,
      normalized_alignment: this.#normalized,
      ...(shape.isDialogue ? { voice_segments: this.#segments } : {}),
      ...(shape.spec.wantsTruth ? { voicewire_words: this.#truth } : {}),
    };
    return `",${JSON.stringify(fields).slice(1)}`;
  }

  /** One segment an input. */
  #addSegment(segment: VoiceSegment): void {
    const last = this.#segments.at(-1);
    if (last?.dialogue_input_index !== segment.dialogue_input_index) {
      this.#segments.push(segment);
      return;
    }
    this.#segments[this.#segments.length - 1] = {
      ...last,
      end_time_seconds: segment.end_time_seconds,
      character_end_index: segment.character_end_index,
    };
  }
}

function append(all: Growing, part: Alignment | null): void {
  if (part === null) return;
  for (const char of part.characters) all.characters.push(char);
  for (const time of part.character_start_times_seconds) all.character_start_times_seconds.push(time);
  for (const time of part.character_end_times_seconds) all.character_end_times_seconds.push(time);
}
