/**
 * What stands at the far end of a call: plays what it is sent, sample by sample on a clock, and knows at each moment what
 * the caller has really heard. Nothing but the clock moves it.
 */
import type { Clock, Timer } from "../../../src/kit/clock.ts";

export interface PlayerOptions {
  readonly clock: Clock;
  /** Hz. */
  readonly sampleRate: number;
  readonly bytesPerSample: 1 | 2;
  /** From silence, nothing is played before so much waits; default 0. */
  readonly prebufferMs?: number;
}

interface Notice {
  readonly atSamples: number;
  readonly action: () => void;
}

export class VirtualPlayer {
  readonly #options: PlayerOptions;
  /** What waits, and what was heard of it. */
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  readonly #heard: Uint8Array[] = [];
  #heardBytes = 0;
  /** When the first byte that waits is due; null while nothing is played. */
  #runMs: number | null = null;
  #notices: Notice[] = [];
  #timer: Timer | null = null;

  constructor(options: PlayerOptions) {
    this.#options = options;
  }

  /** Samples played up to now, silence between utterances not counted. */
  get playedSamples(): number {
    this.#advance();
    return this.#heardBytes / this.#options.bytesPerSample;
  }

  /** Where in played samples the last byte that waits stands. */
  get endSamples(): number {
    this.#advance();
    return (this.#heardBytes + this.#queuedBytes) / this.#options.bytesPerSample;
  }

  get queuedSamples(): number {
    this.#advance();
    return this.#queuedBytes / this.#options.bytesPerSample;
  }

  /** Every byte that was played up to now, in order. */
  heard(): Uint8Array {
    this.#advance();
    return Buffer.concat(this.#heard);
  }

  /** Keeps a copy. */
  push(audio: Uint8Array): void {
    this.#advance();
    if (audio.length === 0) return;
    this.#queue.push(audio.slice());
    this.#queuedBytes += audio.length;
    this.#begin();
  }

  /** Calls `action` once, when `atSamples` have been played: now, where they have. */
  notify(atSamples: number, action: () => void): void {
    if (this.playedSamples >= atSamples) {
      action();
      return;
    }
    this.#notices.push({ atSamples, action });
    this.#arm();
  }

  /** Throws away what waits and all notices. */
  clear(): void {
    this.#advance();
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#runMs = null;
    this.#notices = [];
    this.close();
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  get #bytesPerMs(): number {
    return (this.#options.sampleRate * this.#options.bytesPerSample) / 1000;
  }

  get #prebufferBytes(): number {
    return Math.max(1, (this.#options.prebufferMs ?? 0) * this.#bytesPerMs);
  }

  #begin(): void {
    if (this.#runMs === null && this.#queuedBytes >= this.#prebufferBytes)
      this.#runMs = this.#options.clock.nowMs();
    this.#arm();
  }

  /** Moves to what the caller has heard all that is due by now. */
  #advance(): void {
    if (this.#runMs === null) return;
    const { clock, bytesPerSample } = this.#options;
    // A thousandth of a sample: what is due at this very moment has been played, whatever division did to it.
    const samples = Math.floor(((clock.nowMs() - this.#runMs) * this.#bytesPerMs) / bytesPerSample + 1e-3);
    const bytes = Math.min(this.#queuedBytes, samples * bytesPerSample);
    this.#runMs += bytes / this.#bytesPerMs;
    this.#take(bytes);
    if (this.#queuedBytes === 0) this.#runMs = null;
  }

  #take(bytes: number): void {
    let left = bytes;
    while (left > 0) {
      const first = this.#queue[0] ?? new Uint8Array(0);
      const part = first.subarray(0, left);
      this.#heard.push(part);
      if (part.length === first.length) this.#queue.shift();
      else this.#queue[0] = first.subarray(part.length);
      left -= part.length;
    }
    this.#queuedBytes -= bytes;
    this.#heardBytes += bytes;
  }

  #arm(): void {
    this.close();
    const next = Math.min(...this.#notices.map((notice) => notice.atSamples));
    if (next === Number.POSITIVE_INFINITY || this.#runMs === null) return;
    const { clock, sampleRate, bytesPerSample } = this.#options;
    const missing = next - this.#heardBytes / bytesPerSample;
    this.#timer = clock.at(this.#runMs + (missing * 1000) / sampleRate, () => this.#notifyPlayed());
  }

  #notifyPlayed(): void {
    const played = this.playedSamples;
    const due = this.#notices.filter((notice) => notice.atSamples <= played);
    this.#notices = this.#notices.filter((notice) => notice.atSamples > played);
    for (const notice of due) notice.action();
    this.#arm();
  }
}
