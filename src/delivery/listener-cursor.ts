/**
 * What one listener is sent, and where it stands. In lockstep with its group it costs one delivery a batch. Behind (its
 * socket is full) it keeps its own places in the frames and the events, and catches up when the socket drains:
 *
 *   lockstep --socket is over BEHIND_FROM--> behind --under ROOM_BELOW, `lossless`: gets the frames it missed--> lockstep
 *                                               \-----under ROOM_BELOW, others: every event it missed, a `gap`--> lockstep
 *   `captions`: from SHORT_FROM on its audio is left out, so that events get through; a `gap` when it drains
 *   behind, and an event it needs has left the log --> closed with slow_consumer
 *   the socket is over its own bound, which is maxOutboxBytes and a batch --> closed with slow_consumer
 */
import { GatewayError } from "../errors.ts";
import type { Event } from "../protocol/events.ts";
import type { OffsetUnit, Policy } from "../protocol/vocabulary.ts";
import type { Delivery, Listener } from "./listener.ts";

/** Shares of maxOutboxBytes that wait in the socket. */
const BEHIND_FROM = 1 / 2;
const ROOM_BELOW = 1 / 4;
const SHORT_FROM = 1 / 8;

export interface ListenerCursorOptions {
  readonly listener: Listener;
  readonly policy: Policy;
  readonly offsets: OffsetUnit;
  readonly maxOutboxBytes: number;
  /** It ends the listener. */
  readonly onEnd?: (error: GatewayError) => void;
}

export interface Behind {
  frame: number;
  event: number;
  /** Behind because it joined late, not because it reads slowly: it gets the frames before the group's as well. */
  readonly isJoining: boolean;
}

type SocketRoom = "room" | "full";

export class ListenerCursor {
  readonly #listener: Listener;
  readonly #offsets: OffsetUnit;
  readonly #maxOutboxBytes: number;
  readonly #onEnd: (error: GatewayError) => void;
  readonly policy: Policy;
  /** Its own places while behind; null in lockstep with the group. */
  behind: Behind | null = null;
  framesSent = 0;
  /** Frames that it has missed, as far as a `gap` has said so. */
  framesDropped = 0;
  /** Frames left out since the last `gap`. */
  #unreportedFrames = 0;
  #isClosed = false;

  constructor(options: ListenerCursorOptions) {
    this.#listener = options.listener;
    this.#offsets = options.offsets;
    this.policy = options.policy;
    this.#maxOutboxBytes = options.maxOutboxBytes;
    this.#onEnd = options.onEnd ?? (() => undefined);
  }

  /** Sends a batch, `frames` of it audio; says whether the socket has room to go on. */
  sendBatch(batch: readonly Delivery[], frames: number): SocketRoom {
    if (this.#isClosed) return "room";
    this.framesSent += frames;
    const result = this.#listener.deliver(batch, this.#offsets);
    if (result === "sent") return "room";
    if (result === "dropped") this.end(socketFull());
    const isFull = !this.#isClosed && this.#listener.bufferedBytes() > this.#maxOutboxBytes * BEHIND_FROM;
    return isFull ? "full" : "room";
  }

  /** Whether audio has to stand back so that events get through (policy `captions`). */
  get isAudioLeftOut(): boolean {
    if (this.policy !== "captions") return false;
    // Once audio was left out it stays out until the socket has drained and the `gap` is sent.
    return this.#unreportedFrames > 0 || this.#listener.bufferedBytes() > this.#maxOutboxBytes * SHORT_FROM;
  }

  /** These frames are not sent. */
  leaveOut(frames: number): void {
    this.#unreportedFrames += frames;
  }

  /** Frames left out that no `gap` has reported yet. */
  takeLeftOut(): number {
    const frames = this.#unreportedFrames;
    this.#unreportedFrames = 0;
    return frames;
  }

  /** An event to this listener alone (hello, error, pong, gap). */
  notify(event: Event): void {
    if (this.#isClosed) return;
    if (this.#listener.notify(event) === "dropped") this.end(socketFull());
  }

  /** Bytes to send at most before the socket is looked at again. */
  get stepBytes(): number {
    return this.#maxOutboxBytes * ROOM_BELOW;
  }

  /** Whether a drained socket has enough room to go on. */
  hasRoom(): boolean {
    return !this.#isClosed && this.#listener.bufferedBytes() < this.#maxOutboxBytes * ROOM_BELOW;
  }

  end(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onEnd(error);
    this.#listener.end(error.closeCode, error.code);
  }
}

function socketFull(): GatewayError {
  return new GatewayError(
    "slow_consumer",
    "Listener reads too slowly: its socket holds more than max-outbox-bytes and a batch",
  );
}
