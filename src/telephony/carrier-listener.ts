/**
 * A phone call as a listener: frames become the carrier's messages, `interrupted` becomes its `clear`, and marks that come
 * back say how far the carrier has really played.
 *
 *   frames, every markMs a mark --> the carrier's queue --> played
 *                                   ^ clear empties it       `--> mark comes back: acknowledged at its place
 */

import type { Delivery, Listener, SendResult } from "../delivery/listener.ts";
import { GatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { CarrierCodec, Wire } from "../protocol/carrier/carrier.ts";
import type { Event, InterruptedEvent } from "../protocol/events.ts";
import type { CarrierCounts } from "./call-stats.ts";

/** The connection's side: one socket, without the server library behind it. */
export interface CallLine {
  /** In order, in one system call. */
  send(messages: readonly Wire[]): SendResult;
  /** Bytes accepted but not yet taken by the operating system. */
  bufferedBytes(): number;
  /** Ends the connection; its owner hears of it through its own close handler. */
  end(closeCode: number, reason: string): void;
}

export interface CarrierListenerOptions {
  readonly codec: Pick<CarrierCodec, "audio" | "mark" | "clear" | "flush">;
  readonly line: CallLine;
  readonly clock: Clock;
  /** How often a mark is asked for, ms of audio; 0: never. */
  readonly markMs: number;
  readonly frameMs: number;
  readonly counts: CarrierCounts;
  /** Whether nothing follows at once on what was sent: then what the codec holds back goes out. */
  readonly isSentOut: () => boolean;
  /** The session ends the connection. */
  readonly onEnd: (closeCode: number, reason: string) => void;
  /** Some of what the carrier held up has left: a listener that fell behind may have room again. No socket drains then. */
  readonly onRoom: () => void;
}

/**
 * An utterance's end may become known when its last frame has left: so long behind a batch it is asked again, ms. Longer
 * than the time between two batches.
 */
const SETTLE_MS = 120;
/** Marks that wait for a carrier that does not answer: the oldest are forgotten. */
const MAX_MARKS = 256;
/** What a carrier held up goes out in pieces: so much time between two, ms. */
const RELEASE_EVERY_MS = 100;
/**
 * How fast, in times of real time. Faster than it is played, so that it catches up; slow enough that the next `hold`
 * stops it in time: Asterisk has room for 100 frames from MEDIA_XOFF on, 2 s, and drops what comes then.
 */
const RELEASE_SPEED = 2;

export class CarrierListener implements Listener {
  readonly surface = "call";
  readonly #options: CarrierListenerOptions;
  /** Where on the timeline each mark stands that has not come back, ms; in the order sent. */
  readonly #marks = new Map<string, number>();
  #lastMark = 0;
  /** Audio sent since the last mark, ms; null: none since the audio began or was cut. */
  #unmarkedMs: number | null = null;
  /** Where on the timeline the next frame stands, ms: frames follow each other but where an event says otherwise. */
  #nextMs = 0;
  /** End of the audio sent, ms on the timeline. */
  #endMs = 0;
  /** Sent since the last flush. */
  #isMidway = false;
  /** Sent since the last clear. */
  #isAnySent = false;
  /** Messages that wait while the carrier asks for none; null while it takes them at once. */
  #held: Wire[] | null = null;
  #heldBytes = 0;
  /** While what waits goes out bit by bit. */
  #releaseTimer: Timer | null = null;
  #settleTimer: Timer | null = null;
  #isClosed = false;

  constructor(options: CarrierListenerOptions) {
    this.#options = options;
  }

  deliver(batch: readonly Delivery[]): SendResult {
    if (this.#isClosed) return "sent";
    let wires: Wire[] = [];
    let frames: Uint8Array[] = [];
    for (const item of batch) {
      if (item instanceof Uint8Array) {
        frames.push(item);
        if (!this.#noteFrame()) continue;
        wires.push(...this.#audio(frames));
        frames = [];
        this.#mark(wires);
      } else if (item.event?.type === "interrupted") {
        const clear = this.#cut(item.event);
        if (clear === null) continue;
        // What stands before the cut in this batch was never sent: it need not be.
        frames = [];
        wires = [...clear];
      } else if (item.type === "utterance.done") {
        wires.push(...this.#audio(frames));
        frames = [];
        this.#finish(wires);
      }
    }
    wires.push(...this.#audio(frames));
    this.#finish(wires);
    if (this.#isMidway) this.#settleSoon();
    return this.#send(wires);
  }

  /** `hello` says where its audio starts, `gap` what it missed. */
  notify(event: Event): SendResult {
    if (event.type === "hello") this.#nextMs = event.audio?.start_ms ?? 0;
    if (event.type === "gap") {
      this.#nextMs += event.frames * this.#options.frameMs;
      // What comes next does not join on: a mark behind its first frame says where it begins.
      this.#unmarkedMs = null;
    }
    return "sent";
  }

  /** Whether the carrier has not said yet that it has played all it was sent. */
  get hasUnplayed(): boolean {
    return this.#marks.size > 0;
  }

  /** A mark has come back: up to where on the timeline the carrier has played, ms; null for one that counts for nothing. */
  played(name: string): number | null {
    const atMs = this.#marks.get(name);
    if (atMs === undefined) return null;
    // They come back in the order sent: what was before it was played as well.
    for (const earlier of this.#marks.keys()) {
      this.#marks.delete(earlier);
      if (earlier === name) break;
    }
    this.#options.counts.played += 1;
    return atMs;
  }

  /** The carrier's buffer is full: what comes waits here, as far as the send queue lets it. */
  hold(): void {
    this.#held ??= [];
    this.#stopRelease();
  }

  /** There is room again: what waits goes out little by little, what comes meanwhile behind it. */
  goOn(): void {
    if (this.#releaseTimer === null) this.#release();
  }

  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#options.line.bufferedBytes() + this.#heldBytes;
  }

  end(closeCode: number, reason: string): void {
    if (!this.#isClosed) this.#options.onEnd(closeCode, reason);
  }

  /** Nothing is sent any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#settleTimer?.cancel();
    this.#marks.clear();
    this.#dropHeld();
  }

  /** Counts a frame; true where a mark is due behind it. */
  #noteFrame(): boolean {
    const { markMs, frameMs } = this.#options;
    this.#nextMs += frameMs;
    this.#endMs = this.#nextMs;
    this.#isMidway = true;
    this.#isAnySent = true;
    // The first one soon: where a carrier begins to play is what the estimate knows least.
    const isFirst = this.#unmarkedMs === null;
    this.#unmarkedMs = (this.#unmarkedMs ?? 0) + frameMs;
    return markMs > 0 && (isFirst || this.#unmarkedMs >= markMs);
  }

  #audio(frames: readonly Uint8Array[]): readonly Wire[] {
    const { codec } = this.#options;
    // What waits leaves by the frame: a codec may join all it gets at once into one message.
    if (this.#held !== null) return frames.flatMap((frame) => codec.audio([frame]));
    return frames.length === 0 ? [] : codec.audio(frames);
  }

  #mark(wires: Wire[]): void {
    this.#lastMark += 1;
    const name = `m${this.#lastMark}`;
    this.#unmarkedMs = 0;
    const mark = this.#options.codec.mark(name);
    // A codec that holds audio back holds the mark back with it.
    if (mark !== null) wires.push(mark);
    this.#marks.set(name, this.#endMs);
    this.#options.counts.marks += 1;
    for (const oldest of this.#marks.keys()) {
      if (this.#marks.size <= MAX_MARKS) break;
      this.#marks.delete(oldest);
    }
  }

  /** Where an utterance ends: what the codec holds back, and a mark behind it. */
  #finish(wires: Wire[]): void {
    if (!this.#isMidway || !this.#options.isSentOut()) return;
    this.#isMidway = false;
    wires.push(...this.#options.codec.flush());
    if (this.#options.markMs > 0 && this.#unmarkedMs !== 0) this.#mark(wires);
    this.#unmarkedMs = null;
  }

  #settleSoon(): void {
    const { clock } = this.#options;
    this.#settleTimer?.cancel();
    this.#settleTimer = clock.at(clock.nowMs() + SETTLE_MS, () => {
      const wires: Wire[] = [];
      this.#finish(wires);
      this.#send(wires);
      if (this.#isMidway && !this.#isClosed) this.#settleSoon();
    });
  }

  /** The messages that throw away what was not played; null where nothing was sent that could be. */
  #cut({ next_ms }: InterruptedEvent): readonly Wire[] | null {
    // No audio was cut of an utterance that had not begun.
    if (next_ms === null) return null;
    this.#nextMs = next_ms;
    this.#endMs = next_ms;
    // Several utterances may be cut at once, each with its event.
    if (!this.#isAnySent) return null;
    this.#isAnySent = false;
    this.#marks.clear();
    // A carrier that is full is not any more.
    this.#dropHeld();
    this.#unmarkedMs = null;
    this.#isMidway = false;
    this.#options.counts.clears += 1;
    return this.#options.codec.clear();
  }

  #send(wires: readonly Wire[]): SendResult {
    if (wires.length === 0 || this.#isClosed) return this.#held === null ? "sent" : "buffered";
    if (this.#held === null) return this.#options.line.send(wires);
    for (const wire of wires) {
      // Bytes are views of the ring of frames, good for this call only.
      this.#held.push(typeof wire === "string" ? wire : wire.slice());
      this.#heldBytes += wire.length;
    }
    return "buffered";
  }

  /** Sends the next piece, and sees to the one after it. */
  #release(): void {
    const held = this.#held;
    if (held === null) return;
    const { line, clock, frameMs, onRoom } = this.#options;
    // The connection may be behind as well: then the next time.
    if (line.bufferedBytes() === 0) {
      // While it waits a wire is one frame, or a mark.
      const piece = held.splice(0, Math.ceil((RELEASE_SPEED * RELEASE_EVERY_MS) / frameMs));
      for (const wire of piece) this.#heldBytes -= wire.length;
      if (line.send(piece) === "dropped") {
        const error = new GatewayError("slow_consumer", "Carrier reads too slowly: its connection is full");
        this.end(error.closeCode, error.code);
        return;
      }
    }
    if (held.length === 0) this.#dropHeld();
    else this.#releaseTimer = clock.at(clock.nowMs() + RELEASE_EVERY_MS, () => this.#release());
    onRoom();
  }

  #stopRelease(): void {
    this.#releaseTimer?.cancel();
    this.#releaseTimer = null;
  }

  #dropHeld(): void {
    this.#stopRelease();
    this.#held = null;
    this.#heldBytes = 0;
  }
}
