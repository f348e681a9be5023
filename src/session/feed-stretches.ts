/**
 * What of a segment is told by its time alone, noted on its utterance so that it can be told again where that goes on
 * after a cut: the upstream's normalized characters, and the stretches of a dialogue's voices.
 */
import type { VoiceSegment } from "../timing/alignment.ts";
import type { FeedCut } from "./feed-events.ts";
import type { Stretch, Utterance } from "./utterance.ts";

/** Places of what is pushed are let go of when there are so many. */
const MAX_MOVABLE = 128;

export class FeedStretches {
  readonly #utterance: Utterance;
  readonly #ticksAt: (seconds: number) => number;
  /** What may still be moved: places before the audio pushed stay as they are. */
  #movable: Stretch[] = [];

  /** `ticksAt`: where on the timeline a moment of the response is, as far as is known. */
  constructor(utterance: Utterance, ticksAt: (seconds: number) => number) {
    this.#utterance = utterance;
    this.#ticksAt = ticksAt;
  }

  noteNormalized(text: string, startSeconds: number, endSeconds: number): void {
    const stretch = { text, ...this.#placeOf(startSeconds, endSeconds) };
    this.#utterance.normalized.push(stretch);
    this.#movable.push(stretch);
  }

  /** `text`: offsets of what the voice says; a dialogue's spoken text is the client's. */
  noteVoice(segment: VoiceSegment, text: { readonly start: number; readonly end: number }): void {
    const stretch = {
      voiceId: segment.voice_id,
      inputIndex: segment.dialogue_input_index,
      ...text,
      ...this.#placeOf(segment.start_time_seconds, segment.end_time_seconds),
    };
    this.#utterance.voices.push(stretch);
    this.#movable.push(stretch);
  }

  /** Silence was taken off the beginning of the segment, which stands at `baseTicks`. */
  dropLead(baseTicks: number, ticks: number): void {
    for (const stretch of this.#movable) {
      stretch.startTicks = Math.max(baseTicks, stretch.startTicks - ticks);
      stretch.endTicks = Math.max(baseTicks, stretch.endTicks - ticks);
    }
  }

  /** The segment's audio ends at this place of the timeline. */
  endAt(endTicks: number): void {
    for (const stretch of this.#movable) {
      stretch.startTicks = Math.min(endTicks, stretch.startTicks);
      stretch.endTicks = Math.min(endTicks, stretch.endTicks);
    }
  }

  /** The response broke off: what is behind comes with another one. */
  cutAt({ spokenEnd, ticks }: FeedCut): void {
    const utterance = this.#utterance;
    utterance.normalized = utterance.normalized.filter((stretch) => stretch.startTicks < ticks);
    utterance.voices = utterance.voices.filter((stretch) => stretch.start < spokenEnd);
    for (const stretch of utterance.voices) stretch.end = Math.min(stretch.end, spokenEnd);
  }

  forgetBefore(edgeTicks: number): void {
    if (this.#movable.length <= MAX_MOVABLE) return;
    this.#movable = this.#movable.filter((stretch) => stretch.endTicks > edgeTicks);
  }

  #placeOf(startSeconds: number, endSeconds: number): Stretch {
    const startTicks = this.#ticksAt(Number.isFinite(startSeconds) ? startSeconds : 0);
    const endTicks = Number.isFinite(endSeconds) ? this.#ticksAt(endSeconds) : startTicks;
    return { startTicks, endTicks: Math.max(startTicks, endTicks) };
  }
}
