/**
 * For a peer that plays what it gets at once and has no buffer to speak of (AudioSocket, RTP): one frame leaves at each
 * beat, silence where there is no speech, and a mark is played when the frame before it is over.
 *
 * Beats stand on one grid for all players (multiples of the frame length, which the pacer's slots divide), so that a
 * thousand calls wake the process fifty times a second and not fifty thousand.
 */
import type { Paced, PacedEntry } from "../fanout/pacer.ts";

export interface PacedPlayerOptions {
  readonly frameMs: number;
  /** One frame of it; sent where there is nothing else. */
  readonly silence: Uint8Array;
  /** Makes the entry that wakes this player (`Pacer.register`). */
  readonly register: (paced: Paced) => PacedEntry;
  readonly nowMs: () => number;
  /** The frames of one beat, or of the few that are made up for after a late one. */
  readonly send: (frames: readonly PacedFrame[]) => void;
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

/** Beats that are made up for at once after a late wake; a jitter buffer takes no more in a row. */
const MAX_BACK_TO_BACK = 3;
/** Frames and marks that wait; the session sends ahead by its lead only, so this is never reached but by a fault. */
const MAX_WAITING = 1000;

export class PacedPlayer implements Paced {
  readonly #options: PacedPlayerOptions;
  readonly #entry: PacedEntry;
  #waiting: Item[] = [];
  #due: PacedFrame[] = [];
  #nextMs = 0;
  #wasSilent = true;
  #isStopped = false;

  constructor(options: PacedPlayerOptions) {
    this.#options = options;
    this.#entry = options.register(this);
  }

  /** Frames that wait, for statistics. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** The first beat is the next of the grid. */
  start(): void {
    const { frameMs, nowMs } = this.#options;
    this.#nextMs = (Math.floor(nowMs() / frameMs) + 1) * frameMs;
    this.#entry.wakeAt(this.#nextMs);
  }

  /** Copies them. Returns how many frames were dropped because too many wait: the oldest. */
  push(frames: readonly Uint8Array[]): number {
    for (const frame of frames) this.#waiting.push({ frame: frame.slice() });
    return this.#bound();
  }

  mark(name: string): void {
    this.#waiting.push({ mark: name });
    this.#bound();
  }

  /** What waits is not played, nor are its marks. */
  clear(): void {
    this.#waiting = [];
    this.#due = [];
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
    const missed = Math.floor((nowMs - this.#nextMs) / frameMs) + 1 - MAX_BACK_TO_BACK;
    if (missed > 0) {
      this.#nextMs += missed * frameMs;
      onSkipped(missed);
      // Time has passed without sound: what follows begins anew.
      this.#wasSilent = true;
    }
    for (; this.#nextMs <= nowMs && !this.#isStopped; this.#nextMs += frameMs) this.#beat();
    if (!this.#isStopped) this.#entry.wakeAt(this.#nextMs);
  }

  send(): void {
    const due = this.#due;
    if (due.length === 0) return;
    this.#due = [];
    this.#options.send(due);
  }

  #beat(): void {
    for (;;) {
      const item = this.#waiting.shift();
      if (item === undefined) {
        this.#due.push({ bytes: this.#options.silence, isTalkspurtStart: false });
        this.#wasSilent = true;
        return;
      }
      if ("frame" in item) {
        this.#due.push({ bytes: item.frame, isTalkspurtStart: this.#wasSilent });
        this.#wasSilent = false;
        return;
      }
      // The frame before it left a beat ago: it is over. Told of, it may stop the player.
      this.#options.onPlayed(item.mark);
      if (this.#isStopped) return;
    }
  }

  #bound(): number {
    const excess = this.#waiting.length - MAX_WAITING;
    if (excess <= 0) return 0;
    const dropped = this.#waiting.splice(0, excess);
    return dropped.filter((item) => "frame" in item).length;
  }
}
