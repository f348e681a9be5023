/**
 * What of a segment has times only, noted on its utterance so that it can be emitted again where that goes on
 * after a cut: the upstream's normalized characters, and the spans of a dialogue's voices.
 */
import type { VoiceSegment } from "../../timing/alignment.ts";
import type { Span } from "../playback/transcript.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { MovableSpans } from "./movable-spans.ts";

export class SegmentSpans {
  readonly #utterance: Utterance;
  readonly #ticksAt: (seconds: number) => number;
  readonly #movable: MovableSpans;

  /**
   * `ticksAt`: where on the timeline a moment of the response is, as far as is known; `movable`: where all is noted
   * that moves with the silence that is trimmed.
   */
  constructor(utterance: Utterance, movable: MovableSpans, ticksAt: (seconds: number) => number) {
    this.#utterance = utterance;
    this.#movable = movable;
    this.#ticksAt = ticksAt;
  }

  /** `start`: offset in the spoken text. */
  noteNormalized(text: string, start: number, startSeconds: number, endSeconds: number): void {
    const span = { text, start, ...this.#placeOf(startSeconds, endSeconds) };
    this.#utterance.transcript.addNormalized(span);
    this.#movable.add(span);
  }

  /** `text`: offsets of what the voice says; a dialogue's spoken text is the client's. */
  noteVoice(segment: VoiceSegment, text: { readonly start: number; readonly end: number }): void {
    const span = {
      voiceId: segment.voice_id,
      inputIndex: segment.dialogue_input_index,
      ...text,
      ...this.#placeOf(segment.start_time_seconds, segment.end_time_seconds),
    };
    this.#utterance.transcript.addVoice(span);
    this.#movable.add(span);
  }

  #placeOf(startSeconds: number, endSeconds: number): Span {
    const startTicks = this.#ticksAt(Number.isFinite(startSeconds) ? startSeconds : 0);
    const endTicks = Number.isFinite(endSeconds) ? this.#ticksAt(endSeconds) : startTicks;
    return { startTicks, endTicks: Math.max(startTicks, endTicks) };
  }
}
