/** The caller's voice in what a speaker asked for: decoded, resampled, cut into frames of 20 ms, and sent with a bound. */

import { createSourceDecoder, type SourceDecoder } from "../audio/containers/source-decoder.ts";
import { createFrameMaker, type FrameMaker } from "../audio/framing/frame-maker.ts";
import type { Listener } from "../delivery/listener.ts";
import type { CallerFormat } from "../protocol/vocabulary.ts";

/** Length of the frames that speakers get, ms. */
const CALLER_FRAME_MS = 20;
/** What waits for one speaker; the oldest goes. */
const MAX_WAITING_BYTES = 64 * 1024;
/** A socket that holds so much is behind: its events come first. */
const BEHIND_BYTES = 8 * 1024;

/** One call's voice in one format. */
export class CallerVoice {
  readonly #maker: FrameMaker;
  /** null where the bytes are what is wanted already. */
  readonly #decoder: SourceDecoder | null;

  /** `onFrame`: one whole frame; copy what is kept. */
  constructor(from: CallerFormat, to: CallerFormat, onFrame: (frame: Uint8Array) => void) {
    this.#decoder = from === to ? null : createSourceDecoder(from);
    this.#maker = createFrameMaker(
      { format: to, frameMs: CALLER_FRAME_MS },
      {
        frames: (bytes, frameBytes) => {
          for (let at = 0; at < bytes.length; at += frameBytes) onFrame(bytes.subarray(at, at + frameBytes));
        },
        // Only Opus frames can fail, and none are made here.
        error: (error) => {
          throw error;
        },
      },
    );
  }

  push(audio: Uint8Array): void {
    if (this.#decoder === null) this.#maker.pushPassThrough(audio);
    else this.#maker.pushPcm(this.#decoder.push(audio), this.#decoder.sampleRate);
  }

  /** Idempotent. */
  close(): void {
    this.#decoder?.close();
    this.#maker.close();
  }
}

export interface CallerFeedOptions {
  readonly listener: Listener;
  /** Frames that were left out before the next one. */
  readonly emitGap: (gap: { readonly frames: number; readonly ms: number }) => void;
}

/** Sends callers' voices to one speaker. Frames that it is too slow for are left out, the oldest first, and reported by a `gap`. */
export class CallerFeed {
  readonly #options: CallerFeedOptions;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #unreported = 0;

  constructor(options: CallerFeedOptions) {
    this.#options = options;
  }

  /** Returns how many frames were left out. */
  push(frame: Uint8Array): number {
    this.drain();
    if (this.#waiting.length === 0 && this.#hasRoom) {
      this.#send(frame);
      return 0;
    }
    this.#waiting.push(frame.slice());
    this.#waitingBytes += frame.length;
    let dropped = 0;
    while (this.#waitingBytes > MAX_WAITING_BYTES) {
      this.#waitingBytes -= this.#waiting.shift()?.length ?? 0;
      dropped += 1;
    }
    this.#unreported += dropped;
    return dropped;
  }

  /** Sends what waits as far as the socket takes it. */
  drain(): void {
    while (this.#hasRoom) {
      const frame = this.#waiting.shift();
      if (frame === undefined) return;
      this.#waitingBytes -= frame.length;
      this.#send(frame);
    }
  }

  get #hasRoom(): boolean {
    return this.#options.listener.bufferedBytes() < BEHIND_BYTES;
  }

  #send(frame: Uint8Array): void {
    const frames = this.#unreported;
    this.#unreported = 0;
    if (frames > 0) this.#options.emitGap({ frames, ms: frames * CALLER_FRAME_MS });
    this.#options.listener.deliver([frame], "utf16");
  }
}
