/**
 * For a peer that plays what it gets at once and has no buffer to speak of (AudioSocket, RTP): one frame leaves at each
 * beat, silence where there is no speech, and a mark is played when the frame before it is over.
 *
 * Beats stand on one grid for all players (multiples of the frame length, which the pacer's slots divide), so that a
 * thousand calls wake the process fifty times a second and not fifty thousand. What was late is made up for one frame at a
 * time, half a frame apart: never in a burst, and the grid stays where it was.
 */
import type { Paced, PacedEntry } from "../delivery/pacer.ts";

export interface PacedPlayerOptions {
  readonly frameMs: number;
  /** One frame of it; sent where there is nothing else. */
  readonly silence: Uint8Array;
  /** Makes the entry that wakes this player (`Pacer.register`). */
  readonly register: (paced: Paced) => PacedEntry;
  readonly nowMs: () => number;
  /** The frame of one beat. */
  readonly send: (frame: PacedFrame) => void;
  /** So many beats passed without a frame: the process was held up for longer than is made up for. */
  readonly onSkipped: (frames: number) => void;
  /** All that stood before the mark has been played. */
  readonly onPlayed: (name: string) => void;
}

export interface PacedFrame {
  readonly bytes: Uint8Array;
  /** The first one of speech after silence (RFC 3551 section 4.1). */
  readonly isTalkspurtStart: boolean;
}

type Item = { readonly frame: Uint8Array } | { readonly mark: string };

/** Beats that are made up for after a late wake: what is later than that, a jitter buffer has given up. */
const MAX_BEHIND = 3;
/** Frames and marks that wait; the session sends ahead by its lead only, so this is never reached but by a fault. */
const MAX_WAITING = 1000;

export class PacedPlayer implements Paced {
  readonly #options: PacedPlayerOptions;
  readonly #entry: PacedEntry;
  #waiting: Item[] = [];
  #due: PacedFrame | null = null;
  #nextMs = 0;
  #wasSilent = true;
  #isStopped = false;

  constructor(options: PacedPlayerOptions) {
    this.#options = options;
    this.#entry = options.register(this);
  }

  /** The first beat is the next of the grid. */
  start(): void {
    const { frameMs, nowMs } = this.#options;
    this.#nextMs = (Math.floor(nowMs() / frameMs) + 1) * frameMs;
    this.#entry.wakeAt(this.#nextMs);
  }

  /** Copies them. Where too many wait, the oldest go. */
  push(frames: readonly Uint8Array[]): void {
    for (const frame of frames) this.#waiting.push({ frame: frame.slice() });
    this.#bound();
  }

  mark(name: string): void {
    this.#waiting.push({ mark: name });
    this.#bound();
  }

  /** What waits is not played, nor are its marks. */
  clear(): void {
    this.#waiting = [];
    this.#due = null;
  }

  /** Idempotent. */
  stop(): void {
    this.#isStopped = true;
    this.clear();
    this.#entry.cancel();
  }

  tick(nowMs: number): void {
    if (this.#isStopped) return;
    const { frameMs, onSkipped } = this.#options;
    const missed = Math.floor((nowMs - this.#nextMs) / frameMs) + 1 - MAX_BEHIND;
    if (missed > 0) {
      this.#nextMs += missed * frameMs;
      onSkipped(missed);
      // Time has passed without sound: what follows begins a talkspurt.
      this.#wasSilent = true;
    }
    this.#due = this.#beat();
    this.#nextMs += frameMs;
    if (!this.#isStopped) this.#entry.wakeAt(Math.max(this.#nextMs, nowMs + frameMs / 2));
  }

  send(): void {
    const due = this.#due;
    if (due === null) return;
    this.#due = null;
    this.#options.send(due);
  }

  /** null: the player was stopped meanwhile. */
  #beat(): PacedFrame | null {
    for (;;) {
      const item = this.#waiting.shift();
      if (item === undefined) {
        this.#wasSilent = true;
        return { bytes: this.#options.silence, isTalkspurtStart: false };
      }
      if ("frame" in item) {
        const isTalkspurtStart = this.#wasSilent;
        this.#wasSilent = false;
        return { bytes: item.frame, isTalkspurtStart };
      }
      // The frame before it left a beat ago: it is over. Who hears of it may stop the player.
      this.#options.onPlayed(item.mark);
      if (this.#isStopped) return null;
    }
  }

  #bound(): void {
    this.#waiting.splice(0, Math.max(0, this.#waiting.length - MAX_WAITING));
  }
}
