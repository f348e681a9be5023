/** The browser's own share of the wait for the first sound of an utterance: network, decoding, playout. */

export interface BrowserStages {
  /** Command sent -> first frame here, less what the gateway accounts for; null where another tab spoke. */
  readonly sentToFrameMs: number | null;
  readonly decodeMs: number;
  /** Decoded -> played: the jitter buffer and the device. */
  readonly playoutMs: number;
}

interface Open {
  readonly id: string;
  readonly startMs: number;
  frameAtMs: number | null;
}

/** Bound on utterances that were sent and not yet begun. */
const MAX_SENT = 128;

/** All times in are of one wall clock (`performance.now`). */
export class SoundLatency {
  readonly #sent = new Map<string, number>();
  readonly #done = new Map<string, BrowserStages>();
  #open: Open[] = [];

  sent(id: string, nowMs: number): void {
    this.#sent.set(id, nowMs);
    const oldest = this.#sent.keys().next().value;
    if (this.#sent.size > MAX_SENT && oldest !== undefined) this.#sent.delete(oldest);
  }

  /** The utterance's audio begins at `startMs` of the timeline. */
  started(id: string, startMs: number): void {
    this.#open.push({ id, startMs, frameAtMs: null });
    if (this.#open.length > MAX_SENT) this.#open.shift();
  }

  frame(endMs: number, nowMs: number): void {
    for (const open of this.#open)
      if (open.frameAtMs === null && endMs > open.startMs) open.frameAtMs = nowMs;
  }

  /** A decoded block that ends at `endMs` of the timeline will be played in `untilPlayedMs`. */
  block(endMs: number, nowMs: number, untilPlayedMs: number): void {
    const played = this.#open.filter((open) => open.frameAtMs !== null && endMs > open.startMs);
    if (played.length === 0) return;
    this.#open = this.#open.filter((open) => !played.includes(open));
    for (const open of played) {
      const frameAtMs = open.frameAtMs ?? nowMs;
      const sentAtMs = this.#sent.get(open.id);
      this.#done.set(open.id, {
        sentToFrameMs: sentAtMs === undefined ? null : frameAtMs - sentAtMs,
        decodeMs: nowMs - frameAtMs,
        playoutMs: Math.max(0, untilPlayedMs),
      });
    }
  }

  /** Hands out and forgets what was measured of an utterance; null where nothing of it was played here. */
  take(id: string): BrowserStages | null {
    const stages = this.#done.get(id) ?? null;
    this.#done.delete(id);
    this.#sent.delete(id);
    return stages;
  }
}
