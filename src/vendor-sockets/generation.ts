/**
 * One generation of a context: an upstream request whose chunks become audio messages with their timing.
 *
 *   sync_alignment      each message has the timing of its own audio
 *   otherwise           the first one has the timing of all; it waits for that for as long as `timingHoldMs` says, and where
 *                       that is not long enough each message has its own
 *
 * What waits is left with the run: a response that breaks off before any of it was taken is asked for again.
 */
import type { Clock, Timer } from "../kit/clock.ts";
import { FrameTiming } from "../protocol/elevenlabs/frame-timing.ts";
import type { AudioMessage } from "../protocol/elevenlabs/server-messages.ts";
import type { UpstreamAttempt } from "../session/synthesis/upstream-attempt.ts";
import type { JoinedAudio } from "./joined-audio.ts";

export interface GenerationOptions {
  readonly run: UpstreamAttempt;
  readonly join: JoinedAudio;
  readonly clock: Clock;
  readonly isSynced: boolean;
  /** Times count from the beginning of the context. */
  readonly isAbsolute: boolean;
  readonly holdMs: number;
  /** The text that is spoken: all of it is timed once so many UTF-16 code units are. */
  readonly textChars: number;
  /** A message may be due. */
  readonly onDue: () => void;
}

/** Audio that is held for its timing at most: then it goes without. */
const MAX_HELD_BYTES = 262_144;

interface Piece {
  readonly audio: Uint8Array;
  /** From the start of the generation. */
  readonly startMs: number;
  readonly endMs: number;
}

export class Generation {
  readonly #options: GenerationOptions;
  readonly #timing = new FrameTiming();
  readonly #normalized = new FrameTiming();
  readonly #beganMs: number;
  #pieces: Piece[] = [];
  /** The first message waits for the timing of all. */
  #isHolding: boolean;
  #holdTimer: Timer | null = null;
  #isHoldOver = false;
  #isEnded = false;
  #isOver = false;

  constructor(options: GenerationOptions) {
    this.#options = options;
    this.#isHolding = !options.isSynced;
    this.#beganMs = options.clock.nowMs();
    options.join.begin();
  }

  /** Everything has been given out (the run may have failed). */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The next message, or null where none is due. Throws GatewayError "upstream_protocol" for broken audio. */
  next(): AudioMessage | null {
    while (!this.#isOver) {
      if (this.#isHolding && this.#mustHold()) return null;
      this.#read();
      const piece = this.#pieces.shift();
      if (piece === undefined) {
        this.#isOver = this.#isEnded;
        return this.#isOver ? this.#rest() : null;
      }
      const isWhole = this.#isHolding && !this.#isHoldOver;
      this.#isHolding = false;
      this.#stopTimer();
      const message = this.#messageOf(piece, isWhole ? Number.POSITIVE_INFINITY : piece.endMs);
      if (message !== null) return message;
    }
    return null;
  }

  /** Idempotent. */
  abort(): void {
    this.#stopTimer();
    this.#pieces = [];
    this.#isOver = true;
    this.#options.run.abort();
  }

  /** First all that was held, then one chunk at a time: the rest waits where its request can be paused. */
  #read(): void {
    const { run, join } = this.#options;
    // There may be timing, of audio to come.
    if (run.waitingBytes === 0 && !run.isComplete) return;
    while (!this.#isEnded && (this.#isHolding || this.#pieces.length === 0)) {
      const chunk = run.take();
      if (chunk === undefined) {
        if (!run.isComplete) return;
        this.#isEnded = true;
        // What a failed response has left half is no audio.
        if (run.error === null) this.#add(join.ms, join.end());
        return;
      }
      this.#timing.push(chunk.alignment);
      this.#normalized.push(chunk.normalizedAlignment);
      this.#add(join.ms, join.push(chunk.audio));
    }
  }

  #add(startMs: number, audio: Uint8Array): void {
    const endMs = this.#options.join.ms;
    if (audio.length === 0 && endMs === startMs) return;
    this.#pieces.push({ audio, startMs, endMs });
  }

  #mustHold(): boolean {
    const { run, clock, holdMs, textChars, onDue } = this.#options;
    if (run.isComplete) return false;
    if (run.waitingBytes === 0) return true;
    if (this.#timing.chars + run.waitingTimedChars >= textChars) return false;
    // Counted from the audio of the try that it comes of.
    const untilMs = Math.max(this.#beganMs, run.segment.stages.firstByteMs) + holdMs;
    this.#isHoldOver ||= clock.nowMs() >= untilMs || run.waitingBytes > MAX_HELD_BYTES;
    if (this.#isHoldOver) return false;
    this.#holdTimer ??= clock.at(untilMs, () => {
      this.#holdTimer = null;
      onDue();
    });
    return true;
  }

  #messageOf({ audio, startMs }: Piece, untilMs: number): AudioMessage | null {
    const { join, isAbsolute } = this.#options;
    const originMs = isAbsolute ? -join.originMs : startMs;
    const timing = this.#timing.take(originMs, untilMs);
    const normalizedTiming = this.#normalized.take(originMs, untilMs);
    const isEmpty = audio.length === 0 && timing === null && normalizedTiming === null;
    return isEmpty ? null : { audio, timing, normalizedTiming };
  }

  /** Characters beyond the last sound: a message of their own, without audio. */
  #rest(): AudioMessage | null {
    this.#stopTimer();
    const startMs = this.#options.join.ms;
    const end = { audio: new Uint8Array(0), startMs, endMs: startMs };
    return this.#messageOf(end, Number.POSITIVE_INFINITY);
  }

  #stopTimer(): void {
    this.#holdTimer?.cancel();
    this.#holdTimer = null;
  }
}
